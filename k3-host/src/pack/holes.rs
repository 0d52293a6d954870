//! Parts of files that were never written: they read as zeros and take no space.

use std::fs::File;

/// Whether the system says that `bytes` from `offset` on are a hole. Where it does not tell, nothing is.
#[cfg(target_os = "linux")]
pub(super) fn is_hole(file: &File, offset: u64, bytes: u64) -> bool {
    use rustix::fs::SeekFrom;
    use rustix::io::Errno;
    // Moves the file's own position, which positioned reads do not go by.
    match rustix::fs::seek(file, SeekFrom::Data(offset)) {
        Ok(data) => data >= offset + bytes,
        // No data from there to the end of the file.
        Err(error) => error == Errno::NXIO,
    }
}

/// Whether the system says that `bytes` from `offset` on are a hole. Where it does not tell, nothing is.
#[cfg(not(target_os = "linux"))]
pub(super) fn is_hole(_: &File, _: u64, _: u64) -> bool {
    false
}
