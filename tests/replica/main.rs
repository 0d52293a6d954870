//! `k3-host synth --shape replica`: the released checkpoint in little disk space, which runs and uses all experts.

#[path = "../support/mod.rs"]
mod support;
mod whole;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::Path;
use std::sync::Mutex;

use fs4::FileExt;
use k3_core::checkpoint::Checkpoint;
use k3_core::checkpoint::names::{LayerTensor, TensorId};
use k3_core::config::Config;
use k3_core::model::Pass;
use k3_core::model::compute::{Compute, Observer, Point};
use k3_core::model::scratch::{Scratch, Sizes, WantedLogits};
use k3_core::model::source::WeightSource;
use k3_core::model::state::State;
use k3_core::stream::resident::Resident;
use k3_host::args::EngineArgs;
use k3_host::checkpoint::Folder;
use k3_host::engine::Engine;
use k3_host::plan::Demand;
use k3_host::shards;
use k3_host::synth::KNOWN_IDS;
use support::{engine_args, expect_exit, k3_host, sparse_folder};

/// What all files of a replica may take on the disk: 76 MB of headers, 57 MB of index, 172 MB of routers, and some more.
const MOST_DISK_BYTES: u64 = 350_000_000;

/// One replica for all that is asked of it.
#[test]
fn a_replica_is_small_and_runs_and_uses_all_experts() {
    let folder = sparse_folder();
    let (stdout, _) = expect_exit(&synth_into(folder.path(), &[]), 0);
    // The sum of the published file sizes.
    assert!(stdout.contains("1560936091448 bytes"), "{stdout}");
    takes_little_disk(folder.path());
    whole::runs_within_every_plan(folder.path());
    #[cfg(target_os = "linux")]
    whole::runs_within_a_control_group(folder.path());
    runs_to_the_same_finite_logits(folder.path());
    let config = Config::from_json(&fs::read(folder.path().join("config.json")).unwrap()).unwrap();
    let checkpoint = Checkpoint::open(&Folder { path: folder.path().to_path_buf() }, &config, 93).unwrap();
    let source = Resident::new(checkpoint, |file| shards::map(&file)).unwrap();
    let routers = [1, 2, 47, 92].map(|layer| Router::of(&source, &config, layer));
    the_choice_is_spread_over_all_experts(&routers);
    a_forward_pass_chooses_by_the_embedding(folder.path(), &routers[..2]);
}

fn synth_into(folder: &Path, flags: &[&str]) -> std::process::Output {
    k3_host(["synth", folder.to_str().unwrap(), "--shape", "replica"].iter().chain(flags))
}

fn takes_little_disk(folder: &Path) {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let on_disk: u64 = paths.map(|path| FileExt::allocated_size(&File::open(path).unwrap()).unwrap()).sum();
    assert!(on_disk < MOST_DISK_BYTES, "{on_disk} bytes");
}

/// Ids count upwards; an id without an embedding has logits of 0. The logit of the next id is the length of 7168 random
/// numbers, which is 84.7 with a deviation of 0.7; others have a deviation of 1.
fn runs_to_the_same_finite_logits(folder: &Path) {
    let prompt = format!("{},{}", KNOWN_IDS + 1, KNOWN_IDS - 2);
    let run = || {
        let dump = tempfile::NamedTempFile::new().unwrap();
        let (folder, path) = (folder.to_str().unwrap(), dump.path().to_str().unwrap());
        let args = ["run", folder, "--layers", "3", "--ids", &prompt, "--gen", "3", "--dump-logits", path];
        let (stdout, _) = expect_exit(&k3_host(args), 0);
        assert_eq!(stdout.trim(), format!("{},0,1", KNOWN_IDS - 1));
        let bytes = fs::read(path).unwrap();
        bytes.chunks_exact(4).map(|logit| f32::from_le_bytes(logit.try_into().unwrap())).collect::<Vec<_>>()
    };
    let logits = run();
    let rows: Vec<_> = logits.chunks(163_840).collect();
    assert_eq!(rows.len(), 4);
    assert!(rows[0].iter().all(|logit| *logit == 0.0));
    for row in &rows[1..] {
        assert!(row.iter().all(|logit| logit.is_finite()));
        let largest = row.iter().copied().fold(0.0, f32::max);
        assert!((80.0..89.0).contains(&largest), "{largest}");
        assert_eq!(row.iter().filter(|logit| **logit > 6.0).count(), 1, "the next id stands out");
    }
    assert!(run().iter().map(|logit| logit.to_bits()).eq(logits.iter().map(|logit| logit.to_bits())), "a second run");
}

/// The router of one layer, by its definition.
struct Router {
    /// The columns of each row that are not zero, with their weights.
    rows: Vec<Vec<(usize, f64)>>,
    bias: Vec<f32>,
    /// The embeddings of all ids that have one, normed.
    inputs: Vec<Vec<f64>>,
    top_k: usize,
}

