//! The gated activation and the decay, which work on one number at a time.

use k3_core::config::SituConfig;
use k3_core::ops::activation::situ_glu;
use k3_core::ops::decay::HeadDecay;
use serde_json::Value;

use crate::closeness::check_cases;
use crate::support::{single, singles};

fn optional(value: &Value) -> Option<f32> {
    if value.is_null() { None } else { Some(single(value)) }
}

#[test]
fn the_activation_caps_gate_and_up() {
    check_cases("activation", |case| {
        let inputs = &case["inputs"];
        let caps = SituConfig { beta: single(&inputs["beta"]), linear_beta: optional(&inputs["linear_beta"]) };
        let mut gate = singles(&inputs["gate"]);
        situ_glu(&caps, &mut gate, &singles(&inputs["up"]));
        gate
    });
}

#[test]
fn the_decay_has_one_rate_per_head() {
    check_cases("decay", |case| {
        let inputs = &case["inputs"];
        let (mut z, dt_bias, a_log) = (singles(&inputs["z"]), singles(&inputs["dt_bias"]), singles(&inputs["a_log"]));
        let heads = usize::try_from(inputs["heads"].as_u64().unwrap()).unwrap();
        let width = z.len() / heads;
        let lower_bound = optional(&inputs["lower_bound"]);
        for ((z, dt_bias), &a_log) in z.chunks_exact_mut(width).zip(dt_bias.chunks_exact(width)).zip(&a_log) {
            HeadDecay { a_log, dt_bias, lower_bound }.apply(z);
        }
        z
    });
}
