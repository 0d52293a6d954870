//! Every damaged manifest is refused with the name of the file and of the field.

use std::sync::LazyLock;

use k3_core::stream::trunk_file::Manifest;
use k3_host::checkpoint::OpenCheckpoint;
use serde_json::{Value, json};

use crate::models::{manifest, open, oracle, pack};
use crate::support::expect_exit;

/// The manifest of model a.
static SOUND: LazyLock<Value> = LazyLock::new(|| {
    let out = tempfile::tempdir().unwrap();
    expect_exit(&pack(&oracle("a"), out.path(), &[]), 0);
    manifest(out.path())
});

static MODEL: LazyLock<OpenCheckpoint> = LazyLock::new(|| open(&oracle("a"), None));

/// What is said about a manifest beside a file as long as the sound one says.
fn verdict(text: &[u8]) -> Result<(), String> {
    verdict_beside(SOUND["bytes"].as_u64().unwrap(), text)
}

/// What is said about a manifest beside a file of `file_bytes`.
fn verdict_beside(file_bytes: u64, text: &[u8]) -> Result<(), String> {
    let manifest = Manifest::parse("here/trunk.json", text).map_err(|error| error.to_string())?;
    let trunk = manifest.trunk("here/trunk.json", &MODEL.checkpoint.index, &MODEL.config, file_bytes);
    trunk.map(|_| ()).map_err(|error| error.to_string())
}

/// The number of the first run of a tensor of a layer.
fn run_of(tensor: &str) -> usize {
    let name = format!("language_model.model.layers.{tensor}");
    SOUND["runs"].as_array().unwrap().iter().position(|run| run["tensor"] == *name).unwrap()
}

/// Makes a change and checks that it is refused in these words.
fn refused(expected: &str, change: impl FnOnce(&mut Value)) {
    let mut manifest = SOUND.clone();
    change(&mut manifest);
    assert_ne!(manifest, *SOUND, "{expected}: nothing was changed");
    let error = verdict(&serde_json::to_vec(&manifest).unwrap()).expect_err(expected);
    assert!(error.starts_with("here/trunk.json: ") && error.contains(expected), "{expected}: {error}");
}

/// Gives every run the bytes that its rows, columns and encoding take, and its place. Checks what is said about that, beside
/// a file that is just as long.
fn laid_out(mut manifest: Value) -> Result<(), String> {
    let mut end = 0;
    for run in manifest["runs"].as_array_mut().unwrap() {
        let [rows, columns] = ["rows", "columns"].map(|field| run[field].as_u64().unwrap());
        let bytes = match run["encoding"].as_str().unwrap() {
            "f32" => rows * columns * 4,
            "bf16" => rows * columns * 2,
            _ => rows * columns / 2 + rows * columns / 32,
        };
        run["offset"] = json!(end);
        run["bytes"] = json!(bytes);
        end = (end + bytes).next_multiple_of(4096);
    }
    manifest["bytes"] = json!(end);
    verdict_beside(end, &serde_json::to_vec(&manifest).unwrap())
}

/// Makes a change to runs that are then laid out anew, and checks that it is refused in these words.
fn refused_in_place(expected: &str, change: impl FnOnce(&mut Vec<Value>)) {
    let mut manifest = SOUND.clone();
    change(manifest["runs"].as_array_mut().unwrap());
    let error = laid_out(manifest).expect_err(expected);
    assert!(error.starts_with("here/trunk.json: ") && error.contains(expected), "{expected}: {error}");
}

#[test]
fn the_sound_one_is_accepted() {
    assert_eq!(verdict(&serde_json::to_vec(&*SOUND).unwrap()), Ok(()));
}

