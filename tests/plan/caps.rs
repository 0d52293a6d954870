//! Limits that the system sets: control groups and limits of the process.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, id};

use serde_json::Value;

use super::support::{expect_exit, fixture};

/// Runs the program after the shell commands `before`.
fn after(before: &str, args: &str) -> Output {
    let program = env!("CARGO_BIN_EXE_k3-host");
    Command::new("sh").args(["-c", &format!("{before} && exec '{program}' {args}")]).output().expect("there is a shell")
}

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

/// A control group below ours, gone at the end.
struct Group(PathBuf);

impl Group {
    /// A group with a limit, in either version of the interface; `None` where that is not permitted.
    fn new(limit: u64) -> Option<Self> {
        let name = format!("k3-plan-{}", id());
        [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")].into_iter().find_map(
            |(mount, file)| {
                let group = Self(PathBuf::from(mount).join(&name));
                fs::create_dir(&group.0).ok()?;
                fs::write(group.0.join(file), limit.to_string()).ok()?;
                Some(group)
            },
        )
    }

    fn run(&self, args: &str) -> Output {
        after(&format!("echo $$ > '{}/cgroup.procs'", self.0.display()), args)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The system may still be busy with the processes that have ended.
        for _ in 0..100 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
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
