//! Experts that are read on the guess that they will be asked for.

use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k3_core::Result;
use memmap2::MmapMut;

use super::buffer::{Placement, allocate};
use super::drives::Drives;

/// A read that ended.
pub struct Arrival {
    /// What it was for: the number of an access in its batch.
    pub access: usize,
    /// What was read into.
    pub buffer: MmapMut,
    /// What became of it.
    pub result: Result<()>,
}

/// Buffers beside the cache, so that a wrong guess costs the cache nothing.
pub struct Guesses {
    free: Vec<MmapMut>,
    guesses: Vec<Guess>,
}

struct Guess {
    layer: usize,
    expert: usize,
    bytes: u64,
    reading: Arc<Mutex<Reading>>,
}

/// How far a guess is.
enum Reading {
    UnderWay,
    Ended(MmapMut, Result<()>),
    /// It was right: whoever waits is told at the end.
    Claimed(usize, Sender<Arrival>),
    /// The buffer was given away.
    Gone,
}

impl Guesses {
    /// Room for `count` guesses of `bytes` each.
    ///
    /// # Errors
    /// [`k3_core::Error::Memory`].
    pub fn new(count: usize, bytes: usize) -> Result<Self> {
        let free = (0..count).map(|_| allocate(bytes)).collect::<Result<_>>()?;
        Ok(Self { free, guesses: Vec::new() })
    }

    /// Begins to read an expert, if there is room.
    pub fn begin(&mut self, drives: &Drives, layer: usize, expert: usize, placement: &Placement) {
        if self.guesses.iter().any(|guess| (guess.layer, guess.expert) == (layer, expert)) {
            return;
        }
        let Some(buffer) = self.free.pop() else { return };
        let reading = Arc::new(Mutex::new(Reading::UnderWay));
        let bytes = placement.places.iter().map(|place| place.len() as u64).sum();
        self.guesses.push(Guess { layer, expert, bytes, reading: Arc::clone(&reading) });
        let end = move |buffer, result| {
            let mut reading = lock(&reading);
            if let Reading::Claimed(access, arrivals) = &*reading {
                // The other end lives as long as the reader; at the end of the program nobody waits.
                drop(arrivals.send(Arrival { access: *access, buffer, result }));
                *reading = Reading::Gone;
            } else {
                *reading = Reading::Ended(buffer, result);
            }
        };
        drives.submit(placement, buffer, Box::new(end));
    }

    /// Claims the guess of an expert, in exchange for `buffer`: when it is read, or at once if it is, it arrives for `access`.
    /// Gives `buffer` back if there was no such guess.
    pub fn claim(
        &mut self,
        (layer, expert): (usize, usize),
        access: usize,
        buffer: MmapMut,
        arrivals: &Sender<Arrival>,
    ) -> Option<MmapMut> {
        let right = self.guesses.iter().position(|guess| (guess.layer, guess.expert) == (layer, expert));
        let Some(right) = right else { return Some(buffer) };
        let guess = self.guesses.swap_remove(right);
        self.free.push(buffer);
        let mut reading = lock(&guess.reading);
        match std::mem::replace(&mut *reading, Reading::Gone) {
            Reading::Ended(buffer, result) => drop(arrivals.send(Arrival { access, buffer, result })),
            _ => *reading = Reading::Claimed(access, arrivals.clone()),
        }
        None
    }

    /// Takes back the buffers of guesses that proved wrong and have ended: those of `layer`, whose experts are all asked for by
    /// now, and of others that it is too late for. Returns the bytes that were read for nothing.
    pub fn retire(&mut self, layer: usize) -> u64 {
        let mut bytes = 0;
        let mut number = 0;
        while number < self.guesses.len() {
            let guess = &self.guesses[number];
            let mut reading = lock(&guess.reading);
            let is_late = guess.layer != layer + 1;
            if is_late && matches!(*reading, Reading::Ended(..)) {
                if let Reading::Ended(buffer, _) = std::mem::replace(&mut *reading, Reading::Gone) {
                    self.free.push(buffer);
                }
                bytes += guess.bytes;
                drop(reading);
                self.guesses.swap_remove(number);
            } else {
                number += 1;
            }
        }
        bytes
    }
}

fn lock(reading: &Mutex<Reading>) -> MutexGuard<'_, Reading> {
    reading.lock().unwrap_or_else(PoisonError::into_inner)
}
