//! No kernel allocates.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use k3_core::host::Serial;
use k3_core::kernels::{OutputTile, StateUpdate, matmul_parallel};

use crate::data::{ENCODINGS, Kind, Packed, Random, all_kernels};

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator, counting the calls of each thread.
struct Counting;

// SAFETY: every call is passed on to the system's allocator unchanged; counting does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn no_kernel_allocates() {
    let mut random = Random(10);
    let (rows, columns, tokens) = (9, 1056, 9);
    let x = random.values(tokens * columns, Kind::Moderate);
    let weights = random.values(rows, Kind::Moderate);
    let (mut y, mut out) = (vec![0.0; tokens * rows], vec![0.0; columns]);
    let mut state = random.values(rows * columns, Kind::Moderate);
    for encoding in ENCODINGS {
        let packed = Packed::new(encoding, [rows, columns], Kind::Moderate, &mut random);
        for kernels in all_kernels() {
            let before = ALLOCATIONS.get();
            let matrix = packed.matrix();
            kernels.matmul(&matrix, &x, &mut OutputTile::new(&mut y, rows));
            matmul_parallel(&kernels, &Serial, &matrix, &x, OutputTile::new(&mut y, rows));
            kernels.column_sums(&matrix, &weights, &mut out);
            kernels.decay_and_read(&mut state, &weights, &weights, &mut out);
            let update = StateUpdate { key: &weights, delta: &x[..columns], query: &weights };
            kernels.update_and_read(&mut state, update, &mut out);
            std::hint::black_box((kernels.dot(&x, &x), kernels.sum(&x)));
            assert_eq!(ALLOCATIONS.get(), before, "{} {encoding:?}", kernels.backend());
        }
    }
    assert!(ALLOCATIONS.get() > 0, "allocations are counted");
}
