//! From numbers to the bytes of a row, in each of the ways in which a checkpoint stores them.

use half::bf16;

/// Columns of an MXFP4 matrix that share a scale.
pub(super) const SCALE_COLUMNS: usize = 32;
/// The largest number that an MXFP4 code stands for.
const LARGEST_CODE: f32 = 6.0;
/// The scale byte that stands for a factor of 1.
const SCALE_OF_ONE: i32 = 127;

/// How a tensor stores a row of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Storing {
    /// Single precision.
    F32,
    /// The upper half of single precision.
    Bf16,
    /// The codes of an MXFP4 matrix, two in a byte.
    Codes,
    /// The scales of an MXFP4 matrix, one byte for 32 columns.
    Scales,
}

impl Storing {
    /// The element type as a header names it.
    pub(super) fn dtype(self) -> &'static str {
        match self {
            Self::F32 => "F32",
            Self::Bf16 => "BF16",
            Self::Codes | Self::Scales => "U8",
        }
    }

    /// Bytes of an element of that type.
    pub(super) fn element_bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::Bf16 => 2,
            Self::Codes | Self::Scales => 1,
        }
    }

    /// Bytes of a row of `columns` numbers.
    pub(super) fn row_bytes(self, columns: usize) -> usize {
        match self {
            Self::F32 | Self::Bf16 => columns * self.element_bytes(),
            Self::Codes => columns / 2,
            Self::Scales => columns / SCALE_COLUMNS,
        }
    }

    /// Writes the finite `numbers` of a row.
    pub(super) fn encode(self, numbers: &[f32], bytes: &mut [u8]) {
        match self {
            Self::F32 => {
                for (number, bytes) in numbers.iter().zip(bytes.chunks_exact_mut(4)) {
                    bytes.copy_from_slice(&number.to_le_bytes());
                }
            }
            Self::Bf16 => {
                for (number, bytes) in numbers.iter().zip(bytes.chunks_exact_mut(2)) {
                    bytes.copy_from_slice(&bf16::from_f32(*number).to_le_bytes());
                }
            }
            Self::Codes => {
                for (block, bytes) in numbers.chunks_exact(SCALE_COLUMNS).zip(bytes.chunks_exact_mut(SCALE_COLUMNS / 2))
                {
                    encode_codes(block, bytes);
                }
            }
            Self::Scales => {
                for (block, byte) in numbers.chunks_exact(SCALE_COLUMNS).zip(bytes) {
                    *byte = scale(block);
                }
            }
        }
    }
}

/// The smallest scale under which no number of the block is beyond the largest code.
///
/// The released blocks look like this: their largest code is 3, 4 or 6, which is what rounding makes of 3 to 6.
fn scale(block: &[f32]) -> u8 {
    let largest = block.iter().fold(0.0_f32, |largest, number| largest.max(number.abs()));
    // The bits of a positive single, rounded up to the next power of two, are its exponent and nothing else.
    let exponent_up = ((largest / LARGEST_CODE).to_bits() + 0x007F_FFFF) >> 23;
    exponent_up as u8
}

fn encode_codes(block: &[f32], bytes: &mut [u8]) {
    let factor = f32::from_bits(((2 * SCALE_OF_ONE - i32::from(scale(block))) as u32) << 23);
    for (pair, byte) in block.chunks_exact(2).zip(bytes) {
        *byte = code(pair[0] * factor) | code(pair[1] * factor) << 4;
    }
}

/// The code of the nearest of 0, 0.5, 1, 1.5, 2, 3, 4 and 6 with the sign of `number`; the even code at a tie.
#[inline]
fn code(number: f32) -> u8 {
    let size = number.abs();
    let above = |limit: f32| u8::from(size > limit);
    let from = |limit: f32| u8::from(size >= limit);
    let index = above(0.25) + from(0.75) + above(1.25) + from(1.75) + above(2.5) + from(3.5) + above(5.0);
    index | u8::from(number.is_sign_negative()) << 3
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every code stands for itself, and halfway between two the even one wins.
    #[test]
    fn codes_are_the_nearest() {
        let values = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0_f32];
        for (index, value) in (0_u8..).zip(values) {
            assert_eq!((code(value), code(-value)), (index, index | 8));
        }
        for (low, pair) in (0_u8..).zip(values.windows(2)) {
            let middle = f32::midpoint(pair[0], pair[1]);
            assert_eq!(code(middle), low + low % 2, "{middle}");
            assert_eq!(code(middle - 1e-3), low);
            assert_eq!(code(middle + 1e-3), low + 1);
        }
    }

    #[test]
    fn a_block_is_scaled_to_the_largest_code() {
        for (largest, expected) in [(6.0, 127), (6.1, 128), (3.01, 127), (3.0, 126), (6.0 / 64.0, 121)] {
            let mut block = [0.01 * largest; SCALE_COLUMNS];
            block[7] = -largest;
            assert_eq!(scale(&block), expected, "{largest}");
        }
    }

    /// The low nibble is the even column; decoding gives the numbers back where they are codes.
    #[test]
    fn nibbles_are_in_order() {
        let values = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0_f32];
        let block: Vec<f32> = (0..SCALE_COLUMNS).map(|column| values[column % 8] / 64.0).collect();
        let (mut codes, mut scales) = ([0; SCALE_COLUMNS / 2], [0; 1]);
        Storing::Codes.encode(&block, &mut codes);
        Storing::Scales.encode(&block, &mut scales);
        assert_eq!((codes[..4].to_vec(), scales), (vec![0x10, 0x32, 0x54, 0x76], [121]));
    }
}
