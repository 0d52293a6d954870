//! Routed experts: asked for as one batch per layer and pass, read in the order of the drive, kept in a cache.

use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use k3_core::checkpoint::names::{ExpertId, ExpertMatrix};
use k3_core::checkpoint::{CheckpointIndex, Location, Span};
use k3_core::kernels::Matrix;
use k3_core::model::source::{Expert, ExpertVisitor};
use k3_core::stream::cache::{Access, ExpertCache, Outcome};
use k3_core::{Error, Result};
use memmap2::MmapMut;

use super::buffer::{Placement, allocate};
use super::drives::Drives;
use crate::traffic::Traffic;

/// The routed experts of a checkpoint, read as they are needed.
pub struct ExpertReader {
    index: Arc<CheckpointIndex>,
    drives: Arc<Drives>,
    traffic: Arc<Traffic>,
    state: Mutex<State>,
}

struct State {
    cache: ExpertCache,
    slots: Vec<Slot>,
    batch: Batch,
    done: Sender<Arrival>,
    arrivals: Receiver<Arrival>,
}

/// Room for one expert.
enum Slot {
    /// Nothing is being read into it.
    Here(MmapMut),
    /// A read into it is under way.
    UnderWay,
}

/// A read that ended.
struct Arrival {
    /// Its place in the accesses of the batch.
    access: usize,
    buffer: MmapMut,
    result: Result<()>,
}

/// The experts of one layer that one pass uses.
#[derive(Default)]
struct Batch {
    layer: usize,
    /// In the order in which the cache took them: hits, then misses.
    accesses: Vec<Access>,
    /// Which of them were handed out.
    visited: Vec<bool>,
    /// How many were begun to be read, or need no reading.
    begun: usize,
    /// How many reads are under way.
    under_way: usize,
}

