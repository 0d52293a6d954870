//! A decode step allocates nothing: all its room was made before the first token, and is as large as was said.

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::num::NonZeroUsize;

use k3_core::host::Serial;
use k3_core::kernels::{Backend, Kernels};
use k3_core::model::compute::Compute;
use k3_core::model::scratch::{Scratch, Sizes, WantedLogits};
use k3_core::model::state::State;
use k3_core::model::weights::{LayerVectors, Vectors};
use k3_core::model::{Model, Pass};
use k3_core::stream::cache::{ExpertCache, ExpertGrid, LayerShare};
use support::arrays::ArraySource;
use support::{config, fixture, tokens};

thread_local! {
    /// Requests for memory by this thread.
    static REQUESTS: Cell<usize> = const { Cell::new(0) };
    /// Bytes that this thread asked for and did not give back.
    static IN_USE: Cell<usize> = const { Cell::new(0) };
}

fn count(bytes: usize) {
    REQUESTS.with(|requests| requests.set(requests.get() + 1));
    IN_USE.with(|in_use| in_use.set(in_use.get().wrapping_add(bytes)));
}

fn give_back(bytes: usize) {
    IN_USE.with(|in_use| in_use.set(in_use.get().wrapping_sub(bytes)));
}

/// The system's allocator, counted.
struct Counting;

// SAFETY: every call goes to the system's allocator unchanged; counting touches a plain thread-local number and allocates
// nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps the contract of `alloc`, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: as in `alloc`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        give_back(layout.size());
        // SAFETY: `pointer` came from the system's allocator with `layout`, since all calls go there.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        give_back(layout.size());
        // SAFETY: as in `realloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// How often `work` asks for memory.
fn requests_of(work: impl FnOnce()) -> usize {
    let before = REQUESTS.get();
    work();
    REQUESTS.get() - before
}

/// How many bytes more are in use while what `work` returns is there.
fn bytes_of<T>(work: impl FnOnce() -> T) -> u64 {
    let before = IN_USE.get();
    let made = std::hint::black_box(work());
    let bytes = IN_USE.get().wrapping_sub(before);
    drop(made);
    bytes as u64
}

#[test]
fn the_counter_counts() {
    assert_eq!(bytes_of(|| (vec![1_u8; 100], drop(vec![1_u8; 50]))), 100);
    assert_eq!(requests_of(|| drop(std::hint::black_box(vec![1_u8; 100]))), 1);
    assert_eq!(requests_of(|| ()), 0);
}

/// Steps of one token from the very first on, for layers of every kind.
#[test]
fn a_decode_step_allocates_nothing() {
    for name in ["kda", "mla", "moe", "dense", "residual_flow"] {
        let fixture = fixture(name);
        let mut source = ArraySource::read(&fixture);
        source.rows_in_slice = Some(2);
        let (config, tokens) = (config(&fixture), tokens(&fixture));
        for backend in Backend::available() {
            let kernels = Kernels::new(backend).unwrap();
            let compute = Compute { kernels: &kernels, workers: &Serial, source: &source, observer: None };
            let sizes = Sizes { chunk: 1, capacity: tokens.len(), threads: 1, logits: WantedLogits::Last };
            let mut state = State::new(&config, tokens.len());
            let mut scratch = Scratch::new(&config, sizes);
            let model = Model::load(config.clone(), &source).unwrap();
            for (position, token) in tokens.iter().enumerate() {
                let pass = Pass { tokens: std::slice::from_ref(token), logits: WantedLogits::Last };
                let requests = requests_of(|| {
                    model.forward(&compute, &mut state, &mut scratch, pass).unwrap();
                });
                assert_eq!(requests, 0, "{name} on {backend} at position {position}");
            }
        }
    }
}

/// Batches that hit, miss, evict and overflow the cache, once the list of accesses has room for the largest.
#[test]
fn the_expert_cache_allocates_nothing() {
    let grid = ExpertGrid { layers: 3, experts: 40 };
    let mut cache = ExpertCache::new(grid, NonZeroUsize::new(25).unwrap(), LayerShare::new(grid));
    let mut accesses = Vec::with_capacity(30);
    let batch: Vec<usize> = (0..40).collect();
    let requests = requests_of(|| {
        for turn in 0..60 {
            cache.request(turn % 3, &batch[turn % 11..][..1 + turn % 29], &mut accesses);
            cache.forget(turn % 3, turn % 40);
        }
    });
    assert_eq!(requests, 0);
    assert!(cache.counters().hits > 0 && cache.counters().misses > 100, "{:?}", cache.counters());
}

/// What plans go by: the room of a pass to the byte; vectors and state but for the lists that hold the layers.
#[test]
fn memory_is_as_large_as_was_said() {
    for name in ["kda", "mla", "moe", "dense", "residual_flow"] {
        let fixture = fixture(name);
        let source = ArraySource::read(&fixture);
        let config = config(&fixture);
        for (chunk, capacity, threads) in [(1, 1, 1), (3, 7, 2), (5, 64, 3)] {
            for logits in [WantedLogits::None, WantedLogits::Last, WantedLogits::All] {
                let sizes = Sizes { chunk, capacity, threads, logits };
                let bytes = bytes_of(|| Scratch::new(&config, sizes));
                assert_eq!(Scratch::bytes(&config, sizes), bytes, "{name}: {sizes:?}");
            }
            let lists = config.layers.len() * LAYER_ENTRY;
            let bytes = bytes_of(|| State::new(&config, capacity));
            let said = State::bytes(&config, capacity);
            assert!((said..=said + lists as u64).contains(&bytes), "{name}: {bytes} bytes of state, {said} were said");
        }
        let lists = config.layers.len().next_power_of_two().max(4) * size_of::<LayerVectors>();
        let bytes = bytes_of(|| Vectors::load(&config, &source).unwrap());
        let said = Vectors::bytes(&config);
        assert!((said..=said + lists as u64).contains(&bytes), "{name}: {bytes} bytes of vectors, {said} were said");
    }
}

/// More than the entry of a layer takes in the list of a state.
const LAYER_ENTRY: usize = 256;
