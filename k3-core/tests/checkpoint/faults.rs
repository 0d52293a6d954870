//! What must be refused when a checkpoint is bound: each fault by itself, in an otherwise sound oracle model.

use serde_json::{Value, json};

use crate::memory::Memory;
use crate::shards::{Tensor, build, parse};

const LAYER_2: &str = "model-00003-of-000014.safetensors";
const NORM: &str = "language_model.model.layers.2.input_layernorm.weight";
const QUERY: &str = "language_model.model.layers.2.self_attn.q_proj.weight";
const BETA: &str = "language_model.model.layers.2.self_attn.b_proj.weight";
const A_LOG: &str = "language_model.model.layers.2.self_attn.A_log";
const EXPERT: &str = "language_model.model.layers.2.block_sparse_moe.experts.7.w1.weight";

fn a() -> Memory {
    Memory::load("oracle/a")
}

/// The fault of model `a` after `change` was made to its tensor `name`, in layer 2.
fn tensor_fault(name: &str, change: impl FnOnce(&mut Tensor)) -> String {
    let fault = a().edit_tensor(name, change).fault();
    fault.strip_prefix(&format!("{LAYER_2}: tensor ")).map_or(fault.clone(), str::to_owned)
}

/// The fault of model `a` after `change` was made to its index alone.
fn index_fault(change: impl FnOnce(&mut serde_json::Map<String, Value>)) -> String {
    let mut folder = a();
    folder.edit_index(change);
    folder.fault()
}

#[test]
fn a_missing_tensor() {
    // Renamed to a name of the vision tower, so that nothing else is amiss.
    let rename = |tensor: &mut Tensor| tensor.name = "vision_tower.x".to_owned();
    assert_eq!(tensor_fault(NORM, rename), format!("tensor {NORM}: is missing"));
    let packed = tensor_fault(&format!("{EXPERT}_packed"), rename);
    assert_eq!(packed, format!("tensor {EXPERT}: has scales but no nibbles"));
    let scale = tensor_fault(&format!("{EXPERT}_scale"), rename);
    assert_eq!(scale, format!("tensor {EXPERT}: has nibbles but no scales"));
}

#[test]
fn layers_that_the_config_names_and_the_checkpoint_lacks() {
    let mut folder = a();
    folder.edit_config(|config| {
        config["text_config"]["num_hidden_layers"] = json!(14);
        config["text_config"]["linear_attn_config"]["full_attn_layers"] = json!([4, 8, 12, 13, 14]);
    });
    // 14 tensors of attention and norms, 8 of the mixture, 3 for each of 16 experts.
    assert_eq!(
        folder.fault(),
        "tensor language_model.model.layers.13.input_layernorm.weight: is missing; 69 more are not complete"
    );
}

#[test]
fn layers_and_experts_that_the_config_does_not_name() {
    let rename = |name: &'static str| move |tensor: &mut Tensor| tensor.name = name.to_owned();
    let layer = "language_model.model.layers.13.input_layernorm.weight";
    assert_eq!(tensor_fault(NORM, rename(layer)), format!("{layer}: the config has 13 layers only"));
    let expert = "language_model.model.layers.2.block_sparse_moe.experts.16.w1.weight_packed";
    let fault = tensor_fault(&format!("{EXPERT}_packed"), rename(expert));
    assert_eq!(fault, format!("{expert}: the config has no such expert"));
    let latent = "language_model.model.layers.2.self_attn.q_a_proj.weight";
    let fault = tensor_fault(QUERY, rename(latent));
    assert_eq!(fault, format!("{latent}: does not belong to the kind of layer that the config names"));
}

#[test]
fn names_that_are_not_understood() {
    let rename = |tensor: &mut Tensor| tensor.name = tensor.name.replace("language_model", "text_model");
    let fault = tensor_fault(NORM, rename);
    let wanted = "model.safetensors.index.json: weight_map: tensor text_model.model.layers.2.input_layernorm.weight \
                  is not a tensor of this kind of model";
    assert!(fault.starts_with(wanted), "{fault}");
    // The same without an index.
    let mut folder = a();
    folder.0.insert(
        "model.safetensors".to_owned(),
        build(&[Tensor {
            name: "language_model.model.layers.02.input_layernorm.weight".to_owned(),
            dtype: "U8".to_owned(),
            shape: vec![1],
            data: vec![0],
        }]),
    );
    folder.0.remove("model.safetensors.index.json");
    assert_eq!(
        folder.fault(),
        "model.safetensors: tensor language_model.model.layers.02.input_layernorm.weight: \
         is not a tensor of this kind of model"
    );
}

