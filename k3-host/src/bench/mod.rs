//! Measuring: how close the kernels and the decode step come to what the machine can do.
//!
//! Machines are noisy, so only ratios of things measured in turns within one run mean something.

pub mod counting;
pub mod decode;
pub mod dict;
pub mod disk;
pub mod kernels;
pub mod turns;
