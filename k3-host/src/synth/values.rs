//! What numbers the tensors hold, so that a forward pass, a router and a compressor behave as on trained weights.
//!
//! A matrix has normal numbers of deviation `gain / √columns`, so that it hands on about the size of what it is given;
//! its rows differ in size, which gives the exponents their spread. Where the release was measured, the constants here
//! follow it.

use k3_core::checkpoint::names::{LayerTensor, TensorId};

use super::random::RowNumbers;

/// One expert row in this many stands out from the others in size.
const OUTLIER_ROWS: f32 = 64.0;
/// The spread of the logarithm of an outlying row.
const OUTLIER_SPREAD: f32 = 0.7;

/// How the numbers of a tensor are drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Recipe {
    /// A matrix.
    Matrix {
        /// Deviation of its numbers, times √columns.
        gain: f32,
        /// Deviation of the logarithm of a row's size.
        spread: f32,
    },
    /// A matrix of a routed expert.
    Expert,
    /// The weight of a norm.
    Norm,
    /// The taps of one channel, the current token last.
    Taps,
    /// Logarithms of how strongly each of so many heads reacts in its decay; zeros after them.
    DecayStrengths(usize),
    /// What a channel's decay starts from.
    DecayBias,
    /// What is added to an expert's score before the choice.
    RouterBias,
}

impl Recipe {
    /// Most matrices.
    pub(super) const PROJECTION: Self = Self::Matrix { gain: 1.0, spread: 0.25 };

    /// How the numbers of a tensor are drawn; `heads` is the number of delta attention heads.
    pub(super) fn of(id: TensorId, heads: usize) -> Self {
        let matrix = |gain, spread| Self::Matrix { gain, spread };
        let tensor = match id {
            TensorId::FinalNorm | TensorId::OutputResidualNorm => return Self::Norm,
            TensorId::Head => return matrix(2.0, 0.25),
            TensorId::Embedding | TensorId::OutputResidualProj => return matrix(1.0, 0.25),
            TensorId::Layer(_, tensor) => tensor,
        };
        match tensor {
            LayerTensor::InputNorm
            | LayerTensor::PostAttentionNorm
            | LayerTensor::AttentionResidualNorm
            | LayerTensor::MlpResidualNorm
            | LayerTensor::OutputNorm
            | LayerTensor::QueryDownNorm
            | LayerTensor::KeyValueDownNorm
            | LayerTensor::LatentNorm => Self::Norm,
            LayerTensor::QueryConv | LayerTensor::KeyConv | LayerTensor::ValueConv => Self::Taps,
            LayerTensor::ALog => Self::DecayStrengths(heads),
            LayerTensor::DtBias => Self::DecayBias,
            LayerTensor::RouterBias => Self::RouterBias,
            // Experts differ in how often they are chosen, more than rows do elsewhere.
            LayerTensor::Router => matrix(1.5, 0.15),
            LayerTensor::DecayUp => matrix(0.5, 0.25),
            _ => Self::PROJECTION,
        }
    }

    /// Fills a row.
    pub(super) fn fill(self, random: &mut RowNumbers<'_>, row: &mut [f32]) {
        match self {
            Self::Matrix { gain, spread } => {
                let scale = row_scale(gain, spread * random.normal(), row.len());
                random.fill_normal(scale, row);
            }
            Self::Expert => {
                // 64 released rows have a deviation of 0.0247 at 3584 columns, which differs by 6 % from row to row.
                let spread = if random.uniform() < 1.0 / OUTLIER_ROWS { OUTLIER_SPREAD } else { 0.06 };
                let scale = row_scale(1.48, spread * random.normal(), row.len());
                random.fill_normal(scale, row);
            }
            Self::Norm => fill_around(random, row, 1.0, 0.1),
            Self::Taps => {
                random.fill_normal(0.3, row);
                if let Some(current) = row.last_mut() {
                    *current += 0.7;
                }
            }
            Self::DecayStrengths(heads) => {
                let (used, rest) = row.split_at_mut(heads);
                used.fill_with(|| 1.5 * random.uniform() - 0.75);
                rest.fill(0.0);
            }
            Self::DecayBias => fill_around(random, row, -2.0, 2.0),
            Self::RouterBias => random.fill_normal(0.04, row),
        }
    }
}

fn row_scale(gain: f32, log_size: f32, columns: usize) -> f32 {
    (libm::exp(f64::from(log_size)) * f64::from(gain) / (columns as f64).sqrt()) as f32
}

fn fill_around(random: &mut RowNumbers<'_>, row: &mut [f32], middle: f32, deviation: f32) {
    random.fill_normal(deviation, row);
    row.iter_mut().for_each(|number| *number += middle);
}