impl Router {
    fn of(source: &dyn WeightSource, config: &Config, layer: usize) -> Self {
        let mut row = vec![0.0; config.hidden];
        let mut numbers = |id, index| {
            source.row(id, index, &mut row).unwrap();
            row.iter().copied().map(f64::from).collect::<Vec<_>>()
        };
        let mut sparse = |index| {
            let row = numbers(TensorId::Layer(layer, LayerTensor::Router), index);
            row.into_iter().enumerate().filter(|(_, weight)| *weight != 0.0).collect()
        };
        let rows = (0..config.moe.experts).map(&mut sparse).collect();
        let input = |id| {
            let embedding = numbers(TensorId::Embedding, id);
            let square: f64 = embedding.iter().map(|x| x * x).sum();
            let size = (square / embedding.len() as f64).sqrt();
            embedding.iter().map(|x| x / size).collect()
        };
        let inputs = (0..KNOWN_IDS).map(input).collect();
        let mut bias = vec![0.0; config.moe.experts];
        source.vector(TensorId::Layer(layer, LayerTensor::RouterBias), &mut bias).unwrap();
        Self { rows, bias, inputs, top_k: config.moe.top_k }
    }

    /// The experts that `id` uses.
    fn choice(&self, id: usize) -> BTreeSet<usize> {
        let input = &self.inputs[id];
        let score = |(row, bias): (&Vec<(usize, f64)>, &f32)| {
            let logit: f64 = row.iter().map(|&(column, weight)| weight * input[column]).sum();
            1.0 / (1.0 + (-logit).exp()) + f64::from(*bias)
        };
        let scores: Vec<f64> = self.rows.iter().zip(&self.bias).map(score).collect();
        let mut order: Vec<usize> = (0..scores.len()).collect();
        order.sort_by(|left, right| scores[*right].total_cmp(&scores[*left]));
        order[..self.top_k].iter().copied().collect()
    }
}

/// 64 tokens use at least 60 % of the experts (an even choice would use 68 %), all ids use all, and no layer chooses as
/// another does.
fn the_choice_is_spread_over_all_experts(routers: &[Router]) {
    let mut shared = 0;
    for router in routers {
        let choices: Vec<_> = (0..KNOWN_IDS).map(|id| router.choice(id)).collect();
        let used = |ids: &mut dyn Iterator<Item = usize>| {
            let used: BTreeSet<usize> = ids.flat_map(|id| &choices[id]).copied().collect();
            used.len() as f64 / router.rows.len() as f64
        };
        let by_64 = used(&mut (0..64).map(|index| index * 97 % KNOWN_IDS));
        let by_all = used(&mut (0..KNOWN_IDS));
        println!("experts used: {by_64:.3} by 64 ids, {by_all:.3} by {KNOWN_IDS}");
        assert!(by_64 >= 0.6, "64 ids use {by_64} of the experts");
        assert!(by_all >= 0.99, "all ids use {by_all} of the experts");
        shared += choices[0].intersection(&routers[0].choice(0)).count();
    }
    assert!(shared < routers[0].top_k + 8, "{shared} experts are the choice of the first layer too");
}

/// What each layer of a pass chose.
#[derive(Default)]
struct Choices(Mutex<Vec<(usize, Vec<usize>)>>);

impl Observer for Choices {
    fn observe(&self, _: Point, _: &[f32]) {}

    fn observe_choice(&self, layer: usize, ids: &[usize], _: &[f32]) {
        self.0.lock().unwrap().push((layer, ids.to_vec()));
    }
}

/// With matrices of zeros, the stream that reaches the routers of layers 1 and 2 is the embedding.
fn a_forward_pass_chooses_by_the_embedding(folder: &Path, routers: &[Router]) {
    let args = EngineArgs { layers: Some(3), ..engine_args() };
    let engine = Engine::open(folder, &args, &Demand::positions(1));
    let engine = engine.map_err(|failure| failure.error).unwrap();
    let config = engine.model().config();
    let (token, watch) = (5, Choices::default());
    let sizes = Sizes { chunk: 1, capacity: 1, threads: 1, logits: WantedLogits::Last };
    let (mut state, mut scratch) = (State::new(config, sizes.capacity), Scratch::new(config, sizes));
    let compute = Compute { observer: Some(&watch), ..engine.compute() };
    let pass = Pass { tokens: &[token], logits: WantedLogits::Last };
    engine.model().forward(&compute, &mut state, &mut scratch, pass).unwrap();
    let expected: Vec<_> = (1..)
        .zip(routers)
        .map(|(layer, router)| (layer, router.choice(token as usize).into_iter().collect::<Vec<_>>()))
        .collect();
    assert_eq!(watch.0.into_inner().unwrap(), expected);
}

#[test]
fn dimensions_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let output = synth_into(folder.path(), &["--layers", "3", "--mla-layers", "1", "--head-dim", "8"]);
    let (_, stderr) = expect_exit(&output, 2);
    assert!(stderr.contains("--head-dim, --layers, --mla-layers"), "{stderr}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[cfg(unix)]
#[test]
fn a_failed_write_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    // A file can have 2 GiB: the first is longer.
    let script = "trap '' XFSZ; ulimit -f 4194304; exec \"$0\" synth \"$1\" --shape replica";
    let program = env!("CARGO_BIN_EXE_k3-host");
    let output = std::process::Command::new("sh").args(["-c", script, program]).arg(folder.path()).output().unwrap();
    let (_, stderr) = expect_exit(&output, 3);
    assert!(stderr.contains("cannot write") && stderr.contains("model-00001-of-000096.safetensors"), "{stderr}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}
