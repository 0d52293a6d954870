//! `k3-host pack`: what it writes is what the shards hold, is whole or not there, goes on where it stopped, and is refused
//! when it is not what it should be.

#[path = "../support/mod.rs"]
mod support;

mod contents;
mod dictionary;
#[cfg(unix)]
mod disk;
#[cfg(target_os = "linux")]
mod holes;
mod manifest;
mod models;
mod resume;
mod verify;
