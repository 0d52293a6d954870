//! Which layer is of which kind: two one-based lists that must share out all layers.

use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use super::fields::Fields;
use super::json::Json;
use super::{Attention, FeedForward, LayerKind};

/// The kind of every layer, from `num_hidden_layers`, the two lists in `linear`, and where experts begin.
pub(super) fn read(text: &Fields<'_>, linear: Option<&Fields<'_>>, limit: u32) -> Option<Vec<LayerKind>> {
    let count = text.size("num_hidden_layers", limit);
    let first_moe = text.integer("first_k_dense_replace", 0, u32::MAX);
    let frequency = text.size("moe_layer_freq", u32::MAX);
    let linear = linear?;
    let lists = [("kda_layers", Attention::Kda), ("full_attn_layers", Attention::Mla)]
        .map(|(name, attention)| linear.list(name).map(|numbers| (name, numbers, attention)));
    let [Some(kda), Some(mla)] = lists else {
        return None;
    };
    let attention = share_out(linear, count?, [kda, mla])?;
    let (first_moe, frequency) = (first_moe? as usize, frequency?);
    let kind = |(layer, attention)| {
        let has_experts = layer >= first_moe && layer % frequency == 0;
        LayerKind { attention, feed_forward: if has_experts { FeedForward::Moe } else { FeedForward::Dense } }
    };
    Some(attention.into_iter().enumerate().map(kind).collect())
}

/// The attention of each of `count` layers; every layer must be in exactly one list, once.
fn share_out(linear: &Fields<'_>, count: usize, lists: [(&str, &[Json], Attention); 2]) -> Option<Vec<Attention>> {
    let mut kinds: Vec<Option<Attention>> = vec![None; count];
    let mut sound = true;
    for (name, numbers, attention) in lists {
        if numbers.len() > count {
            linear.fault(name, format_args!("lists {} layers where there are {count}", numbers.len()));
            return None;
        }
        for number in numbers {
            let slot = match number {
                Json::Integer(number) => usize::try_from(*number).ok().and_then(|one_based| one_based.checked_sub(1)),
                _ => None,
            };
            let Some(kind) = slot.and_then(|layer| kinds.get_mut(layer)) else {
                linear.fault(name, format_args!("{number} is not a layer; they are numbered 1 to {count}"));
                sound = false;
                continue;
            };
            if kind.replace(attention).is_some() {
                linear.fault(name, format_args!("layer {number} is listed before"));
                sound = false;
            }
        }
    }
    let missing = kinds.iter().zip(1..).filter(|(kind, _)| kind.is_none()).map(|(_, number): (_, usize)| number);
    let missing: Vec<String> = missing.map(|number| number.to_string()).collect();
    if !missing.is_empty() {
        let missing = missing.join(", ");
        linear.fault("kda_layers", format_args!("layers {missing} are neither here nor in full_attn_layers"));
        sound = false;
    }
    if sound { kinds.into_iter().collect() } else { None }
}
