//! What shape each tensor must have, derived from the config.

use alloc::vec;
use alloc::vec::Vec;

use super::names::{ExpertMatrix, LayerTensor, TensorId};
use crate::config::{Attention, Config, LayerKind};

/// The shape of a tensor of the text model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// `[length]`
    Vector(usize),
    /// A vector that is stored longer than it is used.
    PaddedVector {
        /// How many entries mean something.
        used: usize,
        /// How many entries the release stores.
        released: usize,
    },
    /// `[rows, columns]`
    Matrix(usize, usize),
    /// `[channels, 1, taps]`
    Convolution(usize, usize),
}

impl Shape {
    /// Rows as the model sees them: 1 for a vector.
    #[must_use]
    pub fn rows(self) -> usize {
        match self {
            Self::Vector(_) | Self::PaddedVector { .. } => 1,
            Self::Matrix(rows, _) | Self::Convolution(rows, _) => rows,
        }
    }

    /// Columns as the model sees them: the entries that are used, for a vector.
    #[must_use]
    pub fn columns(self) -> usize {
        match self {
            Self::Vector(columns)
            | Self::PaddedVector { used: columns, .. }
            | Self::Matrix(_, columns)
            | Self::Convolution(_, columns) => columns,
        }
    }

    /// The dimensions as the release writes them.
    #[must_use]
    pub fn dimensions(self) -> Vec<u64> {
        match self {
            Self::Vector(length) => vec![length as u64],
            Self::PaddedVector { released, .. } => vec![released as u64],
            Self::Matrix(rows, columns) => vec![rows as u64, columns as u64],
            Self::Convolution(channels, taps) => vec![channels as u64, 1, taps as u64],
        }
    }

    /// Whether a tensor of these dimensions can be read as this shape.
    #[must_use]
    pub fn accepts(self, dimensions: &[u64]) -> bool {
        match (self, dimensions) {
            (Self::PaddedVector { used, .. }, [length]) => *length >= used as u64,
            _ => self.dimensions() == dimensions,
        }
    }
}

impl TensorId {
    /// The shape that `config` gives the tensor.
    ///
    /// # Panics
    /// If the tensor belongs to a layer that the config does not have.
    #[must_use]
    pub fn shape(self, config: &Config) -> Shape {
        match self {
            Self::Embedding | Self::Head => Shape::Matrix(config.vocabulary, config.hidden),
            Self::FinalNorm | Self::OutputResidualNorm => Shape::Vector(config.hidden),
            Self::OutputResidualProj => Shape::Matrix(1, config.hidden),
            Self::Layer(layer, tensor) => tensor.shape(config.layers[layer], config),
        }
    }
}

impl LayerTensor {
    fn shape(self, kind: LayerKind, config: &Config) -> Shape {
        let (hidden, kda, mla, moe) = (config.hidden, &config.kda, &config.mla, &config.moe);
        let values = match kind.attention {
            Attention::Kda => kda.channels(),
            Attention::Mla => mla.heads * mla.value_dim,
        };
        match self {
            Self::InputNorm | Self::PostAttentionNorm | Self::AttentionResidualNorm | Self::MlpResidualNorm => {
                Shape::Vector(hidden)
            }
            Self::AttentionResidualProj | Self::MlpResidualProj => Shape::Matrix(1, hidden),
            Self::Query | Self::Key | Self::Value => Shape::Matrix(kda.channels(), hidden),
            Self::QueryConv | Self::KeyConv | Self::ValueConv => Shape::Convolution(kda.channels(), kda.taps),
            Self::DecayDown => Shape::Matrix(kda.head_dim, hidden),
            Self::DecayUp => Shape::Matrix(kda.channels(), kda.head_dim),
            Self::Beta => Shape::Matrix(kda.heads, hidden),
            Self::ALog => Shape::PaddedVector { used: kda.heads, released: kda.heads.max(kda.head_dim) },
            Self::DtBias => Shape::Vector(kda.channels()),
            Self::OutputNorm => Shape::Vector(kda.head_dim),
            Self::OutputGate => Shape::Matrix(values, hidden),
            Self::Output => Shape::Matrix(hidden, values),
            Self::QueryDown => Shape::Matrix(mla.query_rank, hidden),
            Self::QueryDownNorm => Shape::Vector(mla.query_rank),
            Self::QueryUp => Shape::Matrix(mla.heads * mla.key_dim(), mla.query_rank),
            Self::KeyValueDown => Shape::Matrix(mla.cache_width(), hidden),
            Self::KeyValueDownNorm => Shape::Vector(mla.latent),
            Self::KeyValueUp => Shape::Matrix(mla.heads * (mla.nope_dim + mla.value_dim), mla.latent),
            Self::DenseGate | Self::DenseUp => Shape::Matrix(config.dense_width, hidden),
            Self::DenseDown => Shape::Matrix(hidden, config.dense_width),
            Self::Router => Shape::Matrix(moe.experts, hidden),
            Self::RouterBias => Shape::Vector(moe.experts),
            Self::LatentDown => Shape::Matrix(moe.latent, hidden),
            Self::LatentUp => Shape::Matrix(hidden, moe.latent),
            Self::LatentNorm => Shape::Vector(moe.latent),
            Self::SharedGate | Self::SharedUp => Shape::Matrix(moe.shared_width, hidden),
            Self::SharedDown => Shape::Matrix(hidden, moe.shared_width),
        }
    }
}

impl ExpertMatrix {
    /// The shape that `config` gives the matrix.
    #[must_use]
    pub fn shape(self, config: &Config) -> Shape {
        match self {
            Self::Gate | Self::Up => Shape::Matrix(config.moe.expert_width, config.moe.latent),
            Self::Down => Shape::Matrix(config.moe.latent, config.moe.expert_width),
        }
    }
}
