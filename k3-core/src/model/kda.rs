//! Delta attention with per-channel decay.
//!
//! Per head, with the state `S` `[key, value]`, in order of positions:
//! `S ← diag(α)·S`, `r = v − Sᵀk`, `S ← S + β·k rᵀ`, `o = Sᵀq`; the read of `r` sees the decayed state, that of `o` the
//! updated one.

use alloc::vec::Vec;

use super::chunks::{Chunks, for_each_chunk};
use super::compute::Compute;
use super::positions::{Positions, Span};
use super::room::Room;
use super::state::KdaState;
use super::weights::KdaVectors;
use crate::Result;
use crate::checkpoint::names::{LayerTensor, TensorId};
use crate::config::KdaConfig;
use crate::kernels::{StateUpdate, math};
use crate::ops::activation::sigmoid_gate;
use crate::ops::conv::{Window, shift_history};
use crate::ops::decay::HeadDecay;
use crate::ops::norm::{l2_norm, rms_norm};

/// Inside the root of the query and key norm.
const L2_EPS: f32 = 1e-6;

/// One layer's delta attention.
pub(super) struct Kda<'a> {
    pub compute: &'a Compute<'a>,
    pub config: &'a KdaConfig,
    pub rms_norm_eps: f32,
    pub layer: usize,
    pub vectors: &'a KdaVectors,
}

/// Intermediate values of a chunk; each `[positions, channels]` unless said otherwise.
pub(super) struct KdaScratch {
    /// The projected queries, keys and values, before their convolution.
    projected: [Vec<f32>; 3],
    /// Queries and keys (normed) and values, after it.
    convolved: [Vec<f32>; 3],
    /// `[positions, head_dim]`
    bottleneck: Vec<f32>,
    decay: Vec<f32>,
    /// `[positions, heads]`
    beta: Vec<f32>,
    gate: Vec<f32>,
    /// `[heads, positions, head_dim]`
    read: Vec<f32>,
    output: Vec<f32>,
    /// `[threads, head_dim]`
    delta: Vec<f32>,
}

impl KdaScratch {
    pub fn new(config: &KdaConfig, positions: usize, threads: usize, room: &mut Room) -> Self {
        let channels = positions * config.channels();
        Self {
            projected: [room.zeros(channels), room.zeros(channels), room.zeros(channels)],
            convolved: [room.zeros(channels), room.zeros(channels), room.zeros(channels)],
            bottleneck: room.zeros(positions * config.head_dim),
            decay: room.zeros(channels),
            beta: room.zeros(positions * config.heads),
            gate: room.zeros(channels),
            read: room.zeros(channels),
            output: room.zeros(channels),
            delta: room.zeros(threads * config.head_dim),
        }
    }
}

