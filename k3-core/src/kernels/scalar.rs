//! Lanes in an array, for every machine.

use super::lanes::{Kernel, Lanes};
use super::mxfp4::E2M1;
use super::order::{GROUP_VECTORS, LANES};

/// Eight lanes in plain Rust.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scalar;

impl Lanes for Scalar {
    type Vector = [f32; LANES];

    fn run<K: Kernel>(self, kernel: K) -> K::Output {
        kernel.run(self)
    }

    #[inline(always)]
    fn zero(self) -> Self::Vector {
        [0.0; LANES]
    }

    #[inline(always)]
    fn splat(self, value: f32) -> Self::Vector {
        [value; LANES]
    }

    #[inline(always)]
    fn load(self, values: &[f32; LANES]) -> Self::Vector {
        *values
    }

    #[inline(always)]
    fn store(self, vector: Self::Vector, values: &mut [f32; LANES]) {
        *values = vector;
    }

    #[inline(always)]
    fn load_bytes(self, bytes: &[u8; 4 * LANES]) -> Self::Vector {
        let mut vector = self.zero();
        for (lane, bytes) in vector.iter_mut().zip(bytes.as_chunks().0) {
            *lane = f32::from_le_bytes(*bytes);
        }
        vector
    }

    #[inline(always)]
    fn load_bf16(self, bytes: &[u8; 2 * LANES]) -> Self::Vector {
        let mut vector = self.zero();
        for (lane, bytes) in vector.iter_mut().zip(bytes.as_chunks().0) {
            *lane = f32::from_bits(u32::from(u16::from_le_bytes(*bytes)) << 16);
        }
        vector
    }

    #[inline(always)]
    fn load_e2m1(self, bytes: &[u8; 2 * LANES]) -> [Self::Vector; GROUP_VECTORS] {
        let mut vectors = [self.zero(); GROUP_VECTORS];
        let lanes = vectors.as_flattened_mut().as_chunks_mut().0;
        for ([low, high], byte) in lanes.iter_mut().zip(bytes) {
            *low = E2M1[usize::from(byte & 0xf)];
            *high = E2M1[usize::from(byte >> 4)];
        }
        vectors
    }

    #[inline(always)]
    fn add(self, a: Self::Vector, b: Self::Vector) -> Self::Vector {
        let mut sum = a;
        for (sum, b) in sum.iter_mut().zip(b) {
            *sum += b;
        }
        sum
    }

    #[inline(always)]
    fn mul(self, a: Self::Vector, b: Self::Vector) -> Self::Vector {
        let mut product = a;
        for (product, b) in product.iter_mut().zip(b) {
            *product *= b;
        }
        product
    }
}
