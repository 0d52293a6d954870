//! Routed experts: asked for as one batch per layer and pass, read in the order of the drive, kept in a cache.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use k3_core::checkpoint::names::{ExpertId, ExpertMatrix};
use k3_core::checkpoint::{CheckpointIndex, Location, Span};
use k3_core::kernels::Matrix;
use k3_core::model::source::{Expert, ExpertVisitor};
use k3_core::stream::cache::{Access, Counters, ExpertCache, ExpertGrid, LayerShare};
use k3_core::{Error, Result};
use memmap2::MmapMut;

use super::batch::{Batch, Next};
use super::buffer::{Placement, allocate};
use super::drives::Drives;
use super::guesses::{Arrival, Guesses};
use crate::traffic::Traffic;

/// The routed experts of a checkpoint, read as they are needed.
pub struct ExpertReader {
    index: CheckpointIndex,
    drives: Arc<Drives>,
    traffic: Arc<Traffic>,
    grid: ExpertGrid,
    slots: NonZeroUsize,
    state: Mutex<State>,
}

/// What an [`ExpertReader`] may keep in memory.
#[derive(Debug, Clone, Copy)]
pub struct ExpertMemory {
    /// The cache holds so many experts.
    pub slots: NonZeroUsize,
    /// So many are read on a guess; 0 for none.
    pub guesses: usize,
}

/// Takes the layer and the experts, ascending, of a batch that the cache is about to be asked for.
pub type BatchWatcher = Box<dyn FnMut(usize, &[usize]) + Send>;

struct State {
    cache: ExpertCache,
    /// The memory of each slot; empty while it is being read into.
    slots: Vec<Option<MmapMut>>,
    guesses: Guesses,
    batch: Batch,
    /// How many reads are under way for the batch.
    under_way: usize,
    arrived: Sender<Arrival>,
    arrivals: Receiver<Arrival>,
    watcher: Option<BatchWatcher>,
}

