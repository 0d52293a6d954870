//! Gated latent attention without rotation, in the absorbed form.
//!
//! The cache holds, per position, the normed latent `c` and the key part `r` that all heads share. A head's key is
//! `[K·c, r]` and its value `V·c`, so `query·key = [Kᵀ·query_nope, query_rope]·[c, r]` and the weighted sum of values is `V`
//! times the weighted sum of latents: keys and values are never expanded. One position and many do the same sums in the
//! same order.

use alloc::vec::Vec;

use super::chunks::{Chunks, for_each_chunk};
use super::compute::Compute;
use super::positions::{Positions, Span};
use super::room::Room;
use super::state::MlaState;
use super::weights::MlaVectors;
use crate::Result;
use crate::checkpoint::names::{LayerTensor, TensorId};
use crate::config::MlaConfig;
use crate::kernels::{Matrix, OutputTile, math};
use crate::ops::activation::sigmoid_gate;
use crate::ops::norm::rms_norm;
use crate::ops::softmax::softmax;

/// Epsilon of the two norms in here. The released code passes none, so its default holds, whatever the config says.
const NORM_EPS: f32 = 1e-6;

/// Most heads that attend together: they share one pass over the cache.
const MAX_HEAD_GROUP: usize = 8;

/// One layer's latent attention.
pub(super) struct Mla<'a> {
    pub compute: &'a Compute<'a>,
    pub config: &'a MlaConfig,
    pub layer: usize,
    pub vectors: &'a MlaVectors,
}

/// Intermediate values of a chunk.
pub(super) struct MlaScratch {
    /// `[positions, query_rank]`
    query_latent: Vec<f32>,
    /// `[positions, heads, key_dim]`
    query: Vec<f32>,
    /// `[positions, heads, latent + rope_dim]`
    absorbed: Vec<f32>,
    /// `[positions, heads, latent]`
    attended: Vec<f32>,
    /// `[positions, heads, value_dim]`
    value: Vec<f32>,
    /// `[positions, heads, value_dim]`
    gate: Vec<f32>,
    /// `[threads, head group, capacity]`
    scores: Vec<f32>,
}

impl MlaScratch {
    pub fn new(config: &MlaConfig, positions: usize, [threads, capacity]: [usize; 2], room: &mut Room) -> Self {
        let mut per_head = |width| room.zeros(positions * config.heads * width);
        Self {
            query: per_head(config.key_dim()),
            absorbed: per_head(config.cache_width()),
            attended: per_head(config.latent),
            value: per_head(config.value_dim),
            gate: per_head(config.value_dim),
            query_latent: room.zeros(positions * config.query_rank),
            scores: room.zeros(threads * head_group(config.heads) * capacity),
        }
    }
}

/// How many heads attend together: a divisor of their number.
fn head_group(heads: usize) -> usize {
    (1..=MAX_HEAD_GROUP).rev().find(|group| heads.is_multiple_of(*group)).unwrap_or(1)
}

