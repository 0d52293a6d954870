//! A disk that is full, and a program that is killed: what was there stays, what is whole is gone on from.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::models::{WIDE, WIDE_TRUNK, names, oracle, pack};
use crate::support::expect_exit;

/// Runs `pack` where a file can have 80 MiB: the first batch fits, the second does not.
fn pack_limited(out: &Path, on_limit: &str, flags: &str) -> Output {
    // Blocks of 512 bytes.
    let script = format!("{on_limit} ulimit -f 163840; exec \"$0\" pack \"$1\" --out \"$2\" {flags}");
    let program = env!("CARGO_BIN_EXE_k3-host");
    Command::new("sh").args(["-c", &script, program]).args([&**WIDE, out]).output().unwrap()
}

fn files(folder: &Path) -> [Vec<u8>; 2] {
    ["trunk.bin", "trunk.json"].map(|name| fs::read(folder.join(name)).unwrap())
}

#[test]
fn a_failed_write_leaves_the_old_trunk_and_can_be_gone_on_from() {
    let out = tempfile::tempdir().unwrap();
    expect_exit(&pack(&oracle("a"), out.path(), &[]), 0);
    let old = files(out.path());
    // The signal ignored, the write itself fails.
    let (_, stderr) = expect_exit(&pack_limited(out.path(), "trap '' XFSZ;", "--force"), 3);
    assert!(stderr.contains("cannot write ") && stderr.contains("trunk.bin.partial"), "{stderr}");
    assert!(stderr.contains("the same command goes on from there"), "{stderr}");
    assert!(files(out.path()) == old);
    expect_exit(&pack(&oracle("a"), out.path(), &["--verify"]), 0);
    check_resumed(out.path(), "--force");
}

#[test]
fn a_killed_pack_can_be_gone_on_from() {
    let out = tempfile::tempdir().unwrap();
    let output = pack_limited(out.path(), "", "");
    assert_eq!(output.status.code(), None, "ended by a signal: {output:?}");
    assert_eq!(names(out.path()), ["trunk.bin.partial", "trunk.json.partial"]);
    check_resumed(out.path(), "");
}

/// Goes on without the limit, and compares with a trunk that was packed at once.
fn check_resumed(out: &Path, flag: &str) {
    let flags: &[&str] = if flag.is_empty() { &[] } else { &[flag] };
    let (stdout, _) = expect_exit(&pack(&WIDE, out, flags), 0);
    assert!(stdout.contains(" runs were there from before"), "{stdout}");
    assert!(files(out) == files(&WIDE_TRUNK));
    assert_eq!(names(out), ["trunk.bin", "trunk.json"]);
}

#[test]
fn a_first_write_that_fails_leaves_nothing() {
    let out = tempfile::tempdir().unwrap();
    let script = "trap '' XFSZ; ulimit -f 100; exec \"$0\" pack \"$1\" --out \"$2\"";
    let args = ["-c", script, env!("CARGO_BIN_EXE_k3-host")];
    let output = Command::new("sh").args(args).args([&*oracle("a"), out.path()]).output().unwrap();
    let (_, stderr) = expect_exit(&output, 3);
    assert!(stderr.contains("trunk.bin.partial") && !stderr.contains("goes on"), "{stderr}");
    assert!(names(out.path()).is_empty(), "{:?}", names(out.path()));
}

/// A small file system, gone when it is dropped.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn new(size: &str) -> Option<Self> {
        let place = tempfile::tempdir().unwrap();
        let options = format!("size={size}");
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(place.path()).output();
        mount.is_ok_and(|output| output.status.success()).then_some(Self(place))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn a_disk_that_is_too_small_is_refused_before_anything_is_written() {
    let Some(disk) = SmallDisk::new("1m") else {
        println!("NOT RUN: mounting a small file system is not permitted");
        return;
    };
    let (_, stderr) = expect_exit(&pack(&WIDE, disk.0.path(), &[]), 2);
    assert!(stderr.contains("bytes are to be written, but only") && stderr.contains("are free"), "{stderr}");
    assert!(names(disk.0.path()).is_empty(), "{:?}", names(disk.0.path()));
}

/// The data fit, and then there is no room for the journal.
#[test]
fn a_disk_that_fills_up_leaves_the_old_trunk() {
    let small = tempfile::tempdir().unwrap();
    expect_exit(&pack(&oracle("a"), small.path(), &[]), 0);
    let pages = |bytes: &Vec<u8>| bytes.len().next_multiple_of(4096);
    let old: usize = files(small.path()).iter().map(pages).sum();
    let size = old + files(&WIDE_TRUNK)[0].len() + 3 * 4096;
    let Some(disk) = SmallDisk::new(&size.to_string()) else {
        println!("NOT RUN: mounting a small file system is not permitted");
        return;
    };
    expect_exit(&pack(&oracle("a"), disk.0.path(), &[]), 0);
    let old = files(disk.0.path());
    let (_, stderr) = expect_exit(&pack(&WIDE, disk.0.path(), &["--force"]), 3);
    assert!(stderr.contains("No space left on device"), "{stderr}");
    assert!(stderr.contains(disk.0.path().join("trunk.").to_str().unwrap()), "{stderr}");
    assert!(stderr.contains(".partial; what is whole is kept"), "{stderr}");
    assert!(files(disk.0.path()) == old);
}
