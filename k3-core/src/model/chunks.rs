//! Working on buffers in chunks, on the workers.

use core::marker::PhantomData;
use core::ops::Range;

use crate::host::{Workers, piece};

/// A slice that is worked on in chunks of equal length; the last may be shorter.
pub(super) struct Chunks<'a> {
    /// The whole.
    pub data: &'a mut [f32],
    /// Numbers in a chunk, at least 1.
    pub length: usize,
}

/// Takes the number of a chunk, that chunk of each buffer, and scratch room.
pub(super) type ChunkWork<'a, const N: usize> = dyn Fn(usize, [&mut [f32]; N], &mut [f32]) + Sync + 'a;

/// Calls `work` once for each chunk number, on the workers, with that chunk of every buffer.
///
/// All buffers have equally many chunks. Each call also gets room for intermediate values: an equal share of `scratch`
/// for each thread, with whatever an earlier call left in it.
pub(super) fn for_each_chunk<const N: usize>(
    workers: &dyn Workers,
    buffers: [Chunks<'_>; N],
    scratch: &mut [f32],
    work: &ChunkWork<'_, N>,
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
struct DisjointParts<'a> {
    start: *mut f32,
    length: usize,
    borrow: PhantomData<&'a mut [f32]>,
}

// SAFETY: it is used as the unique borrow that it was made from, cut in parts; `f32` can be sent between threads.
unsafe impl Sync for DisjointParts<'_> {}

impl<'a> DisjointParts<'a> {
    fn new(data: &'a mut [f32]) -> Self {
        Self { start: data.as_mut_ptr(), length: data.len(), borrow: PhantomData }
    }

    /// A part of the slice.
    ///
    /// # Safety
    /// Parts that are alive at the same time must not overlap.
    #[allow(clippy::mut_from_ref, reason = "the caller guarantees that the parts are disjoint")]
    unsafe fn part(&self, range: Range<usize>) -> &mut [f32] {
        assert!(range.start <= range.end && range.end <= self.length, "a part lies inside the slice");
        // SAFETY: in bounds by the assertion, unique by the caller's promise, alive as long as the borrow.
        unsafe { core::slice::from_raw_parts_mut(self.start.add(range.start), range.len()) }
    }
}
