//! Going on from what was fed gives the bits of feeding everything, on the bundled model whose logits are known.

use std::path::Path;

use k3_core::model::scratch::WantedLogits;
use k3_core::model::sequence::{Reuse, Sequence};
use k3_host::chat::{Predictor, ThreadedSequence};
use k3_host::engine::Engine;
use k3_host::plan::Demand;

use crate::support::{Reference, engine_args, fixture};

fn engine() -> Engine {
    let mut args = engine_args();
    args.chunk = 5;
    Engine::open(Path::new(&fixture("oracle").join("a")), &args, &Demand::as_many_as_fit()).unwrap()
}

fn sequence(engine: &Engine) -> Sequence<'_> {
    engine.sequence(64, WantedLogits::Last).unwrap()
}

fn bits(logits: &[f32]) -> Vec<u32> {
    logits.iter().map(|logit| logit.to_bits()).collect()
}

/// The logits of a second prompt after a first, and what was reused.
fn second(engine: &Engine, first: &[u32], second: &[u32]) -> (Vec<u32>, Reuse) {
    let mut sequence = sequence(engine);
    sequence.extend_to(first).unwrap();
    let reuse = sequence.keep_prefix_of(second);
    (bits(sequence.extend_to(second).unwrap()), reuse)
}

#[test]
fn a_second_turn_has_the_same_bits_with_and_without_reuse() {
    let engine = engine();
    let first = &Reference::of("a").ids("full_ids")[..23];
    let new = [5, 17, 99, 3];
    for shared in [0, 1, first.len() - 1, first.len()] {
        for added in [0, 1, new.len()] {
            let prompt = [&first[..shared], &new[..added]].concat();
            if prompt.is_empty() || (shared < first.len() && prompt.get(shared) == first.get(shared)) {
                continue;
            }
            let fresh = bits(sequence(&engine).extend_to(&prompt).unwrap());
            let (reused, reuse) = second(&engine, first, &prompt);
            let expected = match shared {
                23 => Reuse::Positions(23),
                common => Reuse::Departs { common, fed: 23 },
            };
            assert_eq!(reuse, expected);
            assert_eq!(reused, fresh, "{shared} ids shared, {added} added");
        }
    }
}

/// Stopped before any pass, the sequence can be gone on from, and gives the same bits.
#[test]
fn a_prompt_that_was_stopped_goes_on_with_the_same_bits() {
    let engine = engine();
    let ids = &Reference::of("a").ids("full_ids")[..23];
    let fresh = bits(sequence(&engine).extend_to(ids).unwrap());
    for stop in 0..5 {
        let mut sequence = ThreadedSequence::new(&engine, sequence(&engine));
        let mut fed_before = Vec::new();
        let stopped = sequence.logits_after(ids, &mut |fed| {
            fed_before.push(fed);
            fed_before.len() <= stop
        });
        assert_eq!(stopped.unwrap(), None);
        assert_eq!(fed_before, (0..=stop).map(|pass| 5 * pass).collect::<Vec<_>>());
        assert_eq!(sequence.positions(), 5 * stop);

        // The same prompt, and one that is over exactly where the other was stopped.
        if stop > 0 {
            let over = &ids[..5 * stop];
            assert_eq!(sequence.keep_prefix_of(over), Reuse::Positions(5 * stop));
            let expected = bits(self::sequence(&engine).extend_to(over).unwrap());
            assert_eq!(bits(sequence.logits_after(over, &mut |_| true).unwrap().unwrap()), expected);
        }
        sequence.keep_prefix_of(ids);
        assert_eq!(bits(sequence.logits_after(ids, &mut |_| true).unwrap().unwrap()), fresh, "stopped at pass {stop}");
    }
}
