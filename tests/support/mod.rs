//! What the tests of the program share: where the fixtures are, how to start it, what the references say.
#![allow(dead_code, reason = "each test uses its own part")]

#[cfg(target_os = "linux")]
pub mod caps;
pub mod source;
pub mod text;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use k3_core::checkpoint::Checkpoint;
use k3_core::config::Config;
use k3_core::stream::resident::Resident;
use k3_host::checkpoint::Folder;
use k3_host::storage::FileStorage;
use serde_json::Value;

/// A folder of `fixtures/`.
pub fn fixture(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", "fixtures", name].iter().collect()
}

/// Runs the program with the given arguments.
pub fn k3_host<I: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = I>) -> Output {
    Command::new(env!("CARGO_BIN_EXE_k3-host")).args(args).output().expect("the program starts")
}

/// What the program printed, after checking that it ended with `code`.
pub fn expect_exit(output: &Output, code: i32) -> (String, String) {
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "stdout: {stdout}\nstderr: {stderr}");
    (stdout, stderr)
}

/// A folder for large files of many holes: in memory, if the system offers that, since some drives take a second to delete
/// one.
pub fn sparse_folder() -> tempfile::TempDir {
    const NEEDED: u64 = 1 << 30;
    let memory = Path::new("/dev/shm");
    let has_room = fs4::available_space(memory).is_ok_and(|bytes| bytes > NEEDED);
    let folder = if has_room { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    folder.expect("there is a place for temporary files")
}

/// The reference of an oracle model.
pub struct Reference(Value);

impl Reference {
    /// That of `fixtures/oracle/NAME`.
    pub fn of(model: &str) -> Self {
        let path = fixture("oracle").join(model).join("expected/oracle.json");
        Self(serde_json::from_slice(&std::fs::read(path).expect("the reference is there")).expect("it is JSON"))
    }

    /// A list of ids.
    pub fn ids(&self, field: &str) -> Vec<u32> {
        let ids = self.0[field].as_array().expect("a list");
        ids.iter().map(|id| id.as_u64().expect("an id") as u32).collect()
    }

    /// A number.
    pub fn number(&self, field: &str) -> f64 {
        self.0[field].as_f64().expect("a number")
    }
}

/// Ids as the program takes and prints them.
pub fn joined(ids: &[u32]) -> String {
    ids.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

/// The weights of a checkpoint, in memory.
pub fn resident(folder: &Path, config: &Config) -> Resident<Vec<u8>> {
    let checkpoint = Checkpoint::open(&Folder { path: folder.to_path_buf() }, config, config.layers.len());
    let read = |file: FileStorage| Ok(std::fs::read(file.path()).expect("a shard can be read"));
    Resident::new(checkpoint.expect("the checkpoint opens"), read).expect("its shards are whole")
}

/// How a test opens a model.
pub fn engine_args() -> k3_host::args::EngineArgs {
    let (memory, bar) = (k3_host::args::MemoryArgs::default(), k3_host::shards::LoadingBar::Hidden);
    k3_host::args::EngineArgs { config: None, layers: None, threads: Some(1), backend: None, chunk: 32, memory, bar }
}
