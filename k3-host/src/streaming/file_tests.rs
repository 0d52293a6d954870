//! Reads that come short, against a drive that takes whole pages only.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::sync::Mutex;

use super::*;

/// A drive that gives so many bytes at each call, and as many as are wanted when the list ends. Byte `i` of the file is
/// `i % 251`.
struct Drive(Mutex<VecDeque<usize>>);

impl ReadAt for Drive {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        if !offset.is_multiple_of(PAGE as u64) || !buffer.len().is_multiple_of(PAGE) {
            return Err(ErrorKind::InvalidInput.into());
        }
        let count = self.0.lock().unwrap().pop_front().unwrap_or(buffer.len()).min(buffer.len());
        for (byte, position) in buffer[..count].iter_mut().zip(offset..) {
            *byte = (position % 251) as u8;
        }
        Ok(count)
    }
}

/// What three pages from the second on give, of which 10,000 bytes are needed.
fn read(counts: &[usize]) -> Result<Vec<u8>> {
    let drive = Drive(Mutex::new(counts.iter().copied().collect()));
    let file = DirectFile::from_reader("drive", Box::new(drive));
    let mut buffer = vec![0; 3 * PAGE];
    file.read(PAGE as u64, &mut buffer, 10_000)?;
    buffer.truncate(10_000);
    Ok(buffer)
}

#[test]
fn a_short_read_goes_on_from_a_whole_page() {
    let expected: Vec<u8> = (4096..14_096).map(|position| (position % 251) as u8).collect();
    for counts in [&[][..], &[5000], &[4096, 4096], &[8192, 1808], &[100], &[5000, 100], &[10_000]] {
        assert_eq!(read(counts).unwrap(), expected, "{counts:?}");
    }
}

#[test]
fn a_read_that_does_not_get_on_is_an_error() {
    for counts in [&[0][..], &[4096, 0], &[100, 100], &[5000, 5000, 0]] {
        let error = read(counts).unwrap_err().to_string();
        assert!(error.starts_with("drive: reading 10000 bytes at 4096: "), "{counts:?}: {error}");
    }
}
