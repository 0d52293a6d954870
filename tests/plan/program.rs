//! `k3-host plan`, and how runs go by plans.

use serde_json::Value;

use super::support::{expect_exit, fixture, k3_host};

fn json(args: &[&str]) -> Value {
    let (stdout, _) = expect_exit(&k3_host(["plan", "--json"].iter().chain(args)), 0);
    serde_json::from_str(&stdout).unwrap()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is not a number"))
}

#[test]
fn a_plan_needs_no_checkpoint() {
    let plan = json(&["--ram", "1GB", "--context", "100", "--disk-gbps", "5"]);
    let parts = plan["memory"].as_object().unwrap().values().map(number).sum::<u64>();
    assert_eq!(number(&plan["total"]), parts);
    // Less is left than one more expert would take.
    assert!((1_000_000_000 - 17_551_360..=1_000_000_000).contains(&parts), "{plan}");
    assert_eq!((&plan["layers"], &plan["context"]), (&93.into(), &100.into()));
    assert_eq!(number(&plan["file_bytes"]), 1_560_936_091_448);
    assert!(number(&plan["free_disk_bytes"]) > 0);
    let reads = plan["reads"].as_object().unwrap().values().map(number).sum::<u64>();
    let seconds = plan["read_seconds"].as_f64().unwrap();
    assert!((seconds - reads as f64 / 5e9).abs() < 1e-9, "{plan}");
}

#[test]
fn a_checkpoint_that_fits_is_not_streamed() {
    let folder = fixture("oracle").join("a");
    let plan = json(&[folder.to_str().unwrap()]);
    let files = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap());
    let shards = files.filter(|file| file.path().extension().is_some_and(|end| end == "safetensors"));
    let bytes: u64 = shards.map(|file| file.metadata().unwrap().len()).sum();
    assert_eq!((&plan["weights"], number(&plan["memory"]["weights"])), (&"resident".into(), bytes));
}

#[test]
fn people_are_told_the_same() {
    let (stdout, _) = expect_exit(&k3_host(["plan", "--ram", "1GB", "--context", "100"]), 0);
    for part in
        ["93 layers, 1560936091448 bytes in 96 files", "expert cache", "of a budget of 1.00 GB", "which is assumed"]
    {
        assert!(stdout.contains(part), "{part}: {stdout}");
    }
}

/// The page shows what the program says.
#[test]
fn the_presets_are_those_of_the_page() {
    let (table, _) = expect_exit(&k3_host(["plan", "--list-presets", "--threads", "8"]), 0);
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/streaming.md")).unwrap();
    assert!(page.contains(&table), "{table}");
}

#[test]
fn a_budget_beyond_the_machine_is_refused_before_reading() {
    let folder = fixture("oracle").join("a");
    let run = ["run", folder.to_str().unwrap(), "--ids", "1", "--gen", "1"];
    let (_, stderr) = expect_exit(&k3_host(run.iter().chain(&["--ram", "1MB"])), 2);
    assert!(stderr.contains("1 positions need at least"), "{stderr}");
    assert!(stderr.contains("--ram "), "{stderr}");
    let (_, stderr) = expect_exit(&k3_host(["plan", "--ram", "900000"]), 2);
    assert!(stderr.contains("are safe to use"), "{stderr}");
}
