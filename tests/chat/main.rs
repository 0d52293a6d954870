//! Talking with a model: the session by itself, and the program through a pipe and at a terminal.

#[path = "../support/mod.rs"]
mod support;

mod files;
mod piped;
mod reuse;
mod script;
mod session;
#[cfg(unix)]
mod terminal;
mod turns;
