//! The tensors of the vision tower and its projector, which the text model does without: the released names and shapes.

use super::plan::Tensor;

/// Blocks of the tower.
const BLOCKS: usize = 27;
/// Width of the tower.
const WIDTH: usize = 1024;
/// Inner width of its MLPs.
const MLP_WIDTH: usize = 4096;
/// Width of its attention: 12 heads of 128.
const ATTENTION_WIDTH: usize = 1536;
/// Patches along each side of an image of the size that positions are stored for.
const GRID: usize = 64;
/// Pixels along each side of a patch.
const PATCH: usize = 14;
/// Patches that the projector takes as one token.
const MERGED: usize = 4;

/// The projector into a residual stream of width `hidden`.
pub(super) fn projector(hidden: usize) -> Vec<Tensor> {
    let merged = MERGED * WIDTH;
    vec![
        Tensor::vision("mm_projector.post_norm.weight".into(), &[hidden]),
        Tensor::vision("mm_projector.proj.0.weight".into(), &[merged, merged]),
        Tensor::vision("mm_projector.proj.2.weight".into(), &[hidden, merged]),
    ]
}

/// The tower.
pub(super) fn tower() -> Vec<Tensor> {
    let tensor = |name: &str, dimensions: &[usize]| Tensor::vision(format!("vision_tower.{name}.weight"), dimensions);
    let mut tensors = vec![
        tensor("patch_embed.proj", &[WIDTH, 3, PATCH, PATCH]),
        tensor("patch_embed.pos_emb", &[GRID, GRID, WIDTH]),
        tensor("encoder.final_layernorm", &[WIDTH]),
    ];
    for block in 0..BLOCKS {
        let block = |name, dimensions: &[usize]| tensor(&format!("encoder.blocks.{block}.{name}"), dimensions);
        tensors.extend([
            block("norm0", &[WIDTH]),
            block("wqkv", &[3 * ATTENTION_WIDTH, WIDTH]),
            block("wo", &[WIDTH, ATTENTION_WIDTH]),
            block("norm1", &[WIDTH]),
            block("mlp.fc0", &[MLP_WIDTH, WIDTH]),
            block("mlp.fc1", &[WIDTH, MLP_WIDTH]),
        ]);
    }
    tensors
}
