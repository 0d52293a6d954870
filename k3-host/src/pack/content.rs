//! The bytes of a run, of which zeros take no room.

use k3_core::Result;
use k3_core::checkpoint::Span;
use k3_core::host::Storage;
use k3_core::stream::trunk::Run;

use super::holes;
use crate::storage::FileStorage;

/// The bytes of a run. What is all zeros is always [`Content::Zeros`], so that equal bytes are equal values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Content {
    /// So many zeros.
    Zeros(u64),
    /// Bytes that are not all zero.
    Bytes(Vec<u8>),
}

impl Content {
    /// These bytes.
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        if bytes.iter().all(|byte| *byte == 0) { Self::Zeros(bytes.len() as u64) } else { Self::Bytes(bytes) }
    }

    /// Reads a run: its rows and then its scales. Holes are not read.
    pub(super) fn of_run(files: &[FileStorage], run: &Run) -> Result<Self> {
        if is_hole_whole(files, run) {
            return Ok(Self::Zeros(run.bytes()));
        }
        let mut bytes = vec![0; run.bytes() as usize];
        let mut rest = &mut bytes[..];
        for span in run.spans() {
            let (part, others) = rest.split_at_mut(span.bytes as usize);
            files[span.shard].read_exact_at(span.offset, part)?;
            rest = others;
        }
        Ok(Self::new(bytes))
    }

    /// The bytes, zeros too.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        match self {
            Self::Zeros(count) => vec![0; count as usize],
            Self::Bytes(bytes) => bytes,
        }
    }

    /// How many bytes.
    pub(super) fn len(&self) -> u64 {
        match self {
            Self::Zeros(count) => *count,
            Self::Bytes(bytes) => bytes.len() as u64,
        }
    }
}

/// Whether all of a run is known to be zeros without reading it.
pub(super) fn is_hole_whole(files: &[FileStorage], run: &Run) -> bool {
    run.spans().all(|span| is_hole(files, span))
}

/// Whether a span is known to be all zeros without reading it. A span that reaches past the end of its file is not.
fn is_hole(files: &[FileStorage], span: Span) -> bool {
    let file = &files[span.shard];
    span.offset + span.bytes <= file.len() && holes::is_hole(file.file(), span.offset, span.bytes)
}
