//! Numbers that are none: where they are used the answer is an error, and where they are not they change nothing.

use half::bf16;
use k3_core::Error;
use k3_core::checkpoint::names::TensorId;
use k3_core::host::Serial;
use k3_core::kernels::Kernels;
use k3_core::model::scratch::WantedLogits;
use serde_json::Value;

use crate::every_backend;
use crate::model_run::{Points, Run, assert_same_run, plain_run};
use crate::support::arrays::ArraySource;
use crate::support::{config, fixture, tokens};

/// The error of a pass over all tokens of a fixture, which wants the logits of the last only.
fn error_of(fixture: &Value, source: &ArraySource, kernels: &Kernels) -> Error {
    let run = Run { fixture, source, kernels, workers: &Serial, logits: WantedLogits::Last };
    run.points(&[tokens(fixture).len()]).expect_err("a damaged weight must not answer")
}

/// The experts that the last position uses, and those that no position uses.
fn used_and_unused(points: &Points, positions: usize) -> (Vec<usize>, Vec<usize>) {
    let weights = &points["router_weights.0"];
    let experts = weights.len() / positions;
    let last = &weights[weights.len() - experts..];
    let used_by_last = (0..experts).filter(|&expert| last[expert] != 0.0).collect();
    let unused =
        (0..experts).filter(|&expert| weights.iter().skip(expert).step_by(experts).all(|weight| *weight == 0.0));
    (used_by_last, unused.collect())
}

/// 255 is no scale. Whichever matrix of a used expert holds it, the answer must be an error and not a number.
#[test]
fn a_scale_that_is_not_a_number_is_refused_where_it_is_used() {
    let fixture = fixture("moe");
    let sound = plain_run(&fixture, &ArraySource::read(&fixture)).unwrap();
    let positions = tokens(&fixture).len();
    let (used, _) = used_and_unused(&sound, positions);
    for kernels in every_backend() {
        for matrix in 0..3 {
            let mut source = ArraySource::read(&fixture);
            let expert = source.experts.get_mut(&(0, used[0])).unwrap();
            [&mut expert.gate, &mut expert.up, &mut expert.down][matrix].scales[7] = 255;
            let error = error_of(&fixture, &source, &kernels);
            assert_eq!(error, Error::NotFinite { position: positions - 1 }, "matrix {matrix} on {}", kernels.backend());
        }
    }
}

/// Experts that nobody uses are not even in the fixture: asking for one would panic, or read NaN once it is put there.
#[test]
fn a_damaged_expert_that_nobody_uses_changes_nothing() {
    let fixture = fixture("moe");
    let mut source = ArraySource::read(&fixture);
    let sound = plain_run(&fixture, &source).unwrap();
    let (used, unused) = used_and_unused(&sound, tokens(&fixture).len());
    assert!(!unused.is_empty(), "the fixture leaves an expert out");
    for expert in unused {
        let mut damaged = source.experts[&(0, used[0])].clone();
        damaged.gate.scales.fill(255);
        assert!(source.experts.insert((0, expert), damaged).is_none(), "expert {expert} is not in the fixture");
    }
    assert_same_run("with a damaged expert", &plain_run(&fixture, &source).unwrap(), &sound);
}

/// The state carries damage on: what the first position brought in shows in the logits of the last.
#[test]
fn damage_in_the_past_is_an_error_too() {
    let fixture = fixture("residual_flow");
    let mut source = ArraySource::read(&fixture);
    let (hidden, tokens) = (config(&fixture).hidden, tokens(&fixture));
    let first = tokens[0] as usize;
    assert!(!tokens[1..].contains(&tokens[0]), "only the first position is damaged");
    let row = first * hidden * 2;
    let table = &mut source.tensors.get_mut(&TensorId::Embedding).unwrap().data;
    table[row..row + 2].copy_from_slice(&bf16::NAN.to_le_bytes());
    for kernels in every_backend() {
        let error = error_of(&fixture, &source, &kernels);
        assert_eq!(error, Error::NotFinite { position: tokens.len() - 1 }, "on {}", kernels.backend());
    }
}
