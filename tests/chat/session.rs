//! The session on a model that says what the test wants: what is shown, what is kept, what is fed.

use k3_core::chat::history::{Entry, Speaker};
use k3_core::chat::{Effort, Thinking};
use k3_core::model::sequence::Reuse;
use k3_host::chat::{Asked, Kept, Session, Stop};

use crate::script::{Memory, Script, answered, ids, limited, scripted};
use crate::support::text::TOKENIZER;

const THINKING: Thinking = Thinking::On(Some(Effort::Max));
const PARIS: &str =
    "hm<|close|>think<|sep|><|open|>response<|sep|>Paris<|close|>response<|sep|><|close|>message<|sep|>[EOS]";

fn entry(role: Speaker, content: &str) -> Entry {
    Entry { role, content: content.into(), reasoning: None }
}

fn answer(content: &str, reasoning: &str) -> Entry {
    Entry { reasoning: Some(reasoning.into()), ..entry(Speaker::Assistant, content) }
}

/// Asks and returns what was seen, with what became of the answer.
fn ask(session: &mut Session<'_, Script>, question: &str) -> (Memory, Kept) {
    let mut seen = Memory::default();
    let answer = answered(session.ask(question, &mut seen).unwrap());
    (seen, answer.kept)
}

#[test]
fn a_whole_answer_is_kept_at_either_end_of_turn() {
    for end in ["[EOS]", "<|end_of_msg|>"] {
        let mut session = scripted(Script::new(&[&PARIS.replace("[EOS]", end)]), THINKING);
        let (seen, kept) = ask(&mut session, "France?");
        assert_eq!((seen.thoughts.as_str(), seen.response.as_str()), ("hm", "Paris"));
        assert_eq!(kept, Kept::Whole);
        assert_eq!(session.history().entries(), [entry(Speaker::User, "France?"), answer("Paris", "hm")]);
    }
}

/// The end that the model writes is not the end that is rendered, and is not fed; so the next prompt begins with all that was.
#[test]
fn the_next_prompt_goes_on_from_what_was_fed() {
    let mut session = scripted(Script::new(&[PARIS, PARIS]), THINKING);
    assert_eq!(ask(&mut session, "France?").0.reuse, Some(Reuse::Empty));
    let fed = session.predictor().prompts[0].len() + ids(PARIS).len() - 1;
    assert_eq!(ask(&mut session, "again?").0.reuse, Some(Reuse::Positions(fed)));
    let second = &session.predictor().prompts[1];
    let expected = [&session.predictor().prompts[0][..], &ids(&PARIS.replace("[EOS]", "<|end_of_msg|>"))].concat();
    assert_eq!(second[..expected.len()], expected);
}

/// The same text in other tokens than encoding gives: the text is kept, the state cannot be.
#[test]
fn an_answer_in_other_tokens_is_read_again() {
    let spelled = ["P", "ar", "is"].map(ids).concat();
    assert_ne!(spelled, ids("Paris"));
    let rest = ids("<|close|>response<|sep|><|close|>message<|sep|>[EOS]");
    let answers = [[spelled, rest.clone()].concat(), [ids("x"), rest].concat()];
    let mut session = scripted(Script::with_ids(answers), Thinking::Off);
    assert_eq!(ask(&mut session, "France?").1, Kept::Whole);
    assert_eq!(session.history().entries()[1].content, "Paris");
    assert!(matches!(ask(&mut session, "again?").0.reuse, Some(Reuse::Departs { .. })));
}

#[test]
fn a_character_split_over_tokens_is_held_until_it_is_whole() {
    let answer = PARIS.replace("Paris", "🧑‍💻");
    assert!(ids("🧑‍💻").iter().any(|&id| std::str::from_utf8(TOKENIZER.token(id).unwrap()).is_err()));
    let mut session = scripted(Script::new(&[&answer]), THINKING);
    assert_eq!(ask(&mut session, "who?").0.response, "🧑‍💻");
}

#[test]
fn an_answer_that_breaks_the_format_is_shown_and_not_kept() {
    let broken = "hm<|close|>think<|sep|>Paris<|close|>message<|sep|>[EOS]";
    let mut session = scripted(Script::new(&[broken, PARIS, broken]), THINKING);
    let (seen, kept) = ask(&mut session, "France?");
    assert_eq!((seen.thoughts.as_str(), seen.response.as_str()), ("hm", "Paris"));
    assert!(matches!(kept, Kept::Not(reason) if reason.contains("does not go over into a response")));
    assert_eq!(session.history().entries(), [entry(Speaker::User, "France?")]);
    // Another question takes its place.
    ask(&mut session, "Italy?");
    assert_eq!(session.history().entries(), [entry(Speaker::User, "Italy?"), answer("Paris", "hm")]);
    assert!(matches!(ask(&mut session, "Spain?").1, Kept::Not(_)));
    assert_eq!(session.history().entries().len(), 3);
}

/// An answer cut inside its thoughts is no content; one cut later is kept, and can be gone on from.
#[test]
fn an_answer_stopped_is_kept_as_far_as_its_response_went() {
    let mut session = scripted(Script::new(&[PARIS]), THINKING);
    let (whole, _) = ask(&mut session, "France?");
    // The last id is not fed.
    let prompt_passes = whole.passes - (ids(PARIS).len() - 1);
    let thoughts = ids("hm<|close|>think<|sep|><|open|>response<|sep|>").len();
    for pass in 0..whole.passes {
        let mut session = scripted(Script::new(&[PARIS, PARIS]), THINKING);
        let mut seen = Memory { stop_before: Some(pass), ..Memory::default() };
        let asked = answered(session.ask("France?", &mut seen).unwrap());
        assert_eq!(asked.stop, Stop::Interrupted);
        assert_eq!(asked.ids.len(), (pass + 1).saturating_sub(prompt_passes), "pass {pass}");
        if asked.ids.len() > thoughts {
            assert_eq!(asked.kept, Kept::Cut, "pass {pass}");
            assert_eq!(session.history().entries(), [entry(Speaker::User, "France?"), answer("Paris", "hm")]);
            assert!(matches!(ask(&mut session, "again?").0.reuse, Some(Reuse::Positions(_))), "pass {pass}");
        } else {
            assert!(matches!(asked.kept, Kept::Not(_)), "pass {pass}");
            assert_eq!(session.history().entries(), [entry(Speaker::User, "France?")]);
        }
    }
}

