//! The lists of layers are one-based. Read from zero, they are another model.

use k3_core::config::Attention;

use crate::support::{config, fixture};

#[test]
fn layer_lists_count_from_one() {
    let fixture = fixture("residual_flow");
    let listed = fixture["config"]["linear_attn_config"]["full_attn_layers"].as_array().unwrap();
    let listed: Vec<usize> = listed.iter().map(|number| usize::try_from(number.as_u64().unwrap()).unwrap()).collect();
    let layers = config(&fixture).layers;
    let latent: Vec<usize> = (0..layers.len()).filter(|&layer| layers[layer].attention == Attention::Mla).collect();
    assert_eq!(listed, [3, 6, 8]);
    assert_eq!(latent, [2, 5, 7]);
}
