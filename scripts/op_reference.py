"""The operations of the model in float64, each with its plausible wrong versions.

Written from the description of the model's arithmetic alone. `wrong` names the one mistake to make; None makes none. A
name that no operation knows makes no difference, which the generator refuses.
"""

import numpy as np


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def silu(x):
    return x * sigmoid(x)


def softplus(x):
    return np.log1p(np.exp(x))


def softmax(x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def rms_norm(x, weight, eps, wrong=None):
    square = np.mean(x * x, axis=-1, keepdims=True)
    if wrong == "sum_instead_of_mean":
        square = np.sum(x * x, axis=-1, keepdims=True)
    if wrong == "eps_1e-6":
        eps = 1e-6
    if wrong == "eps_omitted":
        eps = 0.0
    root = np.sqrt(square) + eps if wrong == "eps_outside_root" else np.sqrt(square + eps)
    return x / root * weight


def l2_norm(x, scale, wrong=None):
    eps = {"l2_eps_1e-12": 1e-12, "l2_eps_1e-5": 1e-5}.get(wrong, 1e-6)
    if wrong == "l2_eps_times_width":
        # What an RMS norm that is brought back to unit length does.
        eps = eps * x.shape[-1]
    square = np.sum(x * x, axis=-1, keepdims=True)
    if wrong == "l2_mean_instead_of_sum":
        square = np.mean(x * x, axis=-1, keepdims=True)
    root = np.sqrt(square) + eps if wrong == "l2_eps_outside_root" else np.sqrt(square + eps)
    return scale * x / root


def short_conv(inputs, taps, edges=(), wrong=None):
    """`inputs` [T, C], `taps` [C, 4]; `edges` are the positions at which a chunk begins."""
    positions, channels = inputs.shape
    count = taps.shape[1]
    if wrong == "taps_reversed":
        taps = taps[:, ::-1]
    out = np.zeros((positions, channels))
    for t in range(positions):
        for tap in range(count):
            source = t - (count - 1) + tap
            if source < 0:
                continue
            value = inputs[source]
            if any(source < edge <= t for edge in edges):
                if wrong == "history_dropped_at_chunk_edge":
                    continue
                if wrong == "history_after_silu":
                    value = out[source]
            out[t] += taps[:, tap] * value
        if wrong != "silu_omitted":
            out[t] = silu(out[t])
    return out


def log_decay(z, a_log, dt_bias, bound, wrong=None):
    """`z` and `dt_bias` [..., H, D]; `a_log` is the stored vector, of which the first H count."""
    heads, width = z.shape[-2:]
    rate = np.exp(a_log[:heads])[:, None]
    if wrong == "a_log_per_channel":
        rate = np.exp(a_log[:width])[None, :]
    if wrong == "a_log_of_next_head":
        rate = np.exp(a_log[1 : heads + 1])[:, None]
    if wrong == "a_log_without_exp":
        rate = a_log[:heads][:, None]
    biased = z if wrong == "dt_bias_ignored" else z + dt_bias
    argument = rate * z + dt_bias if wrong == "dt_bias_after_factor" else rate * biased
    soft = -rate * softplus(biased)
    if wrong == "decay_softplus":
        return soft
    if wrong == "decay_clamped":
        return np.maximum(-5.0 if bound is None else bound, soft)
    if wrong == "decay_bound_of_5" or (wrong == "decay_bounded" and bound is None):
        return -5.0 * sigmoid(argument)
    return soft if bound is None else bound * sigmoid(argument)


def delta_rule(q, k, v, decay, beta, edges=(), wrong=None):
    """One head: `q`, `k`, `v`, `decay` [T, D], `beta` [T]. The state has the key index first."""
    positions, width = q.shape
    state = np.zeros((width, width))
    out = np.zeros((positions, width))
    for t in range(positions):
        if wrong == "state_dropped_at_chunk_edge" and t in edges:
            state = np.zeros((width, width))
        undecayed = state
        state = state * (decay[t][None, :] if wrong == "decay_along_values" else decay[t][:, None])
        seen = undecayed if wrong == "read_before_decay" else state
        error = v[t] if wrong == "read_omitted" else v[t] - seen.T @ k[t]
        updated = state + beta[t] * np.outer(k[t], error)
        out[t] = (state if wrong == "output_before_update" else updated).T @ q[t]
        state = updated
    return out


def situ(gate, up, beta, linear_beta, wrong=None):
    if wrong == "plain_swiglu":
        return silu(gate) * up
    if wrong == "betas_swapped":
        beta, linear_beta = linear_beta, beta
    if wrong == "betas_as_released":
        beta, linear_beta = 4.0, 25.0
    if wrong == "up_capped_as_released":
        linear_beta = 25.0
    capped = gate if wrong == "gate_not_capped" else beta * np.tanh(gate / beta)
    open_ = sigmoid(capped if wrong == "sigmoid_of_capped_gate" else gate)
    if linear_beta is not None and wrong != "up_not_capped":
        up = linear_beta * np.tanh(up / linear_beta)
    return capped * open_ * up


def route(logits, bias, top_k, renormalize, scaling, wrong=None):
    """The chosen ids, ascending, and their weights, for one position."""
    scores = softmax(logits) if wrong == "router_softmax" else sigmoid(logits)
    biased = scores if wrong == "router_bias_ignored" else scores + bias
    tie_break = -1 if wrong == "ties_to_higher_index" else 1
    order = sorted(range(len(logits)), key=lambda e: (-biased[e], tie_break * e))
    ids = sorted(order[:top_k])
    weights = (biased if wrong == "weights_from_biased_scores" else scores)[ids]
    divides = renormalize and (top_k > 1 or wrong == "renormalized_single_choice")
    if divides != (wrong == "renormalize_inverted"):
        weights = weights / (np.sum(weights) + 1e-20)
    if wrong == "renormalized_over_all_experts":
        weights = scores[ids] / np.sum(scores)
    return ids, weights * (1.0 if wrong == "router_scaling_ignored" else scaling)


def residual_mix(sources, norm_weight, projection, eps, wrong=None):
    """`sources` [S, hidden]: keys are normed, the values mixed are not."""
    if wrong == "mix_eps_1e-6":
        eps = 1e-6
    normed = sources / np.sqrt(np.mean(sources * sources, axis=-1, keepdims=True) + eps)
    keys = sources if wrong == "keys_not_normed" else normed
    key_weight = projection if wrong == "key_norm_weight_ignored" else norm_weight * projection
    scores = keys @ key_weight
    if wrong == "scores_scaled":
        scores = scores / np.sqrt(sources.shape[-1])
    return softmax(scores) @ (normed if wrong == "values_normed" else sources)


E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


def mxfp4(packed, scales, wrong=None):
    """`packed` [R, C / 2] u8 and `scales` [R, C / 32] u8, widened to [R, C]."""
    low, high = packed & 15, packed >> 4
    if wrong == "high_nibble_first":
        low, high = high, low
    codes = np.stack([low, high], axis=-1).reshape(packed.shape[0], -1)
    values = E2M1[codes]
    if wrong == "code_8_as_minus_8":
        values = np.where(codes == 8, -8.0, values)
    factors = 2.0 ** (scales.astype(np.float64) - 127)
    if wrong == "scale_0_as_one":
        factors = np.where(scales == 0, 1.0, factors)
    if wrong == "scale_bias_128":
        factors = factors / 2
    return values * np.repeat(factors, 32, axis=-1)
