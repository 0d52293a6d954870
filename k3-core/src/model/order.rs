//! In which order a pass asks for matrices: what a source that reads ahead goes by.

use alloc::vec::Vec;

use super::scratch::WantedLogits;
use crate::checkpoint::names::{LayerTensor, TensorId};
use crate::config::{Attention, Config, FeedForward, LayerKind};

/// The matrices that a pass asks for, in order, each once. Rows of the embedding are looked up before; routed experts come
/// between `LatentDown` and `LatentUp` of their layer.
#[must_use]
pub fn matrices_of_pass(config: &Config, logits: WantedLogits) -> Vec<TensorId> {
    let mut order: Vec<TensorId> = Vec::new();
    for (layer, &kind) in config.layers.iter().enumerate() {
        let halves = [attention(config, kind), feed_forward(kind)];
        order.extend(halves.into_iter().flatten().map(|tensor| TensorId::Layer(layer, *tensor)));
    }
    if logits != WantedLogits::None {
        order.push(head(config));
    }
    order
}

/// The matrix that logits are made with.
pub(super) fn head(config: &Config) -> TensorId {
    if config.tied_embeddings { TensorId::Embedding } else { TensorId::Head }
}

/// Whether the model asks for the matrix in one piece.
#[must_use]
pub fn is_used_whole(id: TensorId) -> bool {
    matches!(id, TensorId::Layer(_, LayerTensor::KeyValueUp))
}

fn attention(config: &Config, kind: LayerKind) -> &'static [LayerTensor] {
    use LayerTensor::{
        Beta, DecayDown, DecayUp, Key, KeyValueDown, KeyValueUp, Output, OutputGate, Query, QueryDown, QueryUp, Value,
    };
    match kind.attention {
        Attention::Kda => &[Query, Key, Value, DecayDown, DecayUp, Beta, OutputGate, Output],
        Attention::Mla if config.mla.output_gate => &[KeyValueDown, QueryDown, QueryUp, KeyValueUp, OutputGate, Output],
        Attention::Mla => &[KeyValueDown, QueryDown, QueryUp, KeyValueUp, Output],
    }
}

fn feed_forward(kind: LayerKind) -> &'static [LayerTensor] {
    use LayerTensor::{DenseDown, DenseGate, DenseUp, LatentDown, LatentUp, Router, SharedDown, SharedGate, SharedUp};
    match kind.feed_forward {
        FeedForward::Dense => &[DenseGate, DenseUp, DenseDown],
        FeedForward::Moe => &[Router, SharedGate, SharedUp, SharedDown, LatentDown, LatentUp],
    }
}
