//! A session on a real, if tiny, model: what streams is what was generated, and the same seed draws the same.

use k3_core::chat::{Thinking, Turn, TurnTokens};
use k3_core::model::scratch::WantedLogits;
use k3_core::sample::{Sampler, SamplingSettings};
use k3_core::tokenizer::Tokenizer;
use k3_host::chat::{Answer, HistoryFile, Session, Settings, ThreadedSequence};
use k3_host::engine::Engine;
use k3_host::plan::Demand;
use k3_host::tokenizer;

use crate::script::{Memory, answered};
use crate::support::engine_args;
use crate::support::text::{BYTES, split_characters};

fn model() -> (Engine, Tokenizer) {
    (Engine::open(&BYTES, &engine_args(), &Demand::as_many_as_fit()).unwrap(), tokenizer::load(&BYTES).unwrap())
}

fn session((engine, tokenizer): &(Engine, Tokenizer), seed: u64) -> Session<'_, ThreadedSequence<'_>> {
    let sampler = Sampler::new(SamplingSettings { seed, top_p: 1.0, ..SamplingSettings::default() }).unwrap();
    let predictor = ThreadedSequence::new(engine, engine.sequence(2000, WantedLogits::Last).unwrap());
    let settings = Settings { thinking: Thinking::Off, generate: 400, stop_ids: Vec::new(), sampler };
    Session::new(predictor, tokenizer, settings, HistoryFile::open(None, None).unwrap()).unwrap()
}

fn ask(session: &mut Session<'_, ThreadedSequence<'_>>, question: &str) -> (Memory, Answer) {
    let mut seen = Memory::default();
    let answer = answered(session.ask(question, &mut seen).unwrap());
    (seen, answer)
}

/// Every character of several bytes is split over tokens; control tokens amid the text look like markup for a while.
#[test]
fn what_streams_is_the_text_of_the_whole() {
    let model = model();
    let turn = TurnTokens::new(&model.1).unwrap();
    let mut split = 0;
    for seed in 0..16 {
        let (seen, answer) = ask(&mut session(&model, seed), "why?");
        let whole = Turn::read(&answer.ids, Thinking::Off, &turn, &model.1);
        assert_eq!(seen.response, whole.content, "seed {seed}");
        split += split_characters(&seen.response);
    }
    assert!(split > 0, "no character was split over tokens");
}

#[test]
fn a_seed_draws_the_same_again_and_each_turn_and_attempt_other_ids() {
    let model = model();
    let talk = |seed| {
        let mut session = session(&model, seed);
        let first = ask(&mut session, "why?").1.ids;
        let retried = answered(session.retry(&mut Memory::default()).unwrap()).ids;
        session.undo().unwrap();
        assert_eq!(ask(&mut session, "why?").1.ids, first, "the turn decides, not what was drawn before");
        (first, retried)
    };
    let (first, retried) = talk(42);
    assert_eq!(talk(42), (first.clone(), retried.clone()));
    assert_ne!(first, retried);
    assert_ne!(talk(43).0, first);
}
