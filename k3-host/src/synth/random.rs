//! Numbers that depend on nothing but the seed, the tensor and the row: not on threads, machines or the order of work.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Random bits that choose a quantile.
const BITS: u32 = 16;
/// Number of quantiles.
const QUANTILES: usize = 1 << BITS;

/// The seed of a tensor, from that of the checkpoint.
pub(super) fn tensor_seed(seed: u64, name: &str) -> u64 {
    xxh3_64_with_seed(name.as_bytes(), seed)
}

/// A stream of numbers for one row of a tensor.
pub(super) struct RowNumbers<'a> {
    generator: Xoshiro256PlusPlus,
    normals: &'a Normals,
}

impl<'a> RowNumbers<'a> {
    pub(super) fn new(normals: &'a Normals, tensor_seed: u64, row: usize) -> Self {
        let seed = xxh3_64_with_seed(&(row as u64).to_le_bytes(), tensor_seed);
        Self { generator: Xoshiro256PlusPlus::seed_from_u64(seed), normals }
    }

    /// A normal number of mean 0 and deviation 1.
    pub(super) fn normal(&mut self) -> f32 {
        self.normals.of(self.generator.next_u64())
    }

    /// A number evenly spread over 0 to 1.
    pub(super) fn uniform(&mut self) -> f32 {
        (self.generator.next_u64() >> 40) as f32 / (1 << 24) as f32
    }

    /// Normal numbers with deviation `scale`, four from each draw.
    pub(super) fn fill_normal(&mut self, scale: f32, numbers: &mut [f32]) {
        for four in numbers.chunks_mut(4) {
            let mut bits = self.generator.next_u64();
            for number in four {
                *number = self.normals.of(bits) * scale;
                bits >>= BITS;
            }
        }
    }
}

/// The normal distribution as a table of equally likely values, which is as good as drawn and much faster.
pub(super) struct Normals {
    quantiles: Box<[f32]>,
}

impl Normals {
    /// Computes the table, with functions that give the same bits on every machine.
    pub(super) fn new() -> Self {
        let mut quantiles = vec![0.0; QUANTILES].into_boxed_slice();
        let mut x = 0.0_f64;
        for above in 0..QUANTILES / 2 {
            let upper_tail = 0.5 - (above as f64 + 0.5) / QUANTILES as f64;
            x = quantile(upper_tail, x);
            quantiles[QUANTILES / 2 + above] = x as f32;
            quantiles[QUANTILES / 2 - 1 - above] = -x as f32;
        }
        Self { quantiles }
    }

    fn of(&self, bits: u64) -> f32 {
        self.quantiles[bits as usize % QUANTILES]
    }
}

/// The x > 0 that a normal number exceeds with probability `upper_tail`, by Newton's method from a smaller x.
///
/// The probability is convex in x > 0, so that each step comes nearer and none goes too far.
fn quantile(upper_tail: f64, smaller: f64) -> f64 {
    let mut x = smaller;
    for _ in 0..8 {
        let tail = libm::erfc(x / core::f64::consts::SQRT_2) / 2.0;
        let density = libm::exp(-x * x / 2.0) / (2.0 * core::f64::consts::PI).sqrt();
        x += (tail - upper_tail) / density;
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of the inverse normal distribution from published tables.
    #[test]
    fn quantiles_are_those_of_the_normal_distribution() {
        for (upper_tail, expected) in
            [(0.25, 0.674_489_750_196_082), (0.025, 1.959_963_984_540_054), (1e-4, 3.719_016_485_455_709)]
        {
            assert!((quantile(upper_tail, expected - 0.3) - expected).abs() < 1e-12, "{upper_tail}");
        }
        let normals = Normals::new();
        assert!(normals.quantiles.is_sorted_by(|left, right| left < right), "each quantile is above the one before");
        // The outermost value leaves a tail of half a step: 2^-17.
        assert!((normals.quantiles[QUANTILES - 1] - 4.324_919).abs() < 1e-4, "{}", normals.quantiles[QUANTILES - 1]);
    }

    #[test]
    fn numbers_depend_on_seed_tensor_and_row() {
        let normals = Normals::new();
        let draw = |seed, name, row| {
            let mut numbers = [0.0; 8];
            RowNumbers::new(&normals, tensor_seed(seed, name), row).fill_normal(1.0, &mut numbers);
            numbers.map(f32::to_bits)
        };
        let base = draw(1, "a", 0);
        assert_eq!(draw(1, "a", 0), base);
        for other in [draw(2, "a", 0), draw(1, "b", 0), draw(1, "a", 1)] {
            let equal = base.iter().zip(other).filter(|(left, right)| **left == *right).count();
            assert!(equal < 2, "{equal} of 8 numbers are equal");
        }
    }
}
