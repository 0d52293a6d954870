//! Tests of the making of checkpoints that look inside it; `tests/synth.rs` has those of the program.

mod layout;
mod statistics;
