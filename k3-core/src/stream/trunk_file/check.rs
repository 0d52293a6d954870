//! From a manifest to a trunk: everything that can be checked without reading the data.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{ALIGNMENT, DATA_FILE, Manifest, Packing, StoredAs, StoredRun};
use crate::checkpoint::names::TensorId;
use crate::checkpoint::{CheckpointIndex, Location, Span};
use crate::config::Config;
use crate::kernels::{Encoding, dict};
use crate::model::order::{is_used_whole, matrices_of_pass};
use crate::model::scratch::WantedLogits;
use crate::stream::trunk::{RUN_BYTES, Run, Trunk, tensors_in_order};
use crate::{Error, Result};

/// Columns that share a scale of MXFP4.
const SCALE_COLUMNS: usize = 32;

type Checked<T = ()> = core::result::Result<T, String>;

/// The tensors whose runs may be stored with a dictionary: those that are only multiplied by, run by run. Rows of the
/// embedding are looked up one at a time, and what is used whole is used in more ways than one.
#[must_use]
pub fn may_use_dictionary(config: &Config) -> BTreeSet<TensorId> {
    let matrices = matrices_of_pass(config, WantedLogits::Last).into_iter();
    matrices.filter(|id| *id != TensorId::Embedding && !is_used_whole(*id)).collect()
}

impl Manifest {
    /// The trunk of the first layers, as many as `config` has, in a `trunk.bin` of `file_bytes`. All spans are in shard 0.
    /// Runs of later layers are left out. `file` is the name of the manifest, `index` that of the checkpoint.
    ///
    /// # Errors
    /// [`Error::Checkpoint`] that names the file and the field: if the trunk has fewer layers; if runs do not lie one after
    /// the other from the start of the file to its end; if a tensor that `config` asks for is not there once, whole and in
    /// its place; or if a run is not of the type of its tensor.
    ///
    /// # Panics
    /// If the index does not cover so many layers.
    pub fn trunk(&self, file: &str, index: &CheckpointIndex, config: &Config, file_bytes: u64) -> Result<Trunk> {
        let checked = self.check_layers(config.layers.len()).and_then(|()| self.check_places(file_bytes));
        let checked = checked.and_then(|()| self.located(index, config));
        checked.map_err(|reason| Error::Checkpoint { file: file.into(), reason })
    }

    fn check_layers(&self, wanted: usize) -> Checked {
        match self.checkpoint.layers.len() {
            0 => Err("checkpoint.layers: there are none".into()),
            packed if packed < wanted => {
                Err(format!("checkpoint.layers: {packed} layers were packed, {wanted} are asked for"))
            }
            _ => Ok(()),
        }
    }

    /// The runs of the first layers, each tensor once, whole, in the order of a pass.
    fn located(&self, index: &CheckpointIndex, config: &Config) -> Checked<Trunk> {
        let layers = config.layers.len();
        let mut rest = self.runs.iter().enumerate().filter(|(_, run)| run.is_needed_for(layers));
        let dictionaries = match self.encoding {
            Packing::Raw => BTreeSet::new(),
            Packing::Dict => may_use_dictionary(config),
        };
        let mut runs = Vec::new();
        for tensor in tensors_in_order(config) {
            let location = index.tensor(tensor).expect("an index has every tensor that its config asks for");
            let may_use_dictionary = dictionaries.contains(&tensor) && location.encoding == Encoding::Bf16;
            let mut first_row = 0;
            while first_row < location.rows {
                let missing = || format!("runs: row {first_row} of {tensor} and all that should follow are missing");
                let (number, run) = rest.next().ok_or_else(missing)?;
                let due = Due { tensor, location, first_row, may_use_dictionary };
                let located = due.check(run).and_then(|()| run.located());
                runs.push(located.map_err(|reason| format!("runs[{number}].{reason}"))?);
                first_row += run.rows;
            }
        }
        match rest.next() {
            Some((number, run)) => Err(format!("runs[{number}].tensor: {} belongs to nothing", run.tensor)),
            None => Ok(Trunk::new(runs)),
        }
    }

    /// Runs lie one after the other from the start of the file to its end, each as long as its encoding says.
    fn check_places(&self, file_bytes: u64) -> Checked {
        let mut due = 0;
        for (number, run) in self.runs.iter().enumerate() {
            let next = check_place(run, due, file_bytes).and_then(|next| {
                let inside = run.is_needed_for(self.checkpoint.layers.len());
                inside.then_some(next).ok_or_else(|| format!("tensor: the layer of {} was not packed", run.tensor))
            });
            due = next.map_err(|reason| format!("runs[{number}].{reason}"))?;
        }
        if self.bytes != due {
            return Err(format!("bytes: {}, but the runs end at {due}", self.bytes));
        }
        if self.bytes != file_bytes {
            return Err(format!("bytes: {}, but {DATA_FILE} has {file_bytes}", self.bytes));
        }
        Ok(())
    }
}

