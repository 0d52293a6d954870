//! `k3-host run` and `demo`, driven as a script would drive them.

mod support;

use std::path::Path;

use safetensors::SafeTensors;
use serde_json::Value;
use support::{Reference, expect_exit, fixture, joined, k3_host};

/// `run` on an oracle model with its prompt; returns standard output.
fn run(model: &str, flags: &[&str]) -> String {
    let reference = Reference::of(model);
    let folder = fixture("oracle").join(model);
    let mut args = vec!["run".into(), folder.display().to_string(), "--ids".into()];
    args.push(joined(&reference.ids("prompt_ids")));
    args.extend(flags.iter().map(|&flag| flag.to_owned()));
    expect_exit(&k3_host(args), 0).0
}

fn results(model: &str, flags: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("results.json");
    let mut flags = flags.to_vec();
    flags.extend(["--out", out.to_str().unwrap()]);
    run(model, &flags);
    serde_json::from_slice(&std::fs::read(out).unwrap()).unwrap()
}

fn hashes(results: &Value) -> Vec<String> {
    let steps = results["steps"].as_array().unwrap();
    steps.iter().map(|step| step["logits_hash"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn prints_the_ids_of_the_published_code() {
    for model in ["a", "b"] {
        let expected = Reference::of(model).ids("greedy_new_ids");
        let count = expected.len().to_string();
        assert_eq!(run(model, &["--gen", &count]).trim(), joined(&expected), "model {model}");
    }
}

/// One answer: the hashes are over the bits of the logits.
#[test]
fn threads_backends_chunks_and_recomputation_change_no_bit() {
    for model in ["a", "b"] {
        let expected = hashes(&results(model, &["--gen", "5", "--backend", "scalar", "--threads", "1"]));
        assert_eq!(expected.len(), 5);
        let backends = k3_core::kernels::Backend::available();
        for backend in backends.iter().map(|backend| backend.name()) {
            for flags in [
                ["--threads", "2", "--chunk", "1"],
                ["--threads", "3", "--chunk", "3"],
                ["--threads", "1", "--chunk", "1000"],
            ] {
                let mut flags = flags.to_vec();
                flags.extend(["--gen", "5", "--backend", backend]);
                assert_eq!(hashes(&results(model, &flags)), expected, "model {model}, {flags:?}");
                flags.push("--full-recompute");
                assert_eq!(hashes(&results(model, &flags)), expected, "model {model}, {flags:?}");
            }
        }
    }
}

#[test]
fn dumps_a_row_of_logits_for_every_position_fed() {
    let folder = tempfile::tempdir().unwrap();
    let reference = Reference::of("a");
    let mut dumps = Vec::new();
    for flags in [&["--chunk", "7"][..], &["--full-recompute"]] {
        let path = folder.path().join("logits.f32");
        let mut flags = flags.to_vec();
        flags.extend(["--gen", "4", "--dump-logits", path.to_str().unwrap()]);
        run("a", &flags);
        dumps.push(std::fs::read(&path).unwrap());
    }
    assert!(dumps[0] == dumps[1], "recomputation dumps other bits");
    let logits: Vec<f32> = dumps[0].as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect();
    let argmax = reference.ids("argmax_per_position");
    let positions = reference.ids("prompt_ids").len() + 3;
    assert_eq!(logits.len(), positions * 131);
    for (row, &expected) in logits.chunks_exact(131).zip(&argmax) {
        assert_eq!(k3_core::ops::arg_max(row) as u32, expected);
    }
}

#[test]
fn stops_at_a_stop_id() {
    let ids = Reference::of("a").ids("greedy_new_ids");
    let stop = ids[3].to_string();
    let printed = run("a", &["--gen", "20", "--stop-id", "130", "--stop-id", &stop]);
    assert_eq!(printed.trim(), joined(&ids[..4]));
}

#[test]
fn fewer_layers_give_another_answer() {
    let all = hashes(&results("a", &["--gen", "1"]));
    let same = hashes(&results("a", &["--gen", "1", "--layers", "13"]));
    let some = hashes(&results("a", &["--gen", "1", "--layers", "4"]));
    assert_eq!(all, same);
    assert_ne!(all, some);
}

fn refused(args: &[&str], code: i32, words: &[&str]) {
    let (stdout, stderr) = expect_exit(&k3_host(args), code);
    assert_eq!(stdout, "", "{args:?}");
    for word in words {
        assert!(stderr.contains(word), "{args:?} should mention {word}: {stderr}");
    }
}

#[test]
fn usage_errors_end_with_2_and_name_the_argument() {
    let model = fixture("oracle").join("a").display().to_string();
    let run = ["run", &model, "--ids"];
    let with = |rest: &[&'static str]| [&run[..], rest].concat();
    refused(&with(&["131"]), 2, &["--ids", "131", "0 to 130"]);
    refused(&with(&["4294967296"]), 2, &["--ids", "4294967296"]);
    refused(&with(&["1,,2"]), 2, &["--ids"]);
    refused(&with(&["1", "--stop-id", "131"]), 2, &["--stop-id", "131"]);
    refused(&with(&["1", "--layers", "14"]), 2, &["--layers", "14", "13 layers"]);
    refused(&with(&["1", "--layers", "0"]), 2, &["--layers"]);
    refused(&with(&["1", "--threads", "0"]), 2, &["--threads"]);
    refused(&with(&["1", "--chunk", "0"]), 2, &["--chunk"]);
    refused(&with(&["1", "--backend", "mmx"]), 2, &["--backend", "mmx", "scalar"]);
    refused(&["run", &model], 2, &["--ids"]);
}

/// A copy of model `a` that a test can damage.
fn copy_of_a() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    copy_folder(&fixture("oracle").join("a"), folder.path());
    folder
}

#[test]
fn another_config_can_be_given() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("other config.json");
    let released = std::fs::read_to_string(fixture("oracle").join("a/config.json")).unwrap();
    let scaled = released.replace("\"routed_scaling_factor\": 1.0", "\"routed_scaling_factor\": 0.5");
    assert_ne!(released, scaled);
    let with = |text: &str| {
        std::fs::write(&config, text).unwrap();
        hashes(&results("a", &["--gen", "1", "--config", config.to_str().unwrap()]))
    };
    assert_eq!(with(&released), hashes(&results("a", &["--gen", "1"])));
    assert_ne!(with(&scaled), with(&released));

    let faulty = released.replace("\"num_experts_per_token\": 4", "\"num_experts_per_token\": 17");
    let faulty = faulty.replace("\"rms_norm_eps\": 1e-05", "\"rms_norm_eps\": -1");
    std::fs::write(&config, faulty).unwrap();
    let model = fixture("oracle").join("a").display().to_string();
    let args = ["run", &model, "--ids", "1", "--config", config.to_str().unwrap()];
    refused(&args, 2, &["other config.json", "num_experts_per_token", "rms_norm_eps"]);
}

/// A model that ties its head to the embedding answers as one whose head holds a copy of it.
#[test]
fn a_tied_head_is_the_embedding() {
    let shard = "model-00014-of-000014.safetensors";
    let copied = copy_of_a();
    let path = copied.path().join(shard);
    let mut bytes = std::fs::read(&path).unwrap();
    let (embedding, head) = {
        let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
        let data = bytes.len() - header.data_len();
        let range = |name: &str| {
            let (begin, end) = header.info(&format!("language_model.{name}")).unwrap().data_offsets;
            data + begin..data + end
        };
        (range("model.embed_tokens.weight"), range("lm_head.weight"))
    };
    bytes.copy_within(embedding, head.start);
    std::fs::write(path, bytes).unwrap();

    let tied = copy_of_a();
    let config = tied.path().join("config.json");
    let untied_config = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, untied_config.replace("\"tie_word_embeddings\": false", "\"tie_word_embeddings\": true"))
        .unwrap();

    let hashes_of = |folder: &Path| {
        let args = ["run", folder.to_str().unwrap(), "--ids", "5,6,7", "--gen", "3", "--out", "-"];
        let (stdout, _) = expect_exit(&k3_host(args), 0);
        hashes(&serde_json::from_str(&stdout).unwrap())
    };
    assert_eq!(hashes_of(tied.path()), hashes_of(copied.path()));
    assert_ne!(hashes_of(tied.path()), hashes_of(&fixture("oracle").join("a")));
}

/// The last id generated is not fed, so that a prompt as long as the model's limit still gets one answer.
#[test]
fn prompts_at_the_models_limit() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.json");
    let released = std::fs::read_to_string(fixture("oracle").join("a/config.json")).unwrap();
    let short = released.replace("\"max_position_embeddings\": 1048576", "\"max_position_embeddings\": 8");
    assert_ne!(released, short);
    std::fs::write(&config, short).unwrap();
    let ids = Reference::of("a").ids("full_ids");
    let argmax = Reference::of("a").ids("argmax_per_position");
    let model = fixture("oracle").join("a").display().to_string();
    let run = |length: usize, count: &str, code: i32| {
        let prompt = joined(&ids[..length]);
        let args = ["run", &model, "--ids", &prompt, "--gen", count, "--config", config.to_str().unwrap()];
        expect_exit(&k3_host(args), code)
    };
    for length in [7, 8] {
        assert_eq!(run(length, "1", 0).0.trim(), argmax[length - 1].to_string());
    }
    run(7, "2", 0);
    for (length, count) in [(9, "1"), (9, "0"), (8, "2")] {
        let (_, stderr) = run(length, count, 2);
        assert!(stderr.contains("9 positions") && stderr.contains("at most 8"), "{stderr}");
    }
}

