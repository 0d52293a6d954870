//! The positions of a chunk, as a sublayer sees them.

/// Which positions a chunk covers.
#[derive(Clone, Copy)]
pub(super) struct Span {
    /// Positions before it.
    pub start: usize,
    /// Positions in it.
    pub count: usize,
}

/// What a sublayer reads and writes for the positions of a chunk.
pub(super) struct Positions<'a> {
    pub span: Span,
    /// `[positions, hidden]`, normed.
    pub x: &'a [f32],
    /// `[positions, hidden]`
    pub out: &'a mut [f32],
}
