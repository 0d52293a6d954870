//! Runs a model fixture through [`Model::forward`] and collects what passes between its parts.

use std::collections::BTreeMap;
use std::sync::Mutex;

use k3_core::Result;
use k3_core::host::{Serial, Workers};
use k3_core::kernels::Kernels;
use k3_core::model::compute::{Compute, Observer, Point};
use k3_core::model::scratch::{Scratch, Sizes, WantedLogits};
use k3_core::model::state::State;
use k3_core::model::{Model, Pass};
use serde_json::Value;

use crate::closeness::{assert_not_wrong, assert_right, assert_same_bits};
use crate::every_backend;
use crate::support::arrays::ArraySource;
use crate::support::{config, fixture, tokens};

/// Values by the names that the fixtures use, of all positions in order.
pub type Points = BTreeMap<String, Vec<f32>>;

/// Three workers, of which the last comes first.
struct Backwards;

impl Workers for Backwards {
    fn threads(&self) -> usize {
        3
    }

    fn run(&self, pieces: usize, work: &(dyn Fn(usize) + Sync)) {
        (0..pieces).rev().for_each(work);
    }
}

struct Recorder {
    points: Mutex<Points>,
    experts: usize,
    top_k: usize,
}

impl Recorder {
    fn record(&self, name: String, values: &[f32]) {
        self.points.lock().unwrap().entry(name).or_default().extend_from_slice(values);
    }
}

impl Observer for Recorder {
    fn observe(&self, point: Point, values: &[f32]) {
        let name = match point {
            Point::AttentionMix(layer) => format!("attention_mix.{layer}"),
            Point::AttentionIn(layer) => format!("attention_in.{layer}"),
            Point::AttentionOut(layer) => format!("attention_out.{layer}"),
            Point::MlpMix(layer) => format!("mlp_mix.{layer}"),
            Point::MlpIn(layer) => format!("mlp_in.{layer}"),
            Point::MlpOut(layer) => format!("mlp_out.{layer}"),
            Point::PrefixSum(layer) => format!("prefix_sum.{layer}"),
            Point::RoutedSum(layer) => format!("routed_sum.{layer}"),
            Point::RoutedNormed(layer) => format!("routed_normed.{layer}"),
            Point::FinalMix => "final_mix".into(),
            Point::FinalNormed => "final_normed".into(),
        };
        self.record(name, values);
    }

    /// Recorded as `[positions, experts]`, with zeros for experts that are not used.
    fn observe_choice(&self, layer: usize, ids: &[usize], weights: &[f32]) {
        for (ids, weights) in ids.chunks_exact(self.top_k).zip(weights.chunks_exact(self.top_k)) {
            let mut by_expert = vec![0.0; self.experts];
            for (&id, &weight) in ids.iter().zip(weights) {
                by_expert[id] = weight;
            }
            self.record(format!("router_weights.{layer}"), &by_expert);
        }
    }
}

/// A model fixture, ready to run.
pub struct Run<'a> {
    pub fixture: &'a Value,
    pub source: &'a ArraySource,
    pub kernels: &'a Kernels,
    pub workers: &'a dyn Workers,
    pub logits: WantedLogits,
}

impl Run<'_> {
    /// Feeds the tokens in passes of the given lengths.
    pub fn points(&self, passes: &[usize]) -> Result<Points> {
        let config = config(self.fixture);
        let (experts, top_k) = (config.moe.experts, config.moe.top_k);
        let recorder = Recorder { points: Mutex::default(), experts, top_k };
        let Self { source, kernels, workers, logits, .. } = *self;
        let compute = Compute { kernels, workers, source, observer: Some(&recorder) };
        let tokens = tokens(self.fixture);
        let sizes = Sizes { chunk: tokens.len(), capacity: tokens.len(), threads: workers.threads(), logits };
        let mut state = State::new(&config, sizes.capacity);
        let mut scratch = Scratch::new(&config, sizes);
        let model = Model::load(config, source)?;
        let mut rest = &tokens[..];
        for &count in passes {
            let (tokens, later) = rest.split_at(count);
            let pass = Pass { tokens, logits };
            recorder.record("logits".into(), model.forward(&compute, &mut state, &mut scratch, pass)?);
            rest = later;
        }
        assert!(rest.is_empty(), "the passes cover all tokens");
        Ok(recorder.points.into_inner().unwrap())
    }
}

/// Runs on the calling thread in one pass, on the first backend.
pub fn plain_run(fixture: &Value, source: &ArraySource) -> Result<Points> {
    let kernels = every_backend().next().unwrap();
    Run { fixture, source, kernels: &kernels, workers: &Serial, logits: WantedLogits::All }
        .points(&[tokens(fixture).len()])
}

/// Asserts that two runs agree in every bit at every point.
pub fn assert_same_run(context: &str, got: &Points, expected: &Points) {
    assert!(got.keys().eq(expected.keys()), "{context}: other points");
    for (point, expected) in expected {
        assert_same_bits(&format!("{context}, {point}"), &got[point], expected);
    }
}

/// Runs the model fixture `name` on every backend, in every way of splitting it up, and compares it with the right and
/// the wrong values. All ways must agree in every bit.
pub fn check_model(name: &str) {
    let fixture = fixture(name);
    let mut source = ArraySource::read(&fixture);
    let expected = plain_run(&fixture, &source).unwrap();
    for (point, right) in fixture["right"].as_object().unwrap() {
        assert_right(&format!("{name}, {point}"), &expected[point], right);
    }
    for (mistake, wrong) in fixture["wrong"].as_object().unwrap() {
        let point = wrong["point"].as_str().unwrap();
        assert_not_wrong(&format!("{name}, {point}"), mistake, &expected[point], &wrong["values"]);
    }
    let ways: [(&dyn Workers, Option<usize>); 3] = [(&Serial, None), (&Backwards, None), (&Backwards, Some(1))];
    for (workers, rows_in_slice) in ways {
        source.rows_in_slice = rows_in_slice;
        for kernels in every_backend() {
            for passes in fixture["passes"].as_array().unwrap() {
                let lengths = passes.as_array().unwrap().iter().map(|length| length.as_u64().unwrap());
                let lengths: Vec<usize> = lengths.map(|length| usize::try_from(length).unwrap()).collect();
                let run =
                    Run { fixture: &fixture, source: &source, kernels: &kernels, workers, logits: WantedLogits::All };
                let context = format!("{name} on {} in passes of {passes}", kernels.backend());
                assert_same_run(&context, &run.points(&lengths).unwrap(), &expected);
            }
        }
    }
}
