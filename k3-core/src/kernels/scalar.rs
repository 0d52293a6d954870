//! Lanes in an array, for every machine.

use super::lanes::{Arithmetic, Kernel, Lanes};
use super::mxfp4::E2M1;
use super::order::{GROUP_COLUMNS, GROUP_VECTORS, LANES};

/// Eight lanes in plain Rust.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scalar;

impl Arithmetic<[f32; LANES]> for Scalar {
    #[inline(always)]
    fn splat(self, value: f32) -> [f32; LANES] {
        [value; LANES]
    }

    #[inline(always)]
    fn add(self, a: [f32; LANES], b: [f32; LANES]) -> [f32; LANES] {
        let mut sum = a;
        for (sum, b) in sum.iter_mut().zip(b) {
            *sum += b;
        }
        sum
    }

    #[inline(always)]
    fn mul(self, a: [f32; LANES], b: [f32; LANES]) -> [f32; LANES] {
        let mut product = a;
        for (product, b) in product.iter_mut().zip(b) {
            *product *= b;
        }
        product
    }
}

/// Fills a group with what `decode` makes of as many bytes for every `N` columns.
#[inline(always)]
fn decode<const B: usize, const N: usize>(
    bytes: &[u8],
    decode: impl Fn([u8; B]) -> [f32; N],
) -> [[[f32; LANES]; 2]; 2] {
    let mut group = [[[0.0; LANES]; 2]; 2];
    let values = group.as_flattened_mut().as_flattened_mut().as_chunks_mut().0;
    for (values, bytes) in values.iter_mut().zip(bytes.as_chunks().0) {
        *values = decode(*bytes);
    }
    group
}

impl Lanes for Scalar {
    type Vector = [f32; LANES];
    type Half = [[f32; LANES]; 2];

    fn run<K: Kernel>(self, kernel: K) -> K::Output {
        kernel.run(self)
    }

    #[inline(always)]
    fn split(self, half: Self::Half) -> [Self::Vector; 2] {
        half
    }

    #[inline(always)]
    fn store(self, vector: Self::Vector, values: &mut [f32; LANES]) {
        *values = vector;
    }

    #[inline(always)]
    fn load_f32(self, bytes: &[[u8; 4 * LANES]; GROUP_VECTORS]) -> [Self::Half; 2] {
        decode(bytes.as_flattened(), |bytes| [f32::from_le_bytes(bytes)])
    }

    #[inline(always)]
    fn load_bf16(self, bytes: &[[u8; 2 * LANES]; GROUP_VECTORS]) -> [Self::Half; 2] {
        decode(bytes.as_flattened(), |[low, high]| [f32::from_le_bytes([0, 0, low, high])])
    }

    #[inline(always)]
    fn load_e2m1(self, bytes: &[u8; GROUP_COLUMNS / 2]) -> [Self::Half; 2] {
        decode(bytes, |[byte]| [E2M1[usize::from(byte & 0xf)], E2M1[usize::from(byte >> 4)]])
    }

    #[inline(always)]
    fn load_dict(
        self,
        dictionary: &[u8; 16],
        low: &[u8; GROUP_COLUMNS],
        codes: &[u8; GROUP_COLUMNS / 2],
    ) -> [Self::Half; 2] {
        let mut group = [[[0.0; LANES]; 2]; 2];
        for (column, value) in group.as_flattened_mut().as_flattened_mut().iter_mut().enumerate() {
            let code = codes[column % 16] >> (column / 16 * 4) & 0xf;
            *value = f32::from_le_bytes([0, 0, low[column], dictionary[usize::from(code)]]);
        }
        group
    }
}
