//! Elementary functions of f32, from one source on all targets.
//!
//! Platform libraries differ in the last bit, and so would the model. These functions use nothing but IEEE `+ - * /`,
//! conversions and bits. They compute in f64, so that the error of the method stays far below a unit in the last place
//! of f32: nearly every result is the correctly rounded one. NaN gives NaN; infinities give the limits.

use core::f64::consts::{LN_2, LOG2_E};

/// `LN_2` without its last 21 bits, so that products with the exponents below are exact in f64.
const LN_2_HIGH: f64 = f64::from_bits(LN_2.to_bits() >> 21 << 21);
/// The rest of ln 2, which f64 can hold beyond `LN_2`: ln 2 = 0.693147180559945309417232121458176568…
const LN_2_LOW: f64 = (LN_2 - LN_2_HIGH) + 2.319_046_813_846_299_6e-17;

/// Adding it rounds to an integer, to be found in the low bits of the sum: 1.5·2^52.
const ROUND: f64 = 6_755_399_441_055_744.0;

/// `e^x − 1 = (2^n − 1) + 2^n·p` with `p = e^r − 1` and |r| ≤ ln 2 / 2: the pair `(2^n, p)`.
///
/// |x| must be at most 700 or NaN.
#[inline(always)]
fn exp_parts(x: f64) -> (f64, f64) {
    let shifted = x * LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = (x - n * LN_2_HIGH) - n * LN_2_LOW;
    // The Taylor series up to r^12; the next term is below 2e-16 of the first.
    let mut p = 1.0 / 479_001_600.0;
    p = p * r + 1.0 / 39_916_800.0;
    p = p * r + 1.0 / 3_628_800.0;
    p = p * r + 1.0 / 362_880.0;
    p = p * r + 1.0 / 40_320.0;
    p = p * r + 1.0 / 5_040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 1.0 / 2.0;
    p = p * r * r + r;
    // The low bits of `shifted` are n; its own exponent is shifted out. NaN gives some power, and NaN remains in p.
    let power = f64::from_bits((shifted.to_bits() << 52).wrapping_add(1.0_f64.to_bits()));
    (power, p)
}

/// `e^x` for |x| ≤ 700 or NaN.
#[inline(always)]
fn exp_f64(x: f64) -> f64 {
    let (power, p) = exp_parts(x);
    power + power * p
}

/// `ln(1 + y)` for y in 0..=1 or NaN.
#[inline(always)]
fn ln_1p_unit(y: f64) -> f64 {
    // ln(1 + y) = 2·artanh(s) = 2·(s + s³/3 + s⁵/5 + …), s ≤ 1/3. The first term left out is below 1e-12 of the sum.
    let s = y / (y + 2.0);
    let square = s * s;
    let mut series = 1.0 / 23.0;
    let mut denominator = 21.0;
    while denominator > 0.0 {
        series = series * square + 1.0 / denominator;
        denominator -= 2.0;
    }
    2.0 * s * series
}

/// `e^x`.
#[inline]
#[must_use]
pub fn exp(x: f32) -> f32 {
    // Beyond these the result is 0 or infinite in f32.
    exp_f64(f64::from(x).clamp(-110.0, 90.0)) as f32
}

/// `1 / (1 + e^−x)`.
#[inline]
#[must_use]
pub fn sigmoid(x: f32) -> f32 {
    sigmoid_f64(x) as f32
}

#[inline(always)]
fn sigmoid_f64(x: f32) -> f64 {
    1.0 / (1.0 + exp_f64(-f64::from(x).clamp(-110.0, 110.0)))
}

/// `x / (1 + e^−x)`, also known as SiLU or swish.
#[inline]
#[must_use]
pub fn silu(x: f32) -> f32 {
    // −∞·0 would be NaN; −200 already gives the limit, −0.
    (f64::from(x).max(-200.0) * sigmoid_f64(x)) as f32
}

/// The hyperbolic tangent.
#[inline]
#[must_use]
pub fn tanh(x: f32) -> f32 {
    // (e^2x − 1) / (e^2x + 1), by way of e^2x − 1 because 1 would swallow a small x. Beyond 20 the result is 1.
    let (power, p) = exp_parts(2.0 * f64::from(x).abs().clamp(0.0, 20.0));
    let e = (power - 1.0) + power * p;
    ((e / (e + 2.0)) as f32).copysign(x)
}

/// `ln(1 + e^x)`.
#[inline]
#[must_use]
pub fn softplus(x: f32) -> f32 {
    let x = f64::from(x);
    // ln(1 + e^x) = max(x, 0) + ln(1 + e^−|x|), of which neither term can overflow.
    (x.max(0.0) + ln_1p_unit(exp_f64((-x.abs()).clamp(-110.0, 0.0)))) as f32
}

/// The square root, correctly rounded.
#[inline]
#[must_use]
pub fn sqrt(x: f32) -> f32 {
    libm::sqrtf(x)
}
