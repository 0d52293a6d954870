//! Ids recorded from the released tokenizer: `fixtures/tokenizer`.

use std::fs;
use std::path::{Path, PathBuf};
use std::prelude::v1::*;

use super::{TOKENIZER, encode_uncut};
use crate::tokenizer::Mode;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/tokenizer")
}

fn parse_ids(list: &str) -> Vec<u32> {
    list.trim().split(',').filter(|id| !id.is_empty()).map(|id| id.parse().unwrap()).collect()
}

/// The ids of file `cases/NAME.KIND`, if it exists.
fn recorded(name: &str, kind: &str) -> Option<Vec<u32>> {
    fs::read_to_string(fixtures().join("cases").join(format!("{name}.{kind}"))).ok().map(|list| parse_ids(&list))
}

/// Every case in every mode. Each catches the wrong version its name in `MANIFEST.tsv` speaks of.
#[test]
fn cases_have_the_recorded_ids() {
    let manifest = fs::read_to_string(fixtures().join("cases/MANIFEST.tsv")).unwrap();
    let mut cases = 0;
    for row in manifest.lines().skip(1) {
        let fields: Vec<&str> = row.split('\t').collect();
        let (name, title) = (fields[0], fields[1]);
        let text = fs::read_to_string(fixtures().join("cases").join(format!("{name}.txt"))).unwrap();
        let special = recorded(name, "ids").unwrap();
        assert_eq!(TOKENIZER.encode(&text, Mode::Special), special, "{name} {title}");
        let plain = recorded(name, "none.ids");
        assert_eq!(plain.is_some(), fields[6] == "yes", "{name}: the file of plain ids");
        assert_eq!(&TOKENIZER.encode(&text, Mode::Plain), plain.as_ref().unwrap_or(&special), "{name} {title}, plain");
        let uncut = recorded(name, "raw.ids");
        assert_eq!(uncut.is_some(), fields[7] == "yes", "{name}: the file of raw ids");
        assert_eq!(&encode_uncut(&text, Mode::Special), uncut.as_ref().unwrap_or(&special), "{name} {title}, uncut");
        assert_eq!(TOKENIZER.decode(&special).unwrap(), text.as_bytes(), "{name} {title}, decoded");
        cases += 1;
    }
    assert_eq!(cases, 77);
}

/// 3,000 short strings of characters that are hard on the pattern.
#[test]
fn fuzz_lines_have_the_recorded_ids() {
    let lines = fs::read_to_string(fixtures().join("fuzz.tsv")).unwrap();
    let mut count = 0;
    for line in lines.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let bytes: Vec<u8> =
            (0..fields[0].len()).step_by(2).map(|at| u8::from_str_radix(&fields[0][at..at + 2], 16).unwrap()).collect();
        let text = str::from_utf8(&bytes).unwrap();
        let special = parse_ids(fields[1]);
        let plain = if fields[2] == "=" { special.clone() } else { parse_ids(fields[2]) };
        assert_eq!(TOKENIZER.encode(text, Mode::Special), special, "{text:?}");
        assert_eq!(TOKENIZER.encode(text, Mode::Plain), plain, "{text:?}, plain");
        count += 1;
    }
    assert_eq!(count, 3000);
}
