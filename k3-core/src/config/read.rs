//! From the text of `config.json` to a [`Config`], with every fault told at once.
//!
//! Nothing has a default but what the published code defines as optional: the bound of the KDA gate and the two caps of
//! the activation. What changes the computation and is not implemented is refused by name.

use alloc::string::ToString;
use alloc::vec::Vec;
use core::cell::RefCell;

use super::fields::Fields;
use super::json::Json;
use super::{
    Config, FeedForward, KdaConfig, LayerKind, MlaConfig, MoeConfig, SituConfig, end_ids, layers, quantization,
};
use crate::{Error, Result};

/// No config comes near this many bytes; the released one has 7,006.
const MOST_BYTES: usize = 1 << 20;
/// The most layers that are believed.
const MOST_LAYERS: u32 = 1 << 12;
/// The most experts of all layers together that are believed.
const MOST_EXPERTS: usize = 1 << 20;
/// The largest width, rank, or number of heads or experts that is believed.
const MOST_WIDTH: u32 = 1 << 20;
/// The largest product of two such numbers that is believed, so that it can be addressed on any target.
const MOST_PRODUCT: usize = 1 << 24;
/// The largest vocabulary that is believed.
const MOST_IDS: u32 = 1 << 24;
/// The most positions that are believed.
const MOST_POSITIONS: u32 = 1 << 31;

impl Config {
    /// Reads the released form, with everything under `text_config`, or the flat form without that level.
    ///
    /// # Errors
    /// [`Error::Config`] with every fault: not JSON, a key given twice, a field missing, mistyped, out of range or at odds
    /// with another, a switch whose value is not implemented.
    pub fn from_json(bytes: &[u8]) -> Result<Self> {
        let refuse = |fault: &str| Error::Config([fault.to_string()].into());
        if bytes.len() > MOST_BYTES {
            return Err(refuse("is too long to be a config"));
        }
        let tree = Json::parse(bytes).map_err(|fault| refuse(&fault))?;
        let Json::Object(top) = &tree else {
            return Err(refuse("is not an object"));
        };
        let faults = RefCell::new(Vec::new());
        let config = match top.get("text_config") {
            None => read(&Fields::new(top, "", &faults)),
            Some(Json::Object(text)) => read(&Fields::new(text, "text_config.", &faults).within(top)),
            Some(_) => return Err(refuse("text_config: is not an object")),
        };
        match config {
            Some(config) if faults.borrow().is_empty() => Ok(config),
            _ => Err(Error::Config(faults.into_inner())),
        }
    }
}

/// Reads all parts before it gives up on any, so that all faults are noted.
fn read(text: &Fields<'_>) -> Option<Config> {
    only_what_is_implemented(text);
    quantization::check(text);
    let hidden = text.size("hidden_size", MOST_WIDTH);
    let vocabulary = text.size("vocab_size", MOST_IDS);
    let linear = text.object("linear_attn_config");
    let layers = layers::read(text, linear.as_ref(), MOST_LAYERS);
    let rms_norm_eps = text.positive("rms_norm_eps");
    let residual_block = text.size("attn_res_block_size", MOST_LAYERS);
    let dense_width = text.size("intermediate_size", MOST_WIDTH);
    let kda = linear.as_ref().and_then(kda);
    let mla = mla(text);
    let moe = moe(text, layers.as_deref());
    let situ = situ(text);
    let tied_embeddings = tied_embeddings(text);
    let max_positions = text.size("max_position_embeddings", MOST_POSITIONS);
    let end_ids = end_ids::read(text, vocabulary);
    Some(Config {
        hidden: hidden?,
        vocabulary: vocabulary?,
        layers: layers?,
        rms_norm_eps: rms_norm_eps?,
        residual_block: residual_block?,
        dense_width: dense_width?,
        kda: kda?,
        mla: mla?,
        moe: moe?,
        situ: situ?,
        tied_embeddings: tied_embeddings?,
        max_positions: max_positions?,
        end_ids: end_ids?,
    })
}

/// Refuses every switch whose other positions would need code that does not exist.
fn only_what_is_implemented(text: &Fields<'_>) {
    let name = |name: &str| Json::Text(name.to_string());
    text.only("hidden_act", &name("situ"));
    text.only("moe_router_activation_func", &name("sigmoid"));
    text.only("topk_method", &name("noaux_tc"));
    text.only("mla_use_nope", &Json::Bool(true));
    text.only("num_nextn_predict_layers", &Json::Integer(0));
    for switch in ["add_cross_attention", "is_encoder_decoder", "attention_bias", "mlp_bias"] {
        text.only_if_given(switch, &Json::Bool(false));
    }
    let groups = text.integer("num_expert_group", 1, MOST_WIDTH);
    let chosen = text.integer("topk_group", 1, MOST_WIDTH);
    if let (Some(groups), Some(chosen)) = (groups, chosen)
        && groups > chosen
    {
        let reason = format_args!("{groups} is above topk_group ({chosen}); selection by groups is not supported");
        text.fault("num_expert_group", reason);
    }
}

