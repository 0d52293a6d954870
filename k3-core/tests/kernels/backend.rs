//! Backends as values.

use k3_core::kernels::{Backend, Kernels};

#[test]
fn every_available_backend_runs_and_parses_by_name() {
    let available = Backend::available();
    assert_eq!(available.first(), Some(&Backend::Scalar));
    assert_eq!(available.last(), Some(&Backend::best()));
    for backend in available {
        assert_eq!(Kernels::new(backend).map(|kernels| kernels.backend()), Some(backend));
        assert_eq!(backend.name().parse(), Ok(backend));
    }
}

#[test]
fn an_unknown_name_lists_what_there_is() {
    let message = "abacus".parse::<Backend>().unwrap_err().to_string();
    assert!(message.contains("\"abacus\""), "{message}");
    for backend in Backend::available() {
        assert!(message.contains(backend.name()), "{message}");
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn avx2_is_available_exactly_where_the_standard_library_says() {
    assert_eq!(Backend::available().contains(&Backend::Avx2), is_x86_feature_detected!("avx2"));
}

#[cfg(target_arch = "x86_64")]
#[test]
fn avx512_is_available_exactly_where_the_standard_library_says() {
    let detected = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vbmi");
    assert_eq!(Backend::available().contains(&Backend::Avx512), detected);
}
