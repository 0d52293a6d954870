//! Each file of `fixtures/hostile/headers` is refused, with the file and the tensor named.

use std::collections::BTreeMap;

use k3_core::Result;
use k3_core::checkpoint::Checkpoint;
use k3_core::checkpoint::header::{Header, read_text};
use k3_core::host::{Directory, Storage};

use crate::memory::{Bytes, Memory};

/// Reads and checks a header; returns how many tensors it has.
fn check(file: &Bytes, name: &str) -> Result<usize> {
    let mut text = Vec::new();
    read_text(file, name, &mut text)?;
    Ok(Header::parse(name, &text, file.len())?.tensors.len())
}

#[test]
fn every_hostile_header_is_refused_for_its_own_fault() {
    let folder = Memory::load("hostile/headers");
    let mut expected: BTreeMap<String, String> = serde_json::from_slice(&folder.0["expected.json"]).unwrap();
    for name in folder.0.keys().filter(|name| name.ends_with(".safetensors")) {
        let fault = check(&folder.open(name).unwrap().unwrap(), name).unwrap_err().to_string();
        let wanted = expected.remove(name.strip_suffix(".safetensors").unwrap());
        let wanted = format!("{name}: {}", wanted.unwrap_or_else(|| panic!("nothing is expected of {fault}")));
        assert!(fault.starts_with(&wanted), "{fault}\nwanted {wanted}");
    }
    assert!(expected.is_empty(), "not found: {expected:?}");
}

/// `text` as the header of a file with `data` bytes of data.
fn with_header(text: &str, data: usize) -> Memory {
    let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(text.as_bytes());
    bytes.resize(bytes.len() + data, 0);
    Memory([("x".to_owned(), bytes)].into())
}

#[test]
fn what_is_unusual_but_sound_is_accepted() {
    let cases = [
        // A type that nobody knows, on a tensor that nobody may need.
        (r#"{"a":{"dtype":"F4","shape":[8],"data_offsets":[0,4]}}"#, 4, 1),
        // Out of order, a scalar, padding, metadata of any form.
        (
            r#"{"b":{"data_offsets":[4,8],"shape":[],"dtype":"F32"},"__metadata__":{"x":[1]},
                "a":{"dtype":"U8","shape":[2,2],"data_offsets":[0,4]}}    "#,
            8,
            2,
        ),
        ("{}", 0, 0),
        // Skipped without recursion, however deep.
        (&format!(r#"{{"__metadata__":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000)), 0, 0),
    ];
    for (text, data, tensors) in cases {
        let file = with_header(text, data).open("x").unwrap().unwrap();
        assert_eq!(check(&file, "x").unwrap(), tensors, "{text}");
    }
}

#[test]
fn offsets_are_exact_and_absolute() {
    let text = br#"{"a":{"dtype":"U8","shape":[9007199254740993],"data_offsets":[0,9007199254740993]},
        "b":{"dtype":"U8","shape":[2],"data_offsets":[9007199254740993,9007199254740995]}}"#;
    let data = 8 + text.len() as u64;
    let header = Header::parse("x", text, data + (1 << 53) + 3).unwrap();
    assert_eq!((header.tensors[1].offset, header.tensors[1].bytes), (data + (1 << 53) + 1, 2));
    assert_eq!(header.tensors[0].dimensions(), [(1 << 53) + 1]);
}

/// A file of absurd length that says its header is nearly as long.
#[derive(Debug)]
struct Endless;

impl Storage for Endless {
    fn len(&self) -> u64 {
        u64::MAX
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        assert_eq!((offset, buffer.len()), (0, 8), "nothing else may be asked for");
        buffer.copy_from_slice(&1_000_000_001_u64.to_le_bytes());
        Ok(())
    }
}

impl Directory for Endless {
    type File = Self;

    fn open(&self, _: &str) -> Result<Option<Self>> {
        Ok(Some(Self))
    }
}

#[test]
fn absurd_lengths_are_refused_before_anything_is_allocated() {
    let fault = read_text(&Endless, "x", &mut Vec::new()).unwrap_err().to_string();
    assert_eq!(fault, "x: a header of 1000000001 bytes is more than is believed");
    let config = Memory::load("oracle/a").config();
    let fault = Checkpoint::open(&Endless, &config, 1).unwrap_err().to_string();
    let wanted = "18446744073709551615 bytes of JSON are more than is believed";
    assert_eq!(fault, format!("model.safetensors.index.json: {wanted}"));
}
