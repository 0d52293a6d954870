//! Reading a trace. Nothing in the file is believed before it is checked.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use anyhow::Context;
use k3_core::stream::cache::{Counters, ExpertGrid};
use xxhash_rust::xxh3::Xxh3Default;

use super::raw::{self, RawReading};
use super::writer::{ChecksumLine, CountersLine, FORMAT, FirstLine};
use super::{EngineRun, PolicyName, Trace, TraceFile};
use crate::failure::{Failure, Outcome};

/// The longest line that is believed: a batch of all experts there can be, each with seven digits and a comma.
const MOST_LINE_BYTES: u64 = 8 * super::MOST_EXPERTS as u64;

/// Reads the file at `path`: `k3-trace/1`, or pairs of layer and expert without any header, which are cut into batches as
/// `raw` says.
///
/// # Errors
/// A refusal that names the file and the line or pair at fault.
pub fn read(path: &Path, raw: RawReading) -> Outcome<TraceFile> {
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut input = BufReader::new(file);
    let start = input.fill_buf().with_context(|| format!("cannot read {}", path.display()))?;
    let contents = if start.starts_with(b"{") { Lines::new(input).file() } else { raw::file(input, raw) };
    contents.map_err(|reason| Failure::refused(format!("{}: {reason}", path.display())))
}

/// The lines of a file, as they are read.
struct Lines<R> {
    input: R,
    line: Vec<u8>,
    number: usize,
}

impl<R: BufRead> Lines<R> {
    fn new(input: R) -> Self {
        Self { input, line: Vec::new(), number: 0 }
    }

    /// Reads a line with its line feed; without one, the file was cut short.
    fn next(&mut self) -> Result<(), String> {
        self.line.clear();
        self.number += 1;
        let mut limited = self.input.by_ref().take(MOST_LINE_BYTES);
        let read = limited.read_until(b'\n', &mut self.line);
        read.map_err(|error| format!("line {}: {error}", self.number))?;
        match self.line.last() {
            Some(b'\n') => Ok(()),
            _ if self.line.len() as u64 == MOST_LINE_BYTES => Err(format!("line {} is too long", self.number)),
            _ => Err(format!("the file ends in line {}, without the last line of a trace", self.number)),
        }
    }

    fn parsed<'a, T: serde::Deserialize<'a>>(&'a self) -> Result<T, String> {
        serde_json::from_slice(&self.line).map_err(|error| self.fault(error))
    }

    fn fault(&self, reason: impl std::fmt::Display) -> String {
        format!("line {}: {reason}", self.number)
    }

    fn file(mut self) -> Result<TraceFile, String> {
        self.next()?;
        let first: FirstLine = self.parsed()?;
        if first.format != FORMAT {
            return Err(self.fault(format_args!("format {:?} is not {FORMAT}", first.format)));
        }
        let policy = PolicyName::from_name(&first.policy)
            .ok_or_else(|| self.fault(format_args!("there is no policy {:?}", first.policy)))?;
        let grid = ExpertGrid { layers: first.layers, experts: first.experts };
        let mut trace = Trace::new(grid).map_err(|reason| self.fault(reason))?;
        let counters = self.batches(&mut trace)?;
        let engine = EngineRun { policy, slots: first.slots, counters };
        Ok(TraceFile { trace, expert_bytes: Some(first.expert_bytes), engine: Some(engine) })
    }

    /// Reads the batches and what the engine counted, and checks the file as a whole.
    fn batches(&mut self, trace: &mut Trace) -> Result<Counters, String> {
        let mut hash = Xxh3Default::new();
        loop {
            hash.update(&self.line);
            self.next()?;
            if !self.line.starts_with(b"[") {
                break;
            }
            let numbers: Vec<usize> = self.parsed()?;
            let (layer, experts) = numbers.split_first().ok_or_else(|| self.fault("a batch without a layer"))?;
            trace.push(*layer, experts).map_err(|reason| self.fault(reason))?;
        }
        let CountersLine { requests, hits, misses } = self.parsed()?;
        hash.update(&self.line);
        if requests != trace.requests() as u64 || hits.checked_add(misses) != Some(requests) {
            let asked = trace.requests();
            return Err(self.fault(format_args!(
                "{requests} requests, {hits} hits and {misses} misses, where the batches ask for {asked}"
            )));
        }
        self.next()?;
        let ChecksumLine { xxh3 } = self.parsed()?;
        if xxh3 != format!("{:016x}", hash.digest()) {
            return Err(self.fault("the checksum is that of other contents: the file is damaged"));
        }
        match self.input.fill_buf() {
            Ok([]) => Ok(Counters { requests, hits, misses }),
            Ok(_) => Err(self.fault("something follows the last line of the trace")),
            Err(error) => Err(self.fault(error)),
        }
    }
}
