//! Threads behind the core's `Workers` trait.

use k3_core::host::Workers;
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// A pool of threads.
#[derive(Debug)]
pub struct Threads {
    pool: ThreadPool,
}

impl Threads {
    /// A pool of `count` threads.
    ///
    /// # Errors
    /// If the system refuses to start them.
    pub fn new(count: usize) -> anyhow::Result<Self> {
        Ok(Self { pool: ThreadPoolBuilder::new().num_threads(count).build()? })
    }

    /// Runs `work` inside the pool, so that the parallel steps in it start without a change of thread.
    pub fn enter<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.pool.install(work)
    }
}

impl Workers for Threads {
    fn threads(&self) -> usize {
        self.pool.current_num_threads()
    }

    fn run(&self, pieces: usize, work: &(dyn Fn(usize) + Sync)) {
        if pieces == 1 {
            return work(0);
        }
        self.pool.install(|| (0..pieces).into_par_iter().with_max_len(1).for_each(work));
    }
}

/// How many threads to use when none were asked for: the physical cores this process may run on. Sharing a core between
/// two threads makes both slower than one would be.
#[must_use]
pub fn default_threads() -> usize {
    num_cpus::get_physical().min(num_cpus::get()).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn every_piece_runs_once() {
        for threads in 1..=3 {
            let workers = Threads::new(threads).unwrap();
            let counts: Vec<AtomicUsize> = (0..17).map(|_| AtomicUsize::new(0)).collect();
            workers.enter(|| {
                workers.run(counts.len(), &|index| {
                    counts[index].fetch_add(1, Ordering::Relaxed);
                });
            });
            assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == 1));
        }
    }
}
