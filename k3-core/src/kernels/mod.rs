//! Sums of products, in one published order, on every backend. The only place where a backend is chosen.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod backend;
mod column_sums;
pub mod dict;
mod escapes;
pub mod fingerprint;
mod lanes;
pub mod math;
mod matmul;
mod matrix;
mod mxfp4;
#[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
mod neon;
pub mod order;
mod output;
mod parallel;
mod prefetch;
mod recurrence;
mod rows;
mod scalar;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod simd128;

pub use backend::{Backend, UnknownBackend};
pub use matrix::{Encoding, Matrix};
pub use output::OutputTile;
pub use parallel::matmul_parallel;
pub use recurrence::StateUpdate;

use backend::Detected;
use column_sums::ColumnSums;
use matmul::{Dot, Matmul, Sum};
use recurrence::{AdvanceAndRead, Decay};

/// The kernels of one backend. Each call runs on the calling thread, allocates nothing, and sums in the order of
/// [`order`].
#[derive(Debug, Clone, Copy)]
pub struct Kernels {
    lanes: Detected,
}

impl Kernels {
    /// The kernels of `backend`, or `None` if this machine cannot run them.
    #[must_use]
    pub fn new(backend: Backend) -> Option<Self> {
        backend.detect().map(|lanes| Self { lanes })
    }

    /// Which backend this is.
    #[must_use]
    pub fn backend(&self) -> Backend {
        self.lanes.backend()
    }

    /// `Σ_i a[i]·b[i]`.
    ///
    /// # Panics
    /// If the lengths differ.
    #[must_use]
    pub fn dot(&self, a: &[f32], b: &[f32]) -> f32 {
        assert_eq!(a.len(), b.len(), "lengths of a dot product");
        self.lanes.run(Dot { a, b })
    }

    /// `Σ_i a[i]`.
    #[must_use]
    pub fn sum(&self, a: &[f32]) -> f32 {
        self.lanes.run(Sum(a))
    }

    /// `y[t, r] = Σ_c w[r, c]·x[t, c]`, with x `[tokens, columns]` and y `[tokens, rows]`.
    ///
    /// # Panics
    /// If the shapes do not fit each other.
    pub fn matmul(&self, w: &Matrix<'_>, x: &[f32], y: &mut OutputTile<'_>) {
        assert_eq!(w.rows(), y.rows(), "rows of the matrix and of the output");
        assert_eq!(x.len(), y.tokens() * w.columns(), "inputs of {} tokens", y.tokens());
        self.lanes.run(Matmul { weights: w, inputs: x, output: y });
    }

    /// `out[v, c] = Σ_r weights[v, r]·w[r, c]`, with out `[vectors, columns]` and weights `[vectors, stride]`, of which
    /// the first `rows` of each vector count.
    ///
    /// # Panics
    /// If the shapes do not fit each other.
    pub fn column_sums(&self, w: &Matrix<'_>, weights: &[f32], out: &mut [f32]) {
        let vectors = out.len().checked_div(w.columns()).unwrap_or(0);
        assert_eq!(vectors * w.columns(), out.len(), "an output of {} columns", w.columns());
        let weight_stride = weights.len().checked_div(vectors).unwrap_or(0);
        assert_eq!(vectors * weight_stride, weights.len(), "weights of {vectors} vectors");
        assert!(vectors == 0 || weight_stride >= w.rows(), "{weight_stride} weights for {} rows", w.rows());
        self.lanes.run(ColumnSums { matrix: w, weights, weight_stride, out });
    }

    /// Writes a matrix with a dictionary as bf16, `[rows, columns]`.
    ///
    /// # Errors
    /// What [`dict::check`] finds; nothing has been written then.
    ///
    /// # Panics
    /// If the matrix is of another encoding or `bf16` has another length.
    pub fn decode_dict(&self, w: &Matrix<'_>, bf16: &mut [u8]) -> Result<(), dict::DictError> {
        assert!(matches!(w.encoding(), Encoding::Dict { .. }), "{:?} has no dictionary", w.encoding());
        assert_eq!(bf16.len(), 2 * w.rows() * w.columns(), "bf16 of {}x{}", w.rows(), w.columns());
        dict::check_rows(w)?;
        self.lanes.run(dict::Decode { matrix: w, out: bf16 });
        Ok(())
    }

    /// The first pass of delta attention over the state S `[keys, values]` of one head:
    /// `S[k, v] ← S[k, v]·decay[k]`, then `out[v] = Σ_k S[k, v]·key[k]`.
    ///
    /// # Panics
    /// If the shapes do not fit each other.
    pub fn decay_and_read(&self, state: &mut [f32], decay: &[f32], key: &[f32], out: &mut [f32]) {
        assert_eq!(decay.len(), key.len(), "keys");
        assert_eq!(state.len(), key.len() * out.len(), "a state of keys x values");
        self.lanes.run(AdvanceAndRead { pass: Decay { decay, key }, state, out });
    }

    /// The second pass of delta attention over the state S `[keys, values]` of one head:
    /// `S[k, v] ← S[k, v] + key[k]·delta[v]`, then `out[v] = Σ_k S[k, v]·query[k]`.
    ///
    /// # Panics
    /// If the shapes do not fit each other.
    pub fn update_and_read(&self, state: &mut [f32], update: StateUpdate<'_>, out: &mut [f32]) {
        assert_eq!(update.key.len(), update.query.len(), "keys");
        assert_eq!(update.delta.len(), out.len(), "values");
        assert_eq!(state.len(), update.key.len() * out.len(), "a state of keys x values");
        self.lanes.run(AdvanceAndRead { pass: update, state, out });
    }
}
