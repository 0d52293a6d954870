//! `pack --encoding dict`: the same numbers in less space, and as they are where that does not pay.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_64;

use crate::contents::{check, number};
use crate::models::{self, WIDE, copy, manifest, names, oracle, pack};
use crate::support::{expect_exit, k3_host};

const DICT: [&str; 2] = ["--encoding", "dict"];
const QUERY: &str = "language_model.model.layers.1.self_attn.q_proj.weight";
/// The elements of a row of [`ESCAPING`] that no dictionary has room for.
const ESCAPES: usize = 4;

/// A generated checkpoint in which one row needs escapes. `kv_b_proj` is as wide as a dictionary asks for.
static ESCAPING: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pack escaping");
    expect_exit(&k3_host(["synth", folder.to_str().unwrap(), "--latent-rank", "96", "--force"]), 0);
    change(&folder, QUERY, |bytes, columns| {
        for (column, [_, high]) in bytes.as_chunks_mut().0[..columns].iter_mut().enumerate() {
            *high = if column < columns - ESCAPES { 0x20 + column as u8 % 15 } else { 0xb0 + (columns - column) as u8 };
        }
    });
    folder
});

/// Changes the bytes of a tensor as wide as the model.
fn change(model: &Path, tensor: &str, change: impl FnOnce(&mut [u8], usize)) {
    for name in names(model).iter().filter(|name| name.ends_with(".safetensors")) {
        let path = model.join(name);
        let mut bytes = fs::read(&path).unwrap();
        if let Ok(view) = safetensors::SafeTensors::deserialize(&bytes).unwrap().tensor(tensor) {
            let columns = view.shape()[1];
            let begin = view.data().as_ptr() as usize - bytes.as_ptr() as usize;
            let span = begin..begin + view.data().len();
            change(&mut bytes[span], columns);
            return fs::write(&path, bytes).unwrap();
        }
    }
    panic!("no tensor {tensor}");
}

fn runs(manifest: &Value) -> &Vec<Value> {
    manifest["runs"].as_array().unwrap()
}

/// The escapes of the rows of a run.
fn escapes(run: &Value) -> usize {
    (number(run, "bytes") / number(run, "rows") - 16 - number(run, "columns") * 3 / 2) / 3
}

#[test]
fn the_numbers_are_the_same_and_take_less() {
    for (model, most_escapes) in [(oracle("a"), 0), (oracle("b"), 0), (WIDE.clone(), 0), (ESCAPING.clone(), ESCAPES)] {
        let out = tempfile::tempdir().unwrap();
        let (stdout, _) = expect_exit(&pack(&model, out.path(), &DICT), 0);
        check(&model, out.path());
        let manifest = manifest(out.path());
        assert_eq!(manifest["encoding"], "dict");
        let dict = runs(&manifest).iter().filter(|run| run["encoding"] == "dict");
        assert!(dict.clone().all(|run| number(run, "bytes") < number(run, "rows") * number(run, "columns") * 2));
        assert!(dict.clone().count() > 10, "{} runs", dict.count());
        assert_eq!(dict.map(escapes).max(), Some(most_escapes));

        let stored: usize = runs(&manifest).iter().map(|run| number(run, "bytes")).sum();
        let raw: usize = raw_bytes(&model);
        let ratio = format!("{:.2} of raw", stored as f64 / raw as f64);
        println!("{}: {ratio}", model.display());
        assert!(stored < raw && stdout.contains(&ratio), "{ratio}: {stdout}");
        let (stdout, _) = expect_exit(&pack(&model, out.path(), &["--verify"]), 0);
        assert!(stdout.contains("are those of the checkpoint"), "{stdout}");
    }
}

/// The bytes of the runs of the same trunk as it is.
fn raw_bytes(model: &Path) -> usize {
    let out = tempfile::tempdir().unwrap();
    expect_exit(&pack(model, out.path(), &[]), 0);
    runs(&manifest(out.path())).iter().map(|run| number(run, "bytes")).sum()
}

#[test]
fn only_what_is_multiplied_by_run_after_run_gets_one() {
    let out = tempfile::tempdir().unwrap();
    expect_exit(&pack(&ESCAPING, out.path(), &DICT), 0);
    let manifest = manifest(out.path());
    let is_dict = |end: &str| {
        let run = runs(&manifest).iter().find(|run| run["tensor"].as_str().unwrap().ends_with(end));
        run.unwrap_or_else(|| panic!("{end}"))["encoding"] == "dict"
    };
    for end in
        ["q_proj.weight", "k_proj.weight", "lm_head.weight", "mlp.gate_proj.weight", "block_sparse_moe.gate.weight"]
    {
        assert!(is_dict(end), "{end}");
    }
    for end in
        ["embed_tokens.weight", "kv_b_proj.weight", "model.norm.weight", "mlp_res_proj.weight", "q_conv1d.weight"]
    {
        assert!(!is_dict(end), "{end}");
    }
}

#[test]
fn what_a_dictionary_does_not_make_smaller_stays_as_it_is() {
    let model = tempfile::tempdir().unwrap();
    copy(&ESCAPING, model.path());
    // All high bytes are equally frequent.
    change(model.path(), QUERY, |bytes, _| {
        let mut random = 1_u64;
        for byte in bytes {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            *byte = (random >> 56) as u8;
        }
    });
    let out = tempfile::tempdir().unwrap();
    expect_exit(&pack(model.path(), out.path(), &DICT), 0);
    check(model.path(), out.path());
    let manifest = manifest(out.path());
    let encoding =
        |tensor: &str| runs(&manifest).iter().find(|run| run["tensor"] == *tensor).unwrap()["encoding"].clone();
    assert_eq!((encoding(QUERY), encoding(&QUERY.replace("q_proj", "k_proj"))), (json!("bf16"), json!("dict")));
}