impl Mla<'_> {
    /// `out = attention(x)`
    pub fn forward(&self, state: &mut MlaState, scratch: &mut MlaScratch, chunk: Positions<'_>) -> Result<()> {
        let Positions { span, x, out } = chunk;
        self.extend_cache(state, x, span)?;
        self.query(scratch, x, span.count)?;
        self.compute.source.whole_matrix(self.id(LayerTensor::KeyValueUp), &mut |key_value| {
            self.absorb(key_value, scratch, span.count);
            self.attend(&state.cache, scratch, span);
            self.expand(key_value, scratch, span.count);
            Ok(())
        })?;
        self.gate(scratch, x, span.count)?;
        let width = self.config.heads * self.config.value_dim;
        self.compute.linear(self.id(LayerTensor::Output), &scratch.value[..span.count * width], out)
    }

    fn id(&self, tensor: LayerTensor) -> TensorId {
        TensorId::Layer(self.layer, tensor)
    }

    /// `[c, r] = kv_a·x`, with `c` normed and `r` as it is.
    fn extend_cache(&self, state: &mut MlaState, x: &[f32], span: Span) -> Result<()> {
        let width = self.config.cache_width();
        let rows = &mut state.cache[span.start * width..][..span.count * width];
        self.compute.linear(self.id(LayerTensor::KeyValueDown), x, rows)?;
        for row in rows.chunks_exact_mut(width) {
            rms_norm(self.compute.kernels, &mut row[..self.config.latent], &self.vectors.latent_norm, NORM_EPS);
        }
        Ok(())
    }

    /// `query = q_b · rms(q_a·x)`
    fn query(&self, scratch: &mut MlaScratch, x: &[f32], positions: usize) -> Result<()> {
        let rank = self.config.query_rank;
        let latent = &mut scratch.query_latent[..positions * rank];
        self.compute.linear(self.id(LayerTensor::QueryDown), x, latent)?;
        for row in latent.chunks_exact_mut(rank) {
            rms_norm(self.compute.kernels, row, &self.vectors.query_norm, NORM_EPS);
        }
        let query = &mut scratch.query[..positions * self.config.heads * self.config.key_dim()];
        self.compute.linear(self.id(LayerTensor::QueryUp), latent, query)
    }

    /// `absorbed = [Kᵀ·query_nope, query_rope]` per position and head. `key_value` holds K and V of each head in turn.
    fn absorb(&self, key_value: &Matrix<'_>, scratch: &mut MlaScratch, positions: usize) {
        let config = self.config;
        let MlaConfig { heads, nope_dim, value_dim, latent, .. } = *config;
        let MlaScratch { query, absorbed, .. } = scratch;
        let absorbed = &mut absorbed[..positions * heads * config.cache_width()];
        self.compute.for_each(absorbed, config.cache_width(), &|index, absorbed| {
            let (nope, rope) = query[index * config.key_dim()..][..config.key_dim()].split_at(nope_dim);
            let (absorbed_nope, absorbed_rope) = absorbed.split_at_mut(latent);
            let first = index % heads * (nope_dim + value_dim);
            let keys = key_value.slice_rows(first..first + nope_dim);
            self.compute.kernels.column_sums(&keys, nope, absorbed_nope);
            absorbed_rope.copy_from_slice(rope);
        });
    }

    /// `attended = Σ_s softmax(absorbed · cache_s / sqrt(key_dim)) · c_s` over the positions up to each one's own.
    fn attend(&self, cache: &[f32], scratch: &mut MlaScratch, span: Span) {
        let config = self.config;
        let MlaConfig { heads, latent, .. } = *config;
        let width = config.cache_width();
        let group = head_group(heads);
        let scale = 1.0 / math::sqrt(config.key_dim() as f32);
        let kernels = self.compute.kernels;
        let MlaScratch { absorbed, attended, scores, .. } = scratch;
        let attended = Chunks { data: &mut attended[..span.count * heads * latent], length: group * latent };
        for_each_chunk(self.compute.workers, [attended], scores, &|index, [attended], scores| {
            let seen = span.start + index / (heads / group) + 1;
            let queries = &absorbed[index * group * width..][..group * width];
            let scores = &mut scores[..group * seen];
            let rows = Matrix::from_f32(&cache[..seen * width], seen, width);
            kernels.matmul(&rows, queries, &mut OutputTile::new(scores, seen));
            for scores in scores.chunks_exact_mut(seen) {
                softmax(kernels, scores, scale);
            }
            let latents = Matrix::from_f32_strided(&cache[..seen * width], seen, latent, width);
            kernels.column_sums(&latents, scores, attended);
        });
    }

    /// `value = V · attended` per position and head.
    fn expand(&self, key_value: &Matrix<'_>, scratch: &mut MlaScratch, positions: usize) {
        let MlaConfig { heads, nope_dim, value_dim, latent, .. } = *self.config;
        let MlaScratch { attended, value, .. } = scratch;
        let value = &mut value[..positions * heads * value_dim];
        self.compute.for_each(value, value_dim, &|index, value| {
            let first = index % heads * (nope_dim + value_dim) + nope_dim;
            let values = key_value.slice_rows(first..first + value_dim);
            let attended = &attended[index * latent..][..latent];
            self.compute.kernels.matmul(&values, attended, &mut OutputTile::new(value, value_dim));
        });
    }

    /// `value ← value ⊙ σ(g·x)`, where the model gates.
    fn gate(&self, scratch: &mut MlaScratch, x: &[f32], positions: usize) -> Result<()> {
        if !self.config.output_gate {
            return Ok(());
        }
        let width = self.config.heads * self.config.value_dim;
        let gate = &mut scratch.gate[..positions * width];
        self.compute.linear(self.id(LayerTensor::OutputGate), x, gate)?;
        let gate = &*gate;
        self.compute.for_each(&mut scratch.value[..positions * width], width, &|position, value| {
            sigmoid_gate(value, &gate[position * width..][..width]);
        });
        Ok(())
    }
}
