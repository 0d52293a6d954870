//! What moves between drives and compute, counted by whoever reads.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

/// Makes the counters, a method to add to each, and the snapshot of them all, from one list.
macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident by $add:ident;)*) => {
        /// What moved between drives and compute since the engine was opened. All counters only grow. Reading threads add
        /// to them without waiting for each other, so a snapshot is exact only between passes.
        #[derive(Debug, Default)]
        pub struct Traffic {
            $($name: AtomicU64,)*
        }

        /// A snapshot of [`Traffic`], or the difference of two.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
        pub struct Totals {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Traffic {
            $(
                #[doc = concat!("Adds to [`Totals::", stringify!($name), "`].")]
                pub fn $add(&self, amount: u64) {
                    self.$name.fetch_add(amount, Ordering::Relaxed);
                }
            )*

            /// What was counted so far.
            #[must_use]
            pub fn snapshot(&self) -> Totals {
                Totals { $($name: self.$name.load(Ordering::Relaxed),)* }
            }
        }

        impl Totals {
            /// What was counted since `earlier`, a snapshot of the same counters.
            #[must_use]
            pub fn since(&self, earlier: &Self) -> Self {
                Self { $($name: self.$name - earlier.$name,)* }
            }
        }
    };
}

counters! {
    /// Bytes of the trunk that were handed to compute and came from a drive.
    trunk_bytes by add_trunk_bytes;
    /// Bytes of routed experts that were read.
    expert_bytes by add_expert_bytes;
    /// Bytes of embedding rows that were read.
    row_bytes by add_row_bytes;
    /// Bytes that the system was asked for in all, alignment included.
    raw_bytes by add_raw_bytes;
    /// Routed experts that compute asked for: the resident hits, the prefetch hits and the misses.
    expert_requests by add_expert_requests;
    /// Of these, those that were in memory from an earlier pass.
    resident_hits by add_resident_hits;
    /// Of these, those that were read ahead, before compute asked for them.
    prefetch_hits by add_prefetch_hits;
    /// Of these, those that were read only then.
    misses by add_misses;
    /// Time inside forward passes.
    pass_nanoseconds by add_pass_nanoseconds;
    /// Of this, the time in which compute waited for the trunk.
    trunk_wait_nanoseconds by add_trunk_wait_nanoseconds;
    /// Of this, the time in which compute waited for routed experts.
    expert_wait_nanoseconds by add_expert_wait_nanoseconds;
    /// Of this, the time in which at least one read was under way.
    busy_nanoseconds by add_busy_nanoseconds;
}

impl Totals {
    /// Bytes of weights that were read, of any kind, without what alignment adds.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.trunk_bytes + self.expert_bytes + self.row_bytes
    }

    /// Of the time inside forward passes, that in which compute waited for reads.
    #[must_use]
    pub fn wait_nanoseconds(&self) -> u64 {
        self.trunk_wait_nanoseconds + self.expert_wait_nanoseconds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_counts_what_came_between() {
        let traffic = Traffic::default();
        assert_eq!(traffic.snapshot(), Totals::default());
        traffic.add_trunk_bytes(5);
        traffic.add_misses(1);
        let earlier = traffic.snapshot();
        traffic.add_trunk_bytes(7);
        traffic.add_misses(2);
        traffic.add_busy_nanoseconds(9);
        let expected = Totals { trunk_bytes: 7, misses: 2, busy_nanoseconds: 9, ..Totals::default() };
        assert_eq!(traffic.snapshot().since(&earlier), expected);
        assert_eq!((earlier.trunk_bytes, traffic.snapshot().trunk_bytes), (5, 12));
    }
}
