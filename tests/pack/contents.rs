//! Every run holds the bytes of the shards, in the order of a pass.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use safetensors::Dtype;
use safetensors::tensor::TensorView;
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use crate::models::{self, WIDE, WIDE_TRUNK, manifest, names, oracle, pack, tensors};
use crate::support::expect_exit;

pub fn number(run: &Value, field: &str) -> usize {
    run[field].as_u64().unwrap() as usize
}

/// Checks the trunk in `out` against the shards in `model`, by the words of `docs/formats.md`. Returns the tensors in the
/// order in which they lie.
pub fn check(model: &Path, out: &Path) -> Vec<String> {
    let data = fs::read(out.join("trunk.bin")).unwrap();
    let manifest = manifest(out);
    assert_eq!(manifest["format"], "k3-trunk/1");
    assert_eq!(number(&manifest, "bytes"), data.len());
    assert_eq!(data.len() % 4096, 0);
    let shards = tensors(model);
    let (mut end, mut order) = (0_usize, Vec::<String>::new());
    let mut packed: BTreeMap<&str, (usize, Vec<u8>, Vec<u8>)> = BTreeMap::new();
    for run in manifest["runs"].as_array().unwrap() {
        let name = run["tensor"].as_str().unwrap();
        let (offset, bytes, rows) = (number(run, "offset"), number(run, "bytes"), number(run, "rows"));
        assert_eq!(offset, end.next_multiple_of(4096), "{name}");
        assert!(data[end..offset].iter().all(|byte| *byte == 0), "between runs are zeros");
        end = offset + bytes;
        let bytes = &data[offset..end];
        assert_eq!(run["xxh3"], format!("{:016x}", xxh3_64(bytes)), "{name}");
        let decoded;
        let bytes = if run["encoding"] == "dict" {
            decoded = from_dictionary(bytes, rows, number(run, "columns"));
            &decoded
        } else {
            bytes
        };
        let scales = if run["encoding"] == "mxfp4" { rows * number(run, "columns") / 32 } else { 0 };
        let (numbers, scales) = bytes.split_at(bytes.len() - scales);
        let (next_row, all_numbers, all_scales) = packed.entry(name).or_default();
        assert_eq!(*next_row, number(run, "first_row"), "{name}");
        *next_row += rows;
        all_numbers.extend(numbers);
        all_scales.extend(scales);
        if order.last().is_none_or(|last| last != name) {
            order.push(name.to_owned());
        }
        let dtype = match run["encoding"].as_str().unwrap() {
            "f32" => Dtype::F32,
            "bf16" | "dict" => Dtype::BF16,
            _ => continue,
        };
        assert_eq!(shards[name].0, dtype, "{name}");
    }
    for (name, (_, numbers, scales)) in &packed {
        if scales.is_empty() {
            let stored = &shards[*name].1;
            // Of a vector that is stored longer than it is used, only what is used.
            assert!(numbers.len() == stored.len() || name.ends_with("A_log"), "{name}");
            assert!(stored.starts_with(numbers), "{name}");
        } else {
            assert!(shards[&format!("{name}_packed")].1 == *numbers, "{name}");
            assert!(shards[&format!("{name}_scale")].1 == *scales, "{name}");
        }
    }
    let needed = shards.keys().filter(|name| !name.contains(".experts.") && !name.contains("vision"));
    let needed = needed.filter(|name| !name.ends_with("_packed") && !name.ends_with("_scale"));
    for name in needed {
        assert!(packed.contains_key(name.as_str()), "{name} is not packed");
    }
    order
}

/// Decodes rows with a dictionary, by the words of `docs/formats.md`.
fn from_dictionary(data: &[u8], rows: usize, columns: usize) -> Vec<u8> {
    let mut bf16 = Vec::new();
    assert_eq!(data.len() % rows, 0);
    for row in data.chunks_exact(data.len() / rows) {
        let (dictionary, rest) = row.split_at(16);
        let (low, rest) = rest.split_at(columns);
        let (codes, rest) = rest.split_at(columns / 2);
        let (slots, values) = rest.split_at(rest.len() / 3 * 2);
        for column in 0..columns {
            let byte = codes[column / 32 * 16 + column % 16];
            let code = if column % 32 < 16 { byte & 15 } else { byte >> 4 };
            let slot = || slots.chunks_exact(2).position(|slot| slot == (column as u16).to_le_bytes()).unwrap();
            let high = if code == 15 { values[slot()] } else { dictionary[usize::from(code)] };
            bf16.extend([low[column], high]);
        }
    }
    bf16
}

#[test]
fn every_run_holds_the_bytes_of_the_shards() {
    check(&WIDE, &WIDE_TRUNK);
    for model in [oracle("a"), oracle("b")] {
        let out = tempfile::tempdir().unwrap();
        let (stdout, _) = expect_exit(&pack(&model, out.path(), &[]), 0);
        assert!(stdout.contains("trunk.bin: ") && stdout.contains(", 1.00 of raw"), "{stdout}");
        let order = check(&model, out.path());
        assert_eq!(names(out.path()), ["trunk.bin", "trunk.json"]);

        // Written down from the equations of a layer, not from the program.
        let layer = |tensors: &[&str]| tensors.iter().map(|it| format!("language_model.model.layers.0.{it}")).collect();
        let due: Vec<String> = layer(&[
            "self_attn.q_proj.weight",
            "self_attn.k_proj.weight",
            "self_attn.v_proj.weight",
            "self_attn.f_a_proj.weight",
            "self_attn.f_b_proj.weight",
            "self_attn.b_proj.weight",
            "self_attn.g_proj.weight",
            "self_attn.o_proj.weight",
            "mlp.gate_proj.weight",
            "mlp.up_proj.weight",
            "mlp.down_proj.weight",
        ]);
        assert!(order.windows(due.len()).any(|window| window == due), "{order:#?}");
        assert_eq!(order.last().unwrap(), "language_model.lm_head.weight");
    }
}

