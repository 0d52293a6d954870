//! The vector unit as the kernels see it: eight lanes of f32, however many registers they take.

use super::order::{GROUP_VECTORS, LANES};

/// Eight f32 lanes of one instruction set, and the proof that this machine has it.
///
/// A value is a token: a type whose instructions may be missing can only be made by asking the machine, which is what
/// makes its methods sound to call. Every operation rounds as IEEE 754 says, lane by lane, so that all implementations
/// return the same bits.
///
/// Methods are inlined into the one function per instruction set that enables its instructions, [`Lanes::run`].
pub(super) trait Lanes: Copy {
    /// Eight f32 values.
    type Vector: Copy;

    /// Runs `kernel` with the instructions of this set enabled.
    fn run<K: Kernel>(self, kernel: K) -> K::Output;

    /// Eight times `+0.0`.
    fn zero(self) -> Self::Vector;
    /// Eight times `value`.
    fn splat(self, value: f32) -> Self::Vector;
    /// Eight values from memory.
    fn load(self, values: &[f32; LANES]) -> Self::Vector;
    /// Eight values to memory.
    fn store(self, vector: Self::Vector, values: &mut [f32; LANES]);
    /// Eight little-endian f32 from bytes of any alignment.
    fn load_bytes(self, bytes: &[u8; 4 * LANES]) -> Self::Vector;
    /// Eight little-endian bf16 from bytes of any alignment, widened.
    fn load_bf16(self, bytes: &[u8; 2 * LANES]) -> Self::Vector;
    /// The values of 32 E2M1 codes in the order of their columns: byte j holds column 2j in its low nibble.
    fn load_e2m1(self, bytes: &[u8; 2 * LANES]) -> [Self::Vector; GROUP_VECTORS];
    /// Asks for the cache line at `address`, which need not be valid, to be brought near.
    #[inline(always)]
    fn prefetch(self, _address: *const u8) {}
    /// Lane-wise `a + b`.
    fn add(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// Lane-wise `a · b`.
    fn mul(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
}

/// A loop written once for all instruction sets.
pub(super) trait Kernel {
    /// What the loop returns.
    type Output;

    /// The loop. Implementations are `#[inline(always)]`, and so is every function they call with lanes.
    fn run<L: Lanes>(self, lanes: L) -> Self::Output;
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::kernels::backend::Backend;

    /// Decodes 16 bytes and stores the bits.
    struct Decode([u8; 16]);

    impl Kernel for Decode {
        type Output = [u32; 32];

        #[inline(always)]
        fn run<L: Lanes>(self, lanes: L) -> [u32; 32] {
            let mut values = [[0.0; LANES]; GROUP_VECTORS];
            for (vector, values) in lanes.load_e2m1(&self.0).into_iter().zip(&mut values) {
                lanes.store(vector, values);
            }
            let mut bits = [0; 32];
            for (bits, value) in bits.iter_mut().zip(values.as_flattened()) {
                *bits = value.to_bits();
            }
            bits
        }
    }

    // The sign of a zero never shows in a sum, which starts from +0.0, so decoding is looked at by itself.
    #[test]
    fn every_code_decodes_in_every_column_to_the_bits_of_the_specification() {
        let magnitudes = [0.0_f32, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
        let bits = |code: u8| magnitudes[usize::from(code & 7)].to_bits() | u32::from(code & 8) << 28;
        for lanes in Backend::available().into_iter().filter_map(Backend::detect) {
            for first in 0..=255_u8 {
                let bytes = core::array::from_fn(|i| first.wrapping_add((i as u8).wrapping_mul(37)));
                let expected: Vec<u32> = bytes.iter().flat_map(|byte| [bits(byte & 15), bits(byte >> 4)]).collect();
                assert_eq!(lanes.run(Decode(bytes))[..], expected, "{} {first}", lanes.backend());
            }
        }
    }
}
