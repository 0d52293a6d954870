//! Runs a WASI command as a guest that can do nothing but what it is handed: folders to read, memory up to a limit, time up
//! to a limit, and standard input, output and error. No network, no environment, no writing.

mod cache;
pub mod module;

use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::Context;
use wasmtime::{Config, Engine, Linker, Module, Store, StoreLimits, StoreLimitsBuilder, Trap};
use wasmtime_wasi::p1::{self, WasiP1Ctx};
use wasmtime_wasi::{FsPerms, I32Exit, WasiCtxBuilder};

use crate::failure::{Exit, Failure, Outcome};

/// What the guest gets.
#[derive(Debug, Clone, Default)]
pub struct Grant {
    /// The arguments, without the name of the program.
    pub args: Vec<String>,
    /// Folders that it can read, under the paths that are written here.
    pub folders: Vec<PathBuf>,
    /// Most bytes of linear memory; without a limit, the 4 GiB of WebAssembly.
    pub max_memory: Option<usize>,
    /// The longest it may run.
    pub timeout: Option<Duration>,
}

/// What the guest's calls are answered with.
struct Host {
    wasi: WasiP1Ctx,
    limits: StoreLimits,
}

/// Runs the WASI command `wasm` with no more than `grant`.
///
/// # Errors
/// A refusal if it is not a module of this kind or a folder cannot be opened. Otherwise a failure with the exit code of the
/// guest, or one that names the trap or the limit that ended it.
pub fn run(wasm: &[u8], grant: &Grant) -> Outcome {
    let engine = engine(grant).map_err(Failure::failed)?;
    let module = cache::compiled(&engine, wasm).map_err(|error| refused("the module cannot be used", error))?;
    let mut store = Store::new(&engine, host(grant)?);
    store.limiter(|host| &mut host.limits);
    if grant.timeout.is_some() {
        store.set_epoch_deadline(1);
    }
    let ended = within(grant.timeout, &engine, || start(&module, &mut store))?;
    ended.map_err(|error| failure(&error, grant))
}

fn engine(grant: &Grant) -> wasmtime::Result<Engine> {
    let mut config = Config::new();
    // Relaxed instructions may round differently on another machine.
    config.wasm_relaxed_simd(false);
    // Checks at every loop, which cost time, only where somebody waits for them.
    config.epoch_interruption(grant.timeout.is_some());
    Engine::new(&config)
}

fn host(grant: &Grant) -> Outcome<Host> {
    let mut wasi = WasiCtxBuilder::new();
    wasi.inherit_stdio().allow_blocking_current_thread(true).arg("k3.wasm").args(&grant.args);
    for folder in &grant.folders {
        let guest = folder.to_str().ok_or_else(|| Failure::refused(format!("--dir {folder:?}: not Unicode")))?;
        wasi.preopened_dir(folder, guest, FsPerms::ReadOnly)
            .map_err(|error| refused(&format!("--dir {guest}"), error))?;
    }
    let limits = match grant.max_memory {
        Some(bytes) => StoreLimitsBuilder::new().memory_size(bytes),
        None => StoreLimitsBuilder::new(),
    };
    Ok(Host { wasi: wasi.build_p1(), limits: limits.build() })
}

fn start(module: &Module, store: &mut Store<Host>) -> wasmtime::Result<()> {
    let mut linker = Linker::new(store.engine());
    p1::add_to_linker_sync(&mut linker, |host: &mut Host| &mut host.wasi)?;
    let instance = linker.instantiate(&mut *store, module)?;
    instance.get_typed_func::<(), ()>(&mut *store, "_start")?.call(store, ())
}

/// Calls `work`, and moves the engine's epoch on if that takes longer than `limit`.
fn within<T>(limit: Option<Duration>, engine: &Engine, work: impl FnOnce() -> T) -> Outcome<T> {
    let Some(limit) = limit else { return Ok(work()) };
    let (done, waiting) = mpsc::channel::<()>();
    let engine = engine.clone();
    let watch = move || {
        if waiting.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
            engine.increment_epoch();
        }
    };
    thread::Builder::new().spawn(watch).context("cannot start a thread to watch the time")?;
    let result = work();
    drop(done);
    Ok(result)
}

/// Why the guest did not end by itself with success.
fn failure(error: &wasmtime::Error, grant: &Grant) -> Failure {
    if let Some(I32Exit(code)) = error.downcast_ref() {
        let exit = match code {
            2 => Exit::Refused,
            3 => Exit::NotWritten,
            _ => Exit::Failed,
        };
        return Failure { exit, error: anyhow::anyhow!("k3.wasm ended with exit code {code}") };
    }
    match (error.downcast_ref(), grant.timeout) {
        (Some(Trap::Interrupt), Some(limit)) => {
            Failure::failed(format!("k3.wasm was still running after {} seconds (--timeout)", limit.as_secs_f64()))
        }
        (Some(trap), _) => Failure::failed(format!("k3.wasm was ended: {trap}")),
        (None, _) => Failure::failed(format!("k3.wasm could not run: {error:#}")),
    }
}

fn refused(what: &str, error: wasmtime::Error) -> Failure {
    Failure::refused(format!("{what}: {error:#}"))
}
