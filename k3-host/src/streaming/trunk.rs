//! The trunk: some tensors pinned in memory, the others read ahead of compute, run by run, in the order of a pass.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use k3_core::checkpoint::Span;
use k3_core::checkpoint::names::{LayerTensor, Name, Part, TensorId};
use k3_core::config::Config;
use k3_core::model::order::matrices_of_pass;
use k3_core::model::scratch::WantedLogits;
use k3_core::model::source::{MatrixVisitor, RowVisitor};
use k3_core::stream::trunk::{Run, Trunk};
use k3_core::{Error, Result};
use memmap2::MmapMut;

use super::buffer::{Placement, allocate};
use super::drives::Drives;
use super::pinned::Pinned;
use crate::traffic::Traffic;

/// The trunk of a model, read as a pass needs it.
pub struct TrunkReader {
    trunk: Trunk,
    drives: Arc<Drives>,
    traffic: Arc<Traffic>,
    pinned: BTreeMap<TensorId, Pinned>,
    /// The runs that are not pinned, in the order of a pass.
    schedule: Vec<usize>,
    /// How many of them come before the head, which a pass without logits does not need.
    before_head: usize,
    ahead: Mutex<Ahead>,
}

/// What is being read ahead.
struct Ahead {
    /// How much of the schedule this pass goes through.
    end: usize,
    /// The place in the schedule of the next run to read.
    next: usize,
    /// The runs before that which were not used yet, oldest first.
    under_way: VecDeque<Receiver<(MmapMut, Result<()>)>>,
    /// Buffers that hold nothing.
    free: Vec<MmapMut>,
}

impl TrunkReader {
    /// A reader that keeps the tensors `pinned` in memory, which are read now, and that reads ahead into `buffers` buffers,
    /// at least one. `progress` is told the bytes that were read.
    ///
    /// # Errors
    /// Those of reading, and [`Error::Memory`].
    pub fn new(
        trunk: Trunk,
        config: &Config,
        drives: Arc<Drives>,
        allotted: TrunkMemory<'_>,
        traffic: Arc<Traffic>,
    ) -> Result<Self> {
        let TrunkMemory { pinned, buffers, progress } = allotted;
        let mut loaded = BTreeMap::new();
        for &id in pinned {
            loaded.insert(id, Pinned::load(trunk.runs_of(id), &drives, progress)?);
        }
        let before_head = schedule(&trunk, config, pinned, WantedLogits::None).len();
        let schedule = schedule(&trunk, config, pinned, WantedLogits::Last);
        let bytes = buffer_bytes(&trunk, &schedule);
        let buffers = if schedule.is_empty() { 0 } else { buffers.max(1) };
        let free = (0..buffers).map(|_| allocate(bytes)).collect::<Result<_>>()?;
        let ahead = Mutex::new(Ahead { end: 0, next: 0, under_way: VecDeque::new(), free });
        Ok(Self { trunk, drives, traffic, pinned: loaded, schedule, before_head, ahead })
    }

    /// Whether every router is pinned, so that the next layer's can be used out of turn.
    #[must_use]
    pub fn has_routers_pinned(&self) -> bool {
        let mut streamed = self.schedule.iter().map(|run| self.trunk.runs()[*run].tensor);
        !streamed.any(|id| matches!(id, TensorId::Layer(_, LayerTensor::Router)))
    }

    /// Begins to read what a pass needs.
    pub fn begin_pass(&self, logits: WantedLogits) {
        let mut ahead = self.ahead();
        ahead.recover();
        ahead.next = 0;
        ahead.end = if logits == WantedLogits::None { self.before_head } else { self.schedule.len() };
        self.read_ahead(&mut ahead);
    }

    /// Hands out the runs of a matrix.
    ///
    /// # Errors
    /// Those of reading, and the first that `visit` returns.
    pub fn matrix(&self, id: TensorId, visit: &mut RowVisitor<'_>) -> Result<()> {
        if let Some(pinned) = self.pinned.get(&id) {
            return pinned.visit(visit);
        }
        for number in self.run_numbers(id)? {
            self.next_run(number, visit)?;
        }
        Ok(())
    }

    /// Hands out a matrix that is a single run.
    ///
    /// # Errors
    /// Those of reading, and what `visit` returns.
    pub fn whole_matrix(&self, id: TensorId, visit: &mut MatrixVisitor<'_>) -> Result<()> {
        assert_eq!(self.run_numbers(id)?.len(), 1, "a matrix that is used whole is one run");
        self.matrix(id, &mut |_, matrix| visit(&matrix))
    }

    /// Widens some rows of a tensor into `out`, as far as it reaches, reading them now.
    ///
    /// # Errors
    /// Those of reading, and if there are not so many.
    pub fn rows(&self, id: TensorId, first_row: usize, out: &mut [f32]) -> Result<u64> {
        let mut bytes = 0;
        let mut row = first_row;
        let mut rest = out;
        while !rest.is_empty() {
            let run = self.trunk.runs_of(id).iter().find(|run| run.rows.contains(&row)).ok_or_else(|| absent(id))?;
            let wanted = row..run.rows.end.min(row + rest.len().div_ceil(run.columns));
            let run = run.part(wanted);
            let placement = place(&run);
            let mut memory = allocate(placement.bytes())?;
            self.drives.read_now(&placement, &mut memory)?;
            let (data, scales) = parts(&placement);
            let matrix = run.matrix(&memory[data], &memory[scales]);
            let taken = rest.len().min(run.rows.len() * run.columns);
            let (now, later) = rest.split_at_mut(taken);
            for (number, values) in now.chunks_mut(run.columns).enumerate() {
                matrix.row_to_f32(number, values);
            }
            bytes += run.bytes();
            row = run.rows.end;
            rest = later;
        }
        Ok(bytes)
    }

