//! The published order of summation, followed to the letter on single numbers. It shares nothing with the kernels.

/// A dot product from its rounded products; `scales` holds one factor per group of 32, or nothing.
pub fn dot(products: &[f32], scales: &[f32]) -> f32 {
    let p = |column: usize| products.get(column).copied().unwrap_or(0.0);
    let lane_sums: Vec<f32> = (0..8)
        .map(|l| {
            let groups: Vec<f32> = (0..products.len().div_ceil(32))
                .map(|g| {
                    let t = (p(32 * g + l) + p(32 * g + 16 + l)) + (p(32 * g + 8 + l) + p(32 * g + 24 + l));
                    scales.get(g).map_or(t, |scale| t * scale)
                })
                .collect();
            blocks(&groups)
        })
        .collect();
    let s = lane_sums;
    ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]))
}

/// Blocks of 16, each summed from zero in turn, merged in the tree. A column sum is this over its rows.
pub fn blocks(terms: &[f32]) -> f32 {
    let sums: Vec<f32> = terms.chunks(16).map(|block| block.iter().fold(0.0, |sum, term| sum + term)).collect();
    tree(&sums)
}

/// The oldest part is a balanced tree over the largest power of two; the rest, summed alike, is added to it.
fn tree(blocks: &[f32]) -> f32 {
    match blocks {
        [] => 0.0,
        [block] => *block,
        _ => {
            let half_or_more = blocks.len().next_power_of_two() / 2;
            let (older, newer) = blocks.split_at(half_or_more);
            tree(older) + tree(newer)
        }
    }
}
