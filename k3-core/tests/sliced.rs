//! Weights read in slices: the same logits as from memory, with no read larger than it may be.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use k3_core::checkpoint::Checkpoint;
use k3_core::checkpoint::names::{ExpertId, ExpertMatrix, LayerTensor, TensorId};
use k3_core::config::Config;
use k3_core::host::{Directory, Serial, Storage};
use k3_core::kernels::{Backend, Kernels};
use k3_core::model::Model;
use k3_core::model::compute::Compute;
use k3_core::model::scratch::{Sizes, WantedLogits};
use k3_core::model::sequence::Sequence;
use k3_core::model::source::WeightSource;
use k3_core::stream::resident::Resident;
use k3_core::stream::sliced::Sliced;
use k3_core::{Error, Result};

/// The folder of an oracle model, in memory.
struct Folder(&'static str);

/// A file of it, with the largest read of any file.
#[derive(Debug)]
struct File {
    bytes: Vec<u8>,
    largest: &'static AtomicUsize,
}

impl Folder {
    fn read(&self, name: &str) -> Option<Vec<u8>> {
        std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/oracle").join(self.0).join(name)).ok()
    }

    fn config(&self) -> Config {
        Config::from_json(&self.read("config.json").unwrap()).unwrap()
    }

    fn open_all(&self) -> Checkpoint<File> {
        let config = self.config();
        Checkpoint::open(self, &config, config.layers.len()).unwrap()
    }
}

impl Directory for Folder {
    type File = File;

    fn open(&self, name: &str) -> Result<Option<File>> {
        let largest: &AtomicUsize = Box::leak(Box::default());
        Ok(self.read(name).map(|bytes| File { bytes, largest }))
    }
}

impl Storage for File {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.largest.fetch_max(buffer.len(), Ordering::Relaxed);
        let start = offset as usize;
        let bytes = self.bytes.get(start..).and_then(|rest| rest.get(..buffer.len()));
        let length = buffer.len() as u64;
        let short = || Error::Read { file: "shard".into(), offset, length, reason: "beyond the end".into() };
        buffer.copy_from_slice(bytes.ok_or_else(short)?);
        Ok(())
    }
}

/// The logits after each of five tokens, fed as three and two.
fn logits(folder: &Folder, source: &dyn WeightSource) -> Vec<u32> {
    let model = Model::load(folder.config(), source).unwrap();
    let kernels = Kernels::new(Backend::best()).unwrap();
    let compute = Compute { kernels: &kernels, workers: &Serial, source, observer: None };
    let sizes = Sizes { chunk: 3, capacity: 5, threads: 1, logits: WantedLogits::All };
    let mut sequence = Sequence::new(&model, compute, sizes);
    let mut bits = Vec::new();
    let mut sink = |_, logits: &[f32]| -> Result<()> {
        bits.extend(logits.iter().map(|logit| logit.to_bits()));
        Ok(())
    };
    sequence.extend_observed(&[1, 2, 3, 4, 5], &mut sink).unwrap();
    bits
}

#[test]
fn slices_of_any_size_give_the_logits_of_memory() {
    for name in ["a", "b"] {
        let folder = Folder(name);
        let resident = Resident::new(folder.open_all(), |file| Ok(file.bytes)).unwrap();
        let expected = logits(&folder, &resident);
        assert_eq!(expected.len(), 5 * folder.config().vocabulary);
        for slice_bytes in [1, 300, 5000, 1 << 30] {
            let sliced = Sliced::new(folder.open_all(), slice_bytes);
            assert!(logits(&folder, &sliced) == expected, "model {name}, slices of {slice_bytes} bytes");
        }
    }
}

#[test]
fn no_read_is_larger_than_a_slice() {
    let folder = Folder("a");
    let checkpoint = folder.open_all();
    let largest: Vec<_> = checkpoint.files.iter().map(|file| file.largest).collect();
    let location = checkpoint.index.tensor(TensorId::Embedding).unwrap();
    let row_bytes = location.data.bytes as usize / location.rows;
    let sliced = Sliced::new(checkpoint, 5 * row_bytes + 1);
    largest.iter().for_each(|largest| largest.store(0, Ordering::Relaxed));
    let mut slices = Vec::new();
    sliced
        .matrix(TensorId::Embedding, &mut |first, rows| {
            slices.push((first, rows.rows()));
            Ok(())
        })
        .unwrap();
    let expected: Vec<_> = (0..location.rows).step_by(5).map(|first| (first, 5.min(location.rows - first))).collect();
    assert_eq!(slices, expected, "five rows are the most that fit");
    assert_eq!(largest.iter().map(|largest| largest.load(Ordering::Relaxed)).max(), Some(5 * row_bytes));
}

#[test]
fn an_expert_is_handed_out_with_its_place() {
    let folder = Folder("a");
    let resident = Resident::new(folder.open_all(), |file| Ok(file.bytes)).unwrap();
    let sliced = Sliced::new(folder.open_all(), 1);
    let read = |source: &dyn WeightSource| {
        let mut rows = Vec::new();
        let mut visit = |place, expert: &k3_core::model::source::Expert<'_>| {
            for matrix in [&expert.gate, &expert.up, &expert.down] {
                let mut row = vec![0.0; matrix.columns()];
                matrix.row_to_f32(matrix.rows() - 1, &mut row);
                rows.push((place, row));
            }
            Ok(())
        };
        source.experts(2, &[3, 0], &mut visit).unwrap();
        rows
    };
    let found = read(&sliced);
    assert_eq!(found.len(), 6);
    assert_eq!(found, read(&resident));
    let index = folder.open_all().index;
    assert!(index.expert(ExpertId { layer: 2, expert: 3, matrix: ExpertMatrix::Gate }).unwrap().scales.is_some());
}

#[test]
fn what_is_absent_or_cut_short_is_an_error() {
    let folder = Folder("a");
    let mut checkpoint = folder.open_all();
    let norm = checkpoint.index.tensor(TensorId::FinalNorm).unwrap();
    checkpoint.files[norm.data.shard].bytes.truncate(norm.data.offset as usize + 1);
    let sliced = Sliced::new(checkpoint, 100);
    let mut out = vec![0.0; norm.columns];
    assert!(matches!(sliced.vector(TensorId::FinalNorm, &mut out), Err(Error::Read { .. })));
    let absent = TensorId::Layer(9999, LayerTensor::InputNorm);
    assert!(matches!(sliced.vector(absent, &mut out), Err(Error::Tensor { .. })));
    let mut long = vec![0.0; norm.columns + 1];
    assert!(matches!(sliced.vector(TensorId::FinalNorm, &mut long), Err(Error::Tensor { .. })));
}
