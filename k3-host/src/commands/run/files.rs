//! The files that a run leaves behind.

use k3_core::model::Model;
use k3_core::model::state_file::Saved;

use super::RunArgs;
use super::cache_trace::CacheTrace;
use crate::engine::Engine;
use crate::failure::{Failure, Outcome};
use crate::replace::Replacement;
use crate::report::{LogitDump, Results};
use crate::state_file;

/// The files that were asked for. They are begun before the run, so that a place that cannot be written to is known then; one
/// that is not finished leaves what was there.
pub struct Files {
    /// The logits of every position.
    pub logits: Option<LogitDump>,
    state: Option<Replacement>,
    results: Option<Replacement>,
    cache_trace: Option<CacheTrace>,
}

impl Files {
    /// Begins the files.
    ///
    /// # Errors
    /// If one cannot be written.
    pub fn begin(args: &RunArgs, engine: &Engine) -> Outcome<Self> {
        let cache_trace = args.dump_cache_trace.as_deref().map(|path| CacheTrace::begin(path, engine)).transpose()?;
        let begin = || -> anyhow::Result<Self> {
            Ok(Self {
                logits: args.dump_logits.as_deref().map(LogitDump::create).transpose()?,
                state: args.save_state.as_deref().map(Replacement::create).transpose()?,
                results: args.results_file().map(Replacement::create).transpose()?,
                cache_trace,
            })
        };
        begin().map_err(Failure::not_written)
    }

    /// Finishes the file of the state.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn save_state(&mut self, model: &Model, state: &Saved) -> Outcome {
        let save = |file| state_file::save(file, model, state).map_err(Failure::not_written);
        self.state.take().map_or(Ok(()), save)
    }

    /// Finishes the file of the logits.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish_logits(&mut self) -> Outcome {
        self.logits.take().map_or(Ok(()), |logits| logits.commit().map_err(Failure::not_written))
    }

    /// Finishes the trace of the expert cache.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish_cache_trace(&mut self) -> Outcome {
        self.cache_trace.take().map_or(Ok(()), CacheTrace::finish)
    }

    /// Finishes the file of the results.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write_results(&mut self, results: &Results<'_>) -> Outcome {
        self.results.take().map_or(Ok(()), |file| results.write(file).map_err(Failure::not_written))
    }
}