impl ExpertReader {
    /// A reader with a cache whose slots hold an expert each.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn new(
        index: Arc<CheckpointIndex>,
        drives: Arc<Drives>,
        cache: ExpertCache,
        traffic: Arc<Traffic>,
    ) -> Result<Self> {
        let bytes = slot_bytes(&index);
        let slots = (0..cache.slots()).map(|_| Ok(Slot::Here(allocate(bytes)?))).collect::<Result<_>>()?;
        let (done, arrivals) = channel();
        let state = Mutex::new(State { cache, slots, batch: Batch::default(), done, arrivals });
        Ok(Self { index, drives, traffic, state })
    }

    /// Begins to read those of the given experts that are not in memory, as far as there is room.
    pub fn announce(&self, layer: usize, ids: &[usize]) {
        let mut state = self.state();
        state.recover();
        let State { cache, batch, .. } = &mut *state;
        cache.begin(layer, ids, &mut batch.accesses);
        batch.layer = layer;
        batch.visited.clear();
        batch.visited.resize(batch.accesses.len(), false);
        batch.begun = batch.accesses.iter().take_while(|access| access.outcome == Outcome::Hit).count();
        self.count(&batch.accesses);
        self.read_ahead(&mut state);
    }

    /// Hands out every expert of `ids`, those in memory first, the others as they arrive.
    ///
    /// # Errors
    /// [`Error::Expert`] for the first that cannot be read; what `visit` returns.
    pub fn experts(&self, layer: usize, ids: &[usize], visit: &mut ExpertVisitor<'_>) -> Result<()> {
        if !self.state().batch.is_for(layer, ids) {
            self.announce(layer, ids);
        }
        let mut state = self.state();
        let handed_out = self.hand_out(&mut state, ids, visit);
        if handed_out.is_err() {
            state.give_up();
        }
        state.batch.accesses.clear();
        handed_out
    }

    fn hand_out(&self, state: &mut State, ids: &[usize], visit: &mut ExpertVisitor<'_>) -> Result<()> {
        let hits = state.batch.accesses.iter().take_while(|access| access.outcome == Outcome::Hit).count();
        for access in 0..hits {
            self.visit(state, access, ids, visit)?;
        }
        self.read_ahead(state);
        for _ in hits..state.batch.accesses.len() {
            let started = Instant::now();
            let Arrival { access, buffer, result } = state.arrivals.recv().expect("the state holds a sender itself");
            self.traffic.add_expert_wait_nanoseconds(started.elapsed().as_nanos() as u64);
            let Access { expert, slot, .. } = state.batch.accesses[access];
            state.slots[slot] = Slot::Here(buffer);
            state.batch.under_way -= 1;
            let layer = state.batch.layer;
            if let Err(error) = result {
                state.cache.forget(layer, expert);
                return Err(Error::Expert { layer, expert, reason: error.to_string() });
            }
            self.traffic.add_expert_bytes(spans(&self.index, layer, expert).map(|span| span.bytes).sum());
            self.visit(state, access, ids, visit)?;
            self.read_ahead(state);
        }
        Ok(())
    }

    /// Hands out an expert that is in its slot.
    fn visit(&self, state: &mut State, access: usize, ids: &[usize], visit: &mut ExpertVisitor<'_>) -> Result<()> {
        let Access { expert, slot, .. } = state.batch.accesses[access];
        let Slot::Here(memory) = &state.slots[slot] else { unreachable!("what is handed out has arrived") };
        let place = ids.binary_search(&expert).expect("a batch has the experts that were asked for");
        let layer = state.batch.layer;
        let mut parts = Placement::of(spans(&self.index, layer, expert)).places.into_iter();
        let mut matrix = |matrix| matrix_at(&self.location(layer, expert, matrix), memory, &mut parts);
        let (gate, down, up) = (matrix(ExpertMatrix::Gate), matrix(ExpertMatrix::Down), matrix(ExpertMatrix::Up));
        visit(place, &Expert { gate, up, down })?;
        state.batch.visited[access] = true;
        Ok(())
    }

    /// Begins reads, in order, while the next one's slot is free: the expert that was in it is not of this batch, or was
    /// handed out.
    fn read_ahead(&self, state: &mut State) {
        let State { batch, slots, done, .. } = state;
        while let Some(&Access { expert, slot, .. }) = batch.accesses.get(batch.begun) {
            let earlier = batch.accesses[..batch.begun].iter().rposition(|access| access.slot == slot);
            if earlier.is_some_and(|earlier| !batch.visited[earlier]) {
                return;
            }
            let Slot::Here(buffer) = std::mem::replace(&mut slots[slot], Slot::UnderWay) else {
                unreachable!("a slot that was handed out is not being read into")
            };
            let (access, done) = (batch.begun, done.clone());
            // The other end lives as long as the state; at the end of the program nobody waits.
            let done = Box::new(move |buffer, result| drop(done.send(Arrival { access, buffer, result })));
            self.drives.submit(&Placement::of(spans(&self.index, batch.layer, expert)), buffer, done);
            batch.begun += 1;
            batch.under_way += 1;
        }
    }

    fn count(&self, accesses: &[Access]) {
        let hits = accesses.iter().filter(|access| access.outcome == Outcome::Hit).count() as u64;
        self.traffic.add_expert_requests(accesses.len() as u64);
        self.traffic.add_resident_hits(hits);
        self.traffic.add_misses(accesses.len() as u64 - hits);
    }

    fn location(&self, layer: usize, expert: usize, matrix: ExpertMatrix) -> Location {
        location(&self.index, layer, expert, matrix)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Ends a batch that was announced and not handed out.
    fn recover(&mut self) {
        if !self.batch.accesses.is_empty() {
            self.give_up();
            self.batch.accesses.clear();
        }
    }

    /// Waits for the reads under way, and forgets the experts that are not in their slots.
    fn give_up(&mut self) {
        let Self { batch, cache, slots, arrivals, .. } = self;
        for _ in 0..batch.under_way {
            let Ok(Arrival { access, buffer, result }) = arrivals.recv() else { break };
            let Access { expert, slot, .. } = batch.accesses[access];
            slots[slot] = Slot::Here(buffer);
            if result.is_err() {
                cache.forget(batch.layer, expert);
            }
        }
        batch.under_way = 0;
        for access in &batch.accesses[batch.begun..] {
            cache.forget(batch.layer, access.expert);
        }
    }
}

impl Batch {
    fn is_for(&self, layer: usize, ids: &[usize]) -> bool {
        self.layer == layer
            && self.accesses.len() == ids.len()
            && self.accesses.iter().all(|access| ids.binary_search(&access.expert).is_ok())
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
    ExpertMatrix::ALL.into_iter().flat_map(move |matrix| {
        let Location { data, scales, .. } = location(index, layer, expert, matrix);
        [Some(data), scales].into_iter().flatten()
    })
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