/// Checks that `run` lies at `due` and has its length; returns where the next is due.
fn check_place(run: &StoredRun, due: u64, file_bytes: u64) -> Checked<u64> {
    if run.offset != due {
        return Err(format!("offset: {}, where {due} is due, the next multiple of {ALIGNMENT}", run.offset));
    }
    if run.rows == 0 || run.columns == 0 {
        return Err(format!("rows: {} of {} columns are nothing", run.rows, run.columns));
    }
    let parts = Parts::of(run)?;
    if run.bytes != parts.data + parts.scales {
        let StoredRun { rows, columns, encoding, bytes, .. } = run;
        return Err(format!("bytes: {bytes}, which is not what {rows} rows of {columns} columns take as {encoding}"));
    }
    let next = run.next_offset().filter(|next| *next <= file_bytes);
    next.ok_or_else(|| format!("bytes: {} from {due} on reach past the end of {DATA_FILE} at {file_bytes}", run.bytes))
}

/// The two parts of a run.
struct Parts {
    encoding: Encoding,
    data: u64,
    scales: u64,
}

impl Parts {
    /// Those of a run of its rows, columns and encoding.
    fn of(run: &StoredRun) -> Checked<Self> {
        let StoredRun { rows, columns, encoding: stored_as, .. } = run;
        let (encoding, scale_columns) = match stored_as {
            StoredAs::F32 => (Encoding::F32, 0),
            StoredAs::Bf16 => (Encoding::Bf16, 0),
            StoredAs::Mxfp4 => (Encoding::Mxfp4, columns / SCALE_COLUMNS),
            StoredAs::Dict => (Encoding::Dict { escapes: escapes(run)? }, 0),
        };
        let bytes = |row_bytes: usize| (row_bytes as u64).checked_mul(*rows as u64).filter(|bytes| *bytes >> 62 == 0);
        let data = encoding.row_bytes(*columns).and_then(bytes);
        let parts = data.zip(bytes(scale_columns)).map(|(data, scales)| Self { encoding, data, scales });
        parts.ok_or_else(|| format!("encoding: no {rows} rows of {columns} columns are {stored_as}"))
    }
}

/// How many escapes the rows of a run with a dictionary have: its length tells.
fn escapes(run: &StoredRun) -> Checked<usize> {
    let StoredRun { rows, columns, bytes, .. } = run;
    let least = dict::stride(*columns, 0).ok_or_else(|| format!("encoding: no rows of {columns} columns are dict"))?;
    let stride = usize::try_from(bytes / *rows as u64).unwrap_or(usize::MAX);
    let escapes = stride.saturating_sub(least) / 3;
    let is_exact = dict::stride(*columns, escapes) == Some(stride) && bytes.is_multiple_of(*rows as u64);
    if !is_exact || stride >= 2 * columns {
        return Err(format!(
            "bytes: {bytes}, which no {rows} rows of {columns} columns take as dict, or which is no gain"
        ));
    }
    Ok(escapes)
}

impl StoredRun {
    /// Whether a model of the first `layers` layers reads it.
    #[must_use]
    pub fn is_needed_for(&self, layers: usize) -> bool {
        !matches!(self.tensor, TensorId::Layer(layer, _) if layer >= layers)
    }

    /// The run where it lies in the file. Its rows are within those of a tensor.
    fn located(&self) -> Checked<Run> {
        let Parts { encoding, data, scales } = Parts::of(self)?;
        let span = |offset, bytes| Span { shard: 0, offset, bytes };
        Ok(Run {
            tensor: self.tensor,
            rows: self.first_row..self.first_row + self.rows,
            columns: self.columns,
            encoding,
            data: span(self.offset, data),
            scales: (scales > 0).then(|| span(self.offset + data, scales)),
        })
    }
}

/// The rows that must come next.
struct Due {
    tensor: TensorId,
    /// Where the checkpoint has the tensor.
    location: Location,
    first_row: usize,
    may_use_dictionary: bool,
}

impl Due {
    /// Checks that `run` holds these rows, as they are in the checkpoint, and no more of them than a reader is made for.
    fn check(&self, run: &StoredRun) -> Checked {
        let Self { tensor, location, first_row, may_use_dictionary } = self;
        if run.tensor != *tensor {
            return Err(format!("tensor: {}, where row {first_row} of {tensor} is due", run.tensor));
        }
        if run.first_row != *first_row {
            return Err(format!("first_row: {} of {tensor}, where {first_row} is due", run.first_row));
        }
        if run.columns != location.columns {
            return Err(format!("columns: {}, but {tensor} has {}", run.columns, location.columns));
        }
        let due = StoredAs::from(location.encoding);
        if run.encoding == StoredAs::Dict && !may_use_dictionary {
            return Err(format!("encoding: dict, which {tensor} cannot be here"));
        }
        if run.encoding != StoredAs::Dict && run.encoding != due {
            return Err(format!("encoding: {}, but {tensor} is {due} in the checkpoint", run.encoding));
        }
        self.check_rows(run)
    }

    fn check_rows(&self, run: &StoredRun) -> Checked {
        let Self { tensor, location, first_row, .. } = self;
        let most = location.rows - first_row;
        if run.rows > most {
            return Err(format!("rows: {}, but {tensor} has only {most} more", run.rows));
        }
        if is_used_whole(*tensor) {
            let is_whole = run.rows == location.rows;
            return is_whole
                .then_some(())
                .ok_or_else(|| format!("rows: {}, but {tensor} must be in one run", run.rows));
        }
        if run.rows > 1 && run.bytes > RUN_BYTES {
            return Err(format!("rows: {} rows of {tensor} take more than {RUN_BYTES} bytes", run.rows));
        }
        Ok(())
    }
}
