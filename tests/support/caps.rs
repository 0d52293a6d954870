//! The program under limits of the system.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, id};

/// Runs the program after the shell commands `before`.
pub fn after(before: &str, args: &str) -> Output {
    let program = env!("CARGO_BIN_EXE_k3-host");
    Command::new("sh").args(["-c", &format!("{before} && exec '{program}' {args}")]).output().expect("there is a shell")
}

/// A control group below ours, gone at the end.
pub struct Group(PathBuf);

impl Group {
    /// A group with a limit, in either version of the interface; `None` where that is not permitted.
    pub fn new(limit: u64) -> Option<Self> {
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

    /// Runs the program in the group.
    pub fn run(&self, args: &str) -> Output {
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