#[test]
fn a_type_that_the_model_cannot_use() {
    let fault = tensor_fault(QUERY, |tensor| tensor.dtype = "F16".to_owned());
    assert_eq!(fault, format!("{QUERY}: has the type \"F16\", where F32 or BF16 is needed"));
    let fault = tensor_fault(QUERY, |tensor| tensor.dtype = "F4".to_owned());
    assert_eq!(fault, format!("{QUERY}: has the type \"F4\", where F32 or BF16 is needed"));
    let packed = format!("{EXPERT}_packed");
    let fault = tensor_fault(&packed, |tensor| tensor.dtype = "I8".to_owned());
    assert_eq!(fault, format!("{packed}: has the type \"I8\", where U8 is needed"));
}

#[test]
fn a_shape_at_odds_with_the_config() {
    let fault = tensor_fault(BETA, |tensor| tensor.shape = vec![64, 4]);
    assert_eq!(fault, format!("{BETA}: has the shape [64, 4], where the config asks for [4, 64]"));
    let fault = tensor_fault(BETA, |tensor| tensor.shape = vec![256]);
    assert_eq!(fault, format!("{BETA}: has the shape [256], where the config asks for [4, 64]"));
    let scale = format!("{EXPERT}_scale");
    let fault = tensor_fault(&scale, |tensor| tensor.shape = vec![32, 2]);
    assert_eq!(fault, format!("{scale}: has the shape [32, 2], where the config asks for [64, 1]"));
    let conv = "language_model.model.layers.2.self_attn.q_conv1d.weight";
    let fault = tensor_fault(conv, |tensor| tensor.shape = vec![64, 4]);
    assert_eq!(fault, format!("{conv}: has the shape [64, 4], where the config asks for [64, 1, 4]"));
}

#[test]
fn a_log_may_be_longer_than_the_heads_but_not_shorter() {
    let resize = |length: u64| {
        move |tensor: &mut Tensor| {
            tensor.shape = vec![length];
            tensor.data.resize(4 * length as usize, 0);
        }
    };
    for length in [4, 5, 16, 128] {
        a().edit_tensor(A_LOG, resize(length)).open_all().unwrap();
    }
    let fault = tensor_fault(A_LOG, resize(3));
    assert_eq!(fault, format!("{A_LOG}: has the shape [3], where the config asks for [16]"));
}

#[test]
fn a_matrix_that_cannot_be_packed() {
    // Model b has a hidden width of 75.
    let name = "language_model.model.layers.2.self_attn.q_proj.weight";
    let fault = Memory::load("oracle/b").edit_tensor(name, |tensor| tensor.name.push_str("_packed")).fault();
    let wanted = format!("tensor {name}_packed: cannot be packed, 75 columns are not a multiple of 32");
    assert!(fault.ends_with(&wanted), "{fault}");
    let fault = tensor_fault(NORM, |tensor| tensor.name.push_str("_scale"));
    assert_eq!(fault, format!("{NORM}_scale: cannot be packed, it is not a matrix"));
}

#[test]
fn a_tensor_that_is_there_twice() {
    let copy = |to: &'static str| {
        a().edit(NORM, |tensors| {
            let mut copy = tensors.iter().find(|tensor| tensor.name == NORM).unwrap().clone();
            copy.name = to.to_owned();
            tensors.push(copy);
        })
    };
    let short = NORM.strip_prefix("language_model.").unwrap();
    assert_eq!(copy(short).fault(), format!("{LAYER_2}: tensor {short}: is there twice"));
    // In two shards; then the index can name but one.
    let other = "model-00004-of-000014.safetensors";
    let mut folder = a();
    let mut tensors = parse(&folder.0[other]);
    tensors.extend(parse(&folder.0[LAYER_2]).into_iter().filter(|tensor| tensor.name == NORM));
    folder.0.insert(other.to_owned(), build(&tensors));
    let wanted =
        format!("{other}: tensor {NORM}: the header has it, but model.safetensors.index.json does not list it here");
    assert_eq!(folder.fault(), wanted);
    // Plain and packed.
    let folder = a().edit(NORM, |tensors| {
        let data = vec![0; 64 * 32 * 2];
        tensors.push(Tensor { name: EXPERT.to_owned(), dtype: "BF16".to_owned(), shape: vec![64, 32], data });
    });
    let fault = folder.fault();
    assert_eq!(fault, format!("{LAYER_2}: tensor {EXPERT}: is there both plain and packed"));
}