impl Kda<'_> {
    /// `out = attention(x)`
    pub fn forward(&self, state: &mut KdaState, scratch: &mut KdaScratch, chunk: Positions<'_>) -> Result<()> {
        let Positions { span: Span { count: positions, .. }, x, out } = chunk;
        self.project(state, scratch, x, positions)?;
        self.decay_and_beta(scratch, x, positions)?;
        self.recur(state, scratch, positions);
        self.gate(scratch, x, positions)?;
        let channels = positions * self.config.channels();
        self.compute.linear(self.id(LayerTensor::Output), &scratch.output[..channels], out)
    }

    fn id(&self, tensor: LayerTensor) -> TensorId {
        TensorId::Layer(self.layer, tensor)
    }

    /// Queries, keys and values: projection, convolution with SiLU, then the L2 norm of queries and keys.
    fn project(&self, state: &mut KdaState, scratch: &mut KdaScratch, x: &[f32], positions: usize) -> Result<()> {
        let KdaConfig { heads, head_dim, .. } = *self.config;
        let channels = self.config.channels();
        let query_scale = 1.0 / math::sqrt(head_dim as f32);
        let streams =
            [(LayerTensor::Query, Some(query_scale)), (LayerTensor::Key, Some(1.0)), (LayerTensor::Value, None)];
        for (stream, (tensor, norm_scale)) in streams.into_iter().enumerate() {
            let projected = &mut scratch.projected[stream][..positions * channels];
            self.compute.linear(self.id(tensor), x, projected)?;
            let window = Window { history: &state.history[stream], inputs: projected, channels };
            let taps = &self.vectors.taps[stream];
            let convolved = &mut scratch.convolved[stream][..positions * channels];
            self.compute.for_each(convolved, head_dim, &|index, out| {
                window.conv_silu(taps, index / heads, index % heads * head_dim, out);
                if let Some(scale) = norm_scale {
                    l2_norm(self.compute.kernels, out, L2_EPS, scale);
                }
            });
            shift_history(&mut state.history[stream], projected);
        }
        Ok(())
    }

    /// `α = exp(bound · σ(exp(A) · (f_b·(f_a·x) + dt)))` per channel, `β = σ(b·x)` per head.
    fn decay_and_beta(&self, scratch: &mut KdaScratch, x: &[f32], positions: usize) -> Result<()> {
        let KdaConfig { heads, head_dim, .. } = *self.config;
        let bottleneck = &mut scratch.bottleneck[..positions * head_dim];
        let decay = &mut scratch.decay[..positions * self.config.channels()];
        self.compute.linear(self.id(LayerTensor::DecayDown), x, bottleneck)?;
        self.compute.linear(self.id(LayerTensor::DecayUp), bottleneck, decay)?;
        self.compute.for_each(decay, head_dim, &|index, z| {
            let head = index % heads;
            let dt_bias = &self.vectors.dt_bias[head * head_dim..][..head_dim];
            let a_log = self.vectors.a_log[head];
            HeadDecay { a_log, dt_bias, lower_bound: self.config.gate_lower_bound }.apply(z);
        });
        let beta = &mut scratch.beta[..positions * heads];
        self.compute.linear(self.id(LayerTensor::Beta), x, beta)?;
        beta.iter_mut().for_each(|beta| *beta = math::sigmoid(*beta));
        Ok(())
    }

    /// The recurrence over the positions, each head by itself.
    fn recur(&self, state: &mut KdaState, scratch: &mut KdaScratch, positions: usize) {
        let KdaConfig { heads, head_dim, .. } = *self.config;
        let kernels = self.compute.kernels;
        let KdaScratch { convolved: [query, key, value], decay, beta, read, delta, .. } = scratch;
        let states = Chunks { data: &mut state.recurrent, length: head_dim * head_dim };
        let reads = Chunks { data: &mut read[..positions * heads * head_dim], length: positions * head_dim };
        for_each_chunk(self.compute.workers, [states, reads], delta, &|head, [state, reads], delta| {
            let delta = &mut delta[..head_dim];
            for (position, read) in reads.chunks_exact_mut(head_dim).enumerate() {
                let index = position * heads + head;
                let channels = index * head_dim..(index + 1) * head_dim;
                let key = &key[channels.clone()];
                kernels.decay_and_read(state, &decay[channels.clone()], key, delta);
                for (delta, &value) in delta.iter_mut().zip(&value[channels.clone()]) {
                    *delta = beta[index] * (value - *delta);
                }
                kernels.update_and_read(state, StateUpdate { key, delta, query: &query[channels] }, read);
            }
        });
    }

    /// `y = rms(o; o_norm) ⊙ σ(g·x)`, the norm over each head with one shared weight.
    fn gate(&self, scratch: &mut KdaScratch, x: &[f32], positions: usize) -> Result<()> {
        let KdaConfig { heads, head_dim, .. } = *self.config;
        let channels = positions * self.config.channels();
        self.compute.linear(self.id(LayerTensor::OutputGate), x, &mut scratch.gate[..channels])?;
        let (read, gate) = (&scratch.read, &scratch.gate);
        self.compute.for_each(&mut scratch.output[..channels], head_dim, &|index, out| {
            let (position, head) = (index / heads, index % heads);
            out.copy_from_slice(&read[(head * positions + position) * head_dim..][..head_dim]);
            rms_norm(self.compute.kernels, out, &self.vectors.output_norm, self.rms_norm_eps);
            sigmoid_gate(out, &gate[index * head_dim..][..head_dim]);
        });
        Ok(())
    }
}
