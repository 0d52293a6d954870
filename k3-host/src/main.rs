//! The `k3-host` program.

fn main() {}
