//! Every intermediate value that the published code recorded, against ours: mixes, sublayer inputs and outputs, router
//! choices, and the state after the prompt.

mod support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use k3_core::config::{Attention, Config, KdaConfig, MlaConfig};
use k3_core::kernels::{Backend, Kernels};
use k3_core::model::compute::{Compute, Observer, Point};
use k3_core::model::scratch::{Scratch, Sizes, WantedLogits};
use k3_core::model::state::State;
use k3_core::model::{Model, Pass};
use k3_host::workers::Threads;
use safetensors::{Dtype, SafeTensors};
use support::{Reference, expect_exit, fixture, joined, k3_host, resident};

/// How far a value may be off, in parts of the largest of its kind in a layer. Both sides are f32 with sums in different
/// orders, and random weights amplify the difference layer by layer: the published code's own f32 and f64 logits differ by
/// 1.6e-4 of their standard deviation.
const TOLERANCE: f64 = 2e-4;

fn folder(model: &str) -> PathBuf {
    fixture("oracle").join(model)
}

fn floats(view: &safetensors::tensor::TensorView<'_>) -> Vec<f64> {
    assert_eq!(view.dtype(), Dtype::F32);
    view.data().as_chunks().0.iter().map(|&bytes| f64::from(f32::from_le_bytes(bytes))).collect()
}

/// Collects what it sees.
#[derive(Default)]
struct Recorder {
    values: Mutex<BTreeMap<String, Vec<f32>>>,
    choices: Mutex<BTreeMap<usize, Choices>>,
}

impl Observer for Recorder {
    fn observe(&self, point: Point, values: &[f32]) {
        let name = match point {
            Point::AttentionMix(layer) => format!("layer.{layer}.attn_res_mix"),
            Point::AttentionIn(layer) => format!("layer.{layer}.attn_in"),
            Point::AttentionOut(layer) => format!("layer.{layer}.attn_out"),
            Point::MlpMix(layer) => format!("layer.{layer}.mlp_res_mix"),
            Point::MlpIn(layer) => format!("layer.{layer}.mlp_in"),
            Point::MlpOut(layer) => format!("layer.{layer}.mlp_out"),
            Point::PrefixSum(layer) => format!("layer.{layer}.out_prefix_sum"),
            Point::RoutedSum(layer) => format!("layer.{layer}.routed_sum"),
            Point::RoutedNormed(layer) => format!("layer.{layer}.routed_normed"),
            Point::FinalMix => "final_res_mix".into(),
            Point::FinalNormed => "final_normed".into(),
        };
        self.values.lock().unwrap().entry(name).or_default().extend_from_slice(values);
    }

    fn observe_choice(&self, layer: usize, ids: &[usize], weights: &[f32]) {
        let mut choices = self.choices.lock().unwrap();
        let (all_ids, all_weights) = choices.entry(layer).or_default();
        all_ids.extend_from_slice(ids);
        all_weights.extend_from_slice(weights);
    }
}

/// Ids and weights of a layer's choices, `[positions, top_k]` each.
type Choices = (Vec<usize>, Vec<f32>);

/// Feeds the whole reference sequence in chunks of 7 and records what happens.
fn record(model: &str, backend: Backend) -> (Recorder, usize) {
    let config = Config::from_json(&std::fs::read(folder(model).join("config.json")).unwrap()).unwrap();
    let source = resident(&folder(model), &config);
    let top_k = config.moe.top_k;
    let model_weights = Model::load(config, &source).unwrap();
    let (kernels, workers, recorder) = (Kernels::new(backend).unwrap(), Threads::new(2).unwrap(), Recorder::default());
    let compute = Compute { kernels: &kernels, workers: &workers, source: &source, observer: Some(&recorder) };
    let ids = Reference::of(model).ids("full_ids");
    let sizes = Sizes { chunk: 7, capacity: ids.len(), threads: 2, logits: WantedLogits::Last };
    let mut state = State::new(model_weights.config(), ids.len());
    let mut scratch = Scratch::new(model_weights.config(), sizes);
    for tokens in ids.chunks(7) {
        let pass = Pass { tokens, logits: WantedLogits::None };
        model_weights.forward(&compute, &mut state, &mut scratch, pass).unwrap();
    }
    (recorder, top_k)
}

