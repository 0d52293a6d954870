//! `k3-host trace`: tables worked by hand, agreement with an engine's counters, and what is refused.

mod support;

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use k3_core::model::Pass;
use k3_core::model::compute::{Compute, Observer, Point};
use k3_core::model::scratch::{Scratch, Sizes, WantedLogits};
use k3_core::model::state::State;
use k3_core::stream::cache::{Access, Counters, ExpertCache, ExpertGrid, LayerShare};
use k3_host::engine::Engine;
use k3_host::plan::Demand;
use k3_host::trace::{PolicyName, Setting, TraceWriter};
use serde_json::Value;
use support::{engine_args, expect_exit, k3_host};

const GRID: ExpertGrid = ExpertGrid { layers: 3, experts: 8 };

/// Two tokens, three layers, one expert each: a cycle of three. With two slots, least-recently-used always evicts what is
/// needed next; the engine's policy hits once (`k3-core` works that out); Belady's keeps layer 0's expert at first, then
/// layer 2's, and hits both. With three slots the second token hits three times.
fn cycle(path: &Path, counters: Counters) {
    let setting = Setting {
        grid: GRID,
        expert_bytes: 500_000_000,
        slots: NonZeroUsize::new(2).unwrap(),
        policy: PolicyName::LayerShare,
    };
    let mut writer = TraceWriter::create(path, &setting).unwrap();
    for (layer, expert) in [(0, 5), (1, 6), (2, 7), (0, 5), (1, 6), (2, 7)] {
        writer.batch(layer, &[expert]);
    }
    writer.finish(counters).unwrap();
}

const TRUE_COUNTERS: Counters = Counters { requests: 6, hits: 1, misses: 5 };
const OTHER_COUNTERS: Counters = Counters { requests: 6, hits: 2, misses: 4 };

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn cycle(&self, counters: Counters) -> String {
        let path = self.path("the trace");
        cycle(&path, counters);
        path.display().to_string()
    }
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

#[test]
fn the_table_is_that_worked_by_hand() {
    let folder = Folder::new();
    let file = folder.cycle(TRUE_COUNTERS);
    let expected = "6 requests for 3 experts of 500000000 bytes, in 6 batches of at most 1
        experts GB policy hit rate hits misses
        2 1.00 lru 0.00 % 0 6
        2 1.00 layer-share 16.67 % 1 5
        2 1.00 belady 33.33 % 2 4
        3 1.50 lru 50.00 % 3 3
        3 1.50 layer-share 50.00 % 3 3
        3 1.50 belady 50.00 % 3 3
        the engine, layer-share with 2 experts: 1 hits, 5 misses; the replay: 1 hits, 5 misses: equal";
    for flags in [["--capacity", "3,2"], ["--cache-gb", "1.1,1.5"]] {
        let (stdout, _) = expect_exit(&k3_host(["trace", &file].iter().chain(&flags)), 0);
        let lines: Vec<_> = stdout.lines().map(words).collect();
        assert_eq!(lines, expected.lines().map(words).collect::<Vec<_>>(), "{flags:?}: {stdout}");
    }
}

#[test]
fn other_counters_than_the_engines_are_a_failure() {
    let folder = Folder::new();
    let (stdout, stderr) = expect_exit(&k3_host(["trace", &folder.cycle(OTHER_COUNTERS)]), 1);
    assert!(stdout.contains("NOT EQUAL") && stderr.contains("does not count"), "{stdout}{stderr}");
}

