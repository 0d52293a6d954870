//! The names of the released tensors, in one place.
//!
//! A name is a prefix that only the release has, the place of the tensor, and a suffix that says which part of it is
//! stored: `language_model.` `model.layers.7.self_attn.o_proj.weight` `_packed`.

use core::fmt;

use super::names::{ExpertId, ExpertMatrix, LayerTensor, Name, Part, TensorId};
use super::names::{LayerTensor as T, TensorId as Id};

const RELEASED_PREFIX: &str = "language_model.";
const VISION_PREFIXES: [&str; 2] = ["vision_tower.", "mm_projector."];
const LAYERS: &str = "model.layers.";
const EXPERTS: &str = "block_sparse_moe.experts.";
const PARTS: [(Part, &str); 3] = [(Part::Plain, ""), (Part::Packed, "_packed"), (Part::Scale, "_scale")];
const MATRICES: [(ExpertMatrix, &str); 3] =
    [(ExpertMatrix::Gate, "w1.weight"), (ExpertMatrix::Down, "w2.weight"), (ExpertMatrix::Up, "w3.weight")];

const MODEL_NAMES: [(TensorId, &str); 5] = [
    (Id::Embedding, "model.embed_tokens.weight"),
    (Id::FinalNorm, "model.norm.weight"),
    (Id::OutputResidualNorm, "model.output_attn_res_norm.weight"),
    (Id::OutputResidualProj, "model.output_attn_res_proj.weight"),
    (Id::Head, "lm_head.weight"),
];

/// Every tensor of a layer with what follows `model.layers.N.`.
const LAYER_NAMES: [(LayerTensor, &str); 37] = [
    (T::InputNorm, "input_layernorm.weight"),
    (T::PostAttentionNorm, "post_attention_layernorm.weight"),
    (T::AttentionResidualNorm, "self_attention_res_norm.weight"),
    (T::AttentionResidualProj, "self_attention_res_proj.weight"),
    (T::MlpResidualNorm, "mlp_res_norm.weight"),
    (T::MlpResidualProj, "mlp_res_proj.weight"),
    (T::Query, "self_attn.q_proj.weight"),
    (T::Key, "self_attn.k_proj.weight"),
    (T::Value, "self_attn.v_proj.weight"),
    (T::QueryConv, "self_attn.q_conv1d.weight"),
    (T::KeyConv, "self_attn.k_conv1d.weight"),
    (T::ValueConv, "self_attn.v_conv1d.weight"),
    (T::DecayDown, "self_attn.f_a_proj.weight"),
    (T::DecayUp, "self_attn.f_b_proj.weight"),
    (T::Beta, "self_attn.b_proj.weight"),
    (T::ALog, "self_attn.A_log"),
    (T::DtBias, "self_attn.dt_bias"),
    (T::OutputNorm, "self_attn.o_norm.weight"),
    (T::OutputGate, "self_attn.g_proj.weight"),
    (T::Output, "self_attn.o_proj.weight"),
    (T::QueryDown, "self_attn.q_a_proj.weight"),
    (T::QueryDownNorm, "self_attn.q_a_layernorm.weight"),
    (T::QueryUp, "self_attn.q_b_proj.weight"),
    (T::KeyValueDown, "self_attn.kv_a_proj_with_mqa.weight"),
    (T::KeyValueDownNorm, "self_attn.kv_a_layernorm.weight"),
    (T::KeyValueUp, "self_attn.kv_b_proj.weight"),
    (T::DenseGate, "mlp.gate_proj.weight"),
    (T::DenseUp, "mlp.up_proj.weight"),
    (T::DenseDown, "mlp.down_proj.weight"),
    (T::Router, "block_sparse_moe.gate.weight"),
    (T::RouterBias, "block_sparse_moe.gate.e_score_correction_bias"),
    (T::LatentDown, "block_sparse_moe.routed_expert_down_proj.weight"),
    (T::LatentUp, "block_sparse_moe.routed_expert_up_proj.weight"),
    (T::LatentNorm, "block_sparse_moe.routed_expert_norm.weight"),
    (T::SharedGate, "block_sparse_moe.shared_experts.gate_proj.weight"),
    (T::SharedUp, "block_sparse_moe.shared_experts.up_proj.weight"),
    (T::SharedDown, "block_sparse_moe.shared_experts.down_proj.weight"),
];

