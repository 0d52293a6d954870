"""The layers of the model and its residual stream in float64, each with its plausible wrong versions.

A model is a config in the released form and a dictionary of weights under their released names. `points` collects what
the tests compare: arrays [positions, width] under names such as `attention_out.0`.
"""

import numpy as np

from op_reference import (
    delta_rule,
    l2_norm,
    log_decay,
    mxfp4,
    residual_mix,
    rms_norm,
    route,
    short_conv,
    sigmoid,
    silu,
    situ,
    softmax,
)

LAYERS = "model.layers."


class Model:
    """One run of a model, right or with one mistake. `edges` are the positions at which a chunk begins."""

    def __init__(self, config, weights, edges=(), wrong=None):
        self.config, self.weights, self.edges, self.wrong = config, weights, edges, wrong
        self.read, self.points = set(), {}

    def tensor(self, name):
        self.read.add(name)
        return self.weights[name]

    def of_layer(self, layer):
        return lambda name: self.tensor(f"{LAYERS}{layer}.{name}")

    def eps(self, mistake):
        return 1e-6 if self.wrong == mistake else self.config["rms_norm_eps"]

    def is_kda(self, layer):
        number = layer if self.wrong == "layer_lists_zero_based" else layer + 1
        return number not in self.config["linear_attn_config"]["full_attn_layers"]

    def has_experts(self, layer):
        config = self.config
        return layer >= config["first_k_dense_replace"] and layer % config["moe_layer_freq"] == 0

    def is_boundary(self, layer):
        block = self.config["attn_res_block_size"]
        if self.wrong == "boundary_off_by_one":
            return layer == 0 or (layer > 1 and (layer - 1) % block == 0)
        return layer % block == 0

    # The residual stream

    def mix(self, saved, prefix, norm, projection):
        sources = saved if prefix is None else saved + [prefix]
        if self.wrong == "newest_excluded":
            sources = saved
        if self.wrong == "embedding_excluded" and len(sources) > 1:
            sources = sources[1:]
        rows = np.stack(sources, axis=1)
        arguments = (self.tensor(norm), self.tensor(projection)[0], self.config["rms_norm_eps"], self.wrong)
        return np.stack([residual_mix(row, *arguments) for row in rows])

    def forward(self, tokens):
        embedding = self.tensor("model.embed_tokens.weight")[tokens]
        if self.wrong == "embedding_scaled":
            embedding = embedding * np.sqrt(embedding.shape[-1])
        saved, prefix = [], embedding
        for layer in range(self.config["num_hidden_layers"]):
            saved, prefix = self.layer(layer, saved, prefix)
        mixed = self.mix(saved, prefix, "model.output_attn_res_norm.weight", "model.output_attn_res_proj.weight")
        if self.wrong == "output_mix_omitted":
            mixed = prefix
        normed = rms_norm(mixed, self.tensor("model.norm.weight"), self.eps("norm_eps_1e-6"))
        self.points["final_mix"], self.points["final_normed"] = mixed, normed
        self.points["logits"] = normed @ self.tensor("lm_head.weight").T
        return self.points

    def layer(self, layer, saved, prefix):
        at = f"{LAYERS}{layer}."
        saves = self.is_boundary(layer)
        if saves and self.wrong == "saved_before_mix":
            saved = saved + [prefix]
        mixed = prefix
        if saved:
            mixed = self.mix(saved, prefix, at + "self_attention_res_norm.weight", at + "self_attention_res_proj.weight")
        if saves and self.wrong != "saved_before_mix":
            saved = saved + [prefix]
        w = self.of_layer(layer)
        x = rms_norm(mixed, w("input_layernorm.weight"), self.eps("norm_eps_1e-6"))
        out = self.kda(x, w) if self.is_kda(layer) else self.mla(x, w)
        self.points[f"attention_mix.{layer}"], self.points[f"attention_in.{layer}"] = mixed, x
        self.points[f"attention_out.{layer}"] = out
        prefix = out if saves and self.wrong != "prefix_not_reset" else prefix + out
        mixed = self.mix(saved, prefix, at + "mlp_res_norm.weight", at + "mlp_res_proj.weight")
        x = rms_norm(mixed, w("post_attention_layernorm.weight"), self.eps("norm_eps_1e-6"))
        out = self.moe(x, w, layer) if self.has_experts(layer) else self.mlp(x, w, "mlp")
        self.points[f"mlp_mix.{layer}"], self.points[f"mlp_in.{layer}"] = mixed, x
        self.points[f"mlp_out.{layer}"], self.points[f"prefix_sum.{layer}"] = out, prefix + out
        return saved, prefix + out

    # Delta attention

    def kda(self, x, w):
        config, wrong = self.config["linear_attn_config"], self.wrong
        heads, width = config["num_heads"], config["head_dim"]
        streams = {}
        for name in "qkv":
            inputs = x @ w(f"self_attn.{name}_proj.weight").T
            taps = w(f"self_attn.{name}_conv1d.weight")[:, 0, :]
            mistake = "silu_omitted" if wrong == "silu_omitted_on_values" and name == "v" else wrong
            streams[name] = short_conv(inputs, taps, self.edges, mistake).reshape(len(x), heads, width)
        scale = 1.0 / np.sqrt(width)
        q = l2_norm(streams["q"], 1.0 if wrong == "query_scale_omitted" else scale, wrong)
        k = l2_norm(streams["k"], scale if wrong == "key_scaled" else 1.0, wrong)
        v = l2_norm(streams["v"], 1.0) if wrong == "values_l2_normed" else streams["v"]
        z = x @ w("self_attn.f_a_proj.weight").T @ w("self_attn.f_b_proj.weight").T
        bias = w("self_attn.dt_bias").reshape(heads, width)
        shape = (len(x), heads, width)
        decay = np.exp(log_decay(z.reshape(shape), w("self_attn.A_log"), bias, config.get("gate_lower_bound"), wrong))
        beta = x @ w("self_attn.b_proj.weight").T
        beta = {"beta_without_sigmoid": beta, "beta_omitted": np.ones_like(beta)}.get(wrong, sigmoid(beta))
        heads_out = [
            delta_rule(q[:, h], k[:, h], v[:, h], decay[:, h], beta[:, h], self.edges, wrong) for h in range(heads)
        ]
        return self.kda_gate(np.stack(heads_out, axis=1), x, w) @ w("self_attn.o_proj.weight").T

    def kda_gate(self, out, x, w):
        """`out` [T, H, D]"""
        gate = (x @ w("self_attn.g_proj.weight").T).reshape(out.shape)
        open_ = {"gate_silu": silu(gate), "gate_omitted": np.ones_like(gate)}.get(self.wrong, sigmoid(gate))
        norm, eps = w("self_attn.o_norm.weight"), self.eps("output_norm_eps_1e-6")
        if self.wrong == "output_norm_omitted":
            gated = out * open_
        elif self.wrong == "gate_before_norm":
            gated = rms_norm(out * open_, norm, eps)
        elif self.wrong == "output_norm_over_all_heads":
            flat = rms_norm(out.reshape(len(out), -1), np.tile(norm, out.shape[1]), eps)
            gated = flat.reshape(out.shape) * open_
        else:
            gated = rms_norm(out, norm, eps) * open_
        return gated.reshape(len(out), -1)

    # Latent attention

    def mla(self, x, w):
        config, wrong = self.config, self.wrong
        heads, nope, rope = config["num_attention_heads"], config["qk_nope_head_dim"], config["qk_rope_head_dim"]
        value, latent, positions = config["v_head_dim"], config["kv_lora_rank"], len(x)
        config_eps = self.config["rms_norm_eps"]
        eps = [config_eps if wrong == f"{name}_norm_eps_of_config" else 1e-6 for name in ("query", "latent")]
        query = rms_norm(x @ w("self_attn.q_a_proj.weight").T, w("self_attn.q_a_layernorm.weight"), eps[0])
        query = (query @ w("self_attn.q_b_proj.weight").T).reshape(positions, heads, nope + rope)
        down = x @ w("self_attn.kv_a_proj_with_mqa.weight").T
        c, shared = down[:, :latent], down[:, latent:]
        if wrong != "latent_norm_omitted":
            c = rms_norm(c, w("self_attn.kv_a_layernorm.weight"), eps[1])
        if wrong == "shared_key_normed":
            shared = rms_norm(shared, np.ones(rope), 1e-6)
        q_nope, q_rope = query[..., :nope], query[..., nope:]
        if wrong == "rope_slots_first":
            q_rope, q_nope = query[..., :rope], query[..., rope:]
        if wrong == "rope_slots_rotated":
            q_rope, shared = rotate(q_rope), rotate(shared[:, None])[:, 0]
        if wrong == "rope_slots_dropped":
            shared = shared * 0.0
        keys, values = self.keys_and_values(c, w)
        scores = np.einsum("thd,shd->hts", q_nope, keys) + np.einsum("thd,sd->hts", q_rope, shared)
        scores = scores / np.sqrt(nope if wrong == "scale_of_nope_only" else nope + rope)
        if wrong != "not_causal":
            scores = np.where(np.tril(np.ones((positions, positions))) == 1, scores, -np.inf)
        out = np.einsum("hts,shv->thv", softmax(scores), values)
        if wrong == "heads_interleaved_in_output":
            out = out.swapaxes(1, 2)
        out = out.reshape(positions, heads * value)
        if config["mla_use_output_gate"] or wrong == "gate_despite_config":
            gate = x @ w("self_attn.g_proj.weight").T
            out = out * {"gate_omitted": np.ones_like(gate), "gate_silu": silu(gate)}.get(wrong, sigmoid(gate))
        return out @ w("self_attn.o_proj.weight").T

    def keys_and_values(self, c, w):
        heads, nope, value = (self.config[name] for name in ("num_attention_heads", "qk_nope_head_dim", "v_head_dim"))
        up = c @ w("self_attn.kv_b_proj.weight").T
        if self.wrong == "heads_interleaved_in_kv_b":
            up = up.reshape(len(c), nope + value, heads).swapaxes(1, 2)
        elif self.wrong == "all_keys_before_all_values":
            keys, values = up[:, : heads * nope], up[:, heads * nope :]
            return keys.reshape(len(c), heads, nope), values.reshape(len(c), heads, value)
        else:
            up = up.reshape(len(c), heads, nope + value)
        if self.wrong == "key_and_value_halves_swapped":
            return up[..., value:], up[..., :value]
        return up[..., :nope], up[..., nope:]

    # Feed-forward

    def situ(self, gate, up):
        config = self.config
        caps = config.get("activation_situ_beta", 1.0), config.get("activation_situ_linear_beta")
        return situ(gate, up, *caps, self.wrong)

    def mlp(self, x, w, name):
        gate, up = (x @ w(f"{name}.{part}_proj.weight").T for part in ("gate", "up"))
        return self.situ(gate, up) @ w(f"{name}.down_proj.weight").T

    def moe(self, x, w, layer):
        config, wrong, at = self.config, self.wrong, "block_sparse_moe."
        logits = x @ w(at + "gate.weight").T
        switches = config["num_experts_per_token"], config["moe_renormalize"], config["routed_scaling_factor"]
        z = x @ w(at + "routed_expert_down_proj.weight").T
        weights, total = np.zeros_like(logits), np.zeros_like(z)
        norm, eps = w(at + "routed_expert_norm.weight"), self.eps("routed_norm_eps_1e-6")
        for t in range(len(x)):
            ids, chosen = route(logits[t], w(at + "gate.e_score_correction_bias"), *switches, wrong)
            weights[t, ids] = chosen
            for expert, weight in zip(ids, chosen):
                out = self.expert(z[t], w, f"{at}experts.{expert}.")
                out = rms_norm(out, norm, eps) if wrong == "norm_per_expert_before_sum" else out
                total[t] += weight * out
        shared = self.mlp(x, w, at + "shared_experts")
        if wrong == "shared_added_before_norm":
            total = total + shared
        normed = rms_norm(total, norm, eps)
        if wrong in ("routed_norm_omitted", "norm_per_expert_before_sum"):
            normed = total
        if wrong == "shared_added_before_up":
            normed = normed + shared
        self.points[f"router_weights.{layer}"] = weights
        self.points[f"routed_sum.{layer}"], self.points[f"routed_normed.{layer}"] = total, normed
        out = normed @ w(at + "routed_expert_up_proj.weight").T
        added_before = ("shared_added_before_norm", "shared_added_before_up", "shared_omitted")
        return out if wrong in added_before else out + shared

    def expert(self, z, w, at):
        def matrix(name):
            parts = (w(f"{at}{name}.weight_packed"), w(f"{at}{name}.weight_scale"))
            return mxfp4(*parts, self.wrong)

        gate, down, up = (matrix(name) for name in ("w1", "w2", "w3"))
        if self.wrong == "w1_and_w3_swapped":
            gate, up = up, gate
        if self.wrong == "w2_transposed":
            down = down.T
        return down @ self.situ(gate @ z, up @ z)


def rotate(x):
    """Rotary embedding in the half-split form, base 10000: `x` [T, H, D]."""
    half = x.shape[-1] // 2
    angles = np.arange(len(x))[:, None] * 10000.0 ** (-np.arange(half) / half)
    cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
    left, right = x[..., :half], x[..., half:]
    return np.concatenate([left * cos - right * sin, right * cos + left * sin], axis=-1)
