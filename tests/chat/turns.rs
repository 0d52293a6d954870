//! A session on a real, if tiny, model: what streams is what was generated, and the same seed draws the same.

use k3_core::chat::{Thinking, Turn, TurnTokens};
use k3_core::model::scratch::WantedLogits;
use k3_core::sample::{Sampler, SamplingSettings};
use k3_host::chat::{Answer, HistoryFile, Session, Settings, ThreadedSequence};
use k3_host::engine::Engine;

use crate::script::{Memory, answered};
use crate::support::engine_args;
use crate::support::text::{TOKENIZER, TOY};

fn engine() -> Engine {
    Engine::open(&TOY, &engine_args()).unwrap()
}

fn session<'a>(engine: &'a Engine, seed: u64, thinking: Thinking) -> Session<'a, ThreadedSequence<'a>> {
    let sampler = Sampler::new(SamplingSettings { seed, top_p: 1.0, ..SamplingSettings::default() }).unwrap();
    let predictor = ThreadedSequence::new(engine, engine.sequence(2000, WantedLogits::Last).unwrap());
    let settings = Settings { thinking, generate: 60, stop_ids: Vec::new(), sampler };
    Session::new(predictor, &TOKENIZER, settings, HistoryFile::open(None, None).unwrap()).unwrap()
}

fn ask(session: &mut Session<'_, ThreadedSequence<'_>>, question: &str) -> (Memory, Answer) {
    let mut seen = Memory::default();
    let answer = answered(session.ask(question, &mut seen).unwrap());
    (seen, answer)
}

/// Noise has many tokens that are parts of characters; streamed they give the text of the whole.
#[test]
fn what_streams_is_the_text_of_the_whole() {
    let engine = engine();
    let turn = TurnTokens::new(&*TOKENIZER).unwrap();
    let mut fragments = 0;
    for seed in 0..8 {
        let (seen, answer) = ask(&mut session(&engine, seed, Thinking::Off), "why?");
        let whole = Turn::read(&answer.ids, Thinking::Off, &turn, &*TOKENIZER);
        assert_eq!(seen.response, whole.content, "seed {seed}");
        let is_fragment = |id: &&u32| std::str::from_utf8(TOKENIZER.token(**id).unwrap()).is_err();
        fragments += answer.ids.iter().filter(is_fragment).count();
    }
    assert!(fragments > 0, "no character was split over tokens");
}

#[test]
fn a_seed_draws_the_same_again_and_each_turn_and_attempt_other_ids() {
    let engine = engine();
    let talk = |seed| {
        let mut session = session(&engine, seed, Thinking::Off);
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
