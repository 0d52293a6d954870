//! A borrowed weight matrix in the form in which it lies on disk.

/// How the elements of a row are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// Little-endian IEEE single precision.
    F32,
    /// Little-endian upper halves of single precision.
    Bf16,
    /// E2M1 nibbles, low nibble first, with one E8M0 scale for 32 columns.
    Mxfp4,
}

/// A row-major matrix `[rows, columns]` of weights, borrowed and packed. No alignment is assumed.
#[derive(Debug, Clone, Copy)]
pub struct Matrix<'a> {
    encoding: Encoding,
    rows: usize,
    columns: usize,
    row_bytes: usize,
    data: &'a [u8],
    scales: &'a [u8],
}
