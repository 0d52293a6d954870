//! `k3-host run` on text: from a prompt to streamed text, sampled or not, stopped and gone on from.

mod support;

use k3_core::tokenizer::Mode;
use serde_json::Value;
use support::text::{BYTES, TOKENIZER, split_characters, toy};
use support::{Reference, expect_exit, fixture, joined, k3_host};

/// Runs on the toy model; returns standard output and the results.
fn run(flags: &[&str]) -> (String, Value) {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("results.json");
    let args = ["run", toy(), "--threads", "1", "--out", out.to_str().unwrap()];
    let (stdout, _) = expect_exit(&k3_host(args.iter().chain(flags)), 0);
    (stdout, serde_json::from_slice(&std::fs::read(out).unwrap()).unwrap())
}

fn ids(results: &Value, field: &str) -> Vec<u32> {
    results[field].as_array().unwrap().iter().map(|id| id.as_u64().unwrap() as u32).collect()
}

#[test]
fn text_is_encoded_generated_from_and_decoded() {
    let (stdout, results) = run(&["--prompt", "The capital of France is", "--gen", "8"]);
    assert_eq!(ids(&results, "prompt_ids"), [1008, 10484, 318, 15383, 387]);
    assert_eq!(results["prompt"], "The capital of France is");
    let bytes = TOKENIZER.decode(&ids(&results, "ids")).unwrap();
    let text = String::from_utf8_lossy(&bytes);
    assert_eq!(results["text"], *text);
    assert_eq!(stdout, format!("{text}\n"));
    assert!(results.get("sampling").is_none());

    // As ids it is the same run.
    let (stdout, by_ids) = run(&["--ids", "1008,10484,318,15383,387", "--gen", "8"]);
    assert_eq!(by_ids["ids"], results["ids"]);
    assert_eq!(stdout.trim(), joined(&ids(&results, "ids")));
    assert!(by_ids.get("text").is_none() && by_ids.get("prompt").is_none());
}

/// Every character of several bytes is split over tokens of one byte.
#[test]
fn split_characters_are_shown_whole_and_broken_ones_as_such() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("results.json");
    let flags = ["--prompt", "x", "--gen", "2000", "--top-p", "1", "--threads", "1", "--out", out.to_str().unwrap()];
    let (mut split, mut broken) = (0, 0);
    for seed in ["0", "1", "2", "3", "4", "5", "6", "7"] {
        let args = [&["run", BYTES.to_str().unwrap()], &flags[..], &["--seed", seed]].concat();
        let (stdout, _) = expect_exit(&k3_host(args), 0);
        let results: Value = serde_json::from_slice(&std::fs::read(&out).unwrap()).unwrap();
        let tokenizer = k3_host::tokenizer::load(&BYTES).unwrap();
        let mut generated = ids(&results, "ids");
        // [EOS], <|end_of_msg|> and the end that the config names.
        generated.pop_if(|id| [257, 258, 511].contains(id));
        let bytes = tokenizer.decode(&generated).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        assert_eq!(stdout, format!("{text}\n"));
        assert_eq!(results["text"], *text);
        split += split_characters(&text);
        broken += text.matches(char::REPLACEMENT_CHARACTER).count();
    }
    assert!(split > 0 && broken > 0, "{split} split characters, {broken} broken ones");
}

#[test]
fn specials_in_a_prompt_are_text_unless_asked_for() {
    let text = "literal <|open|> and [EOS]";
    for (flags, mode) in [(&[][..], Mode::Plain), (&["--special"], Mode::Special)] {
        let (_, results) = run(&[&["--prompt", text, "--gen", "1"], flags].concat());
        assert_eq!(ids(&results, "prompt_ids"), TOKENIZER.encode(text, mode));
    }
    assert_ne!(TOKENIZER.encode(text, Mode::Plain), TOKENIZER.encode(text, Mode::Special));
}

#[test]
fn a_printed_report_takes_the_place_of_the_text() {
    let (text, _) = run(&["--prompt", "x", "--gen", "3"]);
    let output = k3_host(["run", toy(), "--prompt", "x", "--gen", "3", "--out", "-"]);
    let report: Value = serde_json::from_str(&expect_exit(&output, 0).0).unwrap();
    assert_eq!(format!("{}\n", report["text"].as_str().unwrap()), text);
}

#[test]
fn a_prompt_file_counts_with_every_byte() {
    let folder = tempfile::Builder::new().prefix("früher oder später ").tempdir().unwrap();
    let path = folder.path().join("prompt.txt");
    std::fs::write(&path, " ein Text\r\n\n").unwrap();
    let (_, results) = run(&["--prompt-file", path.to_str().unwrap(), "--gen", "1"]);
    assert_eq!(results["prompt"], " ein Text\r\n\n");
    std::fs::write(&path, b"abc\xff").unwrap();
    let output = k3_host(["run", toy(), "--prompt-file", path.to_str().unwrap()]);
    assert!(expect_exit(&output, 2).1.contains("not UTF-8 after byte 3"));
}

