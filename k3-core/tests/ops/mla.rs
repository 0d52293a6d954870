//! Latent attention as a layer. The fixture expands keys and values, which the code under test never does.

use crate::model_run::check_model;

/// Small latents make the epsilon of the inner norms show.
#[test]
fn latent_attention() {
    check_model("mla");
}

#[test]
fn latent_attention_without_a_gate() {
    check_model("mla_ungated");
}
