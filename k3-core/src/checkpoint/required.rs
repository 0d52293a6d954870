//! Which tensors a model needs, derived from the config.

use super::names::{LayerTensor, TensorId};
use crate::config::{Attention, Config, FeedForward, LayerKind};

/// Whether a model has a use for a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// The model cannot do without it.
    Required,
    /// The model could have it, but a switch of the config leaves it out.
    Unused,
    /// It belongs to a layer of another kind: config and checkpoint contradict each other.
    Foreign,
}

impl Need {
    fn required_if(condition: bool) -> Self {
        if condition { Self::Required } else { Self::Unused }
    }
}

impl TensorId {
    /// Whether the model of `config` has a use for the tensor.
    #[must_use]
    pub fn need(self, config: &Config) -> Need {
        match self {
            Self::Head => Need::required_if(!config.tied_embeddings),
            Self::Layer(layer, tensor) => match config.layers.get(layer) {
                Some(kind) => tensor.need(*kind, config),
                None => Need::Foreign,
            },
            _ => Need::Required,
        }
    }
}

impl LayerTensor {
    fn need(self, kind: LayerKind, config: &Config) -> Need {
        let has = match self {
            Self::InputNorm
            | Self::PostAttentionNorm
            | Self::AttentionResidualNorm
            | Self::AttentionResidualProj
            | Self::MlpResidualNorm
            | Self::MlpResidualProj
            | Self::OutputGate
            | Self::Output => true,
            Self::Query
            | Self::Key
            | Self::Value
            | Self::QueryConv
            | Self::KeyConv
            | Self::ValueConv
            | Self::DecayDown
            | Self::DecayUp
            | Self::Beta
            | Self::ALog
            | Self::DtBias
            | Self::OutputNorm => kind.attention == Attention::Kda,
            Self::QueryDown
            | Self::QueryDownNorm
            | Self::QueryUp
            | Self::KeyValueDown
            | Self::KeyValueDownNorm
            | Self::KeyValueUp => kind.attention == Attention::Mla,
            Self::DenseGate | Self::DenseUp | Self::DenseDown => kind.feed_forward == FeedForward::Dense,
            Self::Router
            | Self::RouterBias
            | Self::LatentDown
            | Self::LatentUp
            | Self::LatentNorm
            | Self::SharedGate
            | Self::SharedUp
            | Self::SharedDown => kind.feed_forward == FeedForward::Moe,
        };
        match self {
            _ if !has => Need::Foreign,
            Self::OutputGate if kind.attention == Attention::Mla => Need::required_if(config.mla.output_gate),
            Self::LatentNorm => Need::required_if(config.moe.latent_norm),
            _ => Need::Required,
        }
    }
}

/// The tensors that the model needs, apart from routed experts: those outside the layers, then those of the first
/// `layers` layers in order.
pub fn required(config: &Config, layers: usize) -> impl Iterator<Item = TensorId> {
    let inside = (0..layers).flat_map(|layer| LayerTensor::all().map(move |tensor| TensorId::Layer(layer, tensor)));
    TensorId::outside_layers().chain(inside).filter(|id| id.need(config) == Need::Required)
}
