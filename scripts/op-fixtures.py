"""Writes `fixtures/ops`: inputs, weights, the right outputs of each operation, and the outputs of plausible wrong versions.

Needs numpy. `python scripts/op-fixtures.py` writes the same bytes every time.
"""

from pathlib import Path

import numpy as np

import op_reference as reference
from op_model import Model
from op_weights import Draw, config, model_weights
from op_write import model_case, operation_case, write

FOLDER = Path(__file__).resolve().parent.parent / "fixtures" / "ops"

L2_WRONG = ["l2_mean_instead_of_sum", "l2_eps_times_width", "l2_eps_1e-12", "l2_eps_1e-5"]
SITU_WRONG = ["sigmoid_of_capped_gate", "gate_not_capped", "up_not_capped", "plain_swiglu", "betas_swapped"]


# Single operations


def norms(draw):
    x, weight, eps = draw.grid(45, scale=2.0**-8), draw.near_one(45), 1e-5
    key = draw.grid(20, scale=2.0**-11)
    return [
        operation_case(
            "rms of a tiny vector",
            {"x": x, "weight": weight, "eps": eps},
            lambda wrong: reference.rms_norm(x, weight, eps, wrong),
            ["sum_instead_of_mean", "eps_1e-6", "eps_omitted", "eps_outside_root"],
        ),
        operation_case(
            "l2 of a tiny key",
            {"x": key, "scale": 0.25},
            lambda wrong: reference.l2_norm(key, 0.25, wrong),
            [*L2_WRONG, "l2_eps_outside_root"],
        ),
    ]


def convolution(draw):
    inputs, taps, chunks = draw.grid(7, 5, scale=4.0), draw.grid(5, 4), [3, 1, 3]
    return [
        operation_case(
            "seven positions in chunks of three, one and three",
            {"inputs": inputs, "taps": taps, "channels": 5, "chunks": chunks},
            lambda wrong: reference.short_conv(inputs, taps, edges(chunks), wrong),
            ["taps_reversed", "silu_omitted", "history_dropped_at_chunk_edge", "history_after_silu"],
        )
    ]


def edges(chunks):
    return tuple(int(edge) for edge in np.cumsum(chunks)[:-1])


def decays(draw):
    z, bias, a_log = draw.grid(3, 6, scale=4.0), draw.grid(3, 6), np.array([0.75, -0.5, 1.25, 0, 0, 0])
    factor = ["a_log_per_channel", "a_log_of_next_head", "a_log_without_exp", "dt_bias_after_factor", "dt_bias_ignored"]

    def case(name, bound, wrong):
        inputs = {"z": z, "dt_bias": bias, "a_log": a_log, "heads": 3, "lower_bound": bound}
        return operation_case(
            name, inputs, lambda mistake: np.exp(reference.log_decay(z, a_log, bias, bound, mistake)), wrong
        )

    bounded = case("bounded", -3.5, [*factor, "decay_softplus", "decay_clamped", "decay_bound_of_5"])
    soft_factor = [name for name in factor if "dt_bias_after" not in name]
    return [bounded, case("without a bound", None, [*soft_factor, "decay_clamped", "decay_bounded"])]


def activations(draw):
    gate = np.concatenate([draw.grid(12, scale=4.0), np.array([30.0, -30.0, 9.0, -9.0, 0.0, 2.5])])
    up = np.concatenate([draw.grid(12, scale=16.0), np.array([60.0, -80.0, 7.0, 30.0, 5.0, -100.0])])

    def case(name, beta, linear_beta, wrong):
        inputs = {"gate": gate, "up": up, "beta": beta, "linear_beta": linear_beta}
        return operation_case(name, inputs, lambda mistake: reference.situ(gate, up, beta, linear_beta, mistake), wrong)

    both = case("both caps", 3.0, 12.0, [*SITU_WRONG, "betas_as_released"])
    no_linear = ["up_capped_as_released", "sigmoid_of_capped_gate", "gate_not_capped", "plain_swiglu"]
    return [both, case("up without a cap", 1.0, None, no_linear)]