#[test]
fn hidden_states_are_those_of_the_published_code() {
    for (model, backend) in
        ["a", "b"].into_iter().flat_map(|model| Backend::available().into_iter().map(move |b| (model, b)))
    {
        let bytes = std::fs::read(folder(model).join("expected/hidden.safetensors")).unwrap();
        let expected = SafeTensors::deserialize(&bytes).unwrap();
        let (recorder, _) = record(model, backend);
        let values = recorder.values.into_inner().unwrap();
        let mut compared = 0;
        for (name, view) in expected.tensors() {
            if view.dtype() != Dtype::F32 || name == "embed" || name.ends_with("router_weight") {
                continue;
            }
            let want = floats(&view);
            let got = values.get(&name).unwrap_or_else(|| panic!("{name} was not observed"));
            assert_eq!(got.len(), want.len(), "{model} {name}");
            let largest = want.iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
            let worst = got.iter().zip(&want).map(|(&got, want)| (f64::from(got) - want).abs()).fold(0.0_f64, f64::max);
            assert!(worst <= TOLERANCE * largest, "{model} {name}: off by {worst:e}, largest {largest:e}");
            compared += 1;
        }
        assert_eq!(compared, values.len(), "{model}: every observed value has a reference");
    }
}

#[test]
fn router_choices_are_those_of_the_published_code() {
    for model in ["a", "b"] {
        let bytes = std::fs::read(folder(model).join("expected/hidden.safetensors")).unwrap();
        let expected = SafeTensors::deserialize(&bytes).unwrap();
        let (recorder, top_k) = record(model, Backend::best());
        let choices = recorder.choices.into_inner().unwrap();
        assert!(!choices.is_empty());
        for (layer, (ids, weights)) in choices {
            let view = expected.tensor(&format!("layer.{layer}.router_idx")).unwrap();
            let want_ids: Vec<usize> =
                view.data().as_chunks().0.iter().map(|&bytes| i64::from_le_bytes(bytes) as usize).collect();
            let want_weights = floats(&expected.tensor(&format!("layer.{layer}.router_weight")).unwrap());
            let rows = ids.chunks(top_k).zip(weights.chunks(top_k));
            for ((ids, weights), (want_ids, want_weights)) in
                rows.zip(want_ids.chunks(top_k).zip(want_weights.chunks(top_k)))
            {
                assert!(ids.is_sorted(), "the ids are in ascending order");
                let mut want: Vec<(usize, f64)> = want_ids.iter().copied().zip(want_weights.iter().copied()).collect();
                want.sort_by_key(|(id, _)| *id);
                for ((id, weight), (want_id, want_weight)) in ids.iter().zip(weights).zip(want) {
                    assert_eq!(*id, want_id, "{model} layer {layer}");
                    let difference = (f64::from(*weight) - want_weight).abs();
                    assert!(difference < 1e-4, "{model} layer {layer}: {weight} is not {want_weight}");
                }
            }
        }
    }
}

/// Reads a state file as `docs/formats.md` lays it out.
struct StateFile {
    values: Vec<f32>,
    next: usize,
}

impl StateFile {
    fn read(path: &Path, positions: usize, vocabulary: usize) -> Self {
        let bytes = std::fs::read(path).unwrap();
        let body = &bytes[44 + 4 * (positions + vocabulary)..bytes.len() - 8];
        Self { values: body.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect(), next: 0 }
    }

    fn take(&mut self, count: usize) -> &[f32] {
        self.next += count;
        &self.values[self.next - count..self.next]
    }
}

fn assert_close(got: impl Iterator<Item = f64>, want: &[f64], what: &str) {
    let largest = want.iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
    let mut count = 0;
    for (got, want) in got.zip(want) {
        assert!((got - want).abs() <= TOLERANCE * largest, "{what}: {got} is not {want}");
        count += 1;
    }
    assert_eq!(count, want.len(), "{what}");
}