#[test]
fn a_stop_id_and_the_most_ids_cut_an_answer() {
    let text = "one two three";
    for (generate, stop) in [(100, Stop::StopId), (ids(text).len(), Stop::Limit)] {
        // Id 7 is the stop id of these sessions.
        let script = Script::with_ids([[ids(text), vec![7, 7]].concat()]);
        let mut session = limited(script, Thinking::Off, generate);
        let mut seen = Memory::default();
        let asked = answered(session.ask("count", &mut seen).unwrap());
        assert_eq!((asked.stop, asked.kept), (stop, Kept::Cut));
        assert_eq!(seen.response, text);
        assert_eq!(session.history().entries()[1].content, text);
    }
}

/// What may become a tag is held back, and shown if the answer ends before it does.
#[test]
fn an_answer_cut_inside_a_tag_loses_no_text() {
    let mut session = limited(Script::new(&["Paris<|close|>response<|sep|>"]), Thinking::Off, 2);
    let mut seen = Memory::default();
    let asked = answered(session.ask("France?", &mut seen).unwrap());
    assert_eq!((asked.stop, asked.kept), (Stop::Limit, Kept::Cut));
    assert_eq!(seen.response, "Paris<|close|>");
    assert_eq!(session.history().entries()[1].content, "Paris");
}

#[test]
fn a_question_with_no_room_is_refused_and_the_session_goes_on() {
    let mut probe = scripted(Script::new(&[PARIS, PARIS]), THINKING);
    ask(&mut probe, "France?");
    ask(&mut probe, "again?");
    let [first, second] = &probe.predictor().prompts[..] else { panic!("two prompts") };
    let answer_ids = ids(PARIS).len();

    // Limit − 1, limit, limit + 1 ids of prompt.
    for (room, stop) in [(first.len() + 1, Stop::ContextFull), (first.len(), Stop::ContextFull)] {
        let mut session = scripted(Script::new(&[PARIS]).with_room(room), THINKING);
        let asked = answered(session.ask("France?", &mut Memory::default()).unwrap());
        assert_eq!((asked.stop, asked.ids.len()), (stop, room - first.len() + 1));
    }
    let mut session = scripted(Script::new(&[]).with_room(first.len() - 1), THINKING);
    let asked = session.ask("France?", &mut Memory::default()).unwrap();
    assert!(matches!(asked, Asked::Refused(reason) if reason.contains(&format!("{} ids", first.len()))));
    assert_eq!(session.history().entries(), []);

    let mut session = scripted(Script::new(&[PARIS, PARIS]).with_room(second.len() - 1), THINKING);
    assert_eq!(ask(&mut session, "France?").1, Kept::Whole);
    let before = session.history().clone();
    assert!(matches!(session.ask("again?", &mut Memory::default()).unwrap(), Asked::Refused(_)));
    assert_eq!(*session.history(), before);
    assert!(first.len() + answer_ids < second.len());
    session.reset().unwrap();
    assert_eq!(ask(&mut session, "France?").1, Kept::Whole);
}

#[test]
fn a_question_that_no_file_could_hold_is_refused() {
    let mut session = scripted(Script::new(&[]), THINKING);
    let asked = session.ask("a\0b", &mut Memory::default()).unwrap();
    assert!(matches!(asked, Asked::Refused(reason) if reason.contains("U+0000")));
}

#[test]
fn undo_takes_back_a_turn_and_retry_only_its_answer() {
    let london = PARIS.replace("Paris", "London");
    let broken = "hm[EOS]";
    let mut session = scripted(Script::new(&[PARIS, &london, broken, PARIS]), THINKING);
    assert!(matches!(session.retry(&mut Memory::default()).unwrap(), Asked::Refused(_)));
    assert_eq!(session.undo().unwrap(), None);
    ask(&mut session, "France?");
    let retried = answered(session.retry(&mut Memory::default()).unwrap());
    assert_eq!(retried.kept, Kept::Whole);
    assert_eq!(session.history().entries()[1], answer("London", "hm"));
    assert_eq!(session.predictor().prompts[0], session.predictor().prompts[1]);
    // An answer that cannot be kept does not replace one that was.
    let retried = answered(session.retry(&mut Memory::default()).unwrap());
    assert!(matches!(retried.kept, Kept::Earlier(_)));
    assert_eq!(session.history().entries()[1], answer("London", "hm"));
    assert_eq!(session.undo().unwrap().as_deref(), Some("France?"));
    assert_eq!(session.history().entries(), []);
    ask(&mut session, "France?");
    assert_eq!(session.predictor().prompts[3], session.predictor().prompts[0]);
}

/// What a user types is never markup.
#[test]
fn control_spellings_in_a_question_are_text() {
    let mut session = scripted(Script::new(&[PARIS]), THINKING);
    ask(&mut session, "<|end_of_msg|>[EOS]");
    let controls = |ids: &[u32]| ids.iter().filter(|&&id| id == 163_586 || id == 163_585).count();
    // The ends of the effort notice and of the question.
    assert_eq!(controls(&session.predictor().prompts[0]), 2);
}
