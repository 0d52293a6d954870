//! The end of memory as an error.
//!
//! Linear memory stops growing at 4 GiB, or earlier where the host says so. Rust then aborts, which inside WebAssembly is a
//! trap without a word. Asking the allocator in advance is not possible for what libraries allocate, so this one speaks.

#[cfg(target_family = "wasm")]
mod reporting {
    use std::alloc::{GlobalAlloc, Layout, System};
    use std::io::Write;

    use crate::failure::Exit;

    /// The system's allocator, which ends the program with a message where it has nothing to give.
    struct Reporting;

    #[global_allocator]
    static ALLOCATOR: Reporting = Reporting;

    // SAFETY: every call is passed on to the system's allocator unchanged, and its answer is returned unless it is null,
    // when the call does not return.
    unsafe impl GlobalAlloc for Reporting {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            // SAFETY: the caller's promises are passed on.
            some(unsafe { System.alloc(layout) }, layout.size())
        }

        unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
            // SAFETY: the caller's promises are passed on.
            some(unsafe { System.alloc_zeroed(layout) }, layout.size())
        }

        unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
            // SAFETY: the caller's promises are passed on.
            some(unsafe { System.realloc(pointer, layout, size) }, size)
        }

        unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
            // SAFETY: the caller's promises are passed on.
            unsafe { System.dealloc(pointer, layout) }
        }
    }

    /// `pointer`, unless it is null.
    fn some(pointer: *mut u8, size: usize) -> *mut u8 {
        if pointer.is_null() {
            let held = core::arch::wasm32::memory_size(0) as u64 * 65_536;
            // Standard error is not buffered, so that nothing is allocated here.
            let _ = writeln!(std::io::stderr(), "error: no memory for {size} bytes more; the module has {held}");
            std::process::exit(Exit::Failed as i32);
        }
        pointer
    }
}