    fn run_numbers(&self, id: TensorId) -> Result<Range<usize>> {
        let runs = self.trunk.run_numbers(id);
        if runs.is_empty() { Err(absent(id)) } else { Ok(runs) }
    }

    fn ahead(&self) -> MutexGuard<'_, Ahead> {
        self.ahead.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands out the next run of the schedule, which must be `number`, and reads another one into its buffer.
    fn next_run(&self, number: usize, visit: &mut RowVisitor<'_>) -> Result<()> {
        let mut ahead = self.ahead();
        let place_in_schedule = ahead.next - ahead.under_way.len();
        assert_eq!(self.schedule.get(place_in_schedule), Some(&number), "a pass asks for its matrices in order");
        let pending = ahead.under_way.pop_front().expect("at least the next run is under way");
        let started = Instant::now();
        let (buffer, result) = pending.recv().expect("a read that was submitted ends");
        self.traffic.add_trunk_wait_nanoseconds(started.elapsed().as_nanos() as u64);
        let run = &self.trunk.runs()[number];
        let visited = result.and_then(|()| {
            self.traffic.add_trunk_bytes(run.bytes());
            let (data, scales) = parts(&place(run));
            visit(run.rows.start, run.matrix(&buffer[data], &buffer[scales]))
        });
        ahead.free.push(buffer);
        self.read_ahead(&mut ahead);
        visited
    }

    /// Reads as many runs of the pass as there are buffers for.
    fn read_ahead(&self, ahead: &mut Ahead) {
        while ahead.next < ahead.end
            && let Some(buffer) = ahead.free.pop()
        {
            let run = &self.trunk.runs()[self.schedule[ahead.next]];
            let (done, pending) = sync_channel(1);
            let placement = place(run);
            let (run, data) = (run.clone(), parts(&placement).0);
            let drives = Arc::clone(&self.drives);
            let done = Box::new(move |buffer: MmapMut, result: Result<()>| {
                let checked = result.and_then(|()| check(&run, &buffer[data], &drives));
                // Whoever gave up on the pass has dropped the other end.
                drop(done.send((buffer, checked)));
            });
            self.drives.submit(&placement, buffer, done);
            ahead.under_way.push_back(pending);
            ahead.next += 1;
        }
    }
}

/// What a [`TrunkReader`] may keep in memory.
pub struct TrunkMemory<'a> {
    /// The tensors that stay.
    pub pinned: &'a BTreeSet<TensorId>,
    /// How many runs are read ahead.
    pub buffers: usize,
    /// Is told the bytes of what stays, as they are read.
    pub progress: &'a dyn Fn(u64),
}

impl Ahead {
    /// Waits for what an earlier pass left under way.
    fn recover(&mut self) {
        for pending in self.under_way.drain(..) {
            self.free.extend(pending.recv().map(|(buffer, _)| buffer));
        }
    }
}

/// The runs that a pass reads for these logits, in order: those of tensors that are not pinned.
#[must_use]
pub fn schedule(trunk: &Trunk, config: &Config, pinned: &BTreeSet<TensorId>, logits: WantedLogits) -> Vec<usize> {
    let matrices = matrices_of_pass(config, logits).into_iter();
    matrices.filter(|id| !pinned.contains(id)).flat_map(|id| trunk.run_numbers(id)).collect()
}

/// The bytes that a buffer takes into which any run of the schedule fits.
#[must_use]
pub fn buffer_bytes(trunk: &Trunk, schedule: &[usize]) -> usize {
    schedule.iter().map(|run| place(&trunk.runs()[*run]).bytes()).max().unwrap_or(0)
}

/// The bytes that a pinned tensor takes.
#[must_use]
pub fn pinned_bytes(trunk: &Trunk, id: TensorId) -> u64 {
    Placement::of(trunk.runs_of(id).iter().flat_map(Run::spans)).bytes() as u64
}

fn place(run: &Run) -> Placement {
    Placement::of(run.spans())
}

/// Where data and scales of a run lie that was placed alone.
fn parts(placement: &Placement) -> (Range<usize>, Range<usize>) {
    let part = |number| placement.places.get(number).cloned().unwrap_or_default();
    (part(0), part(1))
}

/// Checks what was read for a run, as far as its encoding allows.
pub(super) fn check(run: &Run, data: &[u8], drives: &Drives) -> Result<()> {
    let Span { shard, offset, bytes } = run.data;
    let file = || drives.files()[shard].name().to_string();
    run.check(data).map_err(|reason| Error::Read { file: file(), offset, length: bytes, reason })
}

fn absent(id: TensorId) -> Error {
    Error::Tensor { name: Name::Text(id, Part::Plain).to_string(), reason: "is not in the trunk".to_string() }
}
