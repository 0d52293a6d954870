//! Reads that fail, come short, or find another file.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use k3_core::Error;
use k3_core::model::scratch::WantedLogits;
use k3_core::model::source::WeightSource;
use k3_host::engine::Engine;
use k3_host::failure::{Exit, Failure};
use k3_host::streaming::file::{DirectFile, ReadAt};
use k3_host::streaming::{Files, Streamed};
use k3_host::traffic::Traffic;

use super::{Model, allotment, args, logits};

/// What goes wrong with one read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// The drive fails.
    Io,
    /// The file ends.
    End,
    /// A signal arrives.
    Interrupted,
    /// Half of it is read, or one byte of a page.
    Short,
}

/// Which read goes wrong, of all files together.
#[derive(Clone)]
struct Faulty {
    read: Arc<AtomicUsize>,
    at: usize,
    fault: Fault,
}

struct FaultyFile {
    file: File,
    faulty: Faulty,
}

impl ReadAt for FaultyFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        if self.faulty.read.fetch_add(1, Ordering::Relaxed) == self.faulty.at {
            return match self.faulty.fault {
                // EIO
                Fault::Io => Err(io::Error::from_raw_os_error(5)),
                Fault::End => Ok(0),
                Fault::Interrupted => Err(ErrorKind::Interrupted.into()),
                Fault::Short => {
                    let half = (buffer.len() / 2).max(1);
                    ReadAt::read_at(&self.file, &mut buffer[..half], offset)
                }
            };
        }
        ReadAt::read_at(&self.file, buffer, offset)
    }
}

fn faulty_files(model: &Model, faulty: &Faulty) -> Files {
    let checkpoint = model.checkpoint();
    let open = |file: &k3_host::storage::FileStorage| {
        let reader = FaultyFile { file: File::open(file.path()).unwrap(), faulty: faulty.clone() };
        DirectFile::from_reader(&file.path().display().to_string(), Box::new(reader))
    };
    let files = checkpoint.files.iter().map(open).collect();
    Files { files, ..model.files() }
}

/// Runs the model with a fault at one read; the bits, or how the program would end.
fn run(model: &Model, faulty: &Faulty) -> Result<Vec<u32>, Exit> {
    let allotment = allotment(model.first_matrices(9), 3, 5);
    let traffic = Arc::new(Traffic::default());
    let streamed = Streamed::open(faulty_files(model, faulty), &allotment, traffic, &|_| {}).map_err(|f| f.exit)?;
    let source: Box<dyn WeightSource> = Box::new(streamed);
    let engine = Engine::new(model.config.clone(), source, &args()).map_err(|failure| failure.exit)?;
    let first = two_passes(&engine);
    if let Err(error) = &first {
        // The same engine goes on as if nothing had been.
        assert!(two_passes(&engine).is_ok(), "after {error}");
    }
    first.map_err(|error| Failure::from(error).exit)
}

/// The bits of the logits after two ids and after a third.
fn two_passes(engine: &Engine) -> Result<Vec<u32>, Error> {
    let mut sequence = engine.sequence(3, WantedLogits::Last).unwrap();
    engine.enter(|| {
        let mut bits: Vec<u32> = Vec::new();
        for ids in [&[5, 3][..], &[5, 3, 8]] {
            bits.extend(sequence.extend_to(ids)?.iter().map(|logit| logit.to_bits()));
        }
        Ok(bits)
    })
}

#[test]
fn a_fault_at_any_read_is_an_error_or_makes_no_difference() {
    let model = Model::new("b");
    let counter = Faulty { read: Arc::default(), at: usize::MAX, fault: Fault::Io };
    let expected = run(&model, &counter).unwrap();
    let reads = counter.read.load(Ordering::Relaxed);
    assert!(reads > 400, "{reads}");
    let mut exits = std::collections::BTreeMap::new();
    for fault in [Fault::Io, Fault::End, Fault::Interrupted, Fault::Short] {
        for at in 0..reads {
            let found = run(&model, &Faulty { read: Arc::default(), at, fault });
            match (fault, found) {
                (Fault::Interrupted | Fault::Short, found) => {
                    assert!(found.as_ref() == Ok(&expected), "{fault:?} at read {at}: {:?}", found.err());
                }
                (_, Err(exit)) => *exits.entry(exit as u8).or_insert(0) += 1,
                (_, Ok(_)) => panic!("{fault:?} at read {at} went unnoticed"),
            }
        }
    }
    // Experts, and the trunk.
    assert_eq!(exits.keys().copied().collect::<Vec<_>>(), [Exit::Failed as u8, Exit::Expert as u8]);
}

#[test]
fn the_error_names_the_file_and_the_expert() {
    let model = Model::new("a");
    let mut at = 0;
    let error = loop {
        at += 1;
        let faulty = Faulty { read: Arc::default(), at, fault: Fault::Io };
        let allotment = allotment(model.first_matrices(0), 1, 2);
        let traffic = Arc::new(Traffic::default());
        let Ok(streamed) = Streamed::open(faulty_files(&model, &faulty), &allotment, traffic, &|_| {}) else {
            continue;
        };
        let Ok(engine) = Engine::new(model.config.clone(), Box::new(streamed), &args()) else { continue };
        if let Err(error @ Error::Expert { .. }) = logits(&engine) {
            break error;
        }
    };
    let text = error.to_string();
    assert!(text.starts_with("layer ") && text.contains("expert "), "{text}");
    assert!(text.contains(".safetensors: reading ") && text.contains("Input/output error"), "{text}");
}

/// A checkpoint of its own, to do harm to.
fn copy(model: &Model) -> (tempfile::TempDir, Model) {
    let folder = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(&model.path).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_file() {
            std::fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
        }
    }
    let copied = Model { path: folder.path().into(), config: model.config.clone() };
    (folder, copied)
}

fn streamed(model: &Model) -> Engine {
    let allotment = allotment(model.first_matrices(0), 1, 2);
    model.streamed(model.files(), &allotment, &args()).0
}

fn shard(model: &Model, number: usize) -> std::path::PathBuf {
    let checkpoint = model.checkpoint();
    checkpoint.files[number].path().to_path_buf()
}

#[test]
fn a_file_that_is_cut_short_or_changed_in_use_is_an_error() {
    let (_folder, model) = copy(&Model::new("a"));
    let engine = streamed(&model);
    let expected = logits(&engine).unwrap();

    // Another file of that name: the one that was opened is still read.
    let path = shard(&model, 3);
    let bytes = std::fs::read(&path).unwrap();
    std::fs::rename(&path, path.with_extension("old")).unwrap();
    std::fs::write(&path, vec![0; bytes.len()]).unwrap();
    assert!(logits(&engine).unwrap() == expected);
    std::fs::rename(path.with_extension("old"), &path).unwrap();

    // Cut short.
    let engine = streamed(&model);
    File::options().write(true).open(&path).unwrap().set_len(bytes.len() as u64 / 2).unwrap();
    let error = logits(&engine).unwrap_err();
    assert!(error.to_string().contains(&path.display().to_string()), "{error}");
    std::fs::write(&path, &bytes).unwrap();

    // Written over with something else: the pass in which that is seen gives no logits.
    let engine = streamed(&model);
    let mut other = bytes.clone();
    let middle = other.len() / 2;
    other[middle] ^= 1;
    std::fs::write(&path, &other).unwrap();
    let error = logits(&engine).unwrap_err().to_string();
    assert!(
        error.contains("was changed while it was in use") && error.contains(&path.display().to_string()),
        "{error}"
    );
}
