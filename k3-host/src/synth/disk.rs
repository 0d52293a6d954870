//! How much of a file with holes is on the disk.

use std::ops::Range;

/// Bytes of a block of the usual file systems: what is written takes whole ones.
const BLOCK: u64 = 4096;

/// Counts the blocks that the parts of a file take.
#[derive(Debug, Default)]
pub(super) struct DiskBlocks {
    blocks: u64,
    /// The first block after all that were counted.
    next: u64,
}

impl DiskBlocks {
    /// The bytes that one part takes.
    pub(super) fn of(bytes: Range<u64>) -> u64 {
        let mut blocks = Self::default();
        blocks.add(bytes);
        blocks.bytes()
    }

    /// Counts a part that does not begin before the parts already counted.
    pub(super) fn add(&mut self, bytes: Range<u64>) {
        let end = bytes.end.div_ceil(BLOCK);
        self.blocks += end.saturating_sub(self.next.max(bytes.start / BLOCK));
        self.next = self.next.max(end);
    }

    /// The bytes of the blocks.
    pub(super) fn bytes(&self) -> u64 {
        self.blocks * BLOCK
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_counted_once() {
        let counted = |parts: &[(u64, u64)]| {
            let mut blocks = DiskBlocks::default();
            parts.iter().for_each(|&(begin, end)| blocks.add(begin..end));
            blocks.bytes() / BLOCK
        };
        for (parts, expected) in [
            (&[][..], 0),
            (&[(0, 1)], 1),
            (&[(0, 4096)], 1),
            (&[(0, 4097)], 2),
            (&[(10, 20), (20, 30), (4095, 4096)], 1),
            (&[(4095, 4097)], 2),
            (&[(0, 10), (40_960, 40_961), (40_970, 45_057)], 3),
        ] {
            assert_eq!(counted(parts), expected, "{parts:?}");
        }
    }
}