impl ExpertReader {
    /// A reader with an empty cache for the experts of `index`, numbered by `grid`.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn new(
        index: CheckpointIndex,
        grid: ExpertGrid,
        memory: ExpertMemory,
        drives: Arc<Drives>,
        traffic: Arc<Traffic>,
    ) -> Result<Self> {
        let bytes = slot_bytes(&index);
        let slots = (0..memory.slots.get().min(grid.len())).map(|_| Ok(Some(allocate(bytes)?)));
        let (arrived, arrivals) = channel();
        let state = State {
            cache: ExpertCache::new(grid, memory.slots, LayerShare::new(grid)),
            slots: slots.collect::<Result<_>>()?,
            guesses: Guesses::new(memory.guesses, bytes)?,
            batch: Batch::default(),
            under_way: 0,
            arrived,
            arrivals,
            watcher: None,
        };
        Ok(Self { index, drives, traffic, grid, slots: memory.slots, state: Mutex::new(state) })
    }

    /// Tells `watcher` every batch from now on; `None` ends that.
    pub fn watch(&self, watcher: Option<BatchWatcher>) {
        self.state().watcher = watcher;
    }

    /// How the experts are numbered.
    #[must_use]
    pub fn grid(&self) -> ExpertGrid {
        self.grid
    }

    /// How many experts the cache holds at most.
    #[must_use]
    pub fn slots(&self) -> NonZeroUsize {
        self.slots
    }

    /// The bytes of the matrices of one expert; all have equally many.
    #[must_use]
    pub fn expert_bytes(&self) -> u64 {
        self.index.expert_ids().next().map_or(0, |id| expert_bytes(&self.index, id.layer, id.expert))
    }

    /// What the cache was asked for so far.
    pub fn cache_counters(&self) -> Counters {
        self.state().cache.counters()
    }

    /// Begins to read those of the given experts that are not in memory, as far as there is room.
    pub fn announce(&self, layer: usize, ids: &[usize]) {
        let mut state = self.state();
        state.give_up();
        let State { cache, batch, watcher, .. } = &mut *state;
        if let Some(watcher) = watcher {
            watcher(layer, ids);
        }
        let position = |expert| {
            let Span { shard, offset, .. } = location(&self.index, layer, expert, ExpertMatrix::Gate).data;
            (shard, offset)
        };
        batch.begin(layer, ids, |accesses| cache.request(layer, ids, accesses), position);
        self.traffic.add_expert_requests(batch.len() as u64);
        self.traffic.add_resident_hits(batch.hits() as u64);
        self.read_ahead(&mut state);
    }

    /// Begins to read experts that may be asked for next.
    pub fn suggest(&self, layer: usize, ids: &[usize]) {
        let mut state = self.state();
        let State { cache, guesses, .. } = &mut *state;
        for &expert in ids.iter().filter(|expert| !cache.is_resident(layer, **expert)) {
            guesses.begin(&self.drives, layer, expert, &Placement::of(spans(&self.index, layer, expert)));
        }
    }

    /// Hands out every expert of `ids`, those in memory first, the others as they arrive.
    ///
    /// # Errors
    /// [`Error::Expert`] for the first that cannot be read; what `visit` returns.
    pub fn experts(&self, layer: usize, ids: &[usize], visit: &mut ExpertVisitor<'_>) -> Result<()> {
        if !self.state().batch.is_of(layer, ids) {
            self.announce(layer, ids);
        }
        let mut state = self.state();
        let handed_out = self.hand_out(&mut state, visit);
        state.give_up();
        self.traffic.add_expert_bytes(state.guesses.retire(layer));
        handed_out
    }

    fn hand_out(&self, state: &mut State, visit: &mut ExpertVisitor<'_>) -> Result<()> {
        let hits = state.batch.hits();
        for access in 0..hits {
            self.hand_out_one(state, access, visit)?;
        }
        self.read_ahead(state);
        for _ in hits..state.batch.len() {
            let started = Instant::now();
            let arrival = state.arrivals.recv().expect("the state holds a sender itself");
            self.traffic.add_expert_wait_nanoseconds(started.elapsed().as_nanos() as u64);
            let access = state.take(arrival)?;
            let (_, expert) = state.batch.access(access);
            self.traffic.add_expert_bytes(spans(&self.index, state.batch.layer(), expert).map(|span| span.bytes).sum());
            self.hand_out_one(state, access, visit)?;
            self.read_ahead(state);
        }
        Ok(())
    }

    /// Hands out an expert that is in its slot.
    fn hand_out_one(&self, state: &mut State, access: usize, visit: &mut ExpertVisitor<'_>) -> Result<()> {
        let (Access { place, slot, .. }, expert) = state.batch.access(access);
        let memory = state.slots[slot].as_deref().expect("what is handed out has arrived");
        let layer = state.batch.layer();
        let mut parts = Placement::of(spans(&self.index, layer, expert)).places.into_iter();
        let mut matrix = |matrix| matrix_at(&location(&self.index, layer, expert, matrix), memory, &mut parts);
        let (gate, down, up) = (matrix(ExpertMatrix::Gate), matrix(ExpertMatrix::Down), matrix(ExpertMatrix::Up));
        visit(place, &Expert { gate, up, down })?;
        state.batch.hand_out(access);
        Ok(())
    }

    /// Begins as many reads of the batch as there are slots for.
    fn read_ahead(&self, state: &mut State) {
        let State { batch, slots, guesses, under_way, arrived, .. } = state;
        while let Some(Next { access, expert, slot }) = batch.begin_next() {
            let layer = batch.layer();
            let buffer = slots[slot].take().expect("a slot that was handed out is not being read into");
            *under_way += 1;
            let Some(buffer) = guesses.claim((layer, expert), access, buffer, arrived) else {
                self.traffic.add_prefetch_hits(1);
                continue;
            };
            self.traffic.add_misses(1);
            let arrived = arrived.clone();
            // The other end lives as long as the reader; at the end of the program nobody waits.
            let done = Box::new(move |buffer, result| drop(arrived.send(Arrival { access, buffer, result })));
            self.drives.submit(&Placement::of(spans(&self.index, layer, expert)), buffer, done);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Puts what arrived into its slot and returns its access. An expert that could not be read is not resident.
    fn take(&mut self, arrival: Arrival) -> Result<usize> {
        let Arrival { access, buffer, result } = arrival;
        let (Access { slot, .. }, expert) = self.batch.access(access);
        self.slots[slot] = Some(buffer);
        self.under_way -= 1;
        let layer = self.batch.layer();
        result.map_err(|error| {
            self.cache.forget(layer, expert);
            Error::Expert { layer, expert, reason: error.to_string() }
        })?;
        Ok(access)
    }

    /// Ends the batch, however far it is: waits for the reads under way, and forgets the experts that were never read.
    fn give_up(&mut self) {
        while self.under_way > 0 {
            let arrival = self.arrivals.recv().expect("the state holds a sender itself");
            // That it failed is noted; nobody waits for it any more.
            let _ = self.take(arrival);
        }
        for expert in self.batch.not_begun() {
            self.cache.forget(self.batch.layer(), expert);
        }
        self.batch.end();
    }
}

/// The bytes that a slot takes into which any expert fits.
#[must_use]
pub fn slot_bytes(index: &CheckpointIndex) -> usize {
    let gates = index.expert_ids().filter(|id| id.matrix == ExpertMatrix::Gate);
    gates.map(|id| Placement::of(spans(index, id.layer, id.expert)).bytes()).max().unwrap_or(0)
}

/// The bytes of an expert's matrices.
#[must_use]
pub fn expert_bytes(index: &CheckpointIndex, layer: usize, expert: usize) -> u64 {
    spans(index, layer, expert).map(|span| span.bytes).sum()
}

/// Where the matrices of an expert lie, and their scales, in the order of the shard.
pub fn spans(index: &CheckpointIndex, layer: usize, expert: usize) -> impl Iterator<Item = Span> + '_ {
    ExpertMatrix::ALL.into_iter().flat_map(move |matrix| location(index, layer, expert, matrix).spans())
}

fn location(index: &CheckpointIndex, layer: usize, expert: usize, matrix: ExpertMatrix) -> Location {
    let location = index.expert(ExpertId { layer, expert, matrix });
    location.expect("an index has every expert of its layers, and a router chooses no others")
}

/// The matrix whose parts lie next in `parts`.
fn matrix_at<'a>(location: &Location, memory: &'a [u8], parts: &mut impl Iterator<Item = Range<usize>>) -> Matrix<'a> {
    let mut part = || &memory[parts.next().unwrap_or_default()];
    let data = part();
    let scales = if location.scales.is_some() { part() } else { &[] };
    location.matrix(data, scales)
}
