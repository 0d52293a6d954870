//! Asking the memory for rows before they are used.

use super::lanes::Lanes;
use super::rows::{STREAMS, WeightRow};

/// How many bytes come from memory at once.
const CACHE_LINE: usize = 64;

/// Asks for what will be wanted of the rows of a tile some time after group `group` of `groups`.
#[inline(always)]
pub(super) fn prefetch_rows<'a, L: Lanes, W: WeightRow<'a>, const R: usize>(
    lanes: L,
    weights: &[W; R],
    group: usize,
    groups: usize,
) {
    for stream in 0..STREAMS {
        let bytes = W::GROUP_BYTES[stream];
        if bytes == 0 || group * bytes % CACHE_LINE >= bytes {
            continue;
        }
        let wanted = group + L::PREFETCH_BYTES / W::GROUP_BYTES.iter().sum::<usize>();
        let offset =
            if wanted < groups { wanted * bytes } else { next_tile(weights, stream) + (wanted - groups) * bytes };
        for row in weights {
            lanes.prefetch(row.starts()[stream].wrapping_add(offset));
        }
    }
}

/// From a row of a tile to the same row of the next one: what follows a row is the next row of this tile, which is on its
/// way.
#[inline(always)]
fn next_tile<'a, W: WeightRow<'a>, const R: usize>(weights: &[W; R], stream: usize) -> usize {
    let [first, last] = [weights[0], weights[R - 1]].map(|row| row.starts()[stream].addr());
    (last - first) / (R - 1).max(1) * R
}
