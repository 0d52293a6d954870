//! The gated MLP `down · SiTU(gate·x, up·x)`: the dense feed-forward half, and the shared experts.

use alloc::vec::Vec;

use super::compute::Compute;
use super::positions::Positions;
use super::room::Room;
use crate::Result;
use crate::checkpoint::names::TensorId;
use crate::config::SituConfig;
use crate::ops::activation::situ_glu;

/// Numbers that one call of the activation works on.
const ACTIVATION_CHUNK: usize = 1024;

/// The three matrices of an MLP and its activation.
pub(super) struct Mlp<'a> {
    pub gate: TensorId,
    pub up: TensorId,
    pub down: TensorId,
    /// Inner width.
    pub width: usize,
    pub situ: &'a SituConfig,
}

/// Intermediate values of a chunk, `[positions, width]` each.
pub(super) struct MlpScratch {
    gate: Vec<f32>,
    up: Vec<f32>,
}

impl MlpScratch {
    pub fn new(positions: usize, width: usize, room: &mut Room) -> Self {
        Self { gate: room.zeros(positions * width), up: room.zeros(positions * width) }
    }
}

impl Mlp<'_> {
    /// `out = mlp(x)`
    pub fn forward(&self, compute: &Compute<'_>, scratch: &mut MlpScratch, chunk: Positions<'_>) -> Result<()> {
        let Positions { span, x, out } = chunk;
        let gate = &mut scratch.gate[..span.count * self.width];
        let up = &mut scratch.up[..span.count * self.width];
        compute.linear(self.gate, x, gate)?;
        compute.linear(self.up, x, up)?;
        situ_glu_parallel(compute, self.situ, gate, up);
        compute.linear(self.down, gate, out)
    }
}

/// `gate ← SiTU(gate, up)`, on the workers.
pub(super) fn situ_glu_parallel(compute: &Compute<'_>, caps: &SituConfig, gate: &mut [f32], up: &[f32]) {
    compute.for_each(gate, ACTIVATION_CHUNK, &|index, gate| {
        let up = &up[index * ACTIVATION_CHUNK..][..gate.len()];
        situ_glu(caps, gate, up);
    });
}
