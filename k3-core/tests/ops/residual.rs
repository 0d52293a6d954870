//! Attention residuals: one mix, and their flow through eight layers in three blocks.

use k3_core::checkpoint::names::{LayerTensor, TensorId};
use k3_core::ops::attn_residual::ResidualMix;

use crate::closeness::check_cases;
use crate::every_backend;
use crate::model_run::{assert_same_run, check_model, plain_run};
use crate::support::arrays::{Array, ArraySource};
use crate::support::{config, fixture, singles};

#[test]
#[allow(clippy::cast_possible_truncation, reason = "an epsilon is rounded to f32 like that of a config")]
fn keys_are_normed_and_values_are_not() {
    for kernels in every_backend() {
        check_cases("residual_mix", |case| {
            let inputs = &case["inputs"];
            let weights = singles(&inputs["norm_weight"]).into_iter().zip(singles(&inputs["projection"]));
            let key_weight: Vec<f32> = weights.map(|(norm, projection)| norm * projection).collect();
            let sources = singles(&inputs["sources"]);
            let mut scores = vec![0.0; sources.len() / key_weight.len()];
            let mut out = vec![0.0; key_weight.len()];
            let mix = ResidualMix { key_weight: &key_weight, eps: inputs["eps"].as_f64().unwrap() as f32 };
            mix.mix(&kernels, &sources, &mut scores, &mut out);
            out
        });
    }
}

/// Every mix of every layer, the prefix sums, and the mix after the last layer.
#[test]
fn blocks_end_before_attention_adds_to_them() {
    check_model("residual_flow");
}

/// Layer 0 has nothing to mix: the tensors that would weigh its mix exist and are never used.
#[test]
fn the_residual_weights_of_layer_0_are_never_used() {
    let fixture = fixture("residual_flow");
    let mut source = ArraySource::read(&fixture);
    let hidden = config(&fixture).hidden;
    let mut run_with = |value: f32| {
        for tensor in [LayerTensor::AttentionResidualNorm, LayerTensor::AttentionResidualProj] {
            source.tensors.insert(TensorId::Layer(0, tensor), Array::single(1, hidden, &vec![value; hidden]));
        }
        plain_run(&fixture, &source).unwrap()
    };
    assert_same_run("with NaN in layer 0", &run_with(f32::NAN), &run_with(1.0));
}
