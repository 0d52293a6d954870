//! Reading the released checkpoint: names, headers, and where each tensor lies.

pub mod names;