fn kda(linear: &Fields<'_>) -> Option<KdaConfig> {
    linear.only("use_full_rank_gate", &Json::Bool(true));
    let heads = linear.size("num_heads", MOST_WIDTH);
    let head_dim = linear.size("head_dim", MOST_WIDTH);
    let taps = linear.size("short_conv_kernel_size", 64);
    let gate_lower_bound = linear.optional_negative("gate_lower_bound");
    product(linear, "num_heads", [heads?, head_dim?])?;
    Some(KdaConfig { heads: heads?, head_dim: head_dim?, taps: taps?, gate_lower_bound: gate_lower_bound? })
}

fn mla(text: &Fields<'_>) -> Option<MlaConfig> {
    let heads = text.size("num_attention_heads", MOST_WIDTH);
    let key_value_heads = text.size("num_key_value_heads", MOST_WIDTH);
    let query_rank = text.size("q_lora_rank", MOST_WIDTH);
    let latent = text.size("kv_lora_rank", MOST_WIDTH);
    let nope_dim = text.size("qk_nope_head_dim", MOST_WIDTH);
    let rope_dim = text.size("qk_rope_head_dim", MOST_WIDTH);
    let value_dim = text.size("v_head_dim", MOST_WIDTH);
    let output_gate = text.switch("mla_use_output_gate");
    if let (Some(heads), Some(key_value_heads)) = (heads, key_value_heads)
        && heads != key_value_heads
    {
        let reason =
            format_args!("{key_value_heads} is not num_attention_heads ({heads}); shared key heads are not supported");
        text.fault("num_key_value_heads", reason);
    }
    product(text, "num_attention_heads", [heads?, nope_dim? + rope_dim?.max(value_dim?)])?;
    Some(MlaConfig {
        heads: heads?,
        query_rank: query_rank?,
        latent: latent?,
        nope_dim: nope_dim?,
        rope_dim: rope_dim?,
        value_dim: value_dim?,
        output_gate: output_gate?,
    })
}

fn moe(text: &Fields<'_>, layers: Option<&[LayerKind]>) -> Option<MoeConfig> {
    let experts = text.size("num_experts", MOST_WIDTH);
    let top_k = text.size("num_experts_per_token", MOST_WIDTH);
    let latent = text.size("routed_expert_hidden_size", MOST_WIDTH);
    let expert_width = text.size("moe_intermediate_size", MOST_WIDTH);
    let shared = text.size("num_shared_experts", MOST_WIDTH);
    let renormalize = text.switch("moe_renormalize");
    let scaling = text.positive("routed_scaling_factor");
    let latent_norm = text.switch("latent_moe_use_norm");
    if let (Some(experts), Some(top_k)) = (experts, top_k)
        && top_k > experts
    {
        text.fault("num_experts_per_token", format_args!("{top_k} is above num_experts ({experts})"));
    }
    if let (Some(experts), Some(layers)) = (experts, layers) {
        let with_experts = layers.iter().filter(|layer| layer.feed_forward == FeedForward::Moe).count();
        if experts.checked_mul(with_experts).is_none_or(|all| all > MOST_EXPERTS) {
            let reason = format_args!("{experts} in each of {with_experts} layers is more than is believed");
            text.fault("num_experts", reason);
        }
    }
    let shared_width = product(text, "num_shared_experts", [shared?, expert_width?]);
    Some(MoeConfig {
        experts: experts?,
        top_k: top_k?,
        latent: latent?,
        expert_width: expert_width?,
        shared_width: shared_width?,
        renormalize: renormalize?,
        scaling: scaling?,
        latent_norm: latent_norm?,
    })
}

fn situ(text: &Fields<'_>) -> Option<SituConfig> {
    let beta = text.optional_positive("activation_situ_beta");
    let linear_beta = text.optional_positive("activation_situ_linear_beta");
    Some(SituConfig { beta: beta?.unwrap_or(1.0), linear_beta: linear_beta? })
}

/// The product of two sizes, the first of which is the field `name`.
fn product(fields: &Fields<'_>, name: &str, factors: [usize; 2]) -> Option<usize> {
    let [left, right] = factors;
    let product = left.checked_mul(right).filter(|product| *product <= MOST_PRODUCT);
    if product.is_none() {
        fields.fault(name, format_args!("{left} times a width of {right} is more than is believed"));
    }
    product
}

/// `tie_word_embeddings` from the level that has it; two levels that differ are a fault, as with every field.
fn tied_embeddings(text: &Fields<'_>) -> Option<bool> {
    let name = "tie_word_embeddings";
    match text.levels(name).as_slice() {
        [(level, _)] => level.switch(name),
        _ => text.switch(name),
    }
}