def routers(draw):
    logits = np.array([1.5, -0.25, 2.0, 0.5, 1.25, -1.0, 0.75, 1.0])
    bias = np.array([-0.5, 0.25, 0.0, 0.375, -0.125, 0.5, 0.0, -0.25])
    tied = np.array([0.5, 2.0, 0.5, -1.0, 0.5, 0.5, 0.25, -2.0])
    none = np.zeros(8)

    def case(name, logits, bias, top_k, switches, wrong):
        renormalize, scaling = switches
        inputs = {"logits": logits, "bias": bias, "top_k": top_k, "renormalize": renormalize, "scaling": scaling}
        right_ids, _ = reference.route(logits, bias, top_k, renormalize, scaling)

        def dense(mistake):
            weights = np.zeros(len(logits))
            ids, chosen = reference.route(logits, bias, top_k, renormalize, scaling, mistake)
            weights[ids] = chosen
            return weights

        return {**operation_case(name, inputs, dense, wrong), "ids": right_ids}

    always = ["weights_from_biased_scores", "router_bias_ignored", "router_softmax", "router_scaling_ignored"]
    both = ["renormalize_inverted", "renormalized_over_all_experts"]
    return [
        case("a bias that reorders", logits, bias, 3, (True, 1.5), [*always, *both]),
        case("without renormalisation", logits, bias, 3, (False, 2.5), [*always, *both]),
        case("a single choice is not divided", logits, bias, 1, (True, 1.5), ["renormalized_single_choice"]),
        case("ties at the edge of the choice", tied, none, 3, (True, 1.0), ["ties_to_higher_index"]),
    ]


def mixes(draw):
    sources = draw.grid(4, 12, scale=2.0) * np.array([1.0, 2.0**-9, 0.5, 2.0])[:, None]
    norm, projection, eps = draw.near_one(12), draw.grid(12), 1e-5
    inputs = {"sources": sources, "norm_weight": norm, "projection": projection, "eps": eps}
    wrong = ["values_normed", "keys_not_normed", "key_norm_weight_ignored", "scores_scaled", "mix_eps_1e-6"]
    return [
        operation_case(
            "four sources, one of them tiny",
            inputs,
            lambda mistake: reference.residual_mix(sources, norm, projection, eps, mistake),
            wrong,
        )
    ]


# Layers, run as models of one layer


KDA_WRONG = [
    *["taps_reversed", "silu_omitted", "silu_omitted_on_values", "history_dropped_at_chunk_edge", "history_after_silu"],
    *[*L2_WRONG, "query_scale_omitted", "key_scaled", "values_l2_normed"],
    *["a_log_per_channel", "a_log_of_next_head", "dt_bias_after_factor", "dt_bias_ignored"],
    *["decay_clamped", "decay_softplus", "decay_bound_of_5"],
    *["read_before_decay", "read_omitted", "decay_along_values", "output_before_update"],
    *["state_dropped_at_chunk_edge", "beta_without_sigmoid", "beta_omitted"],
    *["gate_silu", "gate_omitted", "gate_before_norm", "output_norm_eps_1e-6"],
    *["output_norm_omitted", "output_norm_over_all_heads"],
]


def kda(draw, name, linear, wrong):
    c = config(linear_attn_config={"num_heads": 3, "head_dim": 8, **linear})
    weights = model_weights(draw, c)
    at = "model.layers.0.self_attn."
    # Tiny keys in head 0 and queries in head 1, so that the epsilon of their norm shows; tiny values in head 2, for that
    # of the output norm.
    weights[at + "k_proj.weight"][:8] *= 2.0**-10
    weights[at + "q_proj.weight"][8:16] *= 2.0**-10
    weights[at + "v_proj.weight"][16:] *= 2.0**-6
    chunks, tokens = [3, 1, 3], [3, 0, 5, 2, 7, 5, 1]
    return model_case(
        name,
        lambda mistake: Model(c, weights, edges(chunks), mistake),
        tokens,
        ["attention_out.0"],
        wrong,
        [chunks],
    )


MLA_WRONG = [
    *["scale_of_nope_only", "rope_slots_dropped", "rope_slots_rotated", "rope_slots_first", "shared_key_normed"],
    *["query_norm_eps_of_config", "latent_norm_eps_of_config", "latent_norm_omitted", "gate_omitted", "gate_silu"],
    *["key_and_value_halves_swapped", "all_keys_before_all_values", "heads_interleaved_in_kv_b"],
    *["heads_interleaved_in_output", "not_causal"],
]


def mla(draw, name, changes, wrong):
    c = config(
        linear_attn_config={"kda_layers": [], "full_attn_layers": [1]},
        num_attention_heads=3,
        num_key_value_heads=3,
        q_lora_rank=8,
        kv_lora_rank=6,
        qk_nope_head_dim=5,
        qk_rope_head_dim=4,
        v_head_dim=3,
        **changes,
    )
    weights = model_weights(draw, c)
    at = "model.layers.0.self_attn."
    # Small latents, so that the epsilon of the two inner norms shows.
    weights[at + "q_a_proj.weight"] *= 2.0**-9
    weights[at + "kv_a_proj_with_mqa.weight"][:6] *= 2.0**-9
    chunks, tokens = [2, 1, 3], [4, 1, 6, 2, 2, 7]
    return model_case(
        name, lambda mistake: Model(c, weights, edges(chunks), mistake), tokens, ["attention_out.0"], wrong, [chunks]
    )


