//! The small vectors of the model, widened to f32 and kept in memory: norms, biases, convolution taps.
//!
//! All of them together take about 50 MB for the released model; the matrices stay with the weight source.

use alloc::vec;
use alloc::vec::Vec;

use xxhash_rust::xxh3::Xxh3Default;

use super::room::Room;
use super::source::WeightSource;
use crate::Result;
use crate::checkpoint::names::{LayerTensor, TensorId};
use crate::config::{Attention, Config, FeedForward, LayerKind};

/// Every small vector of the model.
#[derive(Debug)]
pub struct Vectors {
    /// One for each layer.
    pub layers: Vec<LayerVectors>,
    /// Key weight `[hidden]` of the mix after the last layer.
    pub output_residual: Vec<f32>,
    /// `[hidden]`
    pub final_norm: Vec<f32>,
}

/// The small vectors of a layer.
#[derive(Debug)]
pub struct LayerVectors {
    /// Key weight `[hidden]` of the mix in front of attention; empty in layer 0, which does not mix.
    pub attention_residual: Vec<f32>,
    /// `[hidden]`
    pub input_norm: Vec<f32>,
    /// Key weight `[hidden]` of the mix in front of the feed-forward half.
    pub mlp_residual: Vec<f32>,
    /// `[hidden]`
    pub post_attention_norm: Vec<f32>,
    /// Those of the attention.
    pub attention: AttentionVectors,
    /// Those of the experts, in layers that have them.
    pub moe: Option<MoeVectors>,
}

/// The small vectors of a layer's attention.
#[derive(Debug)]
pub enum AttentionVectors {
    /// Delta attention.
    Kda(KdaVectors),
    /// Latent attention.
    Mla(MlaVectors),
}

/// The small vectors of delta attention.
#[derive(Debug)]
pub struct KdaVectors {
    /// Convolution taps of queries, keys and values, each `[channels, taps]`.
    pub taps: [Vec<f32>; 3],
    /// `[heads]`: the stored vector without its tail.
    pub a_log: Vec<f32>,
    /// `[channels]`
    pub dt_bias: Vec<f32>,
    /// `[head_dim]`
    pub output_norm: Vec<f32>,
}

/// The small vectors of latent attention.
#[derive(Debug)]
pub struct MlaVectors {
    /// `[query_rank]`
    pub query_norm: Vec<f32>,
    /// `[latent]`
    pub latent_norm: Vec<f32>,
}

/// The small vectors of a mixture of experts.
#[derive(Debug)]
pub struct MoeVectors {
    /// `[experts]`
    pub router_bias: Vec<f32>,
    /// `[latent]`, empty if the sum is not normed.
    pub latent_norm: Vec<f32>,
}

impl Vectors {
    /// A hash of all values.
    pub(super) fn fingerprint(&self) -> u64 {
        let mut hash = Xxh3Default::new();
        let mut add = |values: &[f32]| values.iter().for_each(|value| hash.update(&value.to_le_bytes()));
        for layer in &self.layers {
            add(&layer.attention_residual);
            add(&layer.input_norm);
            add(&layer.mlp_residual);
            add(&layer.post_attention_norm);
            match &layer.attention {
                AttentionVectors::Kda(kda) => {
                    kda.taps.iter().for_each(|taps| add(taps));
                    [&kda.a_log, &kda.dt_bias, &kda.output_norm].into_iter().for_each(|values| add(values));
                }
                AttentionVectors::Mla(mla) => {
                    [&mla.query_norm, &mla.latent_norm].into_iter().for_each(|values| add(values))
                }
            }
            if let Some(moe) = &layer.moe {
                [&moe.router_bias, &moe.latent_norm].into_iter().for_each(|values| add(values));
            }
        }
        add(&self.output_residual);
        add(&self.final_norm);
        hash.digest()
    }

    /// Reads them all.
    ///
    /// # Errors
    /// Those of the weight source.
    pub fn load(config: &Config, source: &dyn WeightSource) -> Result<Self> {
        Self::read(config, &mut |id, values| source.vector(id, values), &mut Room::Made)
    }

    /// The bytes that they take.
    #[must_use]
    pub fn bytes(config: &Config) -> u64 {
        Room::bytes(|room| Self::read(config, &mut |_, _| Ok(()), room))
    }