impl TensorId {
    /// The tensors outside the layers.
    pub fn outside_layers() -> impl Iterator<Item = Self> {
        MODEL_NAMES.iter().map(|(id, _)| *id)
    }
}

impl LayerTensor {
    /// Every tensor that a layer of any kind may have.
    pub fn all() -> impl Iterator<Item = Self> {
        LAYER_NAMES.iter().map(|(tensor, _)| *tensor)
    }
}

impl ExpertMatrix {
    /// The three matrices in the order in which they lie in a shard.
    pub const ALL: [Self; 3] = [Self::Gate, Self::Down, Self::Up];
}

impl Part {
    /// What a name ends in, after the name of the whole tensor.
    #[must_use]
    pub fn suffix(self) -> &'static str {
        spelling(&PARTS, self)
    }
}

impl Name {
    /// What `name` stands for, with or without the prefix of the release.
    #[must_use]
    pub fn parse(name: &str) -> Self {
        if VISION_PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
            return Self::Vision;
        }
        Self::parse_text(name.strip_prefix(RELEASED_PREFIX).unwrap_or(name)).unwrap_or(Self::Unknown)
    }

    fn parse_text(name: &str) -> Option<Self> {
        let (part, name) = PARTS.iter().rev().find_map(|(part, suffix)| Some((*part, name.strip_suffix(suffix)?)))?;
        let Some(rest) = name.strip_prefix(LAYERS) else {
            return Some(Self::Text(meaning(&MODEL_NAMES, name)?, part));
        };
        let (layer, rest) = number(rest)?;
        let Some(rest) = rest.strip_prefix(EXPERTS) else {
            return Some(Self::Text(Id::Layer(layer, meaning(&LAYER_NAMES, rest)?), part));
        };
        let (expert, rest) = number(rest)?;
        Some(Self::Expert(ExpertId { layer, expert, matrix: meaning(&MATRICES, rest)? }, part))
    }

    /// The layer that the tensor belongs to.
    #[must_use]
    pub fn layer(&self) -> Option<usize> {
        match self {
            Self::Text(Id::Layer(layer, _), _) => Some(*layer),
            Self::Expert(id, _) => Some(id.layer),
            _ => None,
        }
    }
}

/// The number before the first point, and what follows the point. Only the shortest spelling of a number is one.
fn number(text: &str) -> Option<(usize, &str)> {
    let (digits, rest) = text.split_once('.')?;
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && (digits == "0" || !digits.starts_with('0'));
    Some((digits.parse().ok().filter(|_| plain)?, rest))
}

fn meaning<K: Copy>(table: &[(K, &str)], text: &str) -> Option<K> {
    table.iter().find(|(_, spelling)| *spelling == text).map(|(key, _)| *key)
}

fn spelling<K: PartialEq>(table: &[(K, &'static str)], key: K) -> &'static str {
    table.iter().find(|(candidate, _)| *candidate == key).map_or("", |(_, spelling)| spelling)
}

/// The name of the whole tensor as released.
impl fmt::Display for TensorId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Layer(layer, tensor) => {
                write!(formatter, "{RELEASED_PREFIX}{LAYERS}{layer}.{}", spelling(&LAYER_NAMES, *tensor))
            }
            other => write!(formatter, "{RELEASED_PREFIX}{}", spelling(&MODEL_NAMES, *other)),
        }
    }
}

/// The name of the whole matrix as it would be released in a plain form.
impl fmt::Display for ExpertId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let matrix = spelling(&MATRICES, self.matrix);
        write!(formatter, "{RELEASED_PREFIX}{LAYERS}{}.{EXPERTS}{}.{matrix}", self.layer, self.expert)
    }
}

/// The name as released; what has none is described.
impl fmt::Display for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(id, part) => write!(formatter, "{id}{}", part.suffix()),
            Self::Expert(id, part) => write!(formatter, "{id}{}", part.suffix()),
            Self::Vision => formatter.write_str("a tensor of the vision tower"),
            Self::Unknown => formatter.write_str("an unknown tensor"),
        }
    }
}