/// A model that cannot be trusted is refused before anything is computed or overwritten.
#[test]
fn damaged_checkpoints_are_refused() {
    let shard = "model-00003-of-000014.safetensors";
    let check = |damage: &dyn Fn(&Path), words: &[&str]| {
        let folder = copy_of_a();
        damage(&folder.path().join(shard));
        let out = folder.path().join("results.json");
        std::fs::write(&out, "old").unwrap();
        let model = folder.path().display().to_string();
        refused(&["run", &model, "--ids", "1", "--out", out.to_str().unwrap()], 2, &[&[shard], words].concat());
        assert_eq!(std::fs::read_to_string(&out).unwrap(), "old");
    };
    let rewrite = |path: &Path, change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = std::fs::read(path).unwrap();
        change(&mut bytes);
        std::fs::write(path, bytes).unwrap();
    };
    check(&|path| std::fs::remove_file(path).unwrap(), &["missing", "layers.2."]);
    check(&|path| rewrite(path, &|bytes| bytes.truncate(bytes.len() - 1)), &["past the end"]);
    check(&|path| rewrite(path, &|bytes| bytes.push(0)), &["bytes"]);
    check(&|path| rewrite(path, &Vec::clear), &["too few"]);
    check(&|path| rewrite(path, &|bytes| bytes[6] = 0x7f), &["header"]);
}

