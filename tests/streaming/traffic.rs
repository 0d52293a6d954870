//! What is read is what the allotment says, to the byte.

use std::collections::BTreeSet;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use k3_core::model::compute::{Compute, Observer, Point};
use k3_core::model::scratch::{Sizes, WantedLogits};
use k3_core::model::sequence::Sequence;
use k3_core::stream::cache::{Counters, ExpertCache, ExpertGrid, LayerShare};
use k3_core::stream::trunk::Run;
use k3_host::engine::Engine;
use k3_host::streaming::{Allotment, Streamed};
use k3_host::traffic::Traffic;

use super::{Model, allotment, args};

fn feed(engine: &Engine, tokens: &[u32]) {
    let mut sequence = engine.sequence(tokens.len(), WantedLogits::Last).unwrap();
    for count in 1..=tokens.len() {
        engine.enter(|| sequence.extend_to(&tokens[..count]).map(drop)).unwrap();
    }
}

/// Three matrices of 4-bit codes, and a scale byte for 32 of them.
fn expert_bytes(model: &Model) -> u64 {
    3 * (model.config.moe.latent * model.config.moe.expert_width) as u64 * 17 / 32
}

#[test]
fn a_token_reads_what_is_not_pinned_and_what_is_not_cached() {
    let model = Model::new("a");
    for pinned in [0, 7, 1000] {
        let allotment = allotment(model.first_matrices(pinned), 2, 6);
        let files = model.files();
        let streamed = model.first_matrices(usize::MAX).into_iter().filter(|id| !allotment.pinned.contains(id));
        let trunk: u64 = streamed.flat_map(|id| files.trunk.runs_of(id)).map(Run::bytes).sum();
        let (engine, traffic) = model.streamed(files, &allotment, &args());
        let before = traffic.snapshot();
        feed(&engine, &[1, 2, 3]);
        let totals = traffic.snapshot().since(&before);
        assert_eq!(totals.trunk_bytes, 3 * trunk, "{pinned} pinned");
        // bf16
        assert_eq!(totals.row_bytes, 3 * 2 * model.config.hidden as u64);
        assert_eq!(totals.expert_bytes, totals.misses * expert_bytes(&model));
        let layers = model.config.layers.len() as u64 - 1;
        assert_eq!(totals.expert_requests, 3 * layers * model.config.moe.top_k as u64);
        assert_eq!(totals.expert_requests, totals.resident_hits + totals.misses);
        let read = totals.trunk_bytes + totals.row_bytes + totals.expert_bytes;
        assert!(totals.raw_bytes >= read && totals.raw_bytes % 4096 == 0, "{totals:?}");
    }
}

#[test]
fn what_is_in_the_cache_is_not_read_again() {
    let model = Model::new("a");
    let all = model.config.layers.len() * model.config.moe.experts;
    let allotment = allotment(model.first_matrices(0), 1, all);
    let (engine, traffic) = model.streamed(model.files(), &allotment, &args());
    feed(&engine, &[1]);
    let before = traffic.snapshot();
    feed(&engine, &[1]);
    let totals = traffic.snapshot().since(&before);
    assert_eq!((totals.misses, totals.expert_bytes), (0, 0));
    assert_eq!(totals.resident_hits, totals.expert_requests);
}

/// The experts that a pass chooses, each layer's once.
#[derive(Default)]
struct Chosen(Mutex<BTreeSet<(usize, usize)>>);

impl Observer for Chosen {
    fn observe(&self, _: Point, _: &[f32]) {}

    fn observe_choice(&self, layer: usize, ids: &[usize], _: &[f32]) {
        self.0.lock().unwrap().extend(ids.iter().map(|id| (layer, *id)));
    }
}

#[test]
fn an_expert_is_read_once_for_all_tokens_of_a_chunk() {
    let model = Model::new("a");
    let allotment = allotment(model.first_matrices(0), 1, 1);
    let (engine, traffic) = model.streamed(model.files(), &allotment, &args());
    let chosen = Chosen::default();
    let compute = Compute { observer: Some(&chosen), ..engine.compute() };
    let sizes = Sizes { chunk: 3, capacity: 3, threads: 1, logits: WantedLogits::Last };
    Sequence::new(engine.model(), compute, sizes).extend_to(&[7, 7, 7]).unwrap();
    let distinct = chosen.0.lock().unwrap().len() as u64;
    let choices = 3 * (model.config.layers.len() as u64 - 1) * model.config.moe.top_k as u64;
    assert!(distinct < choices, "some tokens share an expert: {distinct} of {choices}");
    assert_eq!(traffic.snapshot().misses, distinct);
    let once: u64 = traffic.snapshot().trunk_bytes;
    engine.enter(|| engine.sequence(1, WantedLogits::Last).unwrap().extend_to(&[7]).map(drop)).unwrap();
    assert_eq!(traffic.snapshot().trunk_bytes, 2 * once, "three tokens of a chunk read the trunk as often as one");
}

#[test]
fn only_decoding_guesses() {
    let model = Model::new("a");
    let allotment = Allotment { guesses: 4, ..allotment(model.first_matrices(usize::MAX), 1, 6) };
    let (engine, traffic) = model.streamed(model.files(), &allotment, &args());
    let mut sequence = engine.sequence(5, WantedLogits::Last).unwrap();
    engine.enter(|| sequence.extend_to(&[5, 3, 8]).map(drop)).unwrap();
    let prompt = traffic.snapshot();
    // What was read is what was asked for and not there: nothing was read for nothing.
    assert_eq!((prompt.prefetch_hits, prompt.expert_bytes), (0, prompt.misses * expert_bytes(&model)));
    engine.enter(|| sequence.extend_to(&[5, 3, 8, 1, 9]).map(drop)).unwrap();
    assert_eq!(traffic.snapshot().prefetch_hits, 0, "two positions in one pass are a prompt, too");
    let mut sequence = engine.sequence(5, WantedLogits::Last).unwrap();
    for count in 1..=5 {
        engine.enter(|| sequence.extend_to(&[5, 3, 8, 1, 9][..count]).map(drop)).unwrap();
    }
    assert!(traffic.snapshot().prefetch_hits > 0);
}

#[test]
fn a_watcher_sees_every_batch_that_the_cache_counts() {
    let model = Model::new("b");
    let allotment = allotment(model.first_matrices(3), 1, 20);
    let traffic = Arc::new(Traffic::default());
    let streamed = Streamed::open(model.files(), &allotment, Arc::clone(&traffic), &|_| {}).unwrap();
    let (sender, batches) = channel();
    streamed.expert_reader().watch(Some(Box::new(move |layer, ids| sender.send((layer, ids.to_vec())).unwrap())));
    let engine = Engine::new(model.config.clone(), Box::new(streamed), &args()).unwrap();
    feed(&engine, &[1, 2, 3, 4, 5, 6]);

    let grid = ExpertGrid { layers: model.config.layers.len(), experts: model.config.moe.experts };
    let mut replayed = ExpertCache::new(grid, allotment.expert_slots, LayerShare::new(grid));
    for (layer, ids) in batches.try_iter() {
        replayed.request(layer, &ids, &mut Vec::new());
    }
    let totals = traffic.snapshot();
    let counted = Counters { requests: totals.expert_requests, hits: totals.resident_hits, misses: totals.misses };
    assert_eq!(replayed.counters(), counted);
    assert!(counted.hits > 0 && counted.misses > 0);
}