#[test]
fn the_same_seed_replays_and_settings_are_reported() {
    let flags = ["--prompt", "x", "--gen", "12", "--temperature", "0.7", "--top-p", "0.9", "--top-k", "5000"];
    let with = |seed| run(&[&flags[..], &["--seed", seed]].concat()).1;
    let first = with("42");
    assert_eq!(with("42")["ids"], first["ids"]);
    assert_ne!(with("43")["ids"], first["ids"]);
    let expected = serde_json::json!({"temperature": 0.7, "top_p": 0.9, "top_k": 5000, "seed": 42});
    assert_eq!(first["sampling"], expected);
    // One candidate is the greedy one, whatever the seed.
    let greedy = run(&["--prompt", "x", "--gen", "12"]).1;
    assert_eq!(run(&["--prompt", "x", "--gen", "12", "--top-k", "1", "--seed", "9"]).1["ids"], greedy["ids"]);
}

/// Greedy noise never ends a turn by itself, so the config is told that one of its ids does.
#[test]
fn text_ends_at_the_ids_that_the_config_names_and_ids_do_not() {
    let (whole, results) = run(&["--prompt", "x", "--gen", "6"]);
    let all = ids(&results, "ids");
    let end = *all.iter().find(|&&id| id != all[0]).unwrap_or(&all[0]);
    let count = 1 + all.iter().position(|&id| id == end).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.json");
    let text = std::fs::read_to_string(support::text::TOY.join("config.json")).unwrap();
    assert!(text.contains("163586"));
    std::fs::write(&config, text.replace("163586", &end.to_string())).unwrap();
    let flags = ["--gen", "6", "--config", config.to_str().unwrap()];

    let (stdout, ended) = run(&[&["--prompt", "x"], &flags[..]].concat());
    assert_eq!(ids(&ended, "ids"), all[..count]);
    let before = TOKENIZER.decode(&all[..count - 1]).unwrap();
    assert_eq!(stdout, format!("{}\n", String::from_utf8_lossy(&before)), "the end itself is not text");
    assert_ne!(stdout, whole);
    let prompt = joined(&ids(&results, "prompt_ids"));
    assert_eq!(ids(&run(&[&["--ids", &prompt], &flags[..]].concat()).1, "ids"), all);
}

#[test]
fn a_state_goes_on_with_text() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let state = state.to_str().unwrap();
    let hashes = |results: Value| {
        results["steps"].as_array().unwrap().iter().map(|step| step["logits_hash"].clone()).collect::<Vec<_>>()
    };
    let whole = hashes(run(&["--prompt", "The capital of France is", "--gen", "4"]).1);
    run(&["--prompt", "The capital of", "--gen", "0", "--save-state", state]);
    let (_, results) = run(&["--prompt", "The capital of France is", "--gen", "4", "--load-state", state]);
    assert_eq!(hashes(results), whole);
    let output = k3_host(["run", toy(), "--prompt", "A capital of", "--load-state", state]);
    assert!(expect_exit(&output, 2).1.contains("departs"));
}

fn refused(flags: &[&str], code: i32, words: &[&str]) {
    let (stdout, stderr) = expect_exit(&k3_host([&["run"], flags].concat()), code);
    assert_eq!(stdout, "", "{flags:?}");
    for word in words {
        assert!(stderr.contains(word), "{flags:?} should mention {word}: {stderr}");
    }
}

#[test]
fn usage_errors_end_with_2() {
    refused(&["no/such", "--prompt", "x", "--ids", "1"], 2, &["--prompt", "--ids"]);
    refused(&["no/such", "--prompt", "x", "--prompt-file", "y"], 2, &["--prompt-file"]);
    refused(&["no/such"], 2, &["--ids", "--prompt", "--prompt-file"]);
    refused(&["no/such", "--ids", "1", "--special"], 2, &["--special"]);
    refused(&["no/such", "--ids", "1", "--tok", "x"], 2, &["--tok"]);
    // Before anything is loaded.
    refused(&["no/such", "--ids", "1", "--temperature", "0"], 2, &["temperature"]);
    refused(&["no/such", "--prompt", "x", "--top-p", "1.01"], 2, &["top-p"]);
    refused(&[toy(), "--prompt", ""], 2, &["prompt is empty"]);
}

#[test]
fn files_that_are_missing_or_do_not_fit_are_named() {
    let a = fixture("oracle").join("a");
    let a = a.to_str().unwrap();
    refused(&[a, "--prompt", "x"], 1, &["tiktoken.model", "--tok"]);
    refused(&[a, "--prompt", "x", "--tok", toy()], 2, &["tiktoken.model", "163840", "131"]);
    refused(&[toy(), "--prompt-file", "no/such/file"], 1, &["no/such/file"]);
    let broken = tempfile::tempdir().unwrap();
    std::fs::write(broken.path().join("tiktoken.model"), "AA== 0\nAQ== 2\n").unwrap();
    std::fs::write(broken.path().join("tokenizer_config.json"), "{}").unwrap();
    refused(&[toy(), "--prompt", "x", "--tok", broken.path().to_str().unwrap()], 2, &["tiktoken.model, line 2"]);
}

/// Sampling is open to ids too; the bundled model's reference has only greedy ones.
#[test]
fn ids_can_be_sampled() {
    let a = fixture("oracle").join("a");
    let prompt = joined(&Reference::of("a").ids("prompt_ids"));
    let run = |seed: &str| {
        let args = ["run", a.to_str().unwrap(), "--ids", &prompt, "--gen", "10", "--seed", seed];
        expect_exit(&k3_host(args), 0).0
    };
    assert_eq!(run("1"), run("1"));
    assert_ne!(run("1"), run("2"));
}
