//! The ids that end an answer: `eos_token_id`, a number or a list, at the top level, under `text_config`, or at both.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::slice;

use super::fields::Fields;
use super::json::Json;

const NAME: &str = "eos_token_id";

/// All ids that either level names; none if it says null. An answer ends at any of them.
pub(super) fn read(text: &Fields<'_>, vocabulary: Option<usize>) -> Option<Vec<u32>> {
    let levels = text.levels(NAME);
    if levels.is_empty() {
        text.fault(NAME, "missing");
    }
    let mut ids = BTreeSet::new();
    for (level, value) in levels {
        let values = match value {
            Json::Null => &[],
            Json::Array(values) => values.as_slice(),
            single => slice::from_ref(single),
        };
        for value in values {
            let id = match value {
                Json::Integer(id) => u32::try_from(*id).ok(),
                _ => None,
            };
            match id {
                Some(id) if vocabulary.is_none_or(|vocabulary| (id as usize) < vocabulary) => ids.insert(id),
                _ => {
                    level.fault(NAME, format_args!("{value} is not a token id"));
                    return None;
                }
            };
        }
    }
    Some(ids.into_iter().collect())
}
