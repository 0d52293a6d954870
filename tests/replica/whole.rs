//! All 93 layers at their true size, one token each, in several budgets: the same answer, in the memory that was planned,
//! with the reads that were planned.

use std::path::Path;

use serde_json::Value;

#[cfg(target_os = "linux")]
use super::support::caps::Group;
use super::support::{expect_exit, k3_host};

/// Budgets in MB: next to the smallest that there is a plan for, that of a laptop, and 16 GB.
const BUDGETS: [u64; 3] = [750, 8_000, 16_000];

/// Runs one token in every budget that this machine has the memory for.
pub fn runs_within_every_plan(folder: &Path) {
    let logits: Vec<_> = BUDGETS.into_iter().filter_map(|megabytes| runs_within_its_plan(folder, megabytes)).collect();
    assert!(logits.iter().all(|hash| *hash == logits[0]), "{logits:?}");
}

/// Runs one token within a budget; the hash of its logits, or `None` if the machine has too little memory for that.
fn runs_within_its_plan(folder: &Path, megabytes: u64) -> Option<Value> {
    let (folder, budget) = (folder.to_str().unwrap(), format!("{megabytes}MB"));
    let planned = k3_host(["plan", folder, "--ram", &budget, "--context", "1", "--ids", "--json"]);
    if planned.status.code() == Some(2) && megabytes > BUDGETS[0] {
        println!("NOT RUN: {}", String::from_utf8_lossy(&planned.stderr));
        return None;
    }
    let plan: Value = serde_json::from_str(&expect_exit(&planned, 0).0).unwrap();
    let run = k3_host(["run", folder, "--ram", &budget, "--ids", "7", "--gen", "1", "--out", "-"]);
    let results: Value = serde_json::from_str(&expect_exit(&run, 0).0).unwrap();
    assert_eq!(results["ids"], serde_json::json!([8]), "ids count upwards");

    let number = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("{results}"));
    let summary = &results["summary"];
    let (peak, total) = (number(&summary["peak_bytes"]), number(&plan["total"]));
    println!("{megabytes} MB: planned {total}, peak {peak}, {} s", results["steps"][0]["seconds"]);
    assert_eq!(number(&summary["planned_bytes"]), total);
    assert!(peak <= total, "peak {peak} of {total} planned");
    assert!(total * 100 <= peak * 105, "peak {peak} of {total} planned");

    let (traffic, reads) = (&summary["traffic"], &plan["reads"]);
    assert_eq!(number(&traffic["trunk_bytes"]), number(&reads["trunk"]));
    assert_eq!(number(&traffic["row_bytes"]), number(&reads["embedding"]));
    assert_eq!(number(&traffic["misses"]), 92 * 16, "the first token finds nothing in the cache");
    assert_eq!(number(&traffic["expert_bytes"]), number(&reads["experts"]));
    Some(results["steps"][0]["logits_hash"].clone())
}

/// In a control group: what fits runs without being told how much there is, and what does not is refused before anything is
/// read.
#[cfg(target_os = "linux")]
pub fn runs_within_a_control_group(folder: &Path) {
    let Some(group) = Group::new(1_200_000_000) else {
        println!("NOT RUN: making a control group with a limit is not permitted here");
        return;
    };
    let run = format!("run '{}' --ids 7 --gen 1 --out -", folder.display());
    let results: Value = serde_json::from_str(&expect_exit(&group.run(&run), 0).0).unwrap();
    assert_eq!(results["ids"], serde_json::json!([8]));
    let peak = results["summary"]["peak_bytes"].as_u64().unwrap();
    assert!(peak <= 900_000_000, "three quarters of the limit: {peak}");
    let (stdout, stderr) = expect_exit(&group.run(&format!("{run} --ram 1100MB")), 2);
    assert!(stdout.is_empty() && stderr.contains("--ram 1.1 GB: ") && stderr.contains("are available"), "{stderr}");
}
