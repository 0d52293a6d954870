//! How a run went, in numbers: for people as a table, for scripts as JSON. Everything but times, counts and the peak follows
//! from the counters of [`Totals`].

use std::fmt;

use serde::Serialize;

use crate::memory::readable;
use crate::traffic::Totals;

/// How a run went.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Summary {
    /// Up to the first id; counts the positions fed.
    pub prompt: Phase,
    /// The ids after the first.
    pub decode: Phase,
    /// Wall time of it all, in seconds.
    pub seconds: f64,
    /// The most memory that the process had in use at once.
    pub peak_bytes: Option<u64>,
    /// The most that it was meant to have.
    pub planned_bytes: Option<u64>,
    /// What was read, if weights are read as they are needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traffic: Option<Totals>,
    /// What follows from that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rates: Option<Rates>,
}

/// A part of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Phase {
    /// How many positions or ids.
    pub count: usize,
    /// Wall time.
    pub seconds: f64,
    /// Wall time for each; `None` if there are none.
    pub seconds_each: Option<f64>,
}

impl Phase {
    /// A part of `count` positions or ids.
    #[must_use]
    pub fn new(count: usize, seconds: f64) -> Self {
        Self { count, seconds, seconds_each: (count > 0).then(|| seconds / count as f64) }
    }
}

/// Ratios of counters; `None` where the counter below the line is 0.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Rates {
    /// Of the time inside passes, the part in which compute waited for reads.
    pub io_share: Option<f64>,
    /// Of the time inside passes, the part in which a read was under way.
    pub busy_share: Option<f64>,
    /// Bytes of the trunk for each second in which any read was under way.
    pub trunk_bytes_per_second: Option<f64>,
    /// The same of routed experts, so that both together, with embedding rows, are what the drives gave.
    pub expert_bytes_per_second: Option<f64>,
    /// Of the experts asked for, the part that was in memory from an earlier pass.
    pub resident_hit_rate: Option<f64>,
    /// The part that was read before it was asked for.
    pub prefetch_hit_rate: Option<f64>,
}

impl Rates {
    /// The ratios of these counters.
    #[must_use]
    pub fn of(totals: &Totals) -> Self {
        let busy_seconds = seconds(totals.busy_nanoseconds);
        Self {
            io_share: ratio(totals.wait_nanoseconds() as f64, totals.pass_nanoseconds as f64),
            busy_share: ratio(totals.busy_nanoseconds as f64, totals.pass_nanoseconds as f64),
            trunk_bytes_per_second: ratio(totals.trunk_bytes as f64, busy_seconds),
            expert_bytes_per_second: ratio(totals.expert_bytes as f64, busy_seconds),
            resident_hit_rate: ratio(totals.resident_hits as f64, totals.expert_requests as f64),
            prefetch_hit_rate: ratio(totals.prefetch_hits as f64, totals.expert_requests as f64),
        }
    }
}

/// As a table, a line for each kind of number.
impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, phase, unit) in [("prompt", self.prompt, "positions"), ("decode", self.decode, "ids")] {
            write!(f, "{name:<8} {} {unit}, {}", phase.count, readable_seconds(phase.seconds))?;
            match phase.seconds_each {
                Some(each) => writeln!(f, ", {} each", readable_seconds(each))?,
                None => writeln!(f)?,
            }
        }
        if let (Some(totals), Some(rates)) = (&self.traffic, &self.rates) {
            self.write_reads(f, totals, rates)?;
        }
        let peak = self.peak_bytes.map_or("unknown".into(), readable);
        match self.planned_bytes {
            Some(planned) => writeln!(f, "memory   peak {peak} of {} planned", readable(planned)),
            None => writeln!(f, "memory   peak {peak}"),
        }
    }
}

