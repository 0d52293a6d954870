//! Where weights come from when they are not arrays of a test.

pub mod cache;
pub mod resident;
pub mod sliced;
pub mod trunk;
pub mod trunk_file;

use alloc::string::ToString;

use crate::Error;
use crate::checkpoint::names::Name;

fn absent(name: Name) -> Error {
    Error::Tensor { name: name.to_string(), reason: "is not in the checkpoint".to_string() }
}