#[test]
fn an_index_at_odds_with_the_headers() {
    let fault = index_fault(|index| assert!(index.remove(NORM).is_some()));
    let wanted = "the header has it, but model.safetensors.index.json does not list it here";
    assert_eq!(fault, format!("{LAYER_2}: tensor {NORM}: {wanted}"));

    let extra = "language_model.model.layers.0.mlp.gate_proj.weight";
    let fault = index_fault(|index| index[extra] = json!(LAYER_2));
    // The shards are read in the order in which the index first names them.
    let wanted = "the header has it, but model.safetensors.index.json does not list it here";
    assert_eq!(fault, format!("model-00001-of-000014.safetensors: tensor {extra}: {wanted}"));

    let extra = "vision_tower.x";
    let fault = index_fault(|index| assert!(index.insert(extra.to_owned(), json!(LAYER_2)).is_none()));
    let wanted = "model.safetensors.index.json lists it here, but the header does not have it";
    assert_eq!(fault, format!("{LAYER_2}: tensor {extra}: {wanted}"));

    // As many names as there should be, but not the same ones.
    let fault = index_fault(|index| {
        index.remove(NORM).unwrap();
        index.insert(extra.to_owned(), json!(LAYER_2));
    });
    assert_eq!(fault, format!("{LAYER_2}: tensor {extra}: {wanted}"));

    let mut folder = a();
    let text = String::from_utf8(folder.0["model.safetensors.index.json"].clone()).unwrap();
    let twice = text.replacen("\"weight_map\": {", &format!("\"weight_map\": {{\"{NORM}\": \"{LAYER_2}\","), 1);
    folder.0.insert("model.safetensors.index.json".to_owned(), twice.into_bytes());
    assert_eq!(folder.fault(), format!("{LAYER_2}: tensor {NORM}: model.safetensors.index.json lists it twice"));
}

#[test]
fn file_names_that_leave_the_folder() {
    let names = [
        "../model.safetensors",
        "/etc/model.safetensors",
        "shards/model.safetensors",
        "..\\model.safetensors",
        "c:model.safetensors",
        "model\u{0}.safetensors",
        "passwd",
        "",
    ];
    for name in names {
        let fault = index_fault(|index| index[NORM] = json!(name));
        let wanted = format!(
            "model.safetensors.index.json: weight_map: tensor {NORM} is in a file whose name is not that of a file \
             beside the index ({name:?})"
        );
        assert!(fault.starts_with(&wanted), "{fault}");
    }
}

#[test]
fn an_index_that_is_not_one() {
    let cases = [
        ("", "EOF while parsing a value"),
        ("[]", "invalid type: sequence, expected an object with a weight_map"),
        ("{}", "missing field `weight_map`"),
        (r#"{"weight_map":{},"weight_map":{}}"#, "duplicate field `weight_map`"),
        (r#"{"weight_map":{"lm_head.weight":1}}"#, "invalid type: integer `1`, expected a string"),
        (r#"{"weight_map":{}} x"#, "trailing characters"),
    ];
    for (text, wanted) in cases {
        let mut folder = a();
        folder.0.insert("model.safetensors.index.json".to_owned(), text.as_bytes().to_vec());
        let fault = folder.fault();
        assert!(fault.starts_with(&format!("model.safetensors.index.json: {wanted}")), "{fault}");
    }
    let mut folder = a();
    folder.0.remove("model.safetensors.index.json");
    assert_eq!(folder.fault(), "model.safetensors: missing, and so is model.safetensors.index.json");
}

#[test]
fn a_shard_that_is_missing_or_cut_short_anywhere() {
    let folder = a();
    let whole = &folder.0[LAYER_2];
    for length in (0..whole.len()).step_by(997).chain([whole.len() - 1]) {
        let mut cut = folder.clone();
        cut.0.get_mut(LAYER_2).unwrap().truncate(length);
        let fault = cut.fault();
        assert!(fault.starts_with(&format!("{LAYER_2}: ")), "{fault}");
    }
    let mut missing = folder.clone();
    missing.0.remove(LAYER_2);
    assert_eq!(missing.fault(), format!("{LAYER_2}: missing; tensor {NORM} should be in it"));
}