    fn read(config: &Config, source: &mut VectorSource<'_>, room: &mut Room) -> Result<Self> {
        let mut reader = Reader { config, source, room };
        let layers = config.layers.iter().enumerate();
        Ok(Self {
            layers: layers.map(|(layer, &kind)| reader.layer(layer, kind)).collect::<Result<_>>()?,
            output_residual: reader.key_weight(TensorId::OutputResidualNorm, TensorId::OutputResidualProj)?,
            final_norm: reader.vector(TensorId::FinalNorm, config.hidden)?,
        })
    }
}

/// Fills the second argument with the vector.
type VectorSource<'a> = dyn FnMut(TensorId, &mut [f32]) -> Result<()> + 'a;

struct Reader<'a, 's> {
    config: &'a Config,
    source: &'a mut VectorSource<'s>,
    room: &'a mut Room,
}

impl Reader<'_, '_> {
    fn vector(&mut self, id: TensorId, length: usize) -> Result<Vec<f32>> {
        let mut values = self.room.zeros(length);
        (self.source)(id, &mut values)?;
        Ok(values)
    }

    /// The product of a key norm's weight and a projection row.
    fn key_weight(&mut self, norm: TensorId, projection: TensorId) -> Result<Vec<f32>> {
        let mut weight = self.vector(norm, self.config.hidden)?;
        let mut factors = vec![0.0; weight.len()];
        (self.source)(projection, &mut factors)?;
        weight.iter_mut().zip(factors).for_each(|(weight, factor)| *weight *= factor);
        Ok(weight)
    }

    fn layer(&mut self, layer: usize, kind: LayerKind) -> Result<LayerVectors> {
        let hidden = self.config.hidden;
        let id = |tensor| TensorId::Layer(layer, tensor);
        let attention_residual = if layer == 0 {
            Vec::new()
        } else {
            self.key_weight(id(LayerTensor::AttentionResidualNorm), id(LayerTensor::AttentionResidualProj))?
        };
        Ok(LayerVectors {
            attention_residual,
            input_norm: self.vector(id(LayerTensor::InputNorm), hidden)?,
            mlp_residual: self.key_weight(id(LayerTensor::MlpResidualNorm), id(LayerTensor::MlpResidualProj))?,
            post_attention_norm: self.vector(id(LayerTensor::PostAttentionNorm), hidden)?,
            attention: match kind.attention {
                Attention::Kda => AttentionVectors::Kda(self.kda(layer)?),
                Attention::Mla => AttentionVectors::Mla(self.mla(layer)?),
            },
            moe: match kind.feed_forward {
                FeedForward::Dense => None,
                FeedForward::Moe => Some(self.moe(layer)?),
            },
        })
    }

    fn kda(&mut self, layer: usize) -> Result<KdaVectors> {
        let kda = &self.config.kda;
        let mut vector = |tensor, length| self.vector(TensorId::Layer(layer, tensor), length);
        let taps = kda.channels() * kda.taps;
        Ok(KdaVectors {
            taps: [
                vector(LayerTensor::QueryConv, taps)?,
                vector(LayerTensor::KeyConv, taps)?,
                vector(LayerTensor::ValueConv, taps)?,
            ],
            a_log: vector(LayerTensor::ALog, kda.heads)?,
            dt_bias: vector(LayerTensor::DtBias, kda.channels())?,
            output_norm: vector(LayerTensor::OutputNorm, kda.head_dim)?,
        })
    }

    fn mla(&mut self, layer: usize) -> Result<MlaVectors> {
        let mla = &self.config.mla;
        let mut vector = |tensor, length| self.vector(TensorId::Layer(layer, tensor), length);
        Ok(MlaVectors {
            query_norm: vector(LayerTensor::QueryDownNorm, mla.query_rank)?,
            latent_norm: vector(LayerTensor::KeyValueDownNorm, mla.latent)?,
        })
    }

    fn moe(&mut self, layer: usize) -> Result<MoeVectors> {
        let moe = &self.config.moe;
        let mut vector = |tensor, length| self.vector(TensorId::Layer(layer, tensor), length);
        let latent_norm = if moe.latent_norm { vector(LayerTensor::LatentNorm, moe.latent)? } else { Vec::new() };
        Ok(MoeVectors { router_bias: vector(LayerTensor::RouterBias, moe.experts)?, latent_norm })
    }
}