#[test]
fn the_json_and_the_drawing_have_every_row() {
    let folder = Folder::new();
    let file = folder.cycle(TRUE_COUNTERS);
    let (out, svg) = (folder.path("out.json"), folder.path("plot.svg"));
    let args = ["trace", &file, "--policies", "belady,lru", "--out", out.to_str().unwrap()];
    let (table, _) = expect_exit(&k3_host(args.iter().chain(&["--svg", svg.to_str().unwrap()])), 0);
    // By default: parts of the three experts, of which 1, 2 and 3 are whole, and the engine's own capacity, 2.
    assert_eq!(table.lines().count(), 2 + 3 * 2 + 1, "{table}");

    let json: Value = serde_json::from_slice(&fs::read(&out).unwrap()).unwrap();
    assert_eq!(json["format"], "k3-trace-replay/1");
    assert_eq!((&json["requests"], &json["distinct"]), (&6.into(), &3.into()));
    let rows: Vec<_> = json["rows"].as_array().unwrap().iter().collect();
    assert_eq!(rows.len(), 6);
    assert_eq!(rows[2]["capacity"], 2);
    assert_eq!((&rows[2]["policy"], &rows[2]["hits"], &rows[2]["misses"]), (&"belady".into(), &2.into(), &4.into()));
    assert_eq!(json["engine"]["agrees"], true);
    let printed = expect_exit(&k3_host(["trace", &file, "--policies", "belady,lru", "--out", "-"]), 0).0;
    assert_eq!(serde_json::from_str::<Value>(&printed).unwrap(), json);

    let svg = fs::read_to_string(svg).unwrap();
    assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{svg}");
    for text in ["belady", "lru", "capacity, GB", "hits, % of requests"] {
        assert!(svg.contains(text), "the drawing has no {text}");
    }
    assert!(!svg.contains("layer-share"));
}

#[test]
fn what_cannot_be_read_or_written_is_said() {
    let folder = Folder::new();
    let file = folder.cycle(TRUE_COUNTERS);
    let damaged = folder.path("damaged").display().to_string();
    fs::write(&damaged, fs::read_to_string(&file).unwrap().replace("[1,6]", "[1,5]")).unwrap();
    for (args, code, expected) in [
        (&["no such file"][..], 1, "no such file"),
        (&[&damaged], 2, "damaged: line 9: the checksum"),
        (&[&file, "--capacity", "0"], 2, "--capacity"),
        (&[&file, "--capacity", "1", "--cache-gb", "1"], 2, "--cache-gb"),
        (&[&file, "--cache-gb", "0.4"], 2, "--cache-gb 0.4: holds no expert"),
        (&[&file, "--cache-gb", "NaN"], 2, "--cache-gb NaN: holds no expert"),
        (&[&file, "--policies", "random"], 2, "random"),
        (&[&file, "--expert-bytes", "5"], 2, "--expert-bytes: the file says"),
        (&[&file, "--svg", "no/such/folder/a.svg"], 3, "no/such/folder/a.svg"),
        (&[&file, "--out", "no/such/folder/a.json"], 3, "no/such/folder/a.json"),
    ] {
        let (stdout, stderr) = expect_exit(&k3_host(["trace"].iter().chain(args)), code);
        assert!(stdout.is_empty() && stderr.contains(expected), "{args:?}: {stdout}{stderr}");
    }
}

#[test]
fn a_trace_of_nothing_is_a_table_without_rows() {
    let folder = Folder::new();
    let (path, svg) = (folder.path("empty"), folder.path("plot.svg"));
    let setting = Setting { grid: GRID, expert_bytes: 1, slots: NonZeroUsize::MIN, policy: PolicyName::Lru };
    TraceWriter::create(&path, &setting).unwrap().finish(Counters::default()).unwrap();
    let args = ["trace".as_ref(), path.as_os_str(), "--svg".as_ref(), svg.as_os_str()];
    let (stdout, _) = expect_exit(&k3_host(args), 0);
    assert!(stdout.contains("0 requests for 0 experts") && stdout.contains("equal"), "{stdout}");
}

/// A cache as an engine has it, with the trace that it dumps.
struct Traced {
    cache: ExpertCache,
    accesses: Vec<Access>,
    writer: TraceWriter,
}

struct Watch(Mutex<Traced>);

impl Observer for Watch {
    fn observe(&self, _: Point, _: &[f32]) {}

    fn observe_choice(&self, layer: usize, ids: &[usize], _: &[f32]) {
        let mut experts = ids.to_vec();
        experts.sort_unstable();
        experts.dedup();
        let Traced { cache, accesses, writer } = &mut *self.0.lock().unwrap();
        writer.batch(layer, &experts);
        cache.request(layer, &experts, accesses);
    }
}

