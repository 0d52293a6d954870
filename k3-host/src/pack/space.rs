//! Whether a trunk fits on the disk.

use std::path::Path;

use anyhow::Context;
use k3_core::stream::trunk::Run;
use k3_core::stream::trunk_file::ALIGNMENT;

use super::content::is_hole;
use crate::failure::{Failure, Outcome};
use crate::storage::FileStorage;

/// Refuses if `folder` has too little space for `runs` at their full length. What is a hole stays one.
pub(super) fn check(folder: &Path, files: &[FileStorage], runs: &[Run]) -> Outcome {
    let takes_space = |run: &&Run| ![Some(run.data), run.scales].iter().flatten().all(|span| is_hole(files, *span));
    let wanted: u64 = runs.iter().filter(takes_space).map(|run| run.bytes().next_multiple_of(ALIGNMENT)).sum();
    let context = || format!("cannot tell how much space is free in {}", folder.display());
    let free = fs4::available_space(folder).with_context(context).map_err(Failure::not_written)?;
    if wanted > free {
        return Err(Failure::refused(format!(
            "{}: {wanted} bytes are to be written, but only {free} are free",
            folder.display()
        )));
    }
    Ok(())
}
