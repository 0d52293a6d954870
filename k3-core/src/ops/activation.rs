//! Elementwise activations.

use crate::config::SituConfig;
use crate::kernels::math::{sigmoid, tanh};

/// `gate ← [β·tanh(gate/β)·σ(gate)] · [β₂·tanh(up/β₂)]`: SiTU-GLU with both soft caps.
///
/// The sigmoid sees the gate before its cap. Without β₂, `up` passes unchanged.
pub fn situ_glu(caps: &SituConfig, gate: &mut [f32], up: &[f32]) {
    assert_eq!(gate.len(), up.len(), "gate and up have one width");
    for (gate, &up) in gate.iter_mut().zip(up) {
        let capped_up = caps.linear_beta.map_or(up, |cap| soft_cap(up, cap));
        *gate = soft_cap(*gate, caps.beta) * sigmoid(*gate) * capped_up;
    }
}

/// `x ← x · σ(gate)`.
pub fn sigmoid_gate(x: &mut [f32], gate: &[f32]) {
    assert_eq!(x.len(), gate.len(), "a gate for each channel");
    for (x, &gate) in x.iter_mut().zip(gate) {
        *x *= sigmoid(gate);
    }
}

fn soft_cap(x: f32, cap: f32) -> f32 {
    cap * tanh(x / cap)
}
