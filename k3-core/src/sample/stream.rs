//! The random numbers of one turn: PCG32 (XSH-RR), its state and increment made from seed and turn by SplitMix64.

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
const MULTIPLIER: u64 = 6_364_136_223_846_793_005;

/// A stream of random numbers.
#[derive(Debug, Clone)]
pub(super) struct Stream {
    pub(super) state: u64,
    /// Odd.
    pub(super) increment: u64,
}

impl Stream {
    pub(super) fn new(seed: u64, turn: u64) -> Stream {
        let mut mixer = seed ^ turn.wrapping_mul(GOLDEN);
        let offset = split_mix(&mut mixer);
        let sequence = split_mix(&mut mixer);
        let mut stream = Stream { state: 0, increment: sequence << 1 | 1 };
        stream.step();
        stream.state = stream.state.wrapping_add(offset);
        stream.step();
        stream
    }

    fn step(&mut self) {
        self.state = self.state.wrapping_mul(MULTIPLIER).wrapping_add(self.increment);
    }

    /// 32 random bits.
    #[expect(clippy::cast_possible_truncation, reason = "the generator is defined by these truncations")]
    pub(super) fn bits(&mut self) -> u32 {
        let state = self.state;
        self.step();
        let mixed = ((state >> 18 ^ state) >> 27) as u32;
        mixed.rotate_right((state >> 59) as u32)
    }

    /// A number from 0 up to but not including 1, of 53 random bits; the first 32 drawn are the high ones.
    pub(super) fn unit(&mut self) -> f64 {
        let high = u64::from(self.bits()) << 21;
        let low = u64::from(self.bits()) & 0x1F_FFFF;
        // Both conversions are exact.
        (high ^ low) as f64 / (1u64 << 53) as f64
    }
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(GOLDEN);
    let mixed = (*state ^ *state >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ mixed >> 31
}
