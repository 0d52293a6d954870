//! The trunk, cut into runs: what is read, kept and handed out as one.
//!
//! The trunk is every tensor apart from the routed experts. A *run* is some consecutive rows of one tensor, stored in one
//! encoding, one run of bytes in a file (two, if it has scales of its own).

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use crate::checkpoint::names::{Name, Part, TensorId};
use crate::checkpoint::required::required;
use crate::checkpoint::{CheckpointIndex, Location, Span};
use crate::config::Config;
use crate::kernels::{Encoding, Matrix, dict};
use crate::model::order::{is_used_whole, matrices_of_pass};
use crate::model::scratch::WantedLogits;

/// The bytes of rows that make a run, unless the model asks for the matrix in one piece: enough to keep a drive and all
/// threads busy, little enough to read ahead in small memory.
pub const RUN_BYTES: u64 = 16 << 20;

/// Consecutive rows of one tensor. A vector is a matrix of one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Which tensor.
    pub tensor: TensorId,
    /// Which of its rows.
    pub rows: Range<usize>,
    /// The columns of the tensor.
    pub columns: usize,
    /// How the rows are stored.
    pub encoding: Encoding,
    /// Where the rows are.
    pub data: Span,
    /// Where their scales are, if they have any.
    pub scales: Option<Span>,
}

/// Every tensor of the trunk in runs: first what a pass does not read as a matrix, then the matrices in the order of a pass.
#[derive(Debug)]
pub struct Trunk {
    runs: Vec<Run>,
    tensors: BTreeMap<TensorId, Range<usize>>,
}

impl Run {
    /// All rows of a tensor that lies at `location`.
    #[must_use]
    pub fn whole(tensor: TensorId, location: Location) -> Self {
        let Location { encoding, rows, columns, data, scales } = location;
        Self { tensor, rows: 0..rows, columns, encoding, data, scales }
    }

    /// Where its bytes lie: the rows, then their scales if they have any.
    pub fn spans(&self) -> impl Iterator<Item = Span> + use<> {
        [Some(self.data), self.scales].into_iter().flatten()
    }

    /// The bytes that are read for it.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.spans().map(|span| span.bytes).sum()
    }

    /// Some of its rows, counted as those of the tensor.
    ///
    /// # Panics
    /// If the run does not have them.
    #[must_use]
    pub fn part(&self, rows: Range<usize>) -> Self {
        assert!(self.rows.start <= rows.start && rows.end <= self.rows.end, "rows {rows:?} of {:?}", self.rows);
        let before = rows.start - self.rows.start;
        let part = |span: Span| {
            let row_bytes = span.bytes / self.rows.len() as u64;
            let offset = span.offset + before as u64 * row_bytes;
            Span { offset, bytes: rows.len() as u64 * row_bytes, ..span }
        };
        Self { data: part(self.data), scales: self.scales.map(part), rows, ..self.clone() }
    }

    /// Whether `next` goes on where this run ends, so that both together are stored like one.
    #[must_use]
    pub fn is_continued_by(&self, next: &Self) -> bool {
        let is_plain = matches!(self.encoding, Encoding::F32 | Encoding::Bf16);
        is_plain && self.tensor == next.tensor && self.encoding == next.encoding && self.rows.end == next.rows.start
    }

    /// Checks the bytes of [`Run::data`] as far as their encoding allows: those with a dictionary must list every escape.
    ///
    /// # Errors
    /// The first fault, in words that name the tensor.
    pub fn check(&self, data: &[u8]) -> core::result::Result<(), String> {
        let Encoding::Dict { escapes } = self.encoding else { return Ok(()) };
        let checked = dict::check(data, self.rows.len(), self.columns, escapes);
        let name = Name::Text(self.tensor, Part::Plain);
        checked.map_err(|error| format!("{name}, rows from {} on: {error}", self.rows.start))
    }

    /// The rows, out of bytes that were read: those of [`Run::data`] and of [`Run::scales`].
    #[must_use]
    pub fn matrix<'a>(&self, data: &'a [u8], scales: &'a [u8]) -> Matrix<'a> {
        Matrix::encoded(self.encoding, data, scales, self.rows.len(), self.columns)
    }
}

impl Trunk {
    /// The trunk of the first layers of a checkpoint, as many as `config` has, as it lies in the shards.
    ///
    /// # Panics
    /// If the index does not cover so many layers.
    #[must_use]
    pub fn of_checkpoint(index: &CheckpointIndex, config: &Config) -> Self {
        let cut = tensors_in_order(config).into_iter().flat_map(|id| {
            let location = index.tensor(id);
            runs_of(id, location.expect("an index has every tensor that its config asks for"))
        });
        Self::new(cut.collect())
    }

    /// A trunk of these runs, those of one tensor next to each other.
    #[must_use]
    pub fn new(runs: Vec<Run>) -> Self {
        let mut tensors: BTreeMap<TensorId, Range<usize>> = BTreeMap::new();
        for (number, run) in runs.iter().enumerate() {
            tensors.entry(run.tensor).or_insert(number..number).end = number + 1;
        }
        Self { runs, tensors }
    }

    /// The same trunk, all of it in the file of this number.
    #[must_use]
    pub fn in_file(mut self, number: usize) -> Self {
        for run in &mut self.runs {
            run.data.shard = number;
            if let Some(scales) = &mut run.scales {
                scales.shard = number;
            }
        }
        self
    }

    /// All runs, in order.
    #[must_use]
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// The numbers of the runs of a tensor, from its first row on; empty if there is no such tensor.
    #[must_use]
    pub fn run_numbers(&self, id: TensorId) -> Range<usize> {
        self.tensors.get(&id).cloned().unwrap_or(0..0)
    }

    /// The runs of a tensor, from its first row on; empty if there is no such tensor.
    #[must_use]
    pub fn runs_of(&self, id: TensorId) -> &[Run] {
        &self.runs[self.run_numbers(id)]
    }
}

/// Every tensor of the trunk, in the order that suits a pass.
#[must_use]
pub fn tensors_in_order(config: &Config) -> Vec<TensorId> {
    let matrices = matrices_of_pass(config, WantedLogits::Last);
    let mut order: Vec<_> = required(config, config.layers.len()).filter(|id| !matrices.contains(id)).collect();
    order.extend(matrices);
    order
}

/// Cuts a tensor into runs of whole rows.
fn runs_of(tensor: TensorId, location: Location) -> impl Iterator<Item = Run> {
    let whole = Run::whole(tensor, location);
    let rows = location.rows;
    let most = usize::try_from(RUN_BYTES / (whole.bytes() / rows as u64)).unwrap_or(usize::MAX).max(1);
    let step = if is_used_whole(tensor) { rows } else { most };
    (0..rows).step_by(step).map(move |start| whole.part(start..rows.min(start.saturating_add(step))))
}
