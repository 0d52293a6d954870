//! The core of k3: everything that decides what Kimi K3 answers, and nothing that touches a machine.
//!
//! `no_std` + `alloc`. Files, threads, clocks and terminals belong to the host, which the core meets only through the
//! small traits of [`host`] and [`model::source`].

#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod chat;
pub mod checkpoint;
pub mod config;
pub mod error;
pub mod generate;
pub mod host;
pub mod kernels;
pub mod model;
pub mod ops;
pub mod report;
pub mod sample;
pub mod stream;
pub mod tokenizer;

pub use error::{Error, Result};
