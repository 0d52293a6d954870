//! Where weights come from when they are not arrays of a test.

pub mod resident;