#[test]
fn a_missing_model_is_named() {
    refused(&["run", "no/such/folder", "--ids", "1"], 1, &["no/such/folder"]);
}

#[test]
fn results_that_cannot_be_written_end_with_3() {
    let model = fixture("oracle").join("a").display().to_string();
    for flag in ["--out", "--dump-logits"] {
        refused(&["run", &model, "--ids", "1", flag, "no/such/folder/file"], 3, &["no/such/folder/file"]);
    }
}

#[test]
fn the_demo_agrees_with_the_reference() {
    let (stdout, _) = expect_exit(&k3_host(["demo"]), 0);
    for verdict in ["teacher forcing     ok", "greedy decode       ok", "incremental decode  ok"] {
        assert!(stdout.contains(verdict), "{stdout}");
    }
    let b = fixture("oracle").join("b");
    expect_exit(&k3_host(["demo".as_ref(), b.as_os_str()]), 0);
}

/// The demo must be able to fail: one changed bit in one weight is a mismatch.
#[test]
fn the_demo_sees_a_damaged_weight() {
    let folder = copy_of_a();
    let damaged = folder.path().join("model-00001-of-000014.safetensors");
    let mut bytes = std::fs::read(&damaged).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 0x40;
    std::fs::write(damaged, bytes).unwrap();
    let (stdout, stderr) = expect_exit(&k3_host(["demo".as_ref(), folder.path().as_os_str()]), 1);
    assert!(stdout.contains("MISMATCH"), "{stdout}{stderr}");
}

fn copy_folder(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            std::fs::create_dir(&target).unwrap();
            copy_folder(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}
