//! Timing several candidates in turns, A B C A B C …, so that a slow spell of the machine hits all of them.

use std::time::Instant;

/// Something to time.
pub struct Candidate<'a> {
    /// What it is called in the table.
    pub name: String,
    /// Does it once.
    pub run: Box<dyn FnMut() + 'a>,
}

impl<'a> Candidate<'a> {
    /// A candidate called `name`.
    pub fn new(name: impl Into<String>, run: impl FnMut() + 'a) -> Self {
        Self { name: name.into(), run: Box::new(run) }
    }
}

/// The median seconds of each candidate over `rounds` rounds, after one round that does not count.
#[must_use]
pub fn medians(candidates: &mut [Candidate<'_>], rounds: usize) -> Vec<f64> {
    let mut seconds = vec![Vec::with_capacity(rounds); candidates.len()];
    for round in 0..=rounds {
        for (candidate, seconds) in candidates.iter_mut().zip(&mut seconds) {
            let started = Instant::now();
            (candidate.run)();
            if round > 0 {
                seconds.push(started.elapsed().as_secs_f64());
            }
        }
    }
    seconds.into_iter().map(median).collect()
}

/// The middle value; of an even number, the upper of the two.
#[must_use]
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(vec![9.0, 1.0, 5.0]), 5.0);
        assert_eq!(median(vec![9.0, 1.0]), 9.0);
        assert!(median(vec![]).is_nan());
    }
}