MOE_WRONG = [
    *["weights_from_biased_scores", "router_bias_ignored", "router_softmax", "renormalize_inverted"],
    *["renormalized_over_all_experts", "router_scaling_ignored", "routed_norm_omitted", "routed_norm_eps_1e-6"],
    *["norm_per_expert_before_sum", "shared_added_before_norm", "shared_added_before_up", "shared_omitted"],
    *["w1_and_w3_swapped", "w2_transposed", "high_nibble_first", "code_8_as_minus_8", "scale_0_as_one"],
    *["scale_bias_128", *SITU_WRONG],
]


def moe(draw, name):
    points = ["router_weights.0", "routed_sum.0", "routed_normed.0", "mlp_out.0"]
    c = config(hidden_size=32, first_k_dense_replace=0, routed_scaling_factor=1.25)
    weights = model_weights(draw, c)
    at = "model.layers.0.block_sparse_moe."
    for expert in range(6):
        packed = weights[f"{at}experts.{expert}.w1.weight_packed"]
        # Codes of +0 and -0 in plenty, and a few blocks whose scale is the least there is.
        packed[:, :2] = 0x80
        packed[::5, 2:4] = 0x08
        weights[f"{at}experts.{expert}.w1.weight_scale"][3::8] = 0
        # Small outputs, so that the epsilon of the norm of their sum shows.
        weights[f"{at}experts.{expert}.w2.weight_scale"] -= 6
    return model_case(name, lambda mistake: Model(c, weights, (), mistake), [2, 5, 0, 7], points, MOE_WRONG, [[1, 3]])


def dense(draw, name):
    """The dense MLP with the caps as they are when the config names none."""
    c = config(intermediate_size=7)
    del c["activation_situ_beta"], c["activation_situ_linear_beta"]
    weights = model_weights(draw, c)
    wrong = ["sigmoid_of_capped_gate", "gate_not_capped", "plain_swiglu", "betas_as_released", "up_capped_as_released"]
    return model_case(name, lambda mistake: Model(c, weights, (), mistake), [2, 5, 0], ["mlp_out.0"], wrong)


FLOW_WRONG = [
    *["values_normed", "keys_not_normed", "key_norm_weight_ignored", "newest_excluded", "embedding_excluded"],
    *["embedding_scaled", "boundary_off_by_one", "prefix_not_reset", "saved_before_mix", "output_mix_omitted"],
    *["mix_eps_1e-6", "norm_eps_1e-6", "layer_lists_zero_based", "scores_scaled"],
]


def residual_flow(draw, name):
    """Eight layers in three blocks, with a large epsilon so that it shows everywhere."""
    c = config(
        linear_attn_config={"kda_layers": [1, 2, 4, 5, 7], "full_attn_layers": [3, 6, 8]},
        hidden_size=8,
        num_hidden_layers=8,
        first_k_dense_replace=8,
        rms_norm_eps=0.0625,
    )
    weights = model_weights(draw, c)
    layers = range(c["num_hidden_layers"])
    mixes = [f"{half}_mix.{layer}" for layer in layers for half in ("attention", "mlp")]
    points = [*mixes, *(f"prefix_sum.{layer}" for layer in layers), "final_mix", "final_normed", "logits"]
    tokens = [6, 3, 0, 4]
    return model_case(name, lambda mistake: Model(c, weights, (), mistake), tokens, points, FLOW_WRONG, [[1, 3]])


def main():
    operations = {
        "norm": norms,
        "conv": convolution,
        "decay": decays,
        "activation": activations,
        "router": routers,
        "residual_mix": mixes,
    }
    for seed, (name, cases) in enumerate(operations.items()):
        write(FOLDER / f"{name}.json", {"cases": cases(Draw(seed))})
    unbounded = ["decay_bounded", "a_log_per_channel", "a_log_of_next_head", "dt_bias_ignored"]
    models = {
        "kda": lambda draw, name: kda(draw, name, {}, KDA_WRONG),
        "kda_unbounded": lambda draw, name: kda(draw, name, {"gate_lower_bound": None}, unbounded),
        "mla": lambda draw, name: mla(draw, name, {}, MLA_WRONG),
        "mla_ungated": lambda draw, name: mla(draw, name, {"mla_use_output_gate": False}, ["gate_despite_config"]),
        "moe": moe,
        "dense": dense,
        "residual_flow": residual_flow,
    }
    for seed, (name, case) in enumerate(models.items(), start=100):
        write(FOLDER / f"{name}.json", case(Draw(seed), name))


if __name__ == "__main__":
    main()
