//! How fast the drives deliver what passes read: the same reads in the same order, with nothing computed.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Instant;

use k3_core::Result;
use k3_core::checkpoint::names::{LayerTensor, TensorId};
use k3_core::model::scratch::WantedLogits;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::failure::Outcome;
use crate::streaming::Files;
use crate::streaming::buffer::{Placement, allocate};
use crate::streaming::drives::Drives;
use crate::streaming::{experts, trunk};
use crate::traffic::Traffic;

/// How many reads are under way at once.
const READS_AT_ONCE: usize = 8;

/// What one pass read.
#[derive(Debug, Clone, Copy)]
pub struct PassRead {
    /// Bytes of weights.
    pub bytes: u64,
    /// Wall time.
    pub seconds: f64,
}

impl PassRead {
    /// Bytes per second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.bytes as f64 / self.seconds
    }
}

/// Reads what a pass over one token reads with nothing in memory, `rounds` times, each time with other experts.
///
/// # Errors
/// Those of reading.
pub fn measure(mut files: Files, rounds: usize) -> Outcome<Vec<PassRead>> {
    let drives = Drives::new(std::mem::take(&mut files.files), Arc::new(Traffic::default()))?;
    let mut random = Xoshiro256PlusPlus::seed_from_u64(0);
    let mut passes = Vec::new();
    for _ in 0..rounds {
        let reads = reads_of_pass(&files, &mut random);
        let started = Instant::now();
        read_all(&drives, &reads)?;
        let bytes = reads.iter().flat_map(|read| &read.places).map(|place| place.len() as u64).sum();
        passes.push(PassRead { bytes, seconds: started.elapsed().as_secs_f64() });
    }
    Ok(passes)
}

/// The reads of one pass: every run of the trunk, and before a layer's last matrix the experts that a router might choose.
fn reads_of_pass(files: &Files, random: &mut Xoshiro256PlusPlus) -> Vec<Placement> {
    let Files { config, index, trunk, .. } = files;
    let mut reads = Vec::new();
    for number in trunk::schedule(trunk, config, &BTreeSet::new(), WantedLogits::Last) {
        let run = &trunk.runs()[number];
        if let TensorId::Layer(layer, LayerTensor::LatentUp) = run.tensor
            && run.rows.start == 0
        {
            let chosen = choose(random, config.moe.experts, config.moe.top_k).into_iter();
            reads.extend(chosen.map(|expert| Placement::of(experts::spans(index, layer, expert))));
        }
        reads.push(Placement::of(run.spans()));
    }
    reads
}

/// `count` of the numbers below `total`, in ascending order.
fn choose(random: &mut Xoshiro256PlusPlus, total: usize, count: usize) -> BTreeSet<usize> {
    let mut chosen = BTreeSet::new();
    while chosen.len() < count.min(total) {
        chosen.insert((random.next_u64() % total as u64) as usize);
    }
    chosen
}

fn read_all(drives: &Drives, reads: &[Placement]) -> Result<()> {
    let bytes = reads.iter().map(Placement::bytes).max().unwrap_or(0);
    let mut free = (0..READS_AT_ONCE).map(|_| allocate(bytes)).collect::<Result<Vec<_>>>()?;
    let mut under_way = VecDeque::new();
    let mut next = reads.iter();
    loop {
        while let Some(buffer) = free.pop() {
            let Some(read) = next.next() else { break };
            let (done, pending) = sync_channel(1);
            drives.submit(read, buffer, Box::new(move |buffer, result| drop(done.send((buffer, result)))));
            under_way.push_back(pending);
        }
        let Some(pending) = under_way.pop_front() else { return Ok(()) };
        let (buffer, result) = pending.recv().expect("a read that was submitted ends");
        result?;
        free.push(buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn experts_are_chosen_once_each() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let chosen = choose(&mut random, 20, 16);
        assert_eq!(chosen.len(), 16);
        assert!(chosen.iter().all(|expert| *expert < 20));
        assert_eq!(choose(&mut random, 3, 16), BTreeSet::from([0, 1, 2]));
    }
}