#[test]
fn large_tensors_are_cut_into_runs_of_16_mib() {
    let manifest = manifest(&WIDE_TRUNK);
    let head =
        manifest["runs"].as_array().unwrap().iter().filter(|run| run["tensor"] == "language_model.lm_head.weight");
    let bytes: Vec<usize> = head.map(|run| number(run, "bytes")).collect();
    assert_eq!(bytes, [16 << 20; 4]);
}

/// Rewrites a shard so that a matrix of its trunk is MXFP4, of any values.
fn make_mxfp4(model: &Path, shard: &str, name: &str, [rows, columns]: [usize; 2]) {
    let path = model.join(shard);
    let old = fs::read(&path).unwrap();
    let old = safetensors::SafeTensors::deserialize(&old).unwrap();
    let mut views: Vec<(String, TensorView<'_>)> = old.iter().map(|(name, view)| (name.to_owned(), view)).collect();
    views.retain(|(other, _)| other != name);
    let codes: Vec<u8> = (0..rows * columns / 2).map(|at| (at * 7 % 251) as u8).collect();
    let scales: Vec<u8> = (0..rows * columns / 32).map(|at| 100 + (at % 50) as u8).collect();
    let mut add = |suffix, view| views.push((format!("{name}{suffix}"), view));
    add("_packed", TensorView::new(Dtype::U8, vec![rows, columns / 2], &codes).unwrap());
    add("_scale", TensorView::new(Dtype::U8, vec![rows, columns / 32], &scales).unwrap());
    fs::write(&path, safetensors::serialize(views, None).unwrap()).unwrap();
    let path = model.join("model.safetensors.index.json");
    let mut index: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let map = index["weight_map"].as_object_mut().unwrap();
    let file = map.remove(name).unwrap();
    map.insert(format!("{name}_packed"), file.clone());
    map.insert(format!("{name}_scale"), file);
    fs::write(&path, serde_json::to_vec(&index).unwrap()).unwrap();
}

#[test]
fn scales_follow_their_rows() {
    let model = tempfile::tempdir().unwrap();
    models::copy(&oracle("a"), model.path());
    let name = "language_model.model.layers.1.block_sparse_moe.shared_experts.gate_proj.weight";
    let config = models::open(model.path(), None).config;
    make_mxfp4(model.path(), "model-00002-of-000014.safetensors", name, [config.moe.shared_width, config.hidden]);
    let out = tempfile::tempdir().unwrap();
    expect_exit(&pack(model.path(), out.path(), &[]), 0);
    check(model.path(), out.path());
    let manifest = manifest(out.path());
    let run = manifest["runs"].as_array().unwrap().iter().find(|run| run["tensor"] == name).unwrap();
    assert_eq!(run["encoding"], "mxfp4");
    assert_eq!(number(run, "bytes"), config.moe.shared_width * config.hidden * 17 / 32);
    expect_exit(&pack(model.path(), out.path(), &["--verify"]), 0);
}

#[test]
fn a_trunk_serves_fewer_layers_than_it_has() {
    let model = oracle("a");
    let out = tempfile::tempdir().unwrap();
    expect_exit(&pack(&model, out.path(), &["--layers", "5"]), 0);
    for layers in [1, 4, 5] {
        let model = models::open(&model, Some(layers));
        let packed = k3_host::pack::open(out.path(), &model).unwrap().unwrap();
        let parts = |runs: &[k3_core::stream::trunk::Run]| -> Vec<_> {
            runs.iter().map(|run| (run.tensor, run.rows.clone(), run.encoding, run.bytes())).collect()
        };
        assert_eq!(parts(packed.trunk.runs()), parts(model.trunk.runs()), "{layers} layers");
    }
    let error = k3_host::pack::open(out.path(), &models::open(&model, Some(6))).unwrap_err().to_string();
    assert!(error.contains("trunk.json: checkpoint.layers: 5 layers were packed, 6 are asked for"), "{error}");
}

#[test]
fn only_force_replaces() {
    let out = tempfile::tempdir().unwrap();
    expect_exit(&pack(&oracle("a"), out.path(), &["--layers", "2"]), 0);
    let old = fs::read(out.path().join("trunk.bin")).unwrap();
    let (_, stderr) = expect_exit(&pack(&oracle("b"), out.path(), &[]), 2);
    assert!(stderr.contains("trunk.json is there; --force replaces the trunk"), "{stderr}");
    assert!(fs::read(out.path().join("trunk.bin")).unwrap() == old);
    expect_exit(&pack(&oracle("b"), out.path(), &["--force"]), 0);
    check(&oracle("b"), out.path());
    assert_eq!(names(out.path()), ["trunk.bin", "trunk.json"]);
}
