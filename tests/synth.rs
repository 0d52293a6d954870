//! `k3-host synth`: what it writes can be opened and run, is the same everywhere, and is whole or not there.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Mutex;

use clap::Parser;
use k3_core::config::Config;
use k3_core::model::Pass;
use k3_core::model::compute::{Compute, Observer, Point};
use k3_core::model::scratch::{Scratch, Sizes, WantedLogits};
use k3_core::model::state::State;
use k3_host::args::EngineArgs;
use k3_host::checkpoint::{Folders, OpenCheckpoint};
use k3_host::engine::Engine;
use k3_host::plan::Demand;
use k3_host::synth::{self, Existing, Order, Shape};
use support::{expect_exit, k3_host};

/// A hash over the files that the tiny shape and seed 0 give. No machine may give another.
const TINY_HASH: u64 = 0xdf49_83f9_860c_7d60;

/// The contents of all files of a folder.
fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    entries.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())).collect()
}

/// The names in a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The files of the tiny shape, written on so many threads.
fn tiny(seed: u64, threads: usize) -> BTreeMap<String, Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let order = Order { shape: &Shape::tiny(), seed, existing: Existing::Refuse };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| synth::write(&order, folder.path(), &mut |_| ())).map_err(|failure| failure.error).unwrap();
    contents(folder.path())
}

fn synth_into(folder: &Path, flags: &[&str]) -> std::process::Output {
    k3_host(["synth", folder.to_str().unwrap()].iter().chain(flags))
}

#[test]
fn seed_and_shape_alone_decide_the_bytes() {
    let files = tiny(0, 1);
    assert!(tiny(0, 2) == files, "on two threads");
    let mut hash = xxhash_rust::xxh3::Xxh3::new();
    for (name, bytes) in &files {
        hash.update(name.as_bytes());
        hash.update(bytes);
    }
    assert_eq!(hash.digest(), TINY_HASH, "{:#x}", hash.digest());

    let other = tiny(1, 2);
    assert!(other.keys().eq(files.keys()));
    for (name, bytes) in files.iter().filter(|(name, _)| name.ends_with(".safetensors")) {
        assert_eq!(bytes.len(), other[name].len());
        assert!(other[name] != *bytes, "{name} does not depend on the seed");
    }
}

/// The index that opens a checkpoint checks names, shapes and completeness against the config.
#[test]
fn every_shape_opens_whole() {
    let shapes: [&[&str]; 4] = [
        &[],
        &["--layers", "9", "--mla-layers", "0,2", "--first-dense", "2", "--residual-block", "3"],
        &[
            "--layers",
            "1",
            "--kda-heads",
            "20",
            "--head-dim",
            "8",
            "--experts",
            "3",
            "--top-k",
            "3",
            "--first-dense",
            "0",
        ],
        &[
            "--hidden",
            "75",
            "--mla-heads",
            "3",
            "--nope-dim",
            "13",
            "--rope-dim",
            "7",
            "--value-dim",
            "11",
            "--vocabulary",
            "3",
        ],
    ];
    for flags in shapes {
        let folder = tempfile::tempdir().unwrap();
        expect_exit(&synth_into(folder.path(), flags), 0);
        let config = Config::from_json(&fs::read(folder.path().join("config.json")).unwrap()).unwrap();
        let folders = Folders::new(folder.path(), &[]);
        let layers = config.layers.len();
        let opened = OpenCheckpoint::open(&folders, config, layers);
        assert!(opened.is_ok(), "{flags:?}: {}", opened.err().unwrap().error);
        assert_eq!(names(folder.path()).len(), layers + 3, "a shard each, one more, index and config");
    }
}

/// The largest and smallest root mean square of what was seen, and how often each expert was chosen.
#[derive(Default)]
struct Seen {
    sizes: Vec<(Point, f64)>,
    choices: BTreeMap<(usize, usize), u32>,
}

struct Watch(Mutex<Seen>);

impl Observer for Watch {
    fn observe(&self, point: Point, values: &[f32]) {
        let size = (values.iter().map(|x| f64::from(x * x)).sum::<f64>() / values.len() as f64).sqrt();
        self.0.lock().unwrap().sizes.push((point, size));
    }

    fn observe_choice(&self, layer: usize, ids: &[usize], _: &[f32]) {
        let choices = &mut self.0.lock().unwrap().choices;
        ids.iter().for_each(|&id| *choices.entry((layer, id)).or_default() += 1);
    }
}

#[derive(Parser)]
struct EngineFlags {
    #[command(flatten)]
    engine: EngineArgs,
}

