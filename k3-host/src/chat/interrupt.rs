//! Ctrl-C while the model works.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::failure::{Failure, Outcome};

/// How often somebody has to ask until the program ends at once, without waiting for the pass that is being computed.
const INSISTING: u32 = 3;

/// The exit code of a program that an interrupt ends, as shells give it.
const INTERRUPTED: i32 = 130;

/// Whether somebody wants the answer to stop.
#[derive(Debug, Clone, Default)]
pub struct Interrupt {
    requests: Arc<AtomicU32>,
}

impl Interrupt {
    /// One that Ctrl-C requests from now on.
    ///
    /// # Errors
    /// If the system does not allow it.
    pub fn on_ctrl_c() -> Outcome<Self> {
        let interrupt = Self::default();
        let requests = Arc::clone(&interrupt.requests);
        ctrlc::set_handler(move || {
            if requests.fetch_add(1, Ordering::Relaxed) + 1 >= INSISTING {
                std::process::exit(INTERRUPTED);
            }
        })
        .map_err(Failure::failed)?;
        Ok(interrupt)
    }

    /// Asks for the answer to stop.
    pub fn request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether that was asked.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.requests.load(Ordering::Relaxed) > 0
    }

    /// Forgets what was asked.
    pub fn clear(&self) {
        self.requests.store(0, Ordering::Relaxed);
    }
}
