//! The text of `config.json`, nested and named as in the release.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::encode::SCALE_COLUMNS;
use super::shape::Shape;

/// The id that ends an answer of the released model, where the vocabulary has it.
const RELEASED_END_ID: usize = 163_586;
/// The id that begins a text of the released model, where the vocabulary has it.
const RELEASED_BEGIN_ID: usize = 163_584;

/// The text of the config of a model of this shape, whether or not there can be one.
pub(super) fn text(shape: &Shape) -> serde_json::Result<String> {
    let ids = token_ids(shape);
    let mut text_config = released_switches();
    merge(&mut text_config, widths(shape));
    merge(&mut text_config, ids.clone());
    let mut config = json!({
        "architectures": ["KimiK3ForConditionalGeneration"],
        "dtype": "bfloat16",
        "model_type": "kimi_k3",
        "text_config": text_config,
        "tie_word_embeddings": false,
    });
    merge(&mut config, ids);
    Ok(serde_json::to_string_pretty(&config)? + "\n")
}

fn merge(object: &mut Value, other: Value) {
    if let (Value::Object(object), Value::Object(other)) = (object, other) {
        object.extend(other);
    }
}

/// The released ids, or the last there is.
fn token_ids(shape: &Shape) -> Value {
    let last = shape.vocabulary.saturating_sub(1);
    json!({
        "bos_token_id": RELEASED_BEGIN_ID.min(last),
        "eos_token_id": RELEASED_END_ID.min(last),
    })
}

/// What does not depend on the shape.
fn released_switches() -> Value {
    json!({
        "activation_situ_beta": 4.0,
        "activation_situ_linear_beta": 25.0,
        "architectures": ["KimiLinearForCausalLM"],
        "dtype": "bfloat16",
        "hidden_act": "situ",
        "latent_moe_use_norm": true,
        "max_position_embeddings": 1_048_576,
        "mla_use_nope": true,
        "mla_use_output_gate": true,
        "model_type": "kimi_linear",
        "moe_layer_freq": 1,
        "moe_renormalize": true,
        "moe_router_activation_func": "sigmoid",
        "num_expert_group": 1,
        "num_nextn_predict_layers": 0,
        "quantization_config": quantization(),
        "rms_norm_eps": 1e-5,
        "routed_scaling_factor": 1.0,
        "tie_word_embeddings": false,
        "topk_group": 1,
        "topk_method": "noaux_tc",
        "use_grouped_topk": true,
    })
}

fn widths(shape: &Shape) -> Value {
    json!({
        "attn_res_block_size": shape.residual_block,
        "first_k_dense_replace": shape.first_dense,
        "hidden_size": shape.hidden,
        "intermediate_size": shape.dense_width,
        "kv_lora_rank": shape.latent_rank,
        "linear_attn_config": linear_attention(shape),
        "moe_intermediate_size": shape.expert_width,
        "num_attention_heads": shape.mla_heads,
        "num_experts": shape.experts,
        "num_experts_per_token": shape.top_k,
        "num_hidden_layers": shape.layers,
        "num_key_value_heads": shape.mla_heads,
        "num_shared_experts": shape.shared_experts,
        "q_lora_rank": shape.query_rank,
        "qk_nope_head_dim": shape.nope_dim,
        "qk_rope_head_dim": shape.rope_dim,
        "routed_expert_hidden_size": shape.expert_latent,
        "v_head_dim": shape.value_dim,
        "vocab_size": shape.vocabulary,
    })
}

fn linear_attention(shape: &Shape) -> Value {
    let listed = BTreeSet::from_iter(&shape.mla_layers);
    let (mla, kda): (Vec<usize>, Vec<usize>) = (0..shape.layers).partition(|layer| listed.contains(layer));
    // The lists of the config count layers from 1.
    let one_based = |layers: Vec<usize>| layers.into_iter().map(|layer| layer + 1).collect::<Vec<_>>();
    json!({
        "full_attn_layers": one_based(mla),
        "gate_lower_bound": -5.0,
        "head_dim": shape.kda_head_dim,
        "kda_layers": one_based(kda),
        "num_heads": shape.kda_heads,
        "short_conv_kernel_size": 4,
        "use_full_rank_gate": true,
    })
}

/// What the release says of its packed experts.
fn quantization() -> Value {
    json!({
        "config_groups": {
            "group_0": {
                "format": "mxfp4-pack-quantized",
                "input_activations": null,
                "targets": ["Linear"],
                "weights": {
                    "dynamic": false,
                    "group_size": SCALE_COLUMNS,
                    "num_bits": 4,
                    "scale_dtype": "torch.uint8",
                    "strategy": "group",
                    "symmetric": true,
                    "type": "float",
                },
            },
        },
        "format": "mxfp4-pack-quantized",
        "ignore": [
            "re:.*self_attn.*",
            "re:.*shared_experts.*",
            "re:.*mlp\\.(gate|up|gate_up|down)_proj.*",
            "re:.*lm_head.*",
        ],
        "kv_cache_scheme": null,
        "quant_method": "compressed-tensors",
        "quantization_status": "compressed",
    })
}
