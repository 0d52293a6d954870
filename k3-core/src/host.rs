//! What the outside implements: positioned reads and row-parallel work. To port k3, implement these.

use core::marker::PhantomData;
use core::ops::Range;

use crate::Result;

/// A file, or a part of one, that can be read at any position.
///
/// Reads may block. They may be issued from several threads at once.
pub trait Storage: Sync {
    /// The length in bytes, exact at the time of opening.
    fn len(&self) -> u64;

    /// Whether there is nothing to read.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills `buffer` from `offset` on.
    ///
    /// # Errors
    /// [`crate::Error::Read`] if the range is not wholly inside the file or the system refuses; `buffer` then holds
    /// nothing of meaning. A short read is an error, never zeros.
    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()>;
}

/// Runs independent pieces of work, on however many threads there are.
///
/// No result may depend on the number of pieces or threads: each output element is computed whole by one piece.
pub trait Workers: Sync {
    /// How many pieces can make progress at once; at least 1.
    fn threads(&self) -> usize;

    /// Calls `work` once for each index in `0..pieces`, in any order and on any thread, and returns when all are done.
    fn run(&self, pieces: usize, work: &(dyn Fn(usize) + Sync));
}

/// Workers that are not there: all on the calling thread.
#[derive(Debug, Clone, Copy, Default)]
pub struct Serial;

impl Workers for Serial {
    fn threads(&self) -> usize {
        1
    }

    fn run(&self, pieces: usize, work: &(dyn Fn(usize) + Sync)) {
        (0..pieces).for_each(work);
    }
}

/// The part of `0..total` that piece `index` of `pieces` covers, with borders on multiples of `granule`.
///
/// The parts are disjoint, in order, and cover the whole; some may be empty.
#[must_use]
pub fn piece(total: usize, granule: usize, index: usize, pieces: usize) -> Range<usize> {
    let granules = total.div_ceil(granule);
    let border = |index: usize| (granules * index / pieces * granule).min(total);
    border(index)..border(index + 1)
}

/// A slice that is worked on in chunks of equal length; the last may be shorter.
pub struct Chunks<'a> {
    /// The whole.
    pub data: &'a mut [f32],
    /// Numbers in a chunk, at least 1.
    pub length: usize,
}

/// Calls `work` once for each chunk number, on the workers, with that chunk of every buffer.
///
/// All buffers have equally many chunks. Each call also gets room for intermediate values: an equal share of `scratch`
/// for each thread, with whatever an earlier call left in it.
pub fn for_each_chunk<const N: usize>(
    workers: &dyn Workers,
    buffers: [Chunks<'_>; N],
    scratch: &mut [f32],
    work: &(dyn Fn(usize, [&mut [f32]; N], &mut [f32]) + Sync),
) {
    let count = buffers[0].data.len().div_ceil(buffers[0].length);
    for buffer in &buffers {
        assert_eq!(buffer.data.len().div_ceil(buffer.length), count, "all buffers have equally many chunks");
    }
    let buffers = buffers.map(|buffer| (DisjointParts::new(buffer.data), buffer.length));
    let pieces = workers.threads().min(count);
    let share = scratch.len() / pieces.max(1);
    let scratch = DisjointParts::new(scratch);
    workers.run(pieces, &|index| {
        // SAFETY: `run` calls each index once, and the shares of different indices do not overlap.
        let scratch = unsafe { scratch.part(index * share..(index + 1) * share) };
        for number in piece(count, 1, index, pieces) {
            let chunks = core::array::from_fn(|buffer| {
                let (data, length) = &buffers[buffer];
                // SAFETY: each chunk number belongs to one piece only, and different chunks do not overlap.
                unsafe { data.part(number * length..((number + 1) * length).min(data.length)) }
            });
            work(number, chunks, scratch);
        }
    });
}

/// A slice of which threads take parts that do not overlap.
pub(crate) struct DisjointParts<'a> {
    start: *mut f32,
    length: usize,
    borrow: PhantomData<&'a mut [f32]>,
}

// SAFETY: it is used as the unique borrow that it was made from, cut in parts; `f32` can be sent between threads.
unsafe impl Sync for DisjointParts<'_> {}

impl<'a> DisjointParts<'a> {
    pub(crate) fn new(data: &'a mut [f32]) -> Self {
        Self { start: data.as_mut_ptr(), length: data.len(), borrow: PhantomData }
    }

    /// A part of the slice.
    ///
    /// # Safety
    /// Parts that are alive at the same time must not overlap.
    #[allow(clippy::mut_from_ref, reason = "the caller guarantees that the parts are disjoint")]
    pub(crate) unsafe fn part(&self, range: Range<usize>) -> &mut [f32] {
        assert!(range.start <= range.end && range.end <= self.length, "a part lies inside the slice");
        // SAFETY: in bounds by the assertion, unique by the caller's promise, alive as long as the borrow.
        unsafe { core::slice::from_raw_parts_mut(self.start.add(range.start), range.len()) }
    }
}
