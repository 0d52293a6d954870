//! How much memory this process may still use: what the machine has left, and no more than any enclosing control group
//! allows.

use std::fs;
use std::path::{Path, PathBuf};

/// The bytes that can be allocated without paging, or `None` where the system does not say. Unknown is not zero.
#[must_use]
pub fn available() -> Option<u64> {
    available_under(Path::new("/"))
}

/// The most memory that this process ever had in use at once, or `None` where the system does not say.
#[must_use]
pub fn peak() -> Option<u64> {
    kibibytes(Path::new("/proc/self/status"), "VmHWM:")
}

/// As [`available`], with the system's files under `root`.
fn available_under(root: &Path) -> Option<u64> {
    let machine = kibibytes(&root.join("proc/meminfo"), "MemAvailable:");
    let groups = control_groups(root).into_iter().filter_map(|folder| group_available(&folder));
    machine.into_iter().chain(groups).min()
}

/// The bytes that a line of one of the system's files gives in kibibytes.
fn kibibytes(file: &Path, name: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// The control group of this process and its ancestors, in either version of the interface.
fn control_groups(root: &Path) -> Vec<PathBuf> {
    let mounts = root.join("sys/fs/cgroup");
    let text = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let mut folders = Vec::new();
    for line in text.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let mount = match controllers {
            "" => mounts.clone(),
            _ if controllers.split(',').any(|name| name == "memory") => mounts.join("memory"),
            _ => continue,
        };
        let inside = Path::new(path.trim_start_matches('/'));
        folders.extend(inside.ancestors().map(|ancestor| mount.join(ancestor)));
    }
    folders
}

/// What a group may still use: its limit less what it uses, where it has a limit.
fn group_available(folder: &Path) -> Option<u64> {
    let number = |name: &str| fs::read_to_string(folder.join(name)).ok()?.trim().parse::<u64>().ok();
    let either = |new, old| number(new).or_else(|| number(old));
    let limit = either("memory.max", "memory.limit_in_bytes")?;
    let used = either("memory.current", "memory.usage_in_bytes")?;
    let reclaimable = reclaimable(&folder.join("memory.stat"));
    Some(limit.saturating_sub(used.saturating_sub(reclaimable)))
}

/// Bytes of file cache that count as used but are given back on demand.
fn reclaimable(stat: &Path) -> u64 {
    let text = fs::read_to_string(stat).unwrap_or_default();
    let find = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
        line.trim().parse::<u64>().ok()
    };
    ["total_inactive_file", "inactive_file"].into_iter().find_map(find).unwrap_or(0)
}

/// A number of bytes as people read it, in powers of 1,000.
#[must_use]
pub fn readable(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{:.1} KB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.2} GB", bytes as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder that looks like the system's files.
    struct System(tempfile::TempDir);

    impl System {
        fn new(files: &[(&str, &str)]) -> Self {
            let root = tempfile::tempdir().unwrap();
            for (name, text) in files {
                let path = root.path().join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            Self(root)
        }

        fn available(&self) -> Option<u64> {
            available_under(self.0.path())
        }
    }

    const MEMINFO: (&str, &str) = ("proc/meminfo", "MemTotal: 999 kB\nMemAvailable:      64000 kB\n");

    #[test]
    fn unknown_is_not_zero() {
        assert_eq!(System::new(&[]).available(), None);
        assert_eq!(System::new(&[MEMINFO]).available(), Some(64_000 * 1024));
    }

    #[test]
    fn the_tightest_ancestor_counts() {
        let system = System::new(&[
            MEMINFO,
            ("proc/self/cgroup", "0::/outer/inner\n"),
            ("sys/fs/cgroup/outer/inner/memory.max", "max\n"),
            ("sys/fs/cgroup/outer/inner/memory.current", "7\n"),
            ("sys/fs/cgroup/outer/memory.max", "5000\n"),
            ("sys/fs/cgroup/outer/memory.current", "1500\n"),
            ("sys/fs/cgroup/outer/memory.stat", "anon 1000\ninactive_file 500\n"),
        ]);
        assert_eq!(system.available(), Some(4000));
    }

    #[test]
    fn the_older_interface_counts_too() {
        let system = System::new(&[
            MEMINFO,
            ("proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/box\n"),
            ("sys/fs/cgroup/memory/box/memory.limit_in_bytes", "3000\n"),
            ("sys/fs/cgroup/memory/box/memory.usage_in_bytes", "4000\n"),
        ]);
        assert_eq!(system.available(), Some(0));
    }

    /// A peak stays when the memory is given back.
    #[cfg(target_os = "linux")]
    #[test]
    fn the_peak_counts_what_was_used_and_given_back() {
        const BYTES: usize = 300 << 20;
        let before = peak().unwrap();
        assert!(before < BYTES as u64, "the test needs more than was ever in use: {before}");
        drop(std::hint::black_box(vec![1_u8; BYTES]));
        assert!(peak().unwrap() >= BYTES as u64);
    }

    #[test]
    fn sizes_read_well() {
        assert_eq!(readable(55_296), "55.3 KB");
        assert_eq!(readable(433_913_856), "433.9 MB");
        assert_eq!(readable(1_560_860_324_864), "1560.86 GB");
    }
}
