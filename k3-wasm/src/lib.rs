//! The k3 core in a browser: what a page calls, through `wasm-bindgen`. On other targets this library is empty; the WASI
//! command is the program beside it.
#![cfg(all(target_family = "wasm", target_os = "unknown"))]

pub mod browser;
