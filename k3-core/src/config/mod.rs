//! The model's dimensions and switches, as read from `config.json`. Nothing here is compiled in.

mod end_ids;
mod fields;
mod json;
mod layers;
mod quantization;
mod read;
#[cfg(test)]
mod tests;

use alloc::vec::Vec;

/// A checked configuration: every field is finite, in range and consistent with the others.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Width of the residual stream.
    pub hidden: usize,
    /// Number of token ids.
    pub vocabulary: usize,
    /// What each layer is, from layer 0 up.
    pub layers: Vec<LayerKind>,
    /// Epsilon of every RMS norm but the two inside MLA.
    pub rms_norm_eps: f32,
    /// A residual block begins at each layer whose number is a multiple of this.
    pub residual_block: usize,
    /// Width of the dense MLP.
    pub dense_width: usize,
    /// Delta attention.
    pub kda: KdaConfig,
    /// Latent attention.
    pub mla: MlaConfig,
    /// Experts.
    pub moe: MoeConfig,
    /// The gated activation of every MLP.
    pub situ: SituConfig,
    /// Whether the output head is the embedding table.
    pub tied_embeddings: bool,
    /// The largest number of positions the model was made for.
    pub max_positions: usize,
    /// Ids that end an answer, as the config names them at either level; ascending.
    pub end_ids: Vec<u32>,
}

/// The two halves of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerKind {
    /// How the layer mixes positions.
    pub attention: Attention,
    /// How the layer transforms one position.
    pub feed_forward: FeedForward,
}

/// How a layer mixes positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attention {
    /// Delta attention with per-channel decay: a recurrent state of fixed size.
    Kda,
    /// Gated latent attention without rotation: a cache that grows with the context.
    Mla,
}

/// How a layer transforms one position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedForward {
    /// One MLP.
    Dense,
    /// Routed experts in the latent width, and shared ones.
    Moe,
}

/// Dimensions of delta attention. Queries, keys and values all have `heads × head_dim` channels.
#[derive(Debug, Clone, PartialEq)]
pub struct KdaConfig {
    /// Number of heads.
    pub heads: usize,
    /// Width of a head's queries, keys and values.
    pub head_dim: usize,
    /// Taps of the short convolutions, the current token included.
    pub taps: usize,
    /// The bound of the log decay; absent, the softplus form applies.
    pub gate_lower_bound: Option<f32>,
}

/// Dimensions of latent attention.
#[derive(Debug, Clone, PartialEq)]
pub struct MlaConfig {
    /// Number of heads.
    pub heads: usize,
    /// Width of the query bottleneck.
    pub query_rank: usize,
    /// Width of the cached latent.
    pub latent: usize,
    /// Per-head part of a key.
    pub nope_dim: usize,
    /// Part of a key that all heads share; never rotated.
    pub rope_dim: usize,
    /// Width of a head's values.
    pub value_dim: usize,
    /// Whether the output is gated.
    pub output_gate: bool,
}

/// Dimensions and switches of the mixture of experts.
#[derive(Debug, Clone, PartialEq)]
pub struct MoeConfig {
    /// Number of routed experts in a layer.
    pub experts: usize,
    /// How many of them a token uses.
    pub top_k: usize,
    /// Width in which the routed experts work.
    pub latent: usize,
    /// Inner width of one routed expert.
    pub expert_width: usize,
    /// Inner width of all shared experts together.
    pub shared_width: usize,
    /// Whether the chosen weights are divided by their sum.
    pub renormalize: bool,
    /// Factor on the chosen weights.
    pub scaling: f32,
    /// Whether the summed expert output is normed.
    pub latent_norm: bool,
}

/// The two soft caps of the gated activation.
#[derive(Debug, Clone, PartialEq)]
pub struct SituConfig {
    /// Cap of the gate.
    pub beta: f32,
    /// Cap of the up projection; absent, it passes unchanged.
    pub linear_beta: Option<f32>,
}

impl Config {
    /// A hash of every field. It may differ between versions of this program, never between targets.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        xxhash_rust::xxh3::xxh3_64(alloc::format!("{self:?}").as_bytes())
    }
}

impl MlaConfig {
    /// Width of a query or key of one head.
    #[must_use]
    pub fn key_dim(&self) -> usize {
        self.nope_dim + self.rope_dim
    }

    /// Numbers cached per position: the latent and the shared key part.
    #[must_use]
    pub fn cache_width(&self) -> usize {
        self.latent + self.rope_dim
    }
}

impl KdaConfig {
    /// Channels of all heads together.
    #[must_use]
    pub fn channels(&self) -> usize {
        self.heads * self.head_dim
    }
}