/// Activations neither vanish nor explode, the answers vary, and the experts share the work unevenly.
#[test]
fn a_forward_pass_is_sane() {
    let folder = tempfile::tempdir().unwrap();
    expect_exit(&synth_into(folder.path(), &[]), 0);
    let args = EngineFlags::parse_from(["test", "--threads", "1"]).engine;
    let engine = Engine::open(folder.path(), &args, &Demand::positions(160));
    let engine = engine.map_err(|failure| failure.error).unwrap();
    let config = engine.model().config();
    let tokens: Vec<u32> = (0..160).map(|position| position * 97 % config.vocabulary as u32).collect();

    let watch = Watch(Mutex::default());
    let sizes = Sizes { chunk: tokens.len(), capacity: tokens.len(), threads: 1, logits: WantedLogits::All };
    let (mut state, mut scratch) = (State::new(config, sizes.capacity), Scratch::new(config, sizes));
    let compute = Compute { observer: Some(&watch), ..engine.compute() };
    let pass = Pass { tokens: &tokens, logits: WantedLogits::All };
    let logits = engine.model().forward(&compute, &mut state, &mut scratch, pass).unwrap();
    let answers: BTreeSet<usize> = logits.chunks_exact(config.vocabulary).map(k3_core::ops::arg_max).collect();
    assert!(answers.len() > 50, "{} different answers at 160 positions", answers.len());

    let seen = watch.0.into_inner().unwrap();
    assert!(seen.sizes.iter().all(|(_, size)| (0.03..10.0).contains(size)), "{:?}", seen.sizes);
    let moe_layers = config.layers.len() - 1;
    assert_eq!(seen.choices.len(), moe_layers * config.moe.experts, "an expert is never chosen");
    let mean = (tokens.len() * config.moe.top_k / config.moe.experts) as u32;
    let (least, most) = (seen.choices.values().min().unwrap(), seen.choices.values().max().unwrap());
    assert!(*least < mean / 2 && *most > mean * 2, "{least} to {most}, mean {mean}");
}

#[test]
fn what_cannot_be_is_refused_before_writing() {
    for (flags, expected) in [
        (&["--top-k", "25"][..], "num_experts_per_token: 25 is above num_experts (24)"),
        (&["--hidden", "0"], "hidden_size: 0 is below 1"),
        (&["--expert-width", "33"], "expert width 33 is not a multiple of 32"),
        (&["--expert-latent", "16"], "expert latent 16 is not a multiple of 32"),
        (&["--mla-layers", "5"], "MLA layer 5: layers go up to 4"),
        (&["--layers", "99999"], "99999 is not in 1..=99998"),
        (&["--layers", "5000"], "num_hidden_layers: 5000 is above"),
        (&["--hidden", "1048576", "--vocabulary", "16777216"], "bytes are to be written, but only"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (_, stderr) = expect_exit(&synth_into(folder.path(), flags), 2);
        assert!(stderr.contains(expected), "{flags:?}: {stderr}");
        assert!(names(folder.path()).is_empty(), "{flags:?}");
    }
}

#[test]
fn only_force_replaces_and_nothing_but_the_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    expect_exit(&synth_into(folder.path(), &["--layers", "7"]), 0);
    fs::write(folder.path().join("notes.txt"), "mine").unwrap();
    let old = contents(folder.path());
    let (_, stderr) = expect_exit(&synth_into(folder.path(), &[]), 2);
    assert!(stderr.contains("is not empty"), "{stderr}");
    assert!(contents(folder.path()) == old);

    expect_exit(&synth_into(folder.path(), &["--force"]), 0);
    let mut expected = tiny(0, 1);
    expected.insert("notes.txt".into(), b"mine".into());
    assert!(contents(folder.path()) == expected, "{:?}", names(folder.path()));
}

/// Runs `synth` where a file can have 800 blocks of 512 bytes: the first shard fits, the second does not.
#[cfg(unix)]
fn synth_limited(folder: &Path, on_limit: &str, flags: &str) -> std::process::Output {
    let script = format!("{on_limit} ulimit -f 800; exec \"$0\" synth \"$1\" {flags}");
    let program = env!("CARGO_BIN_EXE_k3-host");
    std::process::Command::new("sh").args(["-c", &script, program]).arg(folder).output().unwrap()
}

#[cfg(unix)]
#[test]
fn a_failed_write_leaves_the_folder_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    // The signal ignored, the write itself fails.
    let (_, stderr) = expect_exit(&synth_limited(folder.path(), "trap '' XFSZ;", ""), 3);
    assert!(stderr.contains("cannot write") && stderr.contains("model-00002-of-000006.safetensors"), "{stderr}");
    assert!(names(folder.path()).is_empty(), "{:?}", names(folder.path()));

    expect_exit(&synth_into(folder.path(), &["--seed", "5"]), 0);
    let old = contents(folder.path());
    expect_exit(&synth_limited(folder.path(), "trap '' XFSZ;", "--force"), 3);
    assert!(contents(folder.path()) == old, "the old checkpoint stands");
}

#[cfg(unix)]
#[test]
fn a_killed_run_leaves_nothing_that_looks_whole_and_can_be_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let output = synth_limited(folder.path(), "", "");
    assert_eq!(output.status.code(), None, "ended by a signal: {output:?}");
    let left = names(folder.path());
    assert_eq!(left, [".unfinished"]);
    let shards = names(&folder.path().join(".unfinished"));
    assert_eq!(shards.len(), 2, "it was killed while it wrote the second shard: {shards:?}");

    expect_exit(&synth_into(folder.path(), &[]), 0);
    assert!(contents(folder.path()) == tiny(0, 1), "{:?}", names(folder.path()));
}