#[test]
fn another_encoding_starts_afresh() {
    let [out, raw] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    expect_exit(&pack(&oracle("a"), raw.path(), &[]), 0);
    // A journal of everything in the other encoding.
    let sound = manifest(raw.path());
    let mut journal =
        json!({"format": "k3-trunk-partial/1", "encoding": "raw", "checkpoint": sound["checkpoint"]}).to_string();
    for run in runs(&sound) {
        journal += &format!("\n{run}");
    }
    for (flags, resumed) in [(&DICT[..], false), (&[], true)] {
        fs::write(out.path().join("trunk.json.partial"), format!("{journal}\n")).unwrap();
        fs::copy(raw.path().join("trunk.bin"), out.path().join("trunk.bin.partial")).unwrap();
        let flags: Vec<&str> = flags.iter().copied().chain(["--force"]).collect();
        let (stdout, _) = expect_exit(&pack(&oracle("a"), out.path(), &flags), 0);
        assert_eq!(stdout.contains("runs were there from before"), resumed, "{stdout}");
        assert_eq!(manifest(out.path())["encoding"], if resumed { "raw" } else { "dict" });
    }
}

/// Damage under a checksum that was made to fit.
#[test]
fn damaged_rows_are_found_by_what_they_are() {
    let out = tempfile::tempdir().unwrap();
    expect_exit(&pack(&ESCAPING, out.path(), &DICT), 0);
    let sound = manifest(out.path());
    let number_of_run = runs(&sound).iter().position(|run| run["tensor"] == QUERY).unwrap();
    let run = &runs(&sound)[number_of_run];
    let (begin, bytes, columns) = (number(run, "offset"), number(run, "bytes"), number(run, "columns"));
    let whole = fs::read(out.path().join("trunk.bin")).unwrap();
    let slots = 16 + columns * 3 / 2;
    for (at, expected) in [
        (15, "row 0: the last entry of the dictionary is not 0xff"),
        (slots, "row 0: the escapes are not"),
        (16, "trunk.bin does not hold what the checkpoint holds"),
        (0, "trunk.bin does not hold what the checkpoint holds"),
    ] {
        let mut data = whole.clone();
        data[begin + at] ^= 0x40;
        let mut manifest = sound.clone();
        manifest["runs"][number_of_run]["xxh3"] = json!(format!("{:016x}", xxh3_64(&data[begin..begin + bytes])));
        fs::write(out.path().join("trunk.bin"), data).unwrap();
        fs::write(out.path().join("trunk.json"), manifest.to_string()).unwrap();
        let (_, stderr) = expect_exit(&pack(&ESCAPING, out.path(), &["--verify"]), 1);
        assert!(stderr.contains(expected) && stderr.contains(run["tensor"].as_str().unwrap()), "{expected}: {stderr}");
    }
}

#[test]
fn a_manifest_cannot_claim_one_where_there_is_none() {
    let out = tempfile::tempdir().unwrap();
    expect_exit(&pack(&ESCAPING, out.path(), &DICT), 0);
    let sound = manifest(out.path());
    let find = |end: &str| runs(&sound).iter().position(|run| run["tensor"].as_str().unwrap().ends_with(end)).unwrap();
    let [embedding, whole, query] = ["embed_tokens.weight", "kv_b_proj.weight", QUERY].map(find);
    let dict_bytes = |run: usize| {
        let run = &runs(&sound)[run];
        number(run, "rows") * (16 + number(run, "columns") * 3 / 2)
    };
    let model = models::open(&ESCAPING, None);
    // With all places after it moved, as if the run were so long.
    let refused = |run: usize, bytes: usize, expected: &str, packing: &str| {
        let mut manifest = sound.clone();
        manifest["encoding"] = json!(packing);
        manifest["runs"][run]["encoding"] = json!("dict");
        manifest["runs"][run]["bytes"] = json!(bytes);
        let mut end = 0;
        for run in manifest["runs"].as_array_mut().unwrap() {
            run["offset"] = json!(end);
            end = (end + number(run, "bytes")).next_multiple_of(4096);
        }
        manifest["bytes"] = json!(end);
        let manifest =
            k3_core::stream::trunk_file::Manifest::parse("trunk.json", manifest.to_string().as_bytes()).unwrap();
        let trunk = manifest.trunk("trunk.json", &model.checkpoint.index, &model.config, end as u64);
        let error = trunk.expect_err(expected).to_string();
        assert!(error.contains(expected), "{expected}: {error}");
    };
    let stored = number(&runs(&sound)[query], "bytes");
    let rows = number(&runs(&sound)[query], "rows");
    assert_eq!(runs(&sound)[query]["encoding"], "dict");
    refused(embedding, dict_bytes(embedding), &format!("runs[{embedding}].encoding: dict, which"), "dict");
    refused(whole, dict_bytes(whole), &format!("runs[{whole}].encoding: dict, which"), "dict");
    let first = runs(&sound).iter().position(|run| run["encoding"] == "dict").unwrap();
    refused(first, number(&runs(&sound)[first], "bytes"), &format!("runs[{first}].encoding: dict, which"), "raw");
    for bytes in [0, 1, stored - 1, stored + 1, stored + rows, stored - rows, rows * 16, stored * 4] {
        refused(query, bytes, &format!("runs[{query}].bytes: {bytes}, which no"), "dict");
    }
}
