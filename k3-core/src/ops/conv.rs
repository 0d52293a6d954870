//! The short causal convolution in front of delta attention.

use crate::kernels::math::silu;

/// The inputs of one channel range at one position and at the `taps − 1` positions before it, oldest first.
///
/// Before the start of a sequence the inputs are zero.
pub struct Window<'a> {
    /// `[rows, channels]`: inputs of the positions before the chunk, oldest first.
    pub history: &'a [f32],
    /// `[positions, channels]`: inputs of the chunk.
    pub inputs: &'a [f32],
    /// Width of a row of both.
    pub channels: usize,
}

impl Window<'_> {
    /// The input row `back` positions before position `position` of the chunk.
    fn row(&self, position: usize, back: usize) -> &[f32] {
        let (rows, index) = if back <= position {
            (self.inputs, position - back)
        } else {
            (self.history, self.history.len() / self.channels + position - back)
        };
        &rows[index * self.channels..][..self.channels]
    }

    /// `out[c] = silu(Σ_j taps[c, j] · input[position − (T−1) + j, c])`, for the channels `first..first + out.len()`.
    ///
    /// `taps` is `[channels, T]`; the last tap is the current position's.
    pub fn conv_silu(&self, taps: &[f32], position: usize, first: usize, out: &mut [f32]) {
        let count = taps.len() / self.channels;
        out.fill(0.0);
        for tap in 0..count {
            let inputs = &self.row(position, count - 1 - tap)[first..];
            for (index, out) in out.iter_mut().enumerate() {
                *out += taps[(first + index) * count + tap] * inputs[index];
            }
        }
        for out in out {
            *out = silu(*out);
        }
    }
}

/// Moves the last `history` rows of what was seen (old history, then the chunk's inputs) into `history`.
pub fn shift_history(history: &mut [f32], inputs: &[f32]) {
    let kept = history.len().saturating_sub(inputs.len());
    let dropped = history.len() - kept;
    history.copy_within(dropped.., 0);
    history[kept..].copy_from_slice(&inputs[inputs.len() - dropped..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;
    use std::vec::Vec;

    #[test]
    fn history_keeps_the_newest_rows() {
        let mut history = vec![1.0, 2.0, 3.0];
        shift_history(&mut history, &[4.0]);
        assert_eq!(history, [2.0, 3.0, 4.0]);
        shift_history(&mut history, &[5.0, 6.0, 7.0, 8.0]);
        assert_eq!(history, [6.0, 7.0, 8.0]);
    }

    /// Catches reversed taps, a missing SiLU, and a history that is not continued across chunks.
    #[test]
    fn the_last_tap_is_the_current_position() {
        let taps = [1.0, 10.0, 100.0, 1000.0];
        let inputs: Vec<f32> = (1..=6).map(|i| i as f32 * 1e-3).collect();
        let mut history = vec![0.0; 3];
        let mut got = Vec::new();
        for chunk in inputs.chunks(2) {
            let window = Window { history: &history, inputs: chunk, channels: 1 };
            for position in 0..chunk.len() {
                let mut out = [0.0];
                window.conv_silu(&taps, position, 0, &mut out);
                got.push(out[0]);
            }
            shift_history(&mut history, chunk);
        }
        let weighted = [1.0, 2.1, 3.21, 4.321, 5.432, 6.543];
        for (got, sum) in got.iter().zip(weighted) {
            let want: f64 = sum / (1.0 + f64::exp(-sum));
            assert!((f64::from(*got) - want).abs() < 1e-5, "{got} is not {want}");
        }
    }
}
