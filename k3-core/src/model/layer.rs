//! One layer: the input of each half is a mix of the residual sources, its output goes to the prefix sum.

use super::compute::{Compute, Point};
use super::kda::Kda;
use super::mla::Mla;
use super::mlp::Mlp;
use super::moe::Moe;
use super::positions::{Positions, Span};
use super::scratch::Scratch;
use super::state::LayerState;
use super::weights::{AttentionVectors, LayerVectors};
use crate::Result;
use crate::checkpoint::names::{LayerTensor, TensorId};
use crate::config::Config;
use crate::ops::attn_residual::ResidualMix;
use crate::ops::norm::rms_norm;

/// A layer of the stack.
pub(super) struct Layer<'a> {
    pub compute: &'a Compute<'a>,
    pub config: &'a Config,
    pub number: usize,
    pub vectors: &'a LayerVectors,
    /// Those of the next layer.
    pub next: Option<&'a LayerVectors>,
}

impl Layer<'_> {
    /// Takes the positions of `span` through the layer, from residual sources to residual sources.
    pub fn forward(&self, state: &mut LayerState, scratch: &mut Scratch, span: Span) -> Result<()> {
        let size = span.count * self.config.hidden;

        self.attention_input(scratch, size);
        if self.number.is_multiple_of(self.config.residual_block) {
            scratch.residual.end_block();
        }
        self.attention(state, scratch, span)?;
        self.compute.observe(Point::AttentionOut(self.number), &scratch.output[..size]);
        scratch.residual.add(&scratch.output[..size]);

        self.mlp_input(scratch, size);
        self.feed_forward(scratch, span)?;
        self.compute.observe(Point::MlpOut(self.number), &scratch.output[..size]);
        scratch.residual.add(&scratch.output[..size]);

        if self.compute.observer.is_some() {
            scratch.residual.prefix_sums(&mut scratch.input[..size]);
            self.compute.observe(Point::PrefixSum(self.number), &scratch.input[..size]);
        }
        Ok(())
    }

    /// `input = rms(mix of the sources)`; in layer 0 there is nothing to mix, and the embedding itself is normed.
    fn attention_input(&self, scratch: &mut Scratch, size: usize) {
        let Scratch { residual, input, .. } = scratch;
        let input = &mut input[..size];
        if residual.is_unmixed() {
            residual.prefix_sums(input);
        } else {
            residual.mix(self.compute, &self.residual_mix(&self.vectors.attention_residual), input);
        }
        self.compute.observe(Point::AttentionMix(self.number), input);
        self.norm(input, &self.vectors.input_norm);
        self.compute.observe(Point::AttentionIn(self.number), input);
    }

    /// `input = rms(mix of the sources)`
    fn mlp_input(&self, scratch: &mut Scratch, size: usize) {
        let Scratch { residual, input, .. } = scratch;
        let input = &mut input[..size];
        residual.mix(self.compute, &self.residual_mix(&self.vectors.mlp_residual), input);
        self.compute.observe(Point::MlpMix(self.number), input);
        self.norm(input, &self.vectors.post_attention_norm);
        self.compute.observe(Point::MlpIn(self.number), input);
    }

    fn residual_mix<'b>(&self, key_weight: &'b [f32]) -> ResidualMix<'b> {
        ResidualMix { key_weight, eps: self.config.rms_norm_eps }
    }

    fn norm(&self, rows: &mut [f32], weight: &[f32]) {
        self.compute.for_each(rows, weight.len(), &|_, row| {
            rms_norm(self.compute.kernels, row, weight, self.config.rms_norm_eps);
        });
    }

    fn attention(&self, state: &mut LayerState, scratch: &mut Scratch, span: Span) -> Result<()> {
        let Scratch { input, output, kda: kda_scratch, mla: mla_scratch, .. } = scratch;
        let chunk = self.chunk(span, input, output);
        let (compute, layer) = (self.compute, self.number);
        match (&self.vectors.attention, state) {
            (AttentionVectors::Kda(vectors), LayerState::Kda(state)) => {
                let rms_norm_eps = self.config.rms_norm_eps;
                let kda = Kda { compute, config: &self.config.kda, rms_norm_eps, layer, vectors };
                kda.forward(state, kda_scratch, chunk)
            }
            (AttentionVectors::Mla(vectors), LayerState::Mla(state)) => {
                let mla = Mla { compute, config: &self.config.mla, layer, vectors };
                mla.forward(state, mla_scratch, chunk)
            }
            _ => unreachable!("state and vectors are made from one config"),
        }
    }

    fn feed_forward(&self, scratch: &mut Scratch, span: Span) -> Result<()> {
        let Scratch { input, output, moe: moe_scratch, dense: dense_scratch, .. } = scratch;
        let chunk = self.chunk(span, input, output);
        match &self.vectors.moe {
            Some(vectors) => {
                let next = self.next.and_then(|next| next.moe.as_ref());
                let moe = Moe { compute: self.compute, config: self.config, layer: self.number, vectors, next };
                moe.forward(moe_scratch, chunk)
            }
            None => self.dense().forward(self.compute, dense_scratch, chunk),
        }
    }

    fn chunk<'b>(&self, span: Span, input: &'b [f32], output: &'b mut [f32]) -> Positions<'b> {
        let size = span.count * self.config.hidden;
        Positions { span, x: &input[..size], out: &mut output[..size] }
    }

    fn dense(&self) -> Mlp<'_> {
        let id = |tensor| TensorId::Layer(self.number, tensor);
        Mlp {
            gate: id(LayerTensor::DenseGate),
            up: id(LayerTensor::DenseUp),
            down: id(LayerTensor::DenseDown),
            width: self.config.dense_width,
            situ: &self.config.situ,
        }
    }
}
