//! The feed-forward half: experts in MXFP4, shared experts, dense MLP.

use crate::model_run::{assert_same_run, check_model, plain_run};
use crate::support::arrays::ArraySource;
use crate::support::fixture;

/// A small sum of the experts' outputs makes the epsilon of its norm show, and with it scaling and renormalisation.
#[test]
fn experts_in_the_latent_width() {
    check_model("moe");
}

#[test]
fn the_dense_mlp_without_configured_caps() {
    check_model("dense");
}

/// Code 8 is −0.0, so that it and code 0 give the same bits.
#[test]
fn a_code_of_minus_zero_is_zero() {
    let fixture = fixture("moe");
    let mut source = ArraySource::read(&fixture);
    let expected = plain_run(&fixture, &source).unwrap();
    let mut changed = 0;
    for expert in source.experts.values_mut() {
        for packed in [&mut expert.gate, &mut expert.up, &mut expert.down] {
            for codes in &mut packed.codes {
                let low = if *codes & 15 == 8 { 0 } else { *codes & 15 };
                let high = if *codes >> 4 == 8 { 0 } else { *codes >> 4 };
                changed += usize::from(*codes != high << 4 | low);
                *codes = high << 4 | low;
            }
        }
    }
    assert!(changed > 100, "the fixture has many codes of minus zero");
    assert_same_run("with plus zero for minus zero", &plain_run(&fixture, &source).unwrap(), &expected);
}
