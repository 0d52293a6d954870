//! Where each tensor was found, in as few bytes as half a million of them deserve.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use super::names::{ExpertId, ExpertMatrix, Part, TensorId};
use crate::config::{Config, FeedForward};
use crate::kernels::Encoding;

/// The parts of one tensor that were found so far. An offset of 0 means not found: no data begin there.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Found {
    /// Of the numbers or the nibbles.
    pub(super) data_offset: u64,
    pub(super) scales_offset: u64,
    pub(super) data_shard: u16,
    pub(super) scales_shard: u16,
    /// Known as soon as the numbers or nibbles are.
    pub(super) encoding: Option<Encoding>,
}

impl Found {
    /// Notes where a part lies. A part, or another form of it, that was found before is an error.
    pub(super) fn note(&mut self, encoding: Encoding, part: Part, place: (u16, u64)) -> Result<(), &'static str> {
        let (shard, offset) = match part {
            Part::Scale => (&mut self.scales_shard, &mut self.scales_offset),
            Part::Plain | Part::Packed => {
                if self.encoding.replace(encoding).is_some_and(|other| other != encoding) {
                    return Err("is there both plain and packed");
                }
                (&mut self.data_shard, &mut self.data_offset)
            }
        };
        if *offset != 0 {
            return Err("is there twice");
        }
        (*shard, *offset) = place;
        Ok(())
    }

    /// The encoding, if everything that it takes was found; otherwise what is amiss.
    pub(super) fn complete(&self) -> Result<Encoding, &'static str> {
        match (self.encoding, self.scales_offset != 0) {
            (Some(Encoding::Mxfp4), true) => Ok(Encoding::Mxfp4),
            (Some(Encoding::Mxfp4), false) => Err("has nibbles but no scales"),
            (Some(plain), false) => Ok(plain),
            (Some(_), true) => Err("has scales although it is stored plain"),
            (None, true) => Err("has scales but no nibbles"),
            (None, false) => Err("is missing"),
        }
    }
}

/// What was found of all tensors of the text model. Experts are located by arithmetic: no strings, no search.
#[derive(Debug)]
pub(super) struct Table {
    tensors: BTreeMap<TensorId, Found>,
    /// For each layer that has experts, three matrices for each of them.
    experts: Vec<Vec<Found>>,
}

impl Table {
    /// An empty table for the first `layers` layers of `config`.
    pub(super) fn new(config: &Config, layers: usize) -> Self {
        let matrices = config.moe.experts * ExpertMatrix::ALL.len();
        let row = |feed_forward| match feed_forward {
            FeedForward::Dense => Vec::new(),
            FeedForward::Moe => vec![Found::default(); matrices],
        };
        let experts = config.layers[..layers].iter().map(|kind| row(kind.feed_forward)).collect();
        Self { tensors: BTreeMap::new(), experts }
    }

    /// The bytes that it takes.
    pub(super) fn memory_bytes(&self) -> u64 {
        let experts: usize = self.experts.iter().map(Vec::len).sum();
        let tensors = self.tensors.len() * size_of::<(TensorId, Found)>();
        (experts * size_of::<Found>() + tensors) as u64
    }

    pub(super) fn tensor(&self, id: TensorId) -> Found {
        self.tensors.get(&id).copied().unwrap_or_default()
    }

    pub(super) fn tensor_mut(&mut self, id: TensorId) -> &mut Found {
        self.tensors.entry(id).or_default()
    }

    /// `None` if there is no such expert.
    pub(super) fn expert(&self, id: ExpertId) -> Option<Found> {
        self.experts.get(id.layer)?.get(slot(id)?).copied()
    }

    /// `None` if there is no such expert.
    pub(super) fn expert_mut(&mut self, id: ExpertId) -> Option<&mut Found> {
        self.experts.get_mut(id.layer)?.get_mut(slot(id)?)
    }
}

fn slot(id: ExpertId) -> Option<usize> {
    let matrix = match id.matrix {
        ExpertMatrix::Gate => 0,
        ExpertMatrix::Down => 1,
        ExpertMatrix::Up => 2,
    };
    id.expert.checked_mul(ExpertMatrix::ALL.len())?.checked_add(matrix)
}
