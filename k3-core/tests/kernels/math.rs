//! The elementary functions against the standard library in f64, over all of f32.

use k3_core::kernels::math;

/// A prime, so that all exponents and many mantissas come up: about 4.3 million of the 2^32 bit patterns.
const STRIDE: usize = 997;

/// How many representable numbers lie between two results.
fn ulps_apart(a: f32, b: f32) -> u32 {
    let ordered = |value: f32| {
        let bits = value.to_bits() as i32;
        if bits < 0 { i32::MIN.wrapping_sub(bits) } else { bits }
    };
    ordered(a).abs_diff(ordered(b))
}

/// At most one unit off anywhere, and the nearest value nearly everywhere.
fn check(name: &str, found: fn(f32) -> f32, exact: fn(f64) -> f64) {
    let (mut count, mut off) = (0, 0);
    for bits in (0..=u32::MAX).step_by(STRIDE) {
        let x = f32::from_bits(bits);
        let (found, expected) = (found(x), exact(f64::from(x)) as f32);
        if x.is_nan() {
            assert!(found.is_nan(), "{name}({x})");
            continue;
        }
        let apart = ulps_apart(found, expected);
        assert!(apart <= 1, "{name}({x:e}) is {found:e}, not {expected:e}");
        count += 1;
        off += u32::from(apart == 1);
    }
    assert!(off * 100_000 <= count, "{name}: {off} of {count} are not the nearest value");
}

#[test]
fn exp() {
    check("exp", math::exp, f64::exp);
    assert_eq!(math::exp(f32::NEG_INFINITY), 0.0);
    assert_eq!(math::exp(f32::INFINITY), f32::INFINITY);
    assert_eq!(math::exp(-0.0), 1.0);
    // The largest x with a finite result and its successor; the smallest with a result that is not zero.
    assert!(math::exp(88.722_83).is_finite() && math::exp(88.722_84) == f32::INFINITY);
    assert!(math::exp(-103.972_07) > 0.0 && math::exp(-103.972_09) == 0.0);
}

#[test]
fn tanh() {
    check("tanh", math::tanh, f64::tanh);
    assert_eq!(math::tanh(f32::INFINITY), 1.0);
    assert_eq!(math::tanh(f32::NEG_INFINITY), -1.0);
    assert_eq!(math::tanh(-0.0).to_bits(), (-0.0_f32).to_bits());
}

#[test]
fn sigmoid() {
    check("sigmoid", math::sigmoid, |x| 1.0 / (1.0 + (-x).exp()));
    assert_eq!(math::sigmoid(f32::INFINITY), 1.0);
    assert_eq!(math::sigmoid(f32::NEG_INFINITY), 0.0);
    assert_eq!(math::sigmoid(0.0), 0.5);
}

#[test]
fn silu() {
    let limit_aside = |x: f64| {
        if x == f64::NEG_INFINITY { -0.0 } else { x / (1.0 + (-x).exp()) }
    };
    check("silu", math::silu, limit_aside);
    assert_eq!(math::silu(f32::INFINITY), f32::INFINITY);
    assert_eq!(math::silu(f32::NEG_INFINITY), 0.0);
}

#[test]
fn softplus() {
    check("softplus", math::softplus, |x| x.max(0.0) + (-x.abs()).exp().ln_1p());
    assert_eq!(math::softplus(f32::INFINITY), f32::INFINITY);
    assert_eq!(math::softplus(f32::NEG_INFINITY), 0.0);
}

#[test]
fn sqrt() {
    for bits in (0..=u32::MAX).step_by(STRIDE) {
        let x = f32::from_bits(bits);
        let (found, expected) = (math::sqrt(x), x.sqrt());
        assert!(found.to_bits() == expected.to_bits() || (found.is_nan() && expected.is_nan()), "sqrt({x:e})");
    }
}
