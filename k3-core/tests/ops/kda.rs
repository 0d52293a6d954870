//! Delta attention as a layer: projections, convolution, decay, recurrence, gate.

use crate::model_run::check_model;

/// Tiny keys, queries and values make every epsilon show; a chunk edge makes the convolution's history and the state show.
#[test]
fn delta_attention_with_a_bounded_decay() {
    check_model("kda");
}

#[test]
fn delta_attention_without_a_bound() {
    check_model("kda_unbounded");
}
