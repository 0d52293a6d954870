//! What a sequence carries from one position to the next.

use alloc::vec;
use alloc::vec::Vec;

use crate::config::{Attention, Config, KdaConfig, MlaConfig};
use crate::{Error, Result};

/// The state of one sequence after some number of positions.
///
/// 1. It is valid only at exactly `positions()`: the recurrent part cannot be cut back.
/// 2. A pass that fails leaves it between two lengths; it is then broken for good.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    pub(crate) layers: Vec<LayerState>,
    positions: usize,
    capacity: usize,
    broken: bool,
}

/// The state of one layer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum LayerState {
    Kda(KdaState),
    Mla(MlaState),
}

/// The state of delta attention: of fixed size.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct KdaState {
    /// `[heads, head_dim (key), head_dim (value)]`
    pub recurrent: Vec<f32>,
    /// Of queries, keys and values: the last `taps − 1` inputs of the convolution `[taps − 1, channels]`, oldest first.
    pub history: [Vec<f32>; 3],
}

/// The cache of latent attention: a row for each position.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MlaState {
    /// `[capacity, latent + rope_dim]`: the normed latent, then the key part that all heads share.
    pub cache: Vec<f32>,
}

impl State {
    /// The state before the first position, with room for `capacity` positions.
    #[must_use]
    pub fn new(config: &Config, capacity: usize) -> Self {
        let layers = config.layers.iter().map(|kind| match kind.attention {
            Attention::Kda => LayerState::Kda(KdaState::new(&config.kda)),
            Attention::Mla => LayerState::Mla(MlaState::new(&config.mla, capacity)),
        });
        Self { layers: layers.collect(), positions: 0, capacity, broken: false }
    }

    /// How many positions have been fed.
    #[must_use]
    pub fn positions(&self) -> usize {
        self.positions
    }

    /// How many positions there is room for.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// The bytes that a state with room for `capacity` positions takes.
    #[must_use]
    pub fn bytes(config: &Config, capacity: usize) -> u64 {
        let values = config.layers.iter().map(|kind| Self::layer_values(config, kind.attention, capacity));
        4 * values.sum::<u64>()
    }

    /// How many values the state of a layer holds after `positions` positions.
    pub(crate) fn layer_values(config: &Config, attention: Attention, positions: usize) -> u64 {
        let (fixed, per_position) = match attention {
            Attention::Kda => {
                let channels = config.kda.channels();
                (channels * (config.kda.head_dim + 3 * (config.kda.taps - 1)), 0)
            }
            Attention::Mla => (0, config.mla.cache_width()),
        };
        fixed as u64 + per_position as u64 * positions as u64
    }

    /// Goes back to before the first position, without giving up the room.
    pub fn reset(&mut self) {
        for layer in &mut self.layers {
            if let LayerState::Kda(kda) = layer {
                kda.recurrent.fill(0.0);
                kda.history.iter_mut().for_each(|history| history.fill(0.0));
            }
        }
        self.positions = 0;
        self.broken = false;
    }

    /// Begins a pass over `count` more positions. Until [`State::end_pass`] the state counts as broken.
    pub(crate) fn begin_pass(&mut self, count: usize) -> Result<()> {
        if self.broken {
            return Err(Error::BrokenState);
        }
        let wanted = self.positions + count;
        if wanted > self.capacity {
            return Err(Error::Capacity { wanted, capacity: self.capacity });
        }
        self.broken = true;
        Ok(())
    }

    /// Ends the pass that was begun.
    pub(crate) fn end_pass(&mut self, count: usize) {
        self.positions += count;
        self.broken = false;
    }
}

impl KdaState {
    fn new(config: &KdaConfig) -> Self {
        let history = || vec![0.0; (config.taps - 1) * config.channels()];
        Self { recurrent: vec![0.0; config.channels() * config.head_dim], history: [history(), history(), history()] }
    }
}

impl MlaState {
    fn new(config: &MlaConfig, capacity: usize) -> Self {
        Self { cache: vec![0.0; capacity * config.cache_width()] }
    }
}
