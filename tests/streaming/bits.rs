//! The same bits at every allotment.

use k3_core::stream::resident::Resident;
use k3_host::args::EngineArgs;
use k3_host::engine::Engine;

use k3_host::streaming::Allotment;

use super::{Model, allotment, args, logits};

fn resident(model: &Model) -> Vec<u32> {
    let source = Resident::new(model.checkpoint(), |file| Ok(std::fs::read(file.path()).unwrap())).unwrap();
    let expected = logits(&Engine::new(model.config.clone(), Box::new(source), &args()).unwrap()).unwrap();
    assert_eq!(expected.len(), 10 * model.config.vocabulary);
    expected
}

#[test]
fn any_part_of_the_trunk_may_be_pinned() {
    for name in ["a", "b"] {
        let model = Model::new(name);
        let expected = resident(&model);
        let matrices = model.first_matrices(usize::MAX).len();
        for pinned in 0..=matrices {
            let allotment = allotment(model.first_matrices(pinned), 2, 3);
            let (engine, _) = model.streamed(model.files(), &allotment, &args());
            assert!(logits(&engine).unwrap() == expected, "model {name}, {pinned} of {matrices} pinned");
        }
    }
}

/// The oracle models use 4 and 8 of their experts for a token: fewer slots, as many, and more.
#[test]
fn any_number_of_buffers_and_slots_will_do() {
    for name in ["a", "b"] {
        let model = Model::new(name);
        let expected = resident(&model);
        for read_ahead in [1, 2, 1000] {
            for expert_slots in [1, 2, 3, 4, 5, 8, 30, 10_000] {
                let allotment = allotment(model.first_matrices(5), read_ahead, expert_slots);
                let (engine, _) = model.streamed(model.files(), &allotment, &args());
                let what = format!("model {name}, {read_ahead} buffers, {expert_slots} slots");
                assert!(logits(&engine).unwrap() == expected, "{what}");
            }
        }
    }
}

#[test]
fn threads_and_chunks_do_not_matter() {
    let model = Model::new("a");
    let expected = resident(&model);
    for threads in 1..=4 {
        for chunk in [1, 4, 32] {
            let args = EngineArgs { threads: Some(threads), chunk, ..args() };
            let allotment = allotment(model.first_matrices(9), 1, 2);
            let (engine, _) = model.streamed(model.files(), &allotment, &args);
            assert!(logits(&engine).unwrap() == expected, "{threads} threads, chunks of {chunk}");
        }
    }
}

#[test]
fn guesses_do_not_matter() {
    for name in ["a", "b"] {
        let model = Model::new(name);
        let expected = resident(&model);
        for guesses in [1, 4, 100] {
            for slots in [1, 6] {
                let allotment = Allotment { guesses, ..allotment(model.first_matrices(usize::MAX), 1, slots) };
                let (engine, traffic) = model.streamed(model.files(), &allotment, &args());
                assert!(logits(&engine).unwrap() == expected, "model {name}, {guesses} guesses, {slots} slots");
                let totals = traffic.snapshot();
                assert!(totals.prefetch_hits > 0, "{totals:?}");
                let served = totals.resident_hits + totals.prefetch_hits + totals.misses;
                assert_eq!(served, totals.expert_requests);
            }
        }
    }
}
