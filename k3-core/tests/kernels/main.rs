//! The kernels of every backend of this machine against a reference written from the published order, bit for bit.

mod accuracy;
mod allocation;
mod backend;
mod column_sums;
mod data;
mod dict;
mod dict_damage;
mod math;
mod matmul;
mod mxfp4;
mod parallel;
mod recurrence;
mod reference;
