//! Memory that drives read into: whole pages, and where in them the bytes are that were asked for.

use std::ops::Range;

use k3_core::checkpoint::Span;
use k3_core::{Error, Result};
use memmap2::MmapMut;

use super::file::PAGE;

/// Page-aligned memory of `bytes`, at least one, in large pages where the system has them: a decode step that runs through
/// small ones takes half as long again.
///
/// # Errors
/// [`Error::Memory`] if the system refuses.
pub fn allocate(bytes: usize) -> Result<MmapMut> {
    let refuse = |_| Error::Memory { bytes: bytes as u64 };
    let memory = MmapMut::map_anon(bytes.max(1)).map_err(refuse)?;
    // Advice: where it is not taken, pages are small.
    #[cfg(target_os = "linux")]
    let _ = memory.advise(memmap2::Advice::HugePage);
    Ok(memory)
}

/// A read of whole pages of one file into a part of a buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRead {
    /// The number of the file.
    pub file: usize,
    /// From where on, a multiple of the page size.
    pub offset: u64,
    /// Where to; whole pages.
    pub buffer: Range<usize>,
    /// How many of these bytes must be there. The file may end before the last page does.
    pub needed: usize,
}

/// How some spans of files are read into one buffer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Placement {
    /// The reads, in the order of the spans; spans that follow each other in a file are read as one.
    pub reads: Vec<PageRead>,
    /// Where each span comes to lie.
    pub places: Vec<Range<usize>>,
}

impl Placement {
    /// Places `spans` one after the other.
    #[must_use]
    pub fn of(spans: impl IntoIterator<Item = Span>) -> Self {
        let mut placement = Self::default();
        for span in spans {
            placement.add(span);
        }
        placement
    }

    /// The bytes that the buffer needs.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.reads.last().map_or(0, |read| read.buffer.end)
    }

    fn add(&mut self, span: Span) {
        let bytes = usize::try_from(span.bytes).expect("what is read at once fits the address space");
        let place = match self.reads.last_mut() {
            Some(last) if last.file == span.shard && last.offset + last.needed as u64 == span.offset => {
                let start = last.buffer.start + last.needed;
                last.needed += bytes;
                last.buffer.end = last.buffer.start + last.needed.next_multiple_of(PAGE);
                start
            }
            _ => {
                let start = self.bytes();
                let skipped = (span.offset % PAGE as u64) as usize;
                let needed = skipped + bytes;
                let buffer = start..start + needed.next_multiple_of(PAGE);
                self.reads.push(PageRead { file: span.shard, offset: span.offset - skipped as u64, buffer, needed });
                start + skipped
            }
        };
        self.places.push(place..place + bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_read_as_one() {
        let span = |shard, offset, bytes| Span { shard, offset, bytes };
        let placement = Placement::of([span(0, 5000, 100), span(0, 5100, 4000), span(0, 9200, 10), span(1, 9210, 1)]);
        let read = |file, offset, buffer, needed| PageRead { file, offset, buffer, needed };
        assert_eq!(
            placement.reads,
            [
                read(0, 4096, 0..8192, 904 + 4100),
                read(0, 8192, 8192..12288, 1008 + 10),
                read(1, 8192, 12288..16384, 1018 + 1),
            ]
        );
        assert_eq!(placement.places, [904..1004, 1004..5004, 9200..9210, 13306..13307]);
        assert_eq!(placement.bytes(), 16384);
    }
}
