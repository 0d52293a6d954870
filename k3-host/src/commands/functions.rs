//! `functions`: do two machines compute the same elementary functions?

use k3_core::kernels::fingerprint::elementary_functions;

/// Prints the fingerprints.
pub fn run() {
    for (name, fingerprint) in elementary_functions() {
        println!("{name} {fingerprint:016x}");
    }
}
