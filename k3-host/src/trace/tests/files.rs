//! The file `k3-trace/1`: read as it was written, or refused.

use std::fs;
use std::path::PathBuf;

use super::*;

const SETTING: Setting = Setting {
    grid: ExpertGrid { layers: 3, experts: 12 },
    expert_bytes: 1000,
    slots: NonZeroUsize::new(2).unwrap(),
    policy: PolicyName::LayerShare,
};
const COUNTERS: Counters = Counters { requests: 5, hits: 1, misses: 4 };
const RAW: RawReading = RawReading { batching: Batching::Pass, top_k: NonZeroUsize::MIN };

/// The file that the next test spells out.
fn written(folder: &tempfile::TempDir) -> PathBuf {
    let path = folder.path().join("a trace");
    let mut writer = TraceWriter::create(&path, &SETTING).unwrap();
    writer.batch(1, &[4, 11]);
    writer.batch(2, &[]);
    writer.batch(1, &[0, 3, 4]);
    writer.finish(COUNTERS).unwrap();
    path
}

fn refusal(contents: &[u8]) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, contents).unwrap();
    read(&path, RAW).err().map(|failure| {
        assert_eq!(failure.exit, crate::failure::Exit::Refused);
        format!("{:#}", failure.error)
    })
}

#[test]
fn reads_what_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = written(&folder);
    let lines: Vec<String> = fs::read_to_string(&path).unwrap().lines().map(str::to_owned).collect();
    let first = "{\"format\":\"k3-trace/1\",\"layers\":3,\"experts\":12,\"expert_bytes\":1000,\"slots\":2,\
                 \"policy\":\"layer-share\"}";
    let expected = [first, "[1,4,11]", "[2]", "[1,0,3,4]", "{\"requests\":5,\"hits\":1,\"misses\":4}"];
    assert_eq!(lines[..5], expected);
    let body = expected.map(|line| line.to_owned() + "\n").concat();
    assert_eq!(lines[5], format!("{{\"xxh3\":\"{:016x}\"}}", xxhash_rust::xxh3::xxh3_64(body.as_bytes())));

    let file = read(&path, RAW).map_err(|failure| failure.error).unwrap();
    assert_eq!(file.trace, trace_of(SETTING.grid, &[(1, vec![4, 11]), (2, vec![]), (1, vec![0, 3, 4])]));
    assert_eq!(file.expert_bytes, Some(1000));
    let engine = EngineRun { policy: PolicyName::LayerShare, slots: SETTING.slots, counters: COUNTERS };
    assert_eq!(file.engine, Some(engine));
    assert_eq!((file.trace.requests(), file.trace.distinct()), (5, 4));
}

#[test]
fn an_unfinished_trace_leaves_what_was_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    fs::write(&path, "old").unwrap();
    let mut writer = TraceWriter::create(&path, &SETTING).unwrap();
    writer.batch(0, &[1]);
    drop(writer);
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn every_cut_and_every_flipped_bit_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let whole = fs::read(written(&folder)).unwrap();
    assert_eq!(refusal(&whole), None);
    for length in 0..whole.len() {
        assert!(refusal(&whole[..length]).is_some(), "cut to {length} bytes");
    }
    for bit in 0..whole.len() * 8 {
        let mut damaged = whole.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(refusal(&damaged).is_some(), "bit {bit} flipped");
    }
}

/// A file with a checksum that fits, so that the contents themselves are judged.
fn signed(lines: &[&str]) -> Vec<u8> {
    let body = lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    let hash = xxhash_rust::xxh3::xxh3_64(body.as_bytes());
    format!("{body}{{\"xxh3\":\"{hash:016x}\"}}\n").into_bytes()
}

#[test]
fn what_contradicts_itself_is_refused_with_its_line() {
    let first =
        "{\"format\":\"k3-trace/1\",\"layers\":3,\"experts\":12,\"expert_bytes\":1,\"slots\":2,\"policy\":\"lru\"}";
    let counters = "{\"requests\":2,\"hits\":1,\"misses\":1}";
    assert_eq!(refusal(&signed(&[first, "[0,1,2]", counters])), None);
    let first_with = |old: &str, new: &str| first.replace(old, new);
    for (lines, expected) in [
        (&[first, "[3,1,2]", counters][..], "line 2: layer 3: layers go up to 2"),
        (&[first, "[0,1,12]", counters], "line 2: expert 12: experts go up to 11"),
        (&[first, "[0,2,1]", counters], "line 2: the experts of a batch must ascend"),
        (&[first, "[0,1,1]", counters], "line 2: the experts of a batch must ascend"),
        (&[first, "[]", counters], "line 2: a batch without a layer"),
        (&[first, "[0,-1]", counters], "line 2: "),
        (&[first, "[0,1]", counters], "line 3: 2 requests, 1 hits and 1 misses, where the batches ask for 1"),
        (&[first, "[0,1,2]", "{\"requests\":2,\"hits\":2,\"misses\":1}"], "line 3: 2 requests, 2 hits and 1 misses"),
        (&[first, "[0,1,2]", "{\"requests\":2,\"hits\":2}"], "line 3: missing field"),
        (&[&first_with("trace/1", "trace/2"), counters], "line 1: format \"k3-trace/2\" is not k3-trace/1"),
        (&[&first_with("\"lru\"", "\"random\""), counters], "line 1: there is no policy \"random\""),
        (&[&first_with("\"slots\":2", "\"slots\":0"), counters], "line 1: "),
        (&[&first_with("\"layers\":3", "\"layers\":0"), counters], "line 1: 0 layers of 12 experts"),
        (&[&first_with(":3", ":9007199254740993"), counters], "line 1: 9007199254740993 layers of 12 experts"),
    ] {
        let reason = refusal(&signed(lines)).unwrap_or_else(|| panic!("{lines:?} was read"));
        assert!(reason.contains(expected), "{lines:?}: {reason}");
    }
    let trailing = [signed(&[first, "[0,1,2]", counters]), b"\n".to_vec()].concat();
    assert!(refusal(&trailing).unwrap().contains("something follows the last line"));
}
