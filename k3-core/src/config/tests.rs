use std::string::{String, ToString};
use std::vec::Vec;
use std::{format, fs};

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Attention, Config, FeedForward};
use crate::Error;

fn fixture(path: &str) -> Vec<u8> {
    fs::read(format!("{}/../fixtures/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn oracle(model: &str) -> Value {
    serde_json::from_slice(&fixture(&format!("oracle/{model}/config.json"))).unwrap()
}

fn read(config: &Value) -> crate::Result<Config> {
    Config::from_json(&serde_json::to_vec(config).unwrap())
}

fn faults(bytes: &[u8]) -> Vec<String> {
    match Config::from_json(bytes) {
        Err(Error::Config(faults)) => faults,
        other => panic!("{other:?}"),
    }
}

/// The object that holds the field at `path`, and the field's own name.
fn holder<'c, 'p>(config: &'c mut Value, path: &'p str) -> (&'c mut Map<String, Value>, &'p str) {
    let (parents, name) = path.rsplit_once('.').unwrap_or(("", path));
    let holder = parents.split('.').filter(|part| !part.is_empty()).fold(config, |value, part| &mut value[part]);
    (holder.as_object_mut().unwrap(), name)
}

fn set(config: &mut Value, path: &str, value: Value) {
    let (holder, name) = holder(config, path);
    holder.insert(name.to_string(), value);
}

fn remove(config: &mut Value, path: &str) {
    let (holder, name) = holder(config, path);
    holder.remove(name).unwrap();
}

#[test]
fn the_oracle_configs_are_read() {
    let config = read(&oracle("b")).unwrap();
    assert_eq!((config.hidden, config.vocabulary, config.dense_width), (75, 211, 101));
    assert_eq!(config.rms_norm_eps.to_bits(), 3e-5_f32.to_bits());
    assert_eq!((config.residual_block, config.max_positions, config.layers.len()), (4, 1_048_576, 11));
    let layers = |attention, feed_forward| -> Vec<usize> {
        let is = |layer: &usize| {
            let kind = config.layers[*layer];
            kind.attention == attention && kind.feed_forward == feed_forward
        };
        (0..11).filter(is).collect()
    };
    assert_eq!(layers(Attention::Kda, FeedForward::Dense), [0, 1]);
    assert_eq!(layers(Attention::Kda, FeedForward::Moe), [2, 4, 5, 6, 8]);
    assert_eq!(layers(Attention::Mla, FeedForward::Moe), [3, 7, 9, 10]);
    let kda = &config.kda;
    assert_eq!((kda.heads, kda.head_dim, kda.channels(), kda.taps), (5, 20, 100, 4));
    assert_eq!(kda.gate_lower_bound, Some(-3.5));
    let mla = &config.mla;
    assert_eq!((mla.heads, mla.query_rank, mla.latent), (3, 37, 29));
    assert_eq!((mla.nope_dim, mla.rope_dim, mla.value_dim, mla.output_gate), (13, 7, 11, true));
    let moe = &config.moe;
    assert_eq!((moe.experts, moe.top_k, moe.latent, moe.expert_width, moe.shared_width), (13, 3, 96, 160, 480));
    assert_eq!((moe.renormalize, moe.latent_norm), (true, true));
    assert_eq!(moe.scaling.to_bits(), 1.5_f32.to_bits());
    assert_eq!((config.situ.beta, config.situ.linear_beta), (3.0, Some(12.0)));
    assert!(!config.tied_embeddings);
    assert_eq!(config.end_ids, [2]);
    assert_eq!(read(&oracle("a")).unwrap().layers.len(), 13);
}

#[test]
fn the_flat_form_is_the_nested_form_without_its_level() {
    let nested = oracle("b");
    assert_eq!(read(&nested["text_config"]).unwrap(), read(&nested).unwrap());
    let mut flat = nested["text_config"].clone();
    remove(&mut flat, "hidden_size");
    set(&mut flat, "quantization_config.format", json!("other"));
    let wanted = [
        "quantization_config.format: \"other\" is not supported, only \"mxfp4-pack-quantized\"",
        "hidden_size: missing",
    ];
    assert_eq!(faults(&serde_json::to_vec(&flat).unwrap()), wanted);
}

#[test]
fn switches_reach_the_config() {
    let mut changed = oracle("a");
    for name in ["moe_renormalize", "latent_moe_use_norm", "mla_use_output_gate"] {
        set(&mut changed, &format!("text_config.{name}"), json!(false));
    }
    set(&mut changed, "text_config.tie_word_embeddings", json!(true));
    set(&mut changed, "tie_word_embeddings", json!(true));
    set(&mut changed, "text_config.first_k_dense_replace", json!(4));
    set(&mut changed, "text_config.moe_layer_freq", json!(3));
    let config = read(&changed).unwrap();
    assert!(!config.moe.renormalize && !config.moe.latent_norm && !config.mla.output_gate && config.tied_embeddings);
    let moe = |layer: &usize| config.layers[*layer].feed_forward == FeedForward::Moe;
    assert_eq!((0..13).filter(moe).collect::<Vec<_>>(), [6, 9, 12]);
    set(&mut changed, "text_config.first_k_dense_replace", json!(1000));
    let config = read(&changed).unwrap();
    assert!(config.layers.iter().all(|kind| kind.feed_forward == FeedForward::Dense));
}

#[test]
fn what_the_published_code_makes_optional_may_be_absent_or_null() {
    let paths = ["activation_situ_beta", "activation_situ_linear_beta", "linear_attn_config.gate_lower_bound"];
    let (mut absent, mut null) = (oracle("a"), oracle("a"));
    for path in paths.map(|path| format!("text_config.{path}")) {
        remove(&mut absent, &path);
        set(&mut null, &path, Value::Null);
    }
    remove(&mut absent, "text_config.quantization_config");
    let config = read(&absent).unwrap();
    assert_eq!((config.situ.beta, config.situ.linear_beta, config.kda.gate_lower_bound), (1.0, None, None));
    assert_eq!(read(&null).unwrap(), config);
}

#[test]
fn either_level_may_name_end_ids_and_tie_the_embeddings() {
    let mut config = oracle("a");
    set(&mut config, "eos_token_id", json!([130, 7]));
    remove(&mut config, "text_config.tie_word_embeddings");
    set(&mut config, "tie_word_embeddings", json!(true));
    let found = read(&config).unwrap();
    assert_eq!(found.end_ids, [2, 7, 130]);
    assert!(found.tied_embeddings);
    remove(&mut config, "text_config.eos_token_id");
    assert_eq!(read(&config).unwrap().end_ids, [7, 130]);
    set(&mut config, "eos_token_id", Value::Null);
    assert_eq!(read(&config).unwrap().end_ids, [0; 0]);
}

/// A change to oracle model `a` and all faults that it must give.
#[derive(Deserialize)]
struct Hostile {
    name: String,
    #[serde(default)]
    set: Map<String, Value>,
    #[serde(default)]
    remove: Vec<String>,
    faults: Vec<String>,
}

#[test]
fn every_hostile_change_gives_exactly_its_faults() {
    let cases: Vec<Hostile> = serde_json::from_slice(&fixture("hostile/config/changes.json")).unwrap();
    assert!(cases.len() > 40);
    for case in cases {
        let mut config = oracle("a");
        case.remove.iter().for_each(|path| remove(&mut config, path));
        case.set.into_iter().for_each(|(path, value)| set(&mut config, &path, value));
        assert_eq!(faults(&serde_json::to_vec(&config).unwrap()), case.faults, "{}", case.name);
    }
}

#[test]
fn texts_that_are_no_config() {
    let cases: Vec<Map<String, Value>> = serde_json::from_slice(&fixture("hostile/config/texts.json")).unwrap();
    for case in cases {
        let [text, fault] = ["text", "fault"].map(|key| case[key].as_str().unwrap());
        let found = faults(text.as_bytes());
        assert!(found.len() == 1 && found[0].starts_with(fault), "{text}: {found:?}");
    }
    let deep = [b"[".repeat(100_000), b"]".repeat(100_000)].concat();
    assert!(faults(&deep)[0].contains("recursion limit"), "{:?}", faults(&deep));
    assert_eq!(faults(&b" ".repeat(1 << 21)), ["is too long to be a config"]);
    assert!(faults(b"{\"a\": \"\xff\"}")[0].starts_with("a: invalid unicode"));
}

#[test]
fn the_message_names_the_file() {
    let error = Config::from_json(b"[]").unwrap_err();
    assert_eq!(error.to_string(), "config.json: is not an object");
}