impl Summary {
    fn write_reads(&self, f: &mut fmt::Formatter<'_>, totals: &Totals, rates: &Rates) -> fmt::Result {
        let wait = seconds(totals.wait_nanoseconds());
        let pass = seconds(totals.pass_nanoseconds);
        let part = |part: f64| format!("{} ({})", readable_seconds(part), percent(ratio(part, self.seconds)));
        // A pass that failed is not counted, but what was waited for in it is.
        let (compute, other) = (part((pass - wait).max(0.0)), part(self.seconds - pass.max(wait)));
        writeln!(f, "time     compute {compute}, waiting for reads {}, other {other}", part(wait))?;
        let (io, busy) = (percent(rates.io_share), percent(rates.busy_share));
        writeln!(f, "passes   {io} waiting for reads, {busy} with a read under way")?;
        for (name, bytes, rate) in [
            ("trunk", totals.trunk_bytes, rates.trunk_bytes_per_second),
            ("experts", totals.expert_bytes, rates.expert_bytes_per_second),
        ] {
            let rate = rate.map_or("–".into(), |rate| format!("{:.2} GB/s", rate / 1e9));
            writeln!(f, "{name:<8} {} read, {rate}", readable(bytes))?;
        }
        let (resident, ahead) = (percent(rates.resident_hit_rate), percent(rates.prefetch_hit_rate));
        let requests = totals.expert_requests;
        writeln!(f, "hits     {resident} resident, {ahead} read ahead, of {requests} requests for experts")
    }
}

fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

/// A share as people read it; a dash if there is nothing to share.
#[must_use]
pub fn percent(share: Option<f64>) -> String {
    share.map_or("–".into(), |share| format!("{:.0} %", share * 100.0))
}

/// A time as people read it.
#[must_use]
pub fn readable_seconds(seconds: f64) -> String {
    match seconds {
        ..0.0995 => format!("{:.2} ms", seconds * 1e3),
        ..99.5 => format!("{seconds:.2} s"),
        _ => format!("{seconds:.0} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run whose ratios are easy to see.
    fn summary() -> Summary {
        let traffic = Totals {
            trunk_bytes: 6_000_000_000,
            expert_bytes: 2_000_000_000,
            row_bytes: 14_336,
            raw_bytes: 8_000_100_000,
            expert_requests: 200,
            resident_hits: 62,
            prefetch_hits: 100,
            misses: 38,
            pass_nanoseconds: 8_000_000_000,
            trunk_wait_nanoseconds: 1_500_000_000,
            expert_wait_nanoseconds: 500_000_000,
            busy_nanoseconds: 4_000_000_000,
        };
        Summary {
            prompt: Phase::new(4, 6.0),
            decode: Phase::new(0, 0.0),
            seconds: 10.0,
            peak_bytes: Some(5_200_000_000),
            planned_bytes: Some(6_000_000_000),
            traffic: Some(traffic),
            rates: Some(Rates::of(&traffic)),
        }
    }

    #[test]
    fn the_table_shows_what_follows_from_the_counters() {
        let expected = "\
prompt   4 positions, 6.00 s, 1.50 s each
decode   0 ids, 0.00 ms
time     compute 6.00 s (60 %), waiting for reads 2.00 s (20 %), other 2.00 s (20 %)
passes   25 % waiting for reads, 50 % with a read under way
trunk    6.00 GB read, 1.50 GB/s
experts  2.00 GB read, 0.50 GB/s
hits     31 % resident, 50 % read ahead, of 200 requests for experts
memory   peak 5.20 GB of 6.00 GB planned
";
        assert_eq!(summary().to_string(), expected);
    }

    #[test]
    fn nothing_is_said_of_reads_where_there_are_none() {
        let summary = Summary { traffic: None, rates: None, planned_bytes: None, peak_bytes: None, ..summary() };
        let expected = "prompt   4 positions, 6.00 s, 1.50 s each\ndecode   0 ids, 0.00 ms\nmemory   peak unknown\n";
        assert_eq!(summary.to_string(), expected);
    }

    #[test]
    fn a_ratio_to_nothing_is_none() {
        let rates = Rates::of(&Totals { trunk_bytes: 5, ..Totals::default() });
        assert_eq!((rates.trunk_bytes_per_second, rates.io_share, rates.resident_hit_rate), (None, None, None));
        assert_eq!(percent(None), "–");
    }

    #[test]
    fn times_read_well() {
        let readable = [0.000_04, 0.099, 0.0996, 20.31, 99.4, 99.6, 4000.0].map(readable_seconds);
        assert_eq!(readable, ["0.04 ms", "99.00 ms", "0.10 s", "20.31 s", "99.40 s", "100 s", "4000 s"]);
    }
}
