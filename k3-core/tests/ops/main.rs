//! Every operation of the model against values from outside, and against what plausible wrong versions would give.
//!
//! The right and the wrong values are computed in f64 by `scripts/op-fixtures.py`, which knows nothing of this code. One
//! program for all of them: it links once.

mod closeness;
mod conv;
mod damage;
mod elementwise;
mod kda;
mod layer_kinds;
mod mla;
mod model_run;
mod moe;
mod norm;
mod residual;
mod router;
#[path = "../support/mod.rs"]
mod support;

use k3_core::kernels::{Backend, Kernels};

/// The kernels of every backend this machine has.
fn every_backend() -> impl Iterator<Item = Kernels> {
    Backend::available().into_iter().map(|backend| Kernels::new(backend).unwrap())
}
