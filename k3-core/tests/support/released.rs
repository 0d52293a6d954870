//! The released names of the tensors, as the fixtures use them.

use k3_core::checkpoint::names::{
    LayerTensor::{self, *},
    TensorId,
};

const MODEL: [(&str, TensorId); 5] = [
    ("model.embed_tokens.weight", TensorId::Embedding),
    ("model.norm.weight", TensorId::FinalNorm),
    ("model.output_attn_res_norm.weight", TensorId::OutputResidualNorm),
    ("model.output_attn_res_proj.weight", TensorId::OutputResidualProj),
    ("lm_head.weight", TensorId::Head),
];

const LAYER: [(&str, LayerTensor); 37] = [
    ("input_layernorm.weight", InputNorm),
    ("post_attention_layernorm.weight", PostAttentionNorm),
    ("self_attention_res_norm.weight", AttentionResidualNorm),
    ("self_attention_res_proj.weight", AttentionResidualProj),
    ("mlp_res_norm.weight", MlpResidualNorm),
    ("mlp_res_proj.weight", MlpResidualProj),
    ("self_attn.q_proj.weight", Query),
    ("self_attn.k_proj.weight", Key),
    ("self_attn.v_proj.weight", Value),
    ("self_attn.q_conv1d.weight", QueryConv),
    ("self_attn.k_conv1d.weight", KeyConv),
    ("self_attn.v_conv1d.weight", ValueConv),
    ("self_attn.f_a_proj.weight", DecayDown),
    ("self_attn.f_b_proj.weight", DecayUp),
    ("self_attn.b_proj.weight", Beta),
    ("self_attn.A_log", ALog),
    ("self_attn.dt_bias", DtBias),
    ("self_attn.o_norm.weight", OutputNorm),
    ("self_attn.g_proj.weight", OutputGate),
    ("self_attn.o_proj.weight", Output),
    ("self_attn.q_a_proj.weight", QueryDown),
    ("self_attn.q_a_layernorm.weight", QueryDownNorm),
    ("self_attn.q_b_proj.weight", QueryUp),
    ("self_attn.kv_a_proj_with_mqa.weight", KeyValueDown),
    ("self_attn.kv_a_layernorm.weight", KeyValueDownNorm),
    ("self_attn.kv_b_proj.weight", KeyValueUp),
    ("mlp.gate_proj.weight", DenseGate),
    ("mlp.up_proj.weight", DenseUp),
    ("mlp.down_proj.weight", DenseDown),
    ("block_sparse_moe.gate.weight", Router),
    ("block_sparse_moe.gate.e_score_correction_bias", RouterBias),
    ("block_sparse_moe.routed_expert_down_proj.weight", LatentDown),
    ("block_sparse_moe.routed_expert_up_proj.weight", LatentUp),
    ("block_sparse_moe.routed_expert_norm.weight", LatentNorm),
    ("block_sparse_moe.shared_experts.gate_proj.weight", SharedGate),
    ("block_sparse_moe.shared_experts.up_proj.weight", SharedUp),
    ("block_sparse_moe.shared_experts.down_proj.weight", SharedDown),
];

/// What a released name means to the model.
#[derive(Debug, PartialEq, Eq)]
pub enum Name<'a> {
    /// A tensor apart from the routed experts.
    Tensor(TensorId),
    /// A part of an expert, such as `w1.weight_packed`.
    Expert { layer: usize, expert: usize, part: &'a str },
}

/// Reads a released name; an unknown one is a mistake in the fixture.
pub fn parse(name: &str) -> Name<'_> {
    parsed(name).unwrap_or_else(|| panic!("{name} is not a released name"))
}

fn parsed(name: &str) -> Option<Name<'_>> {
    if let Some((_, id)) = MODEL.iter().find(|(known, _)| *known == name) {
        return Some(Name::Tensor(*id));
    }
    let (layer, rest) = name.strip_prefix("model.layers.")?.split_once('.')?;
    let layer = layer.parse().ok()?;
    if let Some(rest) = rest.strip_prefix("block_sparse_moe.experts.") {
        let (expert, part) = rest.split_once('.')?;
        return Some(Name::Expert { layer, expert: expert.parse().ok()?, part });
    }
    let (_, tensor) = LAYER.iter().find(|(known, _)| *known == rest)?;
    Some(Name::Tensor(TensorId::Layer(layer, *tensor)))
}
