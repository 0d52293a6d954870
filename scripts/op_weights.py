"""Random weights on coarse grids, so that every one is exact in the type it is stored in, and configs around them."""

import numpy as np


class Draw:
    """A seeded source of exactly representable numbers."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)

    def grid(self, *shape, scale=1.0):
        """Multiples of `scale` / 64 up to `scale` in magnitude; exact in bf16 where `scale` is a power of two."""
        return self.random.integers(-64, 65, shape) / 64.0 * scale

    def near_one(self, *shape):
        """Norm weights: 0.5 to 1.5 in steps of 1/64."""
        return 1.0 + self.random.integers(-32, 33, shape) / 64.0

    def bytes(self, *shape, low=0, high=256):
        return self.random.integers(low, high, shape, dtype=np.uint8)


def config(**changes):
    """A config in the flat form of the released one, small; dictionaries are merged one level deep."""
    base = {
        "hidden_act": "situ",
        "moe_router_activation_func": "sigmoid",
        "topk_method": "noaux_tc",
        "mla_use_nope": True,
        "num_nextn_predict_layers": 0,
        "num_expert_group": 1,
        "topk_group": 1,
        "hidden_size": 16,
        "vocab_size": 8,
        "num_hidden_layers": 1,
        "first_k_dense_replace": 1,
        "moe_layer_freq": 1,
        "rms_norm_eps": 3e-5,
        "attn_res_block_size": 3,
        "intermediate_size": 3,
        "num_attention_heads": 1,
        "num_key_value_heads": 1,
        "q_lora_rank": 2,
        "kv_lora_rank": 2,
        "qk_nope_head_dim": 2,
        "qk_rope_head_dim": 2,
        "v_head_dim": 2,
        "mla_use_output_gate": True,
        "num_experts": 6,
        "num_experts_per_token": 3,
        "routed_expert_hidden_size": 32,
        "moe_intermediate_size": 32,
        "num_shared_experts": 1,
        "moe_renormalize": True,
        "routed_scaling_factor": 1.5,
        "latent_moe_use_norm": True,
        "activation_situ_beta": 3.0,
        "activation_situ_linear_beta": 12.0,
        "tie_word_embeddings": False,
        "max_position_embeddings": 64,
        "eos_token_id": 1,
        "linear_attn_config": {
            "num_heads": 1,
            "head_dim": 2,
            "short_conv_kernel_size": 4,
            "gate_lower_bound": -3.5,
            "use_full_rank_gate": True,
            "kda_layers": [1],
            "full_attn_layers": [],
        },
    }
    linear = {**base["linear_attn_config"], **changes.pop("linear_attn_config", {})}
    return {**base, **changes, "linear_attn_config": linear}


def model_weights(draw, c):
    """Weights for every layer of `c`, with both kinds of attention and of feed-forward in each."""
    hidden = c["hidden_size"]
    weights = {
        "model.embed_tokens.weight": draw.grid(c["vocab_size"], hidden),
        "model.norm.weight": draw.near_one(hidden),
        "model.output_attn_res_norm.weight": draw.near_one(hidden),
        "model.output_attn_res_proj.weight": draw.grid(1, hidden),
        "lm_head.weight": draw.grid(c["vocab_size"], hidden),
    }
    for layer in range(c["num_hidden_layers"]):
        # The two kinds of attention share the names of two tensors, whose shapes may differ.
        kinds = [kda_weights(draw, c), mla_weights(draw, c)]
        other, kind = kinds if is_mla(c, layer) else reversed(kinds)
        own = {**other, **kind}
        own |= {**residual_weights(draw, c), **mlp_weights(draw, hidden, c["intermediate_size"], "mlp")}
        if layer >= c["first_k_dense_replace"]:
            own |= moe_weights(draw, c)
        weights |= {f"model.layers.{layer}.{name}": values for name, values in own.items()}
    return weights


def is_mla(c, layer):
    return layer + 1 in c["linear_attn_config"]["full_attn_layers"]


def residual_weights(draw, c):
    hidden = c["hidden_size"]
    return {
        "input_layernorm.weight": draw.near_one(hidden),
        "post_attention_layernorm.weight": draw.near_one(hidden),
        "self_attention_res_norm.weight": draw.near_one(hidden),
        "self_attention_res_proj.weight": draw.grid(1, hidden),
        "mlp_res_norm.weight": draw.near_one(hidden),
        "mlp_res_proj.weight": draw.grid(1, hidden),
    }


def kda_weights(draw, c):
    hidden, linear = c["hidden_size"], c["linear_attn_config"]
    heads, width = linear["num_heads"], linear["head_dim"]
    channels = heads * width
    a_log = np.zeros(max(width, heads + 1))
    a_log[:heads] = draw.grid(heads)
    return {
        **{f"self_attn.{name}_proj.weight": draw.grid(channels, hidden, scale=0.5) for name in "qkvg"},
        **{f"self_attn.{name}_conv1d.weight": draw.grid(channels, 1, 4) for name in "qkv"},
        "self_attn.f_a_proj.weight": draw.grid(width, hidden, scale=0.5),
        "self_attn.f_b_proj.weight": draw.grid(channels, width, scale=0.5),
        "self_attn.b_proj.weight": draw.grid(heads, hidden, scale=0.5),
        "self_attn.A_log": a_log,
        "self_attn.dt_bias": draw.grid(channels),
        "self_attn.o_norm.weight": draw.near_one(width),
        "self_attn.o_proj.weight": draw.grid(hidden, channels, scale=0.5),
    }


def mla_weights(draw, c):
    hidden, heads, rank, latent = (
        c[name] for name in ("hidden_size", "num_attention_heads", "q_lora_rank", "kv_lora_rank")
    )
    nope, rope, value = c["qk_nope_head_dim"], c["qk_rope_head_dim"], c["v_head_dim"]
    return {
        "self_attn.q_a_proj.weight": draw.grid(rank, hidden, scale=0.5),
        "self_attn.q_a_layernorm.weight": draw.near_one(rank),
        "self_attn.q_b_proj.weight": draw.grid(heads * (nope + rope), rank),
        "self_attn.kv_a_proj_with_mqa.weight": draw.grid(latent + rope, hidden, scale=0.5),
        "self_attn.kv_a_layernorm.weight": draw.near_one(latent),
        "self_attn.kv_b_proj.weight": draw.grid(heads * (nope + value), latent),
        "self_attn.g_proj.weight": draw.grid(heads * value, hidden, scale=0.5),
        "self_attn.o_proj.weight": draw.grid(hidden, heads * value, scale=0.5),
    }


def mlp_weights(draw, hidden, width, name):
    return {
        f"{name}.gate_proj.weight": draw.grid(width, hidden),
        f"{name}.up_proj.weight": draw.grid(width, hidden),
        f"{name}.down_proj.weight": draw.grid(hidden, width, scale=0.5),
    }


def moe_weights(draw, c):
    hidden, experts, latent, width = (
        c[name] for name in ("hidden_size", "num_experts", "routed_expert_hidden_size", "moe_intermediate_size")
    )
    at = "block_sparse_moe."
    weights = {
        at + "gate.weight": draw.grid(experts, hidden, scale=0.25),
        at + "gate.e_score_correction_bias": draw.grid(experts, scale=0.5),
        at + "routed_expert_down_proj.weight": draw.grid(latent, hidden, scale=0.5),
        at + "routed_expert_up_proj.weight": draw.grid(hidden, latent, scale=0.5),
        at + "routed_expert_norm.weight": draw.near_one(latent),
        **mlp_weights(draw, hidden, c["num_shared_experts"] * width, at + "shared_experts"),
    }
    for expert in range(experts):
        for name, rows, columns in (("w1", width, latent), ("w2", latent, width), ("w3", width, latent)):
            weights[f"{at}experts.{expert}.{name}.weight_packed"] = draw.bytes(rows, columns // 2)
            scales = draw.bytes(rows, columns // 32, low=121, high=124)
            weights[f"{at}experts.{expert}.{name}.weight_scale"] = scales
    return weights
