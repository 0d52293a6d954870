//! Where the model's weights come from. The model sees them only through this trait.

use super::scratch::WantedLogits;
use crate::Result;
use crate::checkpoint::names::TensorId;
use crate::kernels::Matrix;

/// Hands out weights: from memory, from files as they are needed, or from a test's arrays.
///
/// Calls may block on reads. Errors are those of reading and of tensors that are absent or misshapen.
pub trait WeightSource: Sync {
    /// Widens the vector `id` into `out`, as far as `out` reaches.
    ///
    /// # Errors
    /// If the tensor cannot be read or is shorter than `out`.
    fn vector(&self, id: TensorId, out: &mut [f32]) -> Result<()>;

    /// Widens row `row` of the matrix `id` into `out`.
    ///
    /// # Errors
    /// If the row cannot be read.
    fn row(&self, id: TensorId, row: usize, out: &mut [f32]) -> Result<()>;

    /// Hands all of the matrix `id` to `visit`, in slices of consecutive rows: in order, each row once.
    ///
    /// # Errors
    /// Those of reading, and the first that `visit` returns.
    fn matrix(&self, id: TensorId, visit: &mut RowVisitor<'_>) -> Result<()>;

    /// Hands the matrix `id` to `visit` in one piece.
    ///
    /// # Errors
    /// Those of reading, and what `visit` returns.
    fn whole_matrix(&self, id: TensorId, visit: &mut MatrixVisitor<'_>) -> Result<()>;

    /// Says that a pass begins, and which logits it wants. Until [`WeightSource::end_pass`], or the next call of this, the
    /// matrices are asked for in the order of [`super::order::matrices_of_pass`], each once.
    ///
    /// # Errors
    /// If the source cannot be read from any more.
    fn begin_pass(&self, logits: WantedLogits) -> Result<()> {
        let _ = logits;
        Ok(())
    }

    /// Says that the pass is over.
    ///
    /// # Errors
    /// If what was handed out cannot be relied on, because the files changed meanwhile.
    fn end_pass(&self) -> Result<()> {
        Ok(())
    }

    /// Says which experts of `layer` will be asked for next, so that reading can begin.
    fn announce_experts(&self, layer: usize, ids: &[usize]) {
        let _ = (layer, ids);
    }

    /// How many experts of the next layer to guess while those of one are used, in a pass over one position; 0 for none.
    /// A source that wants any hands out the router of the next layer out of turn.
    fn guesses_wanted(&self) -> usize {
        0
    }

    /// Says which experts of `layer` are likely to be asked for next. Nothing depends on it.
    fn suggest_experts(&self, layer: usize, ids: &[usize]) {
        let _ = (layer, ids);
    }

    /// Hands each expert of `ids` to `visit` once, in any order, with its place in `ids`.
    ///
    /// # Errors
    /// Those of reading, and the first that `visit` returns. No expert is handed out that was not read in full.
    fn experts(&self, layer: usize, ids: &[usize], visit: &mut ExpertVisitor<'_>) -> Result<()>;
}

/// Takes the number of the first row and the rows of a slice.
pub type RowVisitor<'a> = dyn FnMut(usize, Matrix<'_>) -> Result<()> + 'a;

/// Takes a matrix in one piece.
pub type MatrixVisitor<'a> = dyn FnMut(&Matrix<'_>) -> Result<()> + 'a;

/// Takes an expert's place in the list that was asked for, and its weights.
pub type ExpertVisitor<'a> = dyn FnMut(usize, &Expert<'_>) -> Result<()> + 'a;

/// The weights of one routed expert.
#[derive(Debug, Clone, Copy)]
pub struct Expert<'a> {
    /// `w1`: `[expert_width, latent]`
    pub gate: Matrix<'a>,
    /// `w3`: `[expert_width, latent]`
    pub up: Matrix<'a>,
    /// `w2`: `[latent, expert_width]`
    pub down: Matrix<'a>,
}
