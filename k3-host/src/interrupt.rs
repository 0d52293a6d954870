//! Ctrl-C while the model works: the first one is a wish, heard between passes; a later one ends the program at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::failure::{Failure, Outcome};

/// Whether somebody wants the work to stop.
#[derive(Debug, Clone, Default)]
pub struct Interrupt {
    requests: Arc<AtomicU32>,
    next_ends_program: Arc<AtomicBool>,
}

/// Who may ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requests {
    /// Somebody at the keyboard, with Ctrl-C.
    CtrlC,
    /// That, or another program, with the signal that asks a program to end.
    CtrlCOrTermination,
}

impl Interrupt {
    /// One for a conversation: Ctrl-C ends an answer. The third one in a turn ends the program.
    ///
    /// # Errors
    /// If the system does not allow it.
    pub fn of_turn() -> Outcome<Self> {
        Self::listen(Requests::CtrlC, 3, || {})
    }

    /// One for a run: Ctrl-C or a request to terminate ends it. `heard` is called on the first; the second ends the program.
    ///
    /// # Errors
    /// If the system does not allow it.
    pub fn of_run(heard: impl FnMut() + Send + 'static) -> Outcome<Self> {
        Self::listen(Requests::CtrlCOrTermination, 2, heard)
    }

    /// Counts requests, calls `heard` on the first, and lets number `insisting` end the program.
    fn listen(requests: Requests, insisting: u32, mut heard: impl FnMut() + Send + 'static) -> Outcome<Self> {
        let interrupt = Self::default();
        let counted = interrupt.clone();
        let on_request = move || {
            let count = counted.requests.fetch_add(1, Ordering::Relaxed) + 1;
            if count + 1 >= insisting {
                counted.next_ends_program.store(true, Ordering::Relaxed);
            }
            if count == 1 {
                heard();
            }
        };
        system::listen(requests, &interrupt.next_ends_program, on_request).map_err(Failure::failed)?;
        Ok(interrupt)
    }

    /// Asks for the work to stop.
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
        self.next_ends_program.store(false, Ordering::Relaxed);
        self.requests.store(0, Ordering::Relaxed);
    }
}

#[cfg(unix)]
mod system {
    use std::io;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use signal_hook::consts::{SIGINT, SIGTERM};
    use signal_hook::flag::register_conditional_default;
    use signal_hook::iterator::Signals;

    use super::Requests;

    /// Calls `on_request`, on a thread of its own, for each request. One that comes while `ends_program` is set does what it
    /// would do without us, whatever the threads of the program are waiting for.
    pub fn listen(
        requests: Requests,
        ends_program: &Arc<AtomicBool>,
        mut on_request: impl FnMut() + Send + 'static,
    ) -> io::Result<()> {
        let wanted = match requests {
            Requests::CtrlC => &[SIGINT][..],
            Requests::CtrlCOrTermination => &[SIGINT, SIGTERM],
        };
        for &signal in wanted {
            register_conditional_default(signal, Arc::clone(ends_program))?;
        }
        let mut signals = Signals::new(wanted)?;
        std::thread::spawn(move || signals.forever().for_each(|_| on_request()));
        Ok(())
    }
}

#[cfg(not(unix))]
mod system {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::Requests;

    /// The exit code of a program that Ctrl-C ends, as shells give it.
    const INTERRUPTED: i32 = 130;

    /// Calls `on_request`, on a thread of its own, for each Ctrl-C, which is the only request there is. One that comes while
    /// `ends_program` is set ends the program.
    pub fn listen(
        _: Requests,
        ends_program: &Arc<AtomicBool>,
        mut on_request: impl FnMut() + Send + 'static,
    ) -> Result<(), ctrlc::Error> {
        let ends_program = Arc::clone(ends_program);
        ctrlc::set_handler(move || {
            if ends_program.load(Ordering::Relaxed) {
                std::process::exit(INTERRUPTED);
            }
            on_request();
        })
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::sync::mpsc;

    use signal_hook::consts::{SIGINT, SIGTERM};
    use signal_hook::low_level::raise;

    use super::*;

    /// Raises a signal and waits until it was counted.
    fn ask(interrupt: &Interrupt, signal: i32) {
        let before = interrupt.requests.load(Ordering::Relaxed);
        raise(signal).unwrap();
        while interrupt.requests.load(Ordering::Relaxed) == before {
            std::thread::yield_now();
        }
    }

    /// In one test, since signals are of the whole process. What ends the program is tested from outside.
    #[test]
    fn requests_are_counted_until_they_are_cleared() {
        let (heard, calls) = mpsc::channel();
        let interrupt = Interrupt::listen(Requests::CtrlCOrTermination, 4, move || heard.send(()).unwrap()).unwrap();
        let ends_next = || interrupt.next_ends_program.load(Ordering::Relaxed);
        assert!(!interrupt.is_requested());
        for _ in 0..2 {
            ask(&interrupt, SIGINT);
            calls.recv().unwrap();
            assert!(interrupt.is_requested() && !ends_next());
            ask(&interrupt, SIGTERM);
            assert!(!ends_next());
            interrupt.clear();
            assert!(!interrupt.is_requested());
        }
        for ends in [false, false, true] {
            ask(&interrupt, SIGINT);
            // Set just after the request is counted.
            while ends && !ends_next() {
                std::thread::yield_now();
            }
            assert_eq!(ends_next(), ends);
        }
        assert_eq!(calls.iter().next(), Some(()));
        assert!(calls.try_recv().is_err(), "heard on the first of three only");
        interrupt.clear();
        assert!(!ends_next(), "a new turn begins with all its patience");
    }
}
