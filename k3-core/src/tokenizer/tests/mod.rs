//! Tests of the tokenizer as a whole.

mod parity;
mod released;
