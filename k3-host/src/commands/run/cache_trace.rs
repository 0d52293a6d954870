//! The trace of what a run asks its expert cache for.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use crate::engine::Engine;
use crate::failure::{Failure, Outcome};
use crate::streaming::experts::ExpertReader;
use crate::trace::{PolicyName, Setting, TraceWriter};

/// A trace that is being written. Dropped before [`CacheTrace::finish`], it leaves what was there.
pub struct CacheTrace {
    experts: Arc<ExpertReader>,
    writer: Arc<Mutex<TraceWriter>>,
}

impl CacheTrace {
    /// Starts the file that will stand at `path`.
    ///
    /// # Errors
    /// A refusal if the engine has no cache, because all weights are in memory; if the file cannot be written.
    pub fn begin(path: &Path, engine: &Engine) -> Outcome<Self> {
        let experts = engine.expert_reader().cloned().ok_or_else(|| {
            Failure::refused(
                "--dump-cache-trace: all experts are in memory, there is no cache; --cache-gb asks for one",
            )
        })?;
        let setting = Setting {
            grid: experts.grid(),
            expert_bytes: experts.expert_bytes(),
            slots: experts.slots(),
            policy: PolicyName::LayerShare,
        };
        let writer = TraceWriter::create(path, &setting).map_err(Failure::not_written)?;
        let writer = Arc::new(Mutex::new(writer));
        let watching = Arc::clone(&writer);
        experts.watch(Some(Box::new(move |layer, ids| {
            watching.lock().unwrap_or_else(PoisonError::into_inner).batch(layer, ids);
        })));
        Ok(Self { experts, writer })
    }

    /// Puts the finished file in its place.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(self) -> Outcome {
        let Self { experts, writer } = self;
        experts.watch(None);
        let writer = Arc::into_inner(writer).expect("nobody else watches");
        let writer = writer.into_inner().unwrap_or_else(PoisonError::into_inner);
        writer.finish(experts.cache_counters()).map_err(Failure::not_written)
    }
}
