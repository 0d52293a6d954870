//! Whether something fits on the disk.

use std::path::Path;

use anyhow::Context;

use crate::failure::{Failure, Outcome};

/// Checks that there is room for `wanted` more bytes in `folder`.
///
/// # Errors
/// A refusal with both numbers if there is not; if the system does not say.
pub fn check(folder: &Path, wanted: u64) -> Outcome {
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
