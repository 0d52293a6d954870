//! `quantization_config`: only the released way of packing is read. Which tensors are packed, the headers decide.

use alloc::string::ToString;

use super::fields::Fields;
use super::json::Json;

/// Checks `quantization_config` at both levels; it may be absent from either.
pub(super) fn check(text: &Fields<'_>) {
    let name = "quantization_config";
    for (level, value) in text.levels(name) {
        match value {
            Json::Null => {}
            Json::Object(object) => check_scheme(&level.inside(name, object)),
            other => level.fault(name, format_args!("is {}, not an object", other.kind())),
        }
    }
}

fn check_scheme(scheme: &Fields<'_>) {
    scheme.only("format", &Json::Text("mxfp4-pack-quantized".to_string()));
    scheme.only_if_given("quant_method", &Json::Text("compressed-tensors".to_string()));
    scheme.only_if_given("kv_cache_scheme", &Json::Null);
    let Some(Json::Object(groups)) = scheme.own("config_groups") else {
        scheme.fault("config_groups", "missing, or not an object");
        return;
    };
    let groups_inside = scheme.inside("config_groups", groups);
    for (name, group) in groups {
        match group {
            Json::Object(group) => check_group(&groups_inside.inside(name, group)),
            other => groups_inside.fault(name, format_args!("is {}, not an object", other.kind())),
        }
    }
}

fn check_group(group: &Fields<'_>) {
    group.only_if_given("format", &Json::Text("mxfp4-pack-quantized".to_string()));
    // Rounded activations would be another model.
    group.only_if_given("input_activations", &Json::Null);
    group.only_if_given("output_activations", &Json::Null);
    if let Some(weights) = group.object("weights") {
        weights.only("num_bits", &Json::Integer(4));
        weights.only("group_size", &Json::Integer(32));
        weights.only("type", &Json::Text("float".to_string()));
        weights.only_if_given("strategy", &Json::Text("group".to_string()));
        weights.only_if_given("symmetric", &Json::Bool(true));
        weights.only_if_given("actorder", &Json::Null);
    }
}
