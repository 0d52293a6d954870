//! The residual stream of a chunk: the sums of finished blocks, and of the block so far.

use alloc::vec::Vec;

use super::chunks::{Chunks, for_each_chunk};
use super::compute::Compute;
use super::room::Room;
use crate::config::Config;
use crate::ops::attn_residual::ResidualMix;

/// Per position, the sources that a sublayer's input is mixed from: first what was saved at block boundaries, then the
/// prefix sum of the current block.
///
/// 1. Row `saved` of a position is its prefix sum, rows below it are the saved ones, rows above it mean nothing.
/// 2. A position's rows are contiguous, so that a mix reads one block of memory and saving a prefix sum moves nothing.
pub(super) struct Residual {
    /// `[positions, most sources, hidden]`
    sources: Vec<f32>,
    /// `[threads, most sources]`
    scores: Vec<f32>,
    hidden: usize,
    most_sources: usize,
    saved: usize,
    /// Whether the prefix sum was just saved, so that the next addition begins a new one.
    empty: bool,
}

impl Residual {
    pub fn new(config: &Config, positions: usize, threads: usize, room: &mut Room) -> Self {
        let most_sources = config.layers.len().div_ceil(config.residual_block) + 1;
        Self {
            sources: room.zeros(positions * most_sources * config.hidden),
            scores: room.zeros(threads * most_sources),
            hidden: config.hidden,
            most_sources,
            saved: 0,
            empty: false,
        }
    }

    /// Forgets everything; the prefix sums are now the embeddings that the caller writes through the iterator.
    pub fn start(&mut self) -> impl Iterator<Item = &mut [f32]> {
        (self.saved, self.empty) = (0, false);
        self.sources.chunks_exact_mut(self.most_sources * self.hidden).map(|rows| &mut rows[..self.hidden])
    }

    /// Whether nothing was saved yet: then the prefix sum stands for the mix.
    pub fn is_unmixed(&self) -> bool {
        self.saved == 0
    }

    /// Saves the prefix sums as finished blocks and empties them.
    pub fn end_block(&mut self) {
        self.saved += 1;
        self.empty = true;
    }

    /// Adds a sublayer's output `[positions, hidden]` to the prefix sums.
    pub fn add(&mut self, output: &[f32]) {
        let (hidden, saved) = (self.hidden, self.saved);
        let rows = self.sources.chunks_exact_mut(self.most_sources * hidden);
        for (rows, output) in rows.zip(output.chunks_exact(hidden)) {
            let prefix = &mut rows[saved * hidden..][..hidden];
            if self.empty {
                prefix.copy_from_slice(output);
            } else {
                prefix.iter_mut().zip(output).for_each(|(prefix, output)| *prefix += output);
            }
        }
        self.empty = false;
    }

    /// Copies the prefix sums to `out`, `[positions, hidden]`.
    pub fn prefix_sums(&self, out: &mut [f32]) {
        let rows = self.sources.chunks_exact(self.most_sources * self.hidden);
        for (out, rows) in out.chunks_exact_mut(self.hidden).zip(rows) {
            out.copy_from_slice(&rows[self.saved * self.hidden..][..self.hidden]);
        }
    }

    /// Mixes the saved sums and the prefix sum, which must not be empty, into `out`, `[positions, hidden]`.
    pub fn mix(&mut self, compute: &Compute<'_>, mix: &ResidualMix<'_>, out: &mut [f32]) {
        let Self { sources, scores, hidden, most_sources, saved, .. } = self;
        let count = *saved + 1;
        let out = Chunks { data: out, length: *hidden };
        for_each_chunk(compute.workers, [out], scores, &|position, [out], scores| {
            let sources = &sources[position * *most_sources * *hidden..][..count * *hidden];
            mix.mix(compute.kernels, sources, scores, out);
        });
    }
}
