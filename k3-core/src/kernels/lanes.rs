//! The vector unit as the kernels see it: eight and sixteen lanes of f32, however many registers they take.

use super::order::{GROUP_COLUMNS, GROUP_VECTORS, Group, LANES};

/// IEEE 754 arithmetic, lane by lane, on values of type `V`, so that all implementations return the same bits.
///
/// Whoever has it for `V` has it for pairs of `V`, and so for all that is made of registers.
pub(super) trait Arithmetic<V>: Copy {
    /// `value` in every lane.
    fn splat(self, value: f32) -> V;
    /// Lane-wise `a + b`.
    fn add(self, a: V, b: V) -> V;
    /// Lane-wise `a · b`.
    fn mul(self, a: V, b: V) -> V;
}

impl<V: Copy, L: Arithmetic<V>> Arithmetic<[V; 2]> for L {
    #[inline(always)]
    fn splat(self, value: f32) -> [V; 2] {
        [self.splat(value); 2]
    }

    #[inline(always)]
    fn add(self, a: [V; 2], b: [V; 2]) -> [V; 2] {
        [self.add(a[0], b[0]), self.add(a[1], b[1])]
    }

    #[inline(always)]
    fn mul(self, a: [V; 2], b: [V; 2]) -> [V; 2] {
        [self.mul(a[0], b[0]), self.mul(a[1], b[1])]
    }
}

/// The f32 lanes of one instruction set, and the proof that this machine has it.
///
/// A value is a token: a type whose instructions may be missing can only be made by asking the machine, which is what
/// makes its methods sound to call. Methods are inlined into the one function per instruction set that enables its
/// instructions, [`Lanes::run`].
///
/// The 32 elements of a group lie in two halves of 16 columns, in order.
pub(super) trait Lanes: Arithmetic<<Self as Lanes>::Vector> + Arithmetic<<Self as Lanes>::Half> {
    /// Eight f32 values.
    type Vector: Copy;
    /// Sixteen f32 values.
    type Half: Copy;

    /// How many bytes ahead of their use the elements of a row are asked for. Without asking, one thread reached about
    /// 40 % of the read bandwidth on an AMD Zen 5; of the distances from 1 to 6 KiB this one was best there with AVX2.
    const PREFETCH_BYTES: usize = 2048;

    /// Runs `kernel` with the instructions of this set enabled.
    fn run<K: Kernel>(self, kernel: K) -> K::Output;

    /// The first eight values, and the others.
    fn split(self, half: Self::Half) -> [Self::Vector; 2];
    /// Eight values to memory.
    fn store(self, vector: Self::Vector, values: &mut [f32; LANES]);
    /// 32 little-endian f32 from bytes of any alignment.
    fn load_f32(self, bytes: &[[u8; 4 * LANES]; GROUP_VECTORS]) -> [Self::Half; 2];
    /// 32 little-endian bf16 from bytes of any alignment, widened.
    fn load_bf16(self, bytes: &[[u8; 2 * LANES]; GROUP_VECTORS]) -> [Self::Half; 2];
    /// The values of 32 E2M1 codes in the order of their columns: byte j holds column 2j in its low nibble.
    fn load_e2m1(self, bytes: &[u8; GROUP_COLUMNS / 2]) -> [Self::Half; 2];
    /// 32 elements of bf16, widened: the low bytes as given, the high bytes looked up. Byte j of the codes holds column j in
    /// its low nibble and column 16 + j in its high one.
    fn load_dict(
        self,
        dictionary: &[u8; 16],
        low: &[u8; GROUP_COLUMNS],
        codes: &[u8; GROUP_COLUMNS / 2],
    ) -> [Self::Half; 2];
    /// Asks for the cache line at `address`, which need not be valid, to be brought near.
    #[inline(always)]
    fn prefetch(self, _address: *const u8) {}

    /// A group of f32 from memory.
    #[inline(always)]
    fn load_group(self, group: &Group) -> [Self::Half; 2] {
        // SAFETY: the same memory for the same lifetime; every byte of an f32 is initialised and any address suits a u8.
        self.load_f32(unsafe { &*core::ptr::from_ref(group).cast() })
    }

    /// A group of f32 to memory.
    #[inline(always)]
    fn store_group(self, halves: [Self::Half; 2], group: &mut Group) {
        let [a, b, c, d] = group;
        for (half, [first, second]) in halves.into_iter().zip([[a, b], [c, d]]) {
            let vectors = self.split(half);
            self.store(vectors[0], first);
            self.store(vectors[1], second);
        }
    }
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
            let mut values = Group::default();
            lanes.store_group(lanes.load_e2m1(&self.0), &mut values);
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