#[test]
fn fields_that_cannot_be_read() {
    for (field, value, expected) in [
        ("format", json!("k3-trunk/2"), "format: unknown variant `k3-trunk/2`"),
        ("format", json!(1), "format: expected value"),
        ("encoding", json!("zip"), "encoding: unknown variant `zip`"),
        ("bytes", json!(-1), "bytes: invalid value"),
        ("bytes", json!(1.5), "bytes: invalid type"),
        ("bytes", json!("4096"), "bytes: invalid type"),
        ("runs", json!({}), "runs: invalid type"),
        ("checkpoint", json!({"outside": "0", "layers": []}), "outside: \"0\" is not 16 hexadecimal digits"),
        ("checkpoint", json!({"outside": "00000000000000AB", "layers": []}), "outside: "),
        ("checkpoint", json!({"outside": "+00000000000000b", "layers": []}), "outside: "),
        ("checkpoint", json!({"layers": []}), "checkpoint: missing field `outside`"),
        ("surprise", json!(1), "unknown field `surprise`"),
    ] {
        refused(expected, |manifest| manifest[field] = value);
    }
    for (field, value, expected) in [
        ("tensor", json!("model.norm.weight"), "tensor: \"model.norm.weight\" is no tensor of a trunk"),
        ("tensor", json!("language_model.model.layers.1.block_sparse_moe.experts.0.w1.weight"), "tensor: "),
        ("tensor", json!("vision_tower.patch_embed.proj.weight"), "tensor: "),
        ("tensor", json!(7), "tensor: invalid type"),
        ("encoding", json!("int8"), "encoding: unknown variant `int8`"),
        ("encoding", json!(null), "encoding: expected value"),
        ("first_row", json!(-1), "first_row: invalid value"),
        ("rows", json!(1e3), "rows: invalid type"),
        ("columns", json!([]), "columns: invalid type"),
        ("offset", json!("0"), "offset: invalid type"),
        ("bytes", json!(null), "bytes: invalid type"),
        ("xxh3", json!("123"), "xxh3: \"123\" is not 16 hexadecimal digits"),
        ("xxh3", json!(123), "xxh3: invalid type"),
        ("surprise", json!(1), "unknown field `surprise`"),
    ] {
        refused(expected, |manifest| manifest["runs"][3][field] = value);
    }
    for field in ["format", "encoding", "checkpoint", "bytes", "runs"] {
        refused(&format!("missing field `{field}`"), |manifest| {
            manifest.as_object_mut().unwrap().remove(field);
        });
    }
    for field in ["tensor", "first_row", "rows", "columns", "encoding", "offset", "bytes", "xxh3"] {
        refused(&format!("missing field `{field}`"), |manifest| {
            manifest["runs"][3].as_object_mut().unwrap().remove(field);
        });
    }
}

#[test]
fn texts_that_are_no_manifest() {
    let sound = serde_json::to_string(&*SOUND).unwrap();
    for (text, expected) in [
        (String::new(), "EOF"),
        ("null".into(), "invalid type"),
        (sound[..sound.len() - 1].into(), "EOF"),
        (format!("{sound}x"), "trailing characters"),
        (sound.replacen('{', "{\"bytes\":1,", 1), "duplicate field `bytes`"),
        (sound.replacen("\"rows\":", "\"rows\":1,\"rows\":", 1), "duplicate field `rows`"),
        (sound.replacen("\"offset\":0", "\"offset\":18446744073709551616", 1), "offset: "),
    ] {
        let error = verdict(text.as_bytes()).expect_err(expected);
        assert!(error.starts_with("here/trunk.json: ") && error.contains(expected), "{expected}: {error}");
    }
}

/// Read through a double, 2^53 + 1 would be 2^53.
#[test]
fn numbers_above_2_to_53_are_exact() {
    for (offset, bytes) in [((1_u64 << 53) + 1, "0"), (u64::MAX, "0")] {
        refused(&format!("runs[0].offset: {offset}, where {bytes} is due"), |manifest| {
            manifest["runs"][0]["offset"] = json!(offset);
        });
    }
}

#[test]
fn places_and_lengths() {
    let bytes = SOUND["bytes"].as_u64().unwrap();
    let last = SOUND["runs"].as_array().unwrap().len() - 1;
    refused("runs[4].offset: ", |manifest| manifest["runs"][4]["offset"] = manifest["runs"][3]["offset"].clone());
    refused("runs[4].offset: ", |manifest| manifest["runs"][4]["offset"] = json!(1 << 20));
    refused("runs[4].offset: ", |manifest| {
        manifest["runs"][4]["offset"] = json!(manifest["runs"][4]["offset"].as_u64().unwrap() + 1);
    });
    refused("runs[0].bytes: ", |manifest| manifest["runs"][0]["bytes"] = json!(u64::MAX));
    refused("runs[0].bytes: ", |manifest| manifest["runs"][0]["bytes"] = json!(0));
    refused("runs[0].encoding: no ", |manifest| manifest["runs"][0]["columns"] = json!(1_u64 << 63));
    refused("runs[0].encoding: no ", |manifest| {
        manifest["runs"][0]["columns"] = json!(1_u64 << 40);
        manifest["runs"][0]["rows"] = json!(1_u64 << 40);
    });
    refused("runs[0].rows: 0 of", |manifest| manifest["runs"][0]["rows"] = json!(0));
    refused("runs[0].rows: ", |manifest| manifest["runs"][0]["columns"] = json!(0));
    refused("bytes: 4096, but the runs end at", |manifest| manifest["bytes"] = json!(4096));
    refused("bytes: 0, but the runs end at", |manifest| manifest["bytes"] = json!(0));
    // The file is not as long as manifest and runs agree that it is.
    refused("but trunk.bin has", |manifest| {
        manifest["runs"].as_array_mut().unwrap().pop();
        manifest["bytes"] = manifest["runs"][last]["offset"].clone();
        let end = SOUND["runs"][last]["offset"].clone();
        manifest["bytes"] = end;
    });
    let mut longer = SOUND.clone();
    let extra = longer["runs"][last].clone();
    longer["runs"].as_array_mut().unwrap().push(extra);
    longer["runs"][last + 1]["offset"] = json!(bytes);
    let error = verdict(&serde_json::to_vec(&longer).unwrap()).unwrap_err();
    assert!(error.contains(&format!("runs[{}].bytes: ", last + 1)), "{error}");
    assert!(error.contains("reach past the end of trunk.bin"), "{error}");
}

