//! The order that sources read ahead by is the order in which the model asks.

use std::path::Path;
use std::sync::Mutex;

use k3_core::checkpoint::Checkpoint;
use k3_core::checkpoint::names::TensorId;
use k3_core::config::Config;
use k3_core::host::{Directory, Serial, Storage};
use k3_core::kernels::{Backend, Kernels};
use k3_core::model::compute::Compute;
use k3_core::model::order::{is_used_whole, matrices_of_pass};
use k3_core::model::scratch::{Scratch, Sizes, WantedLogits};
use k3_core::model::source::{ExpertVisitor, MatrixVisitor, RowVisitor, WeightSource};
use k3_core::model::state::State;
use k3_core::model::{Model, Pass};
use k3_core::stream::resident::Resident;
use k3_core::stream::trunk::Trunk;
use k3_core::{Error, Result};

struct Folder(&'static str);

#[derive(Debug)]
struct File(Vec<u8>);

impl Directory for Folder {
    type File = File;

    fn open(&self, name: &str) -> Result<Option<File>> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/oracle").join(self.0);
        Ok(std::fs::read(folder.join(name)).ok().map(File))
    }
}

impl Storage for File {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        buffer.copy_from_slice(&self.0[offset as usize..][..buffer.len()]);
        Ok(())
    }
}

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
enum Asked {
    Begin(WantedLogits),
    Matrix(TensorId),
    Whole(TensorId),
    End,
}

/// Notes what is asked for.
struct Noting<'a> {
    source: &'a dyn WeightSource,
    asked: Mutex<Vec<Asked>>,
}

impl Noting<'_> {
    fn note(&self, asked: Asked) {
        self.asked.lock().unwrap().push(asked);
    }
}

impl WeightSource for Noting<'_> {
    fn vector(&self, id: TensorId, out: &mut [f32]) -> Result<()> {
        self.source.vector(id, out)
    }

    fn row(&self, id: TensorId, row: usize, out: &mut [f32]) -> Result<()> {
        self.source.row(id, row, out)
    }

    fn matrix(&self, id: TensorId, visit: &mut RowVisitor<'_>) -> Result<()> {
        self.note(Asked::Matrix(id));
        self.source.matrix(id, visit)
    }

    fn whole_matrix(&self, id: TensorId, visit: &mut MatrixVisitor<'_>) -> Result<()> {
        self.note(Asked::Whole(id));
        self.source.whole_matrix(id, visit)
    }

    fn begin_pass(&self, logits: WantedLogits) -> Result<()> {
        self.note(Asked::Begin(logits));
        Ok(())
    }

    fn end_pass(&self) -> Result<()> {
        self.note(Asked::End);
        Ok(())
    }

    fn experts(&self, layer: usize, ids: &[usize], visit: &mut ExpertVisitor<'_>) -> Result<()> {
        self.source.experts(layer, ids, visit)
    }
}

fn open(name: &'static str) -> (Config, Checkpoint<File>) {
    let folder = Folder(name);
    let config = Config::from_json(&folder.open("config.json").unwrap().unwrap().0).unwrap();
    let checkpoint = Checkpoint::open(&folder, &config, config.layers.len()).unwrap();
    (config, checkpoint)
}

#[test]
fn the_model_asks_in_the_published_order() -> Result<()> {
    for name in ["a", "b"] {
        let (config, checkpoint) = open(name);
        let resident = Resident::new(checkpoint, |file| Ok::<_, Error>(file.0))?;
        let source = Noting { source: &resident, asked: Mutex::default() };
        let model = Model::load(config.clone(), &source)?;
        assert_eq!(*source.asked.lock().unwrap(), [], "matrices are asked for in passes only");
        let kernels = Kernels::new(Backend::best()).unwrap();
        let compute = Compute { kernels: &kernels, workers: &Serial, source: &source, observer: None };
        let mut state = State::new(&config, 6);
        let sizes = Sizes { chunk: 2, capacity: 6, threads: 1, logits: WantedLogits::All };
        let mut scratch = Scratch::new(&config, sizes);
        for logits in [WantedLogits::None, WantedLogits::Last, WantedLogits::All] {
            model.forward(&compute, &mut state, &mut scratch, Pass { tokens: &[1, 2], logits })?;
            let asked = std::mem::take(&mut *source.asked.lock().unwrap());
            let matrices = matrices_of_pass(&config, logits).into_iter();
            let mut expected = vec![Asked::Begin(logits)];
            expected.extend(matrices.map(|id| if is_used_whole(id) { Asked::Whole(id) } else { Asked::Matrix(id) }));
            expected.push(Asked::End);
            assert_eq!(asked, expected, "model {name}, {logits:?}");
        }
    }
    Ok(())
}

#[test]
fn the_runs_of_a_trunk_cover_every_tensor_once() {
    let (config, checkpoint) = open("a");
    let index = &checkpoint.index;
    let trunk = Trunk::of_checkpoint(index, &config);
    let mut bytes = 0;
    for run in trunk.runs() {
        let location = index.tensor(run.tensor).unwrap();
        bytes += run.bytes();
        assert_eq!((run.columns, run.encoding), (location.columns, location.encoding));
        assert_eq!(
            run.data.offset,
            location.data.offset + run.rows.start as u64 * location.data.bytes / location.rows as u64
        );
    }
    assert_eq!(bytes, index.tensors().map(|tensor| tensor.data.bytes).sum::<u64>());
    for id in matrices_of_pass(&config, WantedLogits::Last) {
        let runs = trunk.runs_of(id);
        let ends: Vec<_> = std::iter::once(0).chain(runs.iter().map(|run| run.rows.end)).collect();
        let starts: Vec<_> = runs.iter().map(|run| run.rows.start).collect();
        assert_eq!(starts, ends[..ends.len() - 1]);
        assert_eq!(ends.last(), Some(&index.tensor(id).unwrap().rows));
    }
}
