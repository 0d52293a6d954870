//! Some runs that are encoded and written together.

use k3_core::Result;
use k3_core::stream::trunk::Run;
use rayon::prelude::*;

use super::content::Content;
use super::encode::{Encoded, Encoder};
use crate::storage::FileStorage;

/// Encoded runs that follow each other.
pub(super) struct Batch<'a> {
    /// The runs and what they will be stored as.
    pub(super) runs: Vec<(&'a Run, Encoded)>,
}

impl<'a> Batch<'a> {
    /// Reads and encodes runs, all threads together.
    pub(super) fn encode(runs: &'a [Run], files: &[FileStorage], encoder: &Encoder) -> Result<Self> {
        let encode = |run: &'a Run| Ok((run, encoder.encode(run, Content::of_run(files, run)?)));
        Ok(Self { runs: runs.par_iter().map(encode).collect::<Result<_>>()? })
    }

    /// Whether there are no runs.
    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }
}
