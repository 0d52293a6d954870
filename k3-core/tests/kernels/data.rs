//! Numbers and packed matrices for the tests, with their values read in the simplest way.

use k3_core::kernels::{Backend, Encoding, Kernels, Matrix};

/// The kernels of every backend of this machine.
pub fn all_kernels() -> Vec<Kernels> {
    Backend::available().into_iter().filter_map(Kernels::new).collect()
}

/// Equal bits, or both not a number.
#[track_caller]
pub fn assert_same(found: &[f32], expected: &[f32], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (i, (f, e)) in found.iter().zip(expected).enumerate() {
        let same = f.to_bits() == e.to_bits() || (f.is_nan() && e.is_nan());
        assert!(same, "{what}: element {i} is {f:e} ({:#x}), not {e:e} ({:#x})", f.to_bits(), e.to_bits());
    }
}

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.bits() % limit as u64) as usize
    }

    /// Between -1 and 1.
    pub fn unit(&mut self) -> f32 {
        (self.bits() >> 40) as f32 / (1 << 23) as f32 - 1.0
    }

    pub fn value(&mut self, kind: Kind) -> f32 {
        match kind {
            Kind::Moderate => self.unit(),
            Kind::Varied => self.unit() * f32::powi(2.0, self.below(41) as i32 - 20),
            Kind::Special => match self.below(40) {
                0 => f32::NAN,
                1 => f32::INFINITY,
                2 => f32::NEG_INFINITY,
                3..8 => f32::from_bits(self.bits() as u32 & 0x807f_ffff),
                8..12 => -0.0,
                12..16 => 0.0,
                16..20 => self.unit() * f32::MAX,
                20..24 => self.unit() * f32::MIN_POSITIVE,
                _ => self.unit(),
            },
        }
    }

    pub fn values(&mut self, count: usize, kind: Kind) -> Vec<f32> {
        (0..count).map(|_| self.value(kind)).collect()
    }
}

/// What sort of numbers to draw.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// Between -1 and 1.
    Moderate,
    /// Over forty powers of two.
    Varied,
    /// Many zeros, subnormals, huge values, infinities and NaN.
    Special,
}

pub const KINDS: [Kind; 3] = [Kind::Moderate, Kind::Varied, Kind::Special];
pub const ENCODINGS: [Encoding; 3] = [Encoding::F32, Encoding::Bf16, Encoding::Mxfp4];

/// A packed matrix at an odd address.
pub struct Packed {
    pub encoding: Encoding,
    pub rows: usize,
    pub columns: usize,
    data: Vec<u8>,
    scales: Vec<u8>,
    skip: usize,
}

impl Packed {
    pub fn new(encoding: Encoding, [rows, columns]: [usize; 2], kind: Kind, random: &mut Random) -> Self {
        let skip = random.below(16);
        let mut data = vec![0xee; skip];
        let mut scales = Vec::new();
        match encoding {
            Encoding::F32 => {
                data.extend(random.values(rows * columns, kind).iter().flat_map(|v| v.to_le_bytes()));
            }
            Encoding::Bf16 => {
                let values = random.values(rows * columns, kind);
                data.extend(values.iter().flat_map(|v| ((v.to_bits() >> 16) as u16).to_le_bytes()));
            }
            Encoding::Mxfp4 => {
                data.extend((0..rows * columns / 2).map(|_| random.bits() as u8));
                scales.extend((0..rows * columns / 32).map(|_| match kind {
                    Kind::Moderate => 118 + random.below(6) as u8,
                    Kind::Varied => 100 + random.below(40) as u8,
                    Kind::Special => random.bits() as u8,
                }));
            }
            Encoding::Dict { .. } => unreachable!("made from bf16, see dict.rs"),
        }
        Self { encoding, rows, columns, data, scales, skip }
    }

    pub fn matrix(&self) -> Matrix<'_> {
        let data = &self.data[self.skip..];
        match self.encoding {
            Encoding::F32 => Matrix::f32(data, self.rows, self.columns),
            Encoding::Bf16 => Matrix::bf16(data, self.rows, self.columns),
            Encoding::Mxfp4 => Matrix::mxfp4(data, &self.scales, self.rows, self.columns),
            Encoding::Dict { .. } => unreachable!("made from bf16, see dict.rs"),
        }
    }

    /// The element before its scale.
    pub fn element(&self, row: usize, column: usize) -> f32 {
        let index = row * self.columns + column;
        let data = &self.data[self.skip..];
        match self.encoding {
            Encoding::F32 => f32::from_le_bytes(data[4 * index..][..4].try_into().unwrap()),
            Encoding::Bf16 => f32::from_le_bytes([0, 0, data[2 * index], data[2 * index + 1]]),
            Encoding::Mxfp4 => e2m1(data[index / 2] >> (4 * (index % 2)) & 15),
            Encoding::Dict { .. } => unreachable!("made from bf16, see dict.rs"),
        }
    }

    /// The scales of a row; none unless MXFP4.
    pub fn row_scales(&self, row: usize) -> Vec<f32> {
        let groups = self.scales.len() / self.rows;
        self.scales[row * groups..][..groups].iter().map(|s| e8m0(*s)).collect()
    }

    /// The element with its scale, exactly.
    pub fn value(&self, row: usize, column: usize) -> f32 {
        let scale = self.row_scales(row).get(column / 32).copied().unwrap_or(1.0);
        self.element(row, column) * scale
    }
}

/// E2M1 from its fields: sign, two bits of exponent with bias 1, one bit of mantissa.
pub fn e2m1(code: u8) -> f32 {
    let (exponent, mantissa) = (i32::from(code >> 1 & 3), f32::from(code & 1));
    let magnitude = match exponent {
        0 => mantissa * 0.5,
        _ => (1.0 + mantissa * 0.5) * f32::powi(2.0, exponent - 1),
    };
    if code & 8 == 0 { magnitude } else { -magnitude }
}

/// E8M0: a power of two with bias 127; 255 is NaN.
pub fn e8m0(scale: u8) -> f32 {
    if scale == 255 { f32::NAN } else { f64::powi(2.0, i32::from(scale) - 127) as f32 }
}
