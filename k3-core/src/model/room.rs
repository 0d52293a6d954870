//! Making the buffers of a scratch, or only counting what they would take: one description serves both.

use alloc::vec;
use alloc::vec::Vec;

/// Where buffers come from.
pub(super) enum Room {
    /// Memory.
    Made,
    /// Nowhere: buffers stay empty, and these are the bytes that they would have taken.
    Counted(u64),
}

impl Room {
    /// The bytes that the buffers take which `describe` asks for.
    pub fn bytes<T>(describe: impl FnOnce(&mut Self) -> T) -> u64 {
        let mut room = Self::Counted(0);
        describe(&mut room);
        match room {
            Self::Counted(bytes) => bytes,
            Self::Made => 0,
        }
    }

    /// A buffer of `length` zeros.
    pub fn zeros<T: Clone + Default>(&mut self, length: usize) -> Vec<T> {
        if self.takes::<T>(length) { vec![T::default(); length] } else { Vec::new() }
    }

    /// An empty buffer that `length` values can be pushed to.
    pub fn reserved<T>(&mut self, length: usize) -> Vec<T> {
        if self.takes::<T>(length) { Vec::with_capacity(length) } else { Vec::new() }
    }

    /// Whether to make a buffer.
    fn takes<T>(&mut self, length: usize) -> bool {
        match self {
            Self::Made => true,
            Self::Counted(bytes) => {
                *bytes += length as u64 * size_of::<T>() as u64;
                false
            }
        }
    }
}
