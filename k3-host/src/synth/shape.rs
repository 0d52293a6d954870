//! The dimensions of a checkpoint that is to be made.

use k3_core::config::Config;

use super::config_json;
use super::encode::SCALE_COLUMNS;
use crate::failure::{Failure, Outcome};

/// The most layers that can be written: shards are numbered with five digits, and one holds no layer.
pub const MOST_LAYERS: u32 = 99_998;

/// Dimensions of a checkpoint. What is not here is as released.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// Number of layers.
    pub layers: usize,
    /// Layers with latent attention, numbered from 0; the others have delta attention.
    pub mla_layers: Vec<usize>,
    /// How many of the first layers have one dense MLP instead of experts.
    pub first_dense: usize,
    /// A residual block begins at each multiple of this layer number.
    pub residual_block: usize,
    /// Width of the residual stream.
    pub hidden: usize,
    /// Number of token ids.
    pub vocabulary: usize,
    /// Inner width of the dense MLP.
    pub dense_width: usize,
    /// Number of heads of delta attention.
    pub kda_heads: usize,
    /// Width of such a head.
    pub kda_head_dim: usize,
    /// Number of heads of latent attention.
    pub mla_heads: usize,
    /// Width of the query bottleneck.
    pub query_rank: usize,
    /// Width of the latent that is cached for keys and values.
    pub latent_rank: usize,
    /// Per-head part of a key.
    pub nope_dim: usize,
    /// Part of a key that all heads share.
    pub rope_dim: usize,
    /// Width of a head's values.
    pub value_dim: usize,
    /// Routed experts in a layer.
    pub experts: usize,
    /// How many of them a token uses.
    pub top_k: usize,
    /// Shared experts in a layer.
    pub shared_experts: usize,
    /// Inner width of an expert.
    pub expert_width: usize,
    /// Width in which the routed experts work.
    pub expert_latent: usize,
}

/// Layers with latent attention in a model of `layers` layers, chosen as in the release: every fourth, and the last.
#[must_use]
pub fn released_mla_layers(layers: usize) -> Vec<usize> {
    (0..layers).filter(|layer| layer % 4 == 3 || layer + 1 == layers).collect()
}

impl Shape {
    /// A few megabytes, with every kind of layer and tensor: for tests.
    #[must_use]
    pub fn tiny() -> Self {
        Self {
            layers: 5,
            mla_layers: released_mla_layers(5),
            first_dense: 1,
            residual_block: 2,
            hidden: 128,
            vocabulary: 512,
            dense_width: 320,
            kda_heads: 6,
            kda_head_dim: 16,
            mla_heads: 4,
            query_rank: 48,
            latent_rank: 32,
            nope_dim: 16,
            rope_dim: 8,
            value_dim: 16,
            experts: 24,
            top_k: 4,
            shared_experts: 2,
            expert_width: 64,
            expert_latent: 64,
        }
    }

    /// The released width, with fewer layers, experts and ids: about 11 GB.
    #[must_use]
    pub fn slice() -> Self {
        Self {
            layers: 5,
            mla_layers: released_mla_layers(5),
            first_dense: 1,
            residual_block: 12,
            hidden: 7168,
            vocabulary: 8192,
            dense_width: 33792,
            kda_heads: 96,
            kda_head_dim: 128,
            mla_heads: 96,
            query_rank: 1536,
            latent_rank: 512,
            nope_dim: 128,
            rope_dim: 64,
            value_dim: 128,
            experts: 64,
            top_k: 16,
            shared_experts: 2,
            expert_width: 3072,
            expert_latent: 3584,
        }
    }

    /// The released dimensions.
    #[must_use]
    pub fn released() -> Self {
        Self { layers: 93, mla_layers: released_mla_layers(93), vocabulary: 163_840, experts: 896, ..Self::slice() }
    }

    /// The text of `config.json`, and what the program reads from it.
    ///
    /// # Errors
    /// A refusal that names every dimension that no model can have.
    pub fn config(&self) -> Outcome<(String, Config)> {
        if self.layers > MOST_LAYERS as usize {
            return Err(Failure::refused(format!("{} layers are more than shards can be numbered", self.layers)));
        }
        for (name, width) in [("expert width", self.expert_width), ("expert latent", self.expert_latent)] {
            if width % SCALE_COLUMNS != 0 {
                return Err(Failure::refused(format!("{name} {width} is not a multiple of {SCALE_COLUMNS}")));
            }
        }
        if let Some(layer) = self.mla_layers.iter().find(|&&layer| layer >= self.layers) {
            return Err(Failure::refused(format!(
                "MLA layer {layer}: layers go up to {}",
                self.layers.saturating_sub(1)
            )));
        }
        let text = config_json::text(self).map_err(Failure::failed)?;
        let config = Config::from_json(text.as_bytes())?;
        Ok((text, config))
    }
}
