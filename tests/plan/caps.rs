//! Limits that the system sets: control groups and limits of the process.
#![cfg(target_os = "linux")]

use std::process::Output;

use serde_json::Value;

use super::support::caps::{Group, after};
use super::support::{expect_exit, fixture};

fn available(output: &Output) -> u64 {
    let (stdout, _) = expect_exit(output, 0);
    serde_json::from_str::<Value>(&stdout).unwrap()["available"].as_u64().unwrap()
}

fn small_model() -> String {
    fixture("oracle").join("a").display().to_string()
}

#[test]
fn limits_of_the_process_count() {
    for (flag, least) in [('v', 1_000_000_000), ('d', 2_500_000_000)] {
        let limit = format!("ulimit -{flag} 3000000");
        let available = available(&after(&limit, "plan --json --ram 800MB --context 1"));
        assert!((least..3_072_000_000).contains(&available), "ulimit -{flag}: {available}");
        let run = format!("run '{}' --ids 1,2 --gen 2", small_model());
        expect_exit(&after(&limit, &run), 0);
        expect_exit(&after(&limit, &format!("{run} --trunk-gb 0")), 0);
        let (_, stderr) = expect_exit(&after(&limit, "plan --preset laptop"), 2);
        assert!(stderr.contains("--preset laptop: the plan takes up to 8.00 GB"), "{stderr}");
    }
}

#[test]
fn the_limit_of_a_control_group_counts() {
    let Some(group) = Group::new(2_000_000_000) else {
        println!("NOT RUN: making a control group with a limit is not permitted here");
        return;
    };
    let available = available(&group.run("plan --json --ram 800MB --context 1"));
    assert!((1_800_000_000..=2_000_000_000).contains(&available), "{available}");
    expect_exit(&group.run(&format!("run '{}' --ids 1,2 --gen 2", small_model())), 0);
    let (_, stderr) = expect_exit(&group.run("plan --preset ultra"), 2);
    assert!(stderr.contains("2.00 GB; "), "{stderr}");
}
