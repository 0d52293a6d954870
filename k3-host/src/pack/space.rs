//! Whether a trunk fits on the disk.

use std::path::Path;

use k3_core::stream::trunk::Run;
use k3_core::stream::trunk_file::ALIGNMENT;

use super::content::is_hole_whole;
use crate::failure::Outcome;
use crate::free_space;
use crate::storage::FileStorage;

/// Refuses if `folder` has too little space for `runs` at their full length. What is a hole stays one.
pub(super) fn check(folder: &Path, files: &[FileStorage], runs: &[Run]) -> Outcome {
    let takes_space = |run: &&Run| !is_hole_whole(files, run);
    let wanted: u64 = runs.iter().filter(takes_space).map(|run| run.bytes().next_multiple_of(ALIGNMENT)).sum();
    free_space::check(folder, wanted)
}
