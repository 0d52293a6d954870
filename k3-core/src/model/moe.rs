//! The mixture of experts in the latent width, with the shared experts beside it.
//!
//! `out = up · rms(Σ_e weight_e · expert_e(down·x)) + shared(x)`
//!
//! Experts may arrive in any order, since each writes its output to a place of its own; the weighted sum is then taken in
//! ascending order of expert ids. Each expert is asked for once, for all positions of the chunk that chose it.

use alloc::vec::Vec;

use super::compute::{Compute, Point};
use super::mlp::{Mlp, MlpScratch, situ_glu_parallel};
use super::positions::Positions;
use super::room::Room;
use super::source::Expert;
use super::weights::MoeVectors;
use crate::Result;
use crate::checkpoint::names::{LayerTensor, TensorId};
use crate::config::{Config, MoeConfig};
use crate::kernels::{Matrix, OutputTile, matmul_parallel};
use crate::ops::norm::rms_norm;
use crate::ops::router::Choice;

/// One layer's experts.
pub(super) struct Moe<'a> {
    pub compute: &'a Compute<'a>,
    pub config: &'a Config,
    pub layer: usize,
    pub vectors: &'a MoeVectors,
    /// Those of the next layer, if that has experts too.
    pub next: Option<&'a MoeVectors>,
}

/// Intermediate values of a chunk.
pub(super) struct MoeScratch {
    /// `[positions, experts]`
    scores: Vec<f32>,
    routes: Routes,
    guess: Guess,
    /// `[positions, latent]`
    latent: Vec<f32>,
    /// `[positions, top_k, latent]`: the output of each chosen expert.
    outputs: Vec<f32>,
    /// `[positions, latent]`
    sum: Vec<f32>,
    /// `[positions, hidden]`
    routed: Vec<f32>,
    expert: ExpertScratch,
    shared: MlpScratch,
}

/// Which experts each position chose, and which positions each expert has.
struct Routes {
    /// `[positions, top_k]`
    ids: Vec<usize>,
    /// `[positions, top_k]`
    weights: Vec<f32>,
    /// Places in `ids`, sorted by the id there.
    places: Vec<usize>,
    /// The distinct ids, ascending.
    experts: Vec<usize>,
    /// Where each expert's places begin, and the end of the last.
    starts: Vec<usize>,
}

/// Which experts the next layer may choose.
struct Guess {
    /// `[top_k]`
    ids: Vec<usize>,
    /// `[top_k]`
    weights: Vec<f32>,
}

/// Intermediate values of one expert, for at most all positions of a chunk.
struct ExpertScratch {
    /// `[positions, latent]`: inputs, then outputs.
    latent: Vec<f32>,
    /// `[positions, expert_width]`
    gate: Vec<f32>,
    /// `[positions, expert_width]`
    up: Vec<f32>,
}

impl MoeScratch {
    pub fn new(config: &Config, positions: usize, room: &mut Room) -> Self {
        let moe = &config.moe;
        let routes = Routes::new(positions * moe.top_k, room);
        let guess = Guess { ids: room.zeros(moe.top_k), weights: room.zeros(moe.top_k) };
        let shared = MlpScratch::new(positions, moe.shared_width, room);
        let mut buffer = |width| room.zeros(positions * width);
        Self {
            scores: buffer(moe.experts),
            routes,
            guess,
            latent: buffer(moe.latent),
            outputs: buffer(moe.top_k * moe.latent),
            sum: buffer(moe.latent),
            routed: buffer(config.hidden),
            expert: ExpertScratch {
                latent: buffer(moe.latent),
                gate: buffer(moe.expert_width),
                up: buffer(moe.expert_width),
            },
            shared,
        }
    }
}

impl Routes {
    fn new(places: usize, room: &mut Room) -> Self {
        Self {
            ids: room.zeros(places),
            weights: room.zeros(places),
            places: room.reserved(places),
            experts: room.reserved(places),
            starts: room.reserved(places + 1),
        }
    }

    /// Finds the positions of each expert among the first `count` places.
    fn group(&mut self, count: usize) {
        self.places.clear();
        self.places.extend(0..count);
        self.places.sort_unstable_by_key(|&place| (self.ids[place], place));
        self.experts.clear();
        self.starts.clear();
        for (start, &place) in self.places.iter().enumerate() {
            if self.experts.last() != Some(&self.ids[place]) {
                self.experts.push(self.ids[place]);
                self.starts.push(start);
            }
        }
        self.starts.push(count);
    }
}

