use k3_core::ops::conv::{Window, shift_history};
use serde_json::Value;

use crate::closeness::check_cases;
use crate::support::singles;

/// The convolution of all positions, in chunks of the given lengths.
fn convolve(inputs: &[f32], taps: &[f32], channels: usize, chunks: &[usize]) -> Vec<f32> {
    let mut history = vec![0.0; (taps.len() / channels - 1) * channels];
    let mut out = vec![0.0; inputs.len()];
    let mut start = 0;
    for &count in chunks {
        let chunk = &inputs[start * channels..][..count * channels];
        let window = Window { history: &history, inputs: chunk, channels };
        for position in 0..count {
            // Two ranges of channels, as the heads of a layer are.
            let (left, right) = out[(start + position) * channels..][..channels].split_at_mut(2);
            window.conv_silu(taps, position, 0, left);
            window.conv_silu(taps, position, 2, right);
        }
        shift_history(&mut history, chunk);
        start += count;
    }
    out
}

#[test]
fn the_convolution_runs_on_over_chunk_edges() {
    for whole in [true, false] {
        check_cases("conv", |case| {
            let inputs = &case["inputs"];
            let size = |value: &Value| usize::try_from(value.as_u64().unwrap()).unwrap();
            let mut chunks: Vec<usize> = inputs["chunks"].as_array().unwrap().iter().map(size).collect();
            if whole {
                chunks = vec![chunks.iter().sum()];
            }
            convolve(&singles(&inputs["inputs"]), &singles(&inputs["taps"]), size(&inputs["channels"]), &chunks)
        });
    }
}
