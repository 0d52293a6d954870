//! Random damage never panics, and what is accepted all the same keeps the promises of the types.

use k3_core::checkpoint::header::Header;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::memory::Memory;

/// A change to the bytes of a text.
#[derive(Debug, Clone)]
enum Damage {
    Replace(Index, u8),
    Remove(Index),
    Repeat(Index, usize),
    Cut(Index),
}

/// Bytes that mean something in JSON are drawn more often.
fn byte() -> impl Strategy<Value = u8> {
    prop_oneof![prop::sample::select(b"{}[]\",:0123456789-.eE\\u".to_vec()), any::<u8>()]
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        8 => (any::<Index>(), byte()).prop_map(|(at, byte)| Damage::Replace(at, byte)),
        4 => any::<Index>().prop_map(Damage::Remove),
        4 => (any::<Index>(), 1..40_usize).prop_map(|(at, length)| Damage::Repeat(at, length)),
        1 => any::<Index>().prop_map(Damage::Cut),
    ]
}

fn apply(text: &mut Vec<u8>, damage: &Damage) {
    if text.is_empty() {
        return;
    }
    match damage {
        Damage::Replace(at, byte) => *at.get_mut(text.as_mut_slice()) = *byte,
        Damage::Remove(at) => {
            text.remove(at.index(text.len()));
        }
        Damage::Repeat(at, length) => {
            let at = at.index(text.len());
            let again = text[at..(at + length).min(text.len())].to_vec();
            text.splice(at..at, again);
        }
        Damage::Cut(at) => text.truncate(at.index(text.len())),
    }
}

fn header_of(file: &[u8]) -> &[u8] {
    &file[8..8 + u64::from_le_bytes(file[..8].try_into().unwrap()) as usize]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_damaged_header_is_refused_or_still_covers_its_file(damages in prop::collection::vec(damage(), 1..4)) {
        let folder = Memory::load("oracle/a");
        let file = &folder.0["model-00001-of-000014.safetensors"];
        let mut text = header_of(file).to_vec();
        let data = file.len() - 8 - text.len();
        damages.iter().for_each(|damage| apply(&mut text, damage));
        let length = (8 + text.len() + data) as u64;
        if let Ok(header) = Header::parse("x", &text, length) {
            let mut covered = 8 + text.len() as u64;
            for tensor in &header.tensors {
                prop_assert_eq!(tensor.offset, covered);
                prop_assert!(tensor.bytes > 0);
                covered += tensor.bytes;
            }
            prop_assert_eq!(covered, length);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn a_damaged_index_or_config_never_panics(
        file in prop::sample::select(vec!["config.json", "model.safetensors.index.json"]),
        damages in prop::collection::vec(damage(), 1..4),
    ) {
        let mut folder = Memory::load("oracle/a");
        damages.iter().for_each(|damage| apply(folder.0.get_mut(file).unwrap(), damage));
        if k3_core::config::Config::from_json(&folder.0["config.json"]).is_ok() {
            let _ = folder.open_all();
        }
    }
}
