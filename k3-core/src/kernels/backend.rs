//! The implementations of the kernels, as values that one can list, name and ask for.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

#[cfg(target_arch = "x86_64")]
use super::avx2::Avx2;
#[cfg(target_arch = "x86_64")]
use super::avx512::Avx512;
use super::lanes::{Kernel, Lanes};
#[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
use super::neon::Neon;
use super::scalar::Scalar;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
use super::simd128::Simd128;

/// An implementation of the kernels. All return the same bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// Plain Rust; on every machine.
    Scalar,
    /// x86-64 with AVX2.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// x86-64 with AVX-512, down to VBMI.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// ARM64 with NEON.
    #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
    Neon,
    /// WebAssembly compiled with SIMD128.
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    Simd128,
}

impl Backend {
    /// Every backend compiled into this program, the fastest last.
    const ALL: &[Self] = &[
        Self::Scalar,
        #[cfg(target_arch = "x86_64")]
        Self::Avx2,
        #[cfg(target_arch = "x86_64")]
        Self::Avx512,
        #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
        Self::Neon,
        #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
        Self::Simd128,
    ];

    /// The backends that this machine can run, the fastest last. Never empty.
    #[must_use]
    pub fn available() -> Vec<Self> {
        Self::ALL.iter().copied().filter(|backend| backend.detect().is_some()).collect()
    }

    /// The fastest backend that this machine can run.
    #[must_use]
    pub fn best() -> Self {
        Self::ALL.iter().copied().rfind(|backend| backend.detect().is_some()).unwrap_or(Self::Scalar)
    }

    /// The name by which [`FromStr`] knows it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => "avx512",
            #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
            Self::Neon => "neon",
            #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
            Self::Simd128 => "simd128",
        }
    }

    /// The lanes of this backend, if the machine has them.
    pub(super) fn detect(self) -> Option<Detected> {
        match self {
            Self::Scalar => Some(Detected::Scalar(Scalar)),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => Avx2::detect().map(Detected::Avx2),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => Avx512::detect().map(Detected::Avx512),
            #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
            Self::Neon => Some(Detected::Neon(Neon)),
            #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
            Self::Simd128 => Some(Detected::Simd128(Simd128)),
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is not one of the backends of this machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no backend {name:?} on this machine; available: {}", available.join(", "))]
pub struct UnknownBackend {
    name: String,
    available: Vec<&'static str>,
}

impl FromStr for Backend {
    type Err = UnknownBackend;

    fn from_str(name: &str) -> Result<Self, UnknownBackend> {
        let available = Self::available();
        available.iter().copied().find(|backend| backend.name() == name).ok_or_else(|| UnknownBackend {
            name: name.into(),
            available: available.iter().map(|backend| backend.name()).collect(),
        })
    }
}

/// The lanes of a backend that this machine has.
#[derive(Debug, Clone, Copy)]
pub(super) enum Detected {
    Scalar(Scalar),
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
    #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
    Neon(Neon),
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    Simd128(Simd128),
}

impl Detected {
    /// Runs a kernel: the one place where a backend is chosen.
    pub(super) fn run<K: Kernel>(self, kernel: K) -> K::Output {
        match self {
            Self::Scalar(lanes) => lanes.run(kernel),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(lanes) => lanes.run(kernel),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(lanes) => lanes.run(kernel),
            #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
            Self::Neon(lanes) => lanes.run(kernel),
            #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
            Self::Simd128(lanes) => lanes.run(kernel),
        }
    }

    /// The backend these lanes belong to.
    pub(super) fn backend(self) -> Backend {
        match self {
            Self::Scalar(_) => Backend::Scalar,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => Backend::Avx2,
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(_) => Backend::Avx512,
            #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
            Self::Neon(_) => Backend::Neon,
            #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
            Self::Simd128(_) => Backend::Simd128,
        }
    }
}
