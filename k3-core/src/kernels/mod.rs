//! Sums of products, in one published order, on every backend. The only place where a backend is chosen.

pub mod matrix;

pub use matrix::{Encoding, Matrix};
