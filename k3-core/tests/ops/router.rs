use k3_core::config::MoeConfig;
use k3_core::ops::router::Choice;
use serde_json::Value;

use crate::closeness::check_cases;
use crate::every_backend;
use crate::support::{single, singles};

fn moe_config(inputs: &Value, experts: usize) -> MoeConfig {
    MoeConfig {
        experts,
        top_k: usize::try_from(inputs["top_k"].as_u64().unwrap()).unwrap(),
        renormalize: inputs["renormalize"].as_bool().unwrap(),
        scaling: single(&inputs["scaling"]),
        latent: 1,
        expert_width: 1,
        shared_width: 1,
        latent_norm: true,
    }
}

/// Ids must be the right ones and ascending; weights are compared by the expert they belong to.
#[test]
fn the_bias_selects_and_never_weighs() {
    for kernels in every_backend() {
        check_cases("router", |case| {
            let inputs = &case["inputs"];
            let mut logits = singles(&inputs["logits"]);
            let config = moe_config(inputs, logits.len());
            let (mut ids, mut weights) = (vec![usize::MAX; config.top_k], vec![f32::NAN; config.top_k]);
            let mut choice = Choice { ids: &mut ids, weights: &mut weights };
            choice.choose(&kernels, &config, &mut logits, &singles(&inputs["bias"]));
            assert_eq!(serde_json::json!(ids), case["ids"], "{}", case["name"]);
            let mut by_expert = vec![0.0; logits.len()];
            for (&id, &weight) in ids.iter().zip(&weights) {
                by_expert[id] = weight;
            }
            by_expert
        });
    }
}