/// The state that is saved after the prompt is the published code's cache: there the recurrent state is stored value
/// first, the convolution keeps a fourth input that is never used, and keys and values are expanded.
#[test]
fn the_state_after_the_prompt_is_that_of_the_published_code() {
    for model in ["a", "b"] {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("state");
        let ids = Reference::of(model).ids("prompt_ids");
        let folder = folder(model);
        let args = ["run", folder.to_str().unwrap(), "--ids", &joined(&ids), "--gen", "0", "--save-state"];
        expect_exit(&k3_host(args.into_iter().chain([path.to_str().unwrap()])), 0);

        let config = Config::from_json(&std::fs::read(folder.join("config.json")).unwrap()).unwrap();
        let bytes = std::fs::read(folder.join("expected/cache_after_prompt.safetensors")).unwrap();
        let expected = SafeTensors::deserialize(&bytes).unwrap();
        let mut state = StateFile::read(&path, ids.len(), config.vocabulary);
        for (layer, kind) in config.layers.iter().enumerate() {
            let expected = |name: &str| floats(&expected.tensor(&format!("cache.{layer}.{name}")).unwrap());
            match kind.attention {
                Attention::Kda => compare_kda(&config.kda, &mut state, &expected, &format!("{model} layer {layer}")),
                Attention::Mla => {
                    let up = key_value_up(&folder, layer);
                    let cache = state.take(ids.len() * config.mla.cache_width());
                    compare_mla(&config.mla, cache, &up, [&expected("key"), &expected("value")]);
                }
            }
        }
        assert_eq!(state.next, state.values.len(), "nothing else is in the file");
    }
}

fn compare_kda(kda: &KdaConfig, state: &mut StateFile, expected: &dyn Fn(&str) -> Vec<f64>, what: &str) {
    let (heads, dim, channels) = (kda.heads, kda.head_dim, kda.channels());
    let recurrent = state.take(heads * dim * dim);
    let value_first = (0..heads * dim * dim).map(|index| {
        let (head, value, key) = (index / (dim * dim), index / dim % dim, index % dim);
        f64::from(recurrent[(head * dim + key) * dim + value])
    });
    assert_close(value_first, &expected("recurrent_state_v_first"), what);
    for stream in ["conv_q", "conv_k", "conv_v"] {
        let history = state.take(3 * channels);
        let newest: Vec<f64> = expected(stream).chunks(4).flat_map(|inputs| inputs[1..].to_vec()).collect();
        let by_channel = (0..channels * 3).map(|index| f64::from(history[index % 3 * channels + index / 3]));
        assert_close(by_channel, &newest, &format!("{what} {stream}"));
    }
}

/// Expands the cache with `kv_b`, in f64, and compares with the published code's `[keys, values]`.
fn compare_mla(mla: &MlaConfig, cache: &[f32], up: &[f64], [keys, values]: [&[f64]; 2]) {
    let positions = cache.len() / mla.cache_width();
    for (position, row) in cache.chunks(mla.cache_width()).enumerate() {
        let (latent, shared) = row.split_at(mla.latent);
        for head in 0..mla.heads {
            let first = head * (mla.nope_dim + mla.value_dim);
            let expanded = |row: usize| -> f64 {
                let weights = &up[(first + row) * mla.latent..][..mla.latent];
                weights.iter().zip(latent).map(|(weight, latent)| weight * f64::from(*latent)).sum()
            };
            let at = head * positions + position;
            let key = (0..mla.nope_dim).map(expanded).chain(shared.iter().map(|&value| value.into()));
            assert_close(key, &keys[at * mla.key_dim()..][..mla.key_dim()], "key");
            let value = (mla.nope_dim..mla.nope_dim + mla.value_dim).map(expanded);
            assert_close(value, &values[at * mla.value_dim..][..mla.value_dim], "value");
        }
    }
}

/// `kv_b` of a layer, widened.
fn key_value_up(folder: &Path, layer: usize) -> Vec<f64> {
    let index = std::fs::read(folder.join("model.safetensors.index.json")).unwrap();
    let index: serde_json::Value = serde_json::from_slice(&index).unwrap();
    let name = format!("language_model.model.layers.{layer}.self_attn.kv_b_proj.weight");
    let shard = std::fs::read(folder.join(index["weight_map"][&name].as_str().unwrap())).unwrap();
    let tensors = SafeTensors::deserialize(&shard).unwrap();
    let view = tensors.tensor(&name).unwrap();
    assert_eq!(view.dtype(), Dtype::BF16);
    let widen = |bytes: &[u8; 2]| f64::from(f32::from_bits(u32::from(u16::from_le_bytes(*bytes)) << 16));
    view.data().as_chunks().0.iter().map(widen).collect()
}
