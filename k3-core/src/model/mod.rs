//! The model: from token ids to logits.

mod chunks;
pub mod compute;
mod kda;
mod layer;
mod mla;
mod mlp;
mod moe;
pub mod order;
mod positions;
mod residual;
mod room;
pub mod scratch;
pub mod sequence;
pub mod source;
pub mod state;
pub mod state_file;
pub mod weights;

use self::compute::{Compute, Point};
use self::layer::Layer;
use self::positions::Span;
use self::scratch::{Scratch, WantedLogits};
use self::source::WeightSource;
use self::state::State;
use self::state_file::Fingerprint;
use self::weights::Vectors;
use crate::checkpoint::names::TensorId;
use crate::config::Config;
use crate::ops::attn_residual::ResidualMix;
use crate::ops::norm::rms_norm;
use crate::{Error, Result};

/// A model whose small vectors are in memory and whose matrices are with a [`WeightSource`].
#[derive(Debug)]
pub struct Model {
    config: Config,
    vectors: Vectors,
}

/// Tokens to feed in one pass, and which of their logits are wanted.
#[derive(Debug, Clone, Copy)]
pub struct Pass<'a> {
    /// The ids, at least one.
    pub tokens: &'a [u32],
    /// Which of them get logits.
    pub logits: WantedLogits,
}

impl Model {
    /// Reads the small vectors.
    ///
    /// # Errors
    /// Those of the weight source.
    pub fn load(config: Config, source: &dyn WeightSource) -> Result<Self> {
        let vectors = Vectors::load(&config, source)?;
        Ok(Self { config, vectors })
    }

    /// What tells this model from others, for what is saved of it.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint { config: self.config.fingerprint(), weights: self.vectors.fingerprint() }
    }

    /// The dimensions and switches.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Feeds the tokens of `pass` and returns the logits it asks for, `[rows, vocabulary]`.
    ///
    /// The bits do not depend on how a sequence is split over passes, on the threads, or on the backend.
    ///
    /// # Errors
    /// A token outside the vocabulary, no room in the state or the scratch, a failed read, logits that are not finite. After
    /// an error past the checks of the arguments, the state is broken.
    pub fn forward<'s>(
        &self,
        compute: &Compute<'_>,
        state: &mut State,
        scratch: &'s mut Scratch,
        pass: Pass<'_>,
    ) -> Result<&'s [f32]> {
        let span = Span { start: state.positions(), count: pass.tokens.len() };
        let rows = pass.logits.rows(span.count);
        self.check(pass.tokens, rows, scratch)?;
        state.begin_pass(span.count)?;
        compute.source.begin_pass(pass.logits)?;
        self.embed(compute, scratch, pass.tokens)?;
        for (number, vectors) in self.vectors.layers.iter().enumerate() {
            let next = self.vectors.layers.get(number + 1);
            let layer = Layer { compute, config: &self.config, number, vectors, next };
            layer.forward(&mut state.layers[number], scratch, span)?;
        }
        self.final_norm(compute, scratch, span.count);
        self.head(compute, scratch, span.count - rows..span.count)?;
        compute.source.end_pass()?;
        let logits = &scratch.logits[..rows * self.config.vocabulary];
        self.check_finite(logits, span.start + span.count - rows)?;
        state.end_pass(span.count);
        Ok(logits)
    }

    fn check(&self, tokens: &[u32], rows: usize, scratch: &Scratch) -> Result<()> {
        let vocabulary = self.config.vocabulary;
        if let Some(&id) = tokens.iter().find(|&&id| id as usize >= vocabulary) {
            return Err(Error::TokenId { id: id.into(), vocabulary });
        }
        if tokens.is_empty() || tokens.len() > scratch.positions {
            return Err(Error::ChunkSize { wanted: tokens.len(), room: scratch.positions });
        }
        let room = scratch.logits.len() / vocabulary;
        if rows > room {
            return Err(Error::ChunkSize { wanted: rows, room });
        }
        Ok(())
    }

    /// The prefix sums begin as rows of the embedding table, not scaled.
    fn embed(&self, compute: &Compute<'_>, scratch: &mut Scratch, tokens: &[u32]) -> Result<()> {
        for (&token, row) in tokens.iter().zip(scratch.residual.start()) {
            compute.source.row(TensorId::Embedding, token as usize, row)?;
        }
        Ok(())
    }

    /// `input = rms(mix of all sources)`
    fn final_norm(&self, compute: &Compute<'_>, scratch: &mut Scratch, positions: usize) {
        let Config { hidden, rms_norm_eps: eps, .. } = self.config;
        let Scratch { residual, input, .. } = scratch;
        let input = &mut input[..positions * hidden];
        residual.mix(compute, &ResidualMix { key_weight: &self.vectors.output_residual, eps }, input);
        compute.observe(Point::FinalMix, input);
        compute.for_each(input, hidden, &|_, row| rms_norm(compute.kernels, row, &self.vectors.final_norm, eps));
        compute.observe(Point::FinalNormed, input);
    }

    /// `logits = head · input` for the given positions of the chunk.
    fn head(&self, compute: &Compute<'_>, scratch: &mut Scratch, positions: core::ops::Range<usize>) -> Result<()> {
        let Config { hidden, vocabulary, .. } = self.config;
        if positions.is_empty() {
            return Ok(());
        }
        let logits = &mut scratch.logits[..positions.len() * vocabulary];
        compute.linear(
            order::head(&self.config),
            &scratch.input[positions.start * hidden..positions.end * hidden],
            logits,
        )
    }

    fn check_finite(&self, logits: &[f32], first: usize) -> Result<()> {
        match logits.iter().position(|logit| !logit.is_finite()) {
            Some(index) => Err(Error::NotFinite { position: first + index / self.config.vocabulary }),
            None => Ok(()),
        }
    }
}