/// A generated model, its prompt in chunks and then token by token: the replay counts what the cache counted.
#[test]
fn a_model_run_replays_exactly() {
    let folder = Folder::new();
    let (model, trace) = (folder.path("model"), folder.path("trace"));
    let shape = ["--experts", "40", "--top-k", "4", "--layers", "7"];
    expect_exit(&k3_host(["synth", model.to_str().unwrap()].iter().chain(&shape)), 0);
    let engine = Engine::open(&model, &engine_args(), &Demand::positions(90)).map_err(|failure| failure.error).unwrap();
    let config = engine.model().config();
    let grid = ExpertGrid { layers: config.layers.len(), experts: config.moe.experts };
    let slots = NonZeroUsize::new(50).unwrap();
    let setting = Setting { grid, expert_bytes: 1, slots, policy: PolicyName::LayerShare };
    let watch = Watch(Mutex::new(Traced {
        cache: ExpertCache::new(grid, slots, LayerShare::new(grid)),
        accesses: Vec::new(),
        writer: TraceWriter::create(&trace, &setting).unwrap(),
    }));

    let tokens: Vec<u32> = (0..90).map(|position| position * 97 % config.vocabulary as u32).collect();
    let sizes = Sizes { chunk: 16, capacity: tokens.len(), threads: 1, logits: WantedLogits::Last };
    let (mut state, mut scratch) = (State::new(config, sizes.capacity), Scratch::new(config, sizes));
    let compute = Compute { observer: Some(&watch), ..engine.compute() };
    let (prompt, decode) = tokens.split_at(48);
    for tokens in prompt.chunks(16).chain(decode.chunks(1)) {
        let pass = Pass { tokens, logits: WantedLogits::Last };
        engine.model().forward(&compute, &mut state, &mut scratch, pass).unwrap();
    }
    let Traced { cache, writer, .. } = watch.0.into_inner().unwrap();
    let Counters { requests, hits, misses } = cache.counters();
    writer.finish(cache.counters()).unwrap();
    assert!(hits > 0 && requests > 42 * 6 * 4, "{hits} hits of {requests}");

    let (stdout, _) = expect_exit(&k3_host(["trace".as_ref(), trace.as_os_str()]), 0);
    let last = format!("{hits} hits, {misses} misses; the replay: {hits} hits, {misses} misses: equal");
    assert!(stdout.contains(&last), "{stdout}");
}

/// The program's own trace: the replay agrees with the counters of the engine and of the results.
#[test]
fn a_dumped_trace_replays_to_the_counters_of_its_run() {
    let folder = Folder::new();
    let (model, trace) = (folder.path("model"), folder.path("trace"));
    let shape = ["--experts", "40", "--top-k", "4", "--layers", "7"];
    expect_exit(&k3_host(["synth", model.to_str().unwrap()].iter().chain(&shape)), 0);
    let run = |flags: &[&str]| {
        let args = ["run", model.to_str().unwrap(), "--ids", "5,6,7,8,9", "--gen", "30", "--chunk", "2", "--out", "-"];
        let dump = ["--dump-cache-trace", trace.to_str().unwrap()];
        k3_host([&args[..], &dump, flags].concat())
    };
    let (stdout, _) = expect_exit(&run(&["--cache-gb", "1MB", "--trunk-gb", "0"]), 0);
    let results: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    let counted =
        |field: &str| results["summary"]["traffic"][field].as_u64().unwrap_or_else(|| panic!("{field} in {results}"));
    let (hits, misses) = (counted("resident_hits"), counted("misses"));
    assert!(hits > 0 && misses > 0);
    let (stdout, _) = expect_exit(&k3_host(["trace".as_ref(), trace.as_os_str()]), 0);
    let last = format!("{hits} hits, {misses} misses; the replay: {hits} hits, {misses} misses: equal");
    assert!(stdout.contains(&last), "{stdout}");

    let (_, stderr) = expect_exit(&run(&[]), 2);
    assert!(stderr.contains("--cache-gb"), "{stderr}");
}
