//! The decode step against the time it takes just to read the weights it uses.

use std::time::Instant;

use k3_core::model::Pass;
use k3_core::model::compute::Compute;
use k3_core::model::scratch::{Scratch, Sizes, WantedLogits};
use k3_core::model::state::State;
use k3_core::ops::arg_max;

use super::counting::Counting;
use super::turns::median;
use crate::engine::Engine;

/// What was measured.
#[derive(Debug, Clone, Copy)]
pub struct DecodeRate {
    /// Median seconds of a step.
    pub seconds: f64,
    /// Median bytes of weights and state that a step touches.
    pub bytes: f64,
}

/// Times `steps` decode steps after one that warms the caches.
///
/// # Errors
/// Those of the forward pass.
pub fn measure(engine: &Engine, steps: usize) -> k3_core::Result<DecodeRate> {
    let config = engine.model().config();
    let counting = Counting::new(engine.compute().source);
    let compute = Compute { source: &counting, ..engine.compute() };
    let capacity = steps + 1;
    let mut state = State::new(config, capacity);
    let sizes = Sizes { chunk: 1, capacity, threads: engine.threads(), logits: WantedLogits::Last };
    let mut scratch = Scratch::new(config, sizes);
    // The recurrent state is read and written once in a step.
    let state_bytes = 2 * State::bytes(config, 0);
    let (mut seconds, mut bytes) = (Vec::new(), Vec::new());
    let mut token = 1;
    for step in 0..capacity {
        let started = Instant::now();
        let pass = Pass { tokens: &[token], logits: WantedLogits::Last };
        let logits = engine.model().forward(&compute, &mut state, &mut scratch, pass)?;
        token = arg_max(logits) as u32;
        let touched = counting.take() + state_bytes;
        if step > 0 {
            seconds.push(started.elapsed().as_secs_f64());
            bytes.push(touched as f64);
        }
    }
    Ok(DecodeRate { seconds: median(seconds), bytes: median(bytes) })
}