impl Moe<'_> {
    /// `out = ffn(x)`
    pub fn forward(&self, scratch: &mut MoeScratch, chunk: Positions<'_>) -> Result<()> {
        let Positions { span, x, out } = chunk;
        let positions = span.count;
        self.route(scratch, x, positions)?;
        self.compute.source.announce_experts(self.layer, &scratch.routes.experts);
        self.guess(scratch, x, positions)?;
        self.shared().forward(self.compute, &mut scratch.shared, Positions { span, x, out })?;
        let latent = &mut scratch.latent[..positions * self.config.moe.latent];
        self.compute.linear(self.id(LayerTensor::LatentDown), x, latent)?;
        self.run_experts(scratch)?;
        self.sum(scratch, positions);
        self.add_routed(scratch, out, positions)
    }

    fn id(&self, tensor: LayerTensor) -> TensorId {
        TensorId::Layer(self.layer, tensor)
    }

    fn shared(&self) -> Mlp<'_> {
        Mlp {
            gate: self.id(LayerTensor::SharedGate),
            up: self.id(LayerTensor::SharedUp),
            down: self.id(LayerTensor::SharedDown),
            width: self.config.moe.shared_width,
            situ: &self.config.situ,
        }
    }

    /// Chooses each position's experts.
    fn route(&self, scratch: &mut MoeScratch, x: &[f32], positions: usize) -> Result<()> {
        let MoeConfig { experts, top_k, .. } = self.config.moe;
        let MoeScratch { scores, routes, .. } = scratch;
        let scores = &mut scores[..positions * experts];
        self.compute.linear(self.id(LayerTensor::Router), x, scores)?;
        let chosen = routes.ids.chunks_exact_mut(top_k).zip(routes.weights.chunks_exact_mut(top_k));
        for (logits, (ids, weights)) in scores.chunks_exact_mut(experts).zip(chosen) {
            Choice { ids, weights }.choose(self.compute.kernels, &self.config.moe, logits, &self.vectors.router_bias);
        }
        routes.group(positions * top_k);
        if let Some(observer) = self.compute.observer {
            let places = positions * top_k;
            observer.observe_choice(self.layer, &routes.ids[..places], &routes.weights[..places]);
        }
        Ok(())
    }

    /// Applies the next layer's router to this layer's input, which is close to its own: what it would choose is worth
    /// reading before it is asked for.
    fn guess(&self, scratch: &mut MoeScratch, x: &[f32], positions: usize) -> Result<()> {
        let source = self.compute.source;
        let wanted = source.guesses_wanted().min(self.config.moe.top_k);
        let Some(next) = self.next.filter(|_| positions == 1 && wanted > 0) else { return Ok(()) };
        let MoeScratch { scores, guess, .. } = scratch;
        let scores = &mut scores[..self.config.moe.experts];
        self.compute.linear(TensorId::Layer(self.layer + 1, LayerTensor::Router), x, scores)?;
        let (ids, weights) = (&mut guess.ids[..wanted], &mut guess.weights[..wanted]);
        Choice { ids, weights }.choose(self.compute.kernels, &self.config.moe, scores, &next.router_bias);
        source.suggest_experts(self.layer + 1, &guess.ids[..wanted]);
        Ok(())
    }

    /// Computes the output of every chosen expert at every position that chose it.
    fn run_experts(&self, scratch: &mut MoeScratch) -> Result<()> {
        let MoeConfig { latent: width, top_k, .. } = self.config.moe;
        let MoeScratch { routes, latent, outputs, expert: room, .. } = scratch;
        self.compute.source.experts(self.layer, &routes.experts, &mut |index, expert| {
            let places = &routes.places[routes.starts[index]..routes.starts[index + 1]];
            for (input, place) in room.latent.chunks_exact_mut(width).zip(places) {
                input.copy_from_slice(&latent[place / top_k * width..][..width]);
            }
            self.run_expert(expert, room, places.len());
            for (output, place) in room.latent.chunks_exact(width).zip(places) {
                outputs[place * width..][..width].copy_from_slice(output);
            }
            Ok(())
        })
    }

    /// `z ← w2 · SiTU(w1·z, w3·z)` for the first `count` rows of `room.latent`.
    fn run_expert(&self, expert: &Expert<'_>, room: &mut ExpertScratch, count: usize) {
        let MoeConfig { latent, expert_width, .. } = self.config.moe;
        let z = &mut room.latent[..count * latent];
        let gate = &mut room.gate[..count * expert_width];
        let up = &mut room.up[..count * expert_width];
        self.product(&expert.gate, z, gate);
        self.product(&expert.up, z, up);
        situ_glu_parallel(self.compute, &self.config.situ, gate, up);
        self.product(&expert.down, gate, z);
    }

    fn product(&self, matrix: &Matrix<'_>, x: &[f32], y: &mut [f32]) {
        let rows = matrix.rows();
        matmul_parallel(self.compute.kernels, self.compute.workers, matrix, x, OutputTile::new(y, rows));
    }

    /// `r = rms(Σ weight · output)`, one norm on the sum.
    fn sum(&self, scratch: &mut MoeScratch, positions: usize) {
        let MoeConfig { latent, top_k, latent_norm, .. } = self.config.moe;
        let MoeScratch { routes, outputs, sum, .. } = scratch;
        let sum = &mut sum[..positions * latent];
        let kernels = self.compute.kernels;
        self.compute.for_each(sum, latent, &|position, sum| {
            let weights = &routes.weights[position * top_k..][..top_k];
            let outputs = &outputs[position * top_k * latent..][..top_k * latent];
            kernels.column_sums(&Matrix::from_f32(outputs, top_k, latent), weights, sum);
        });
        self.compute.observe(Point::RoutedSum(self.layer), sum);
        if latent_norm {
            self.compute.for_each(sum, latent, &|_, sum| {
                rms_norm(kernels, sum, &self.vectors.latent_norm, self.config.rms_norm_eps);
            });
        }
        self.compute.observe(Point::RoutedNormed(self.layer), sum);
    }

    /// `out += up · r`
    fn add_routed(&self, scratch: &mut MoeScratch, out: &mut [f32], positions: usize) -> Result<()> {
        let routed = &mut scratch.routed[..out.len()];
        let sum = &scratch.sum[..positions * self.config.moe.latent];
        self.compute.linear(self.id(LayerTensor::LatentUp), sum, routed)?;
        for (out, routed) in out.iter_mut().zip(routed) {
            *out += *routed;
        }
        Ok(())
    }
}
