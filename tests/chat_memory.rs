//! A hundred requests in one process take no more memory than ten.

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use k3_core::chat::Thinking;
use k3_core::model::scratch::WantedLogits;
use k3_core::sample::{Sampler, SamplingSettings};
use k3_host::args::{EngineArgs, MemoryArgs};
use k3_host::chat::{Asked, HistoryFile, Progress, Session, Settings, ThreadedSequence, Watcher};
use k3_host::engine::Engine;
use k3_host::plan::Demand;
use support::engine_args;
use support::text::BYTES;

/// The system's allocator, and how many bytes of it are in use.
struct Counting;

static IN_USE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on unchanged to the system's allocator, which keeps the contract; counting allocates
// nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        IN_USE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: `pointer` came from `alloc` above with this layout, and so from the system's allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

struct Nobody;

impl Watcher for Nobody {
    fn see(&mut self, _: Progress<'_>) -> std::io::Result<()> {
        Ok(())
    }

    fn wants_stop(&self) -> bool {
        false
    }
}

#[test]
fn a_hundred_requests_take_no_more_memory_than_ten() {
    hundred_requests(MemoryArgs::default());
    hundred_requests(MemoryArgs { trunk_gb: Some(0), cache_gb: Some(0), ..MemoryArgs::default() });
}

fn hundred_requests(memory: MemoryArgs) {
    let args = EngineArgs { memory, ..engine_args() };
    let engine = Engine::open(&BYTES, &args, &Demand::positions(300)).unwrap();
    let tokenizer = k3_host::tokenizer::load(&BYTES).unwrap();
    let predictor = ThreadedSequence::new(&engine, engine.sequence(300, WantedLogits::Last).unwrap());
    let sampler = Sampler::new(SamplingSettings::default()).unwrap();
    let settings = Settings { thinking: Thinking::Off, generate: 5, stop_ids: Vec::new(), sampler };
    let file = HistoryFile::open(None, None).unwrap();
    let mut session = Session::new(predictor, &tokenizer, settings, file).unwrap();
    let mut request = |number: usize| {
        let question = format!("What is {number} times {number}?");
        assert!(matches!(session.ask(&question, &mut Nobody).unwrap(), Asked::Answered(_)));
        session.reset().unwrap();
        IN_USE.load(Ordering::Relaxed)
    };
    let after_ten = (0..10).map(&mut request).max().unwrap();
    let after_hundred = (10..100).map(&mut request).max().unwrap();
    // Vectors that are kept may still grow a little; a leak of one id a turn would be more than this.
    assert!(after_hundred < after_ten + 90 * 4, "{after_ten} bytes after ten, {after_hundred} after a hundred");
}