#[test]
fn tensors_that_are_missing_or_out_of_place() {
    refused("checkpoint.layers: there are none", |manifest| manifest["checkpoint"]["layers"] = json!([]));
    refused("checkpoint.layers: 12 layers were packed, 13 are asked for", |manifest| {
        manifest["checkpoint"]["layers"].as_array_mut().unwrap().pop();
    });
    let [query, key] = ["1.self_attn.q_proj.weight", "1.self_attn.k_proj.weight"].map(run_of);
    let later = run_of("2.self_attn.q_proj.weight");
    let due = |run: usize| format!("runs[{run}].tensor: ");
    refused_in_place("runs: row 0 of language_model.model.embed_tokens.weight and all that", Vec::clear);
    refused_in_place("runs: row 0 of language_model.lm_head.weight and all that", |runs| drop(runs.pop()));
    refused_in_place(&due(query), |runs| drop(runs.remove(query)));
    refused_in_place(&due(query), |runs| runs.swap(query, key));
    // Layers out of order.
    refused_in_place(&due(query), |runs| runs.swap(query, later));
    // One of them twice.
    refused_in_place(&due(key), |runs| runs.insert(key, runs[query].clone()));
    refused_in_place("language_model.lm_head.weight belongs to nothing", |runs| {
        runs.push(runs.last().unwrap().clone())
    });
    for (layer, expected) in [("13", "the layer of"), ("99999999999", "the layer of"), ("01", "is no tensor")] {
        refused_in_place(expected, |runs| {
            runs[query]["tensor"] = json!(format!("language_model.model.layers.{layer}.self_attn.q_proj.weight"));
        });
    }
}

/// Cuts a run in two.
fn split(runs: &mut Vec<Value>, run: usize) {
    let mut second = runs[run].clone();
    let rows = second["rows"].as_u64().unwrap();
    runs[run]["rows"] = json!(rows / 2);
    second["first_row"] = json!(rows / 2);
    second["rows"] = json!(rows - rows / 2);
    runs.insert(run + 1, second);
}

#[test]
fn rows_and_columns() {
    let query = run_of("1.self_attn.q_proj.weight");
    let field = |name: &str| format!("runs[{query}].{name}: ");
    // Cut otherwise is still whole.
    let mut cut = SOUND.clone();
    split(cut["runs"].as_array_mut().unwrap(), query);
    assert_eq!(laid_out(cut), Ok(()));
    let second = format!("runs[{}].first_row: ", query + 1);
    for first_row in [0, 1, usize::MAX] {
        refused_in_place(&second, |runs| {
            split(runs, query);
            runs[query + 1]["first_row"] = json!(first_row);
        });
    }
    refused_in_place(&format!("runs[{}].rows: ", query + 1), |runs| {
        split(runs, query);
        runs[query + 1]["rows"] = json!(1 << 20);
    });
    refused_in_place(&field("first_row"), |runs| runs[query]["first_row"] = json!(1));
    refused_in_place(&field("rows"), |runs| runs[query]["rows"] = json!(runs[query]["rows"].as_u64().unwrap() + 1));
    refused_in_place(&field("columns"), |runs| runs[query]["columns"] = json!(1));
    // In pieces, where the model wants one.
    let whole = run_of("3.self_attn.kv_b_proj.weight");
    refused_in_place(&format!("runs[{whole}].rows: "), |runs| split(runs, whole));
}

#[test]
fn encodings() {
    let [query, norm] = ["1.self_attn.q_proj.weight", "1.input_layernorm.weight"].map(run_of);
    let encode =
        |run: usize, encoding: &'static str| move |runs: &mut Vec<Value>| runs[run]["encoding"] = json!(encoding);
    for (run, encoding) in [(query, "f32"), (query, "mxfp4"), (norm, "f32"), (norm, "mxfp4")] {
        refused_in_place(&format!("runs[{run}].encoding: {encoding}, but"), encode(run, encoding));
    }
    refused_in_place(&format!("runs[{}].encoding: f32, but", query + 1), |runs| {
        split(runs, query);
        encode(query + 1, "f32")(runs);
    });
    let convolution = run_of("1.self_attn.q_conv1d.weight");
    refused_in_place(&format!("runs[{convolution}].encoding: no "), encode(convolution, "mxfp4"));
    refused(&format!("runs[{query}].bytes: "), |manifest| manifest["runs"][query]["encoding"] = json!("f32"));
    refused(&format!("runs[{query}].bytes: "), |manifest| manifest["runs"][query]["encoding"] = json!("mxfp4"));
}
