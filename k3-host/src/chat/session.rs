//! A conversation with a model, turn by turn, without any terminal.
//!
//! 1. What is rendered and fed is always the history. So a conversation read from its file goes on exactly as if the program
//!    had never ended.
//! 2. Only an answer that rendering would give back as the same text is kept. The question of any other stays, unanswered,
//!    until it is asked again or another takes its place.
//! 3. The file is written when a question is accepted and when its answer is over: killed in between, it has the question.

use std::time::Instant;

use k3_core::Error;
use k3_core::chat::history::{Entry, History, Speaker};
use k3_core::chat::{
    Conversation, RenderOptions, Thinking, TurnTokens, encode, read_cut_turn, read_stored_turn, render,
};
use k3_core::sample::Sampler;
use k3_core::tokenizer::Tokenizer;

use super::predictor::Predictor;
use super::store::HistoryFile;
use super::stream::TurnStream;
use super::turn::{Answer, Asked, Kept, Progress, Stop, Timing, Watcher};
use crate::failure::{Failure, Outcome};

/// What holds for all turns of a session.
#[derive(Debug)]
pub struct Settings {
    /// Whether the model thinks before it speaks.
    pub thinking: Thinking,
    /// The most ids of an answer.
    pub generate: usize,
    /// Ids at which an answer stops, besides the two that end a turn.
    pub stop_ids: Vec<u32>,
    /// Chooses the ids.
    pub sampler: Sampler,
}

/// A conversation.
pub struct Session<'a, P> {
    predictor: P,
    tokenizer: &'a Tokenizer,
    turn_tokens: TurnTokens,
    settings: Settings,
    history: History,
    file: HistoryFile,
    /// How often the last question was put to the model.
    attempts: u64,
    last: Option<Timing>,
}

impl<'a, P: Predictor> Session<'a, P> {
    /// A session that goes on from `history` and saves it to `file`.
    ///
    /// # Errors
    /// A refusal if the tokenizer has not the tokens of the chat format.
    pub fn new(
        predictor: P,
        tokenizer: &'a Tokenizer,
        settings: Settings,
        (file, history): (HistoryFile, History),
    ) -> Outcome<Self> {
        let turn_tokens = TurnTokens::new(tokenizer)?;
        Ok(Self { predictor, tokenizer, turn_tokens, settings, history, file, attempts: 0, last: None })
    }

    /// What was said so far.
    #[must_use]
    pub fn history(&self) -> &History {
        &self.history
    }

    /// What predicts.
    #[must_use]
    pub fn predictor(&self) -> &P {
        &self.predictor
    }

    /// How long the last turn took.
    #[must_use]
    pub fn last_timing(&self) -> Option<Timing> {
        self.last
    }

    /// Asks a question. One that was not answered before is taken out.
    ///
    /// # Errors
    /// Those of the forward pass, of `watcher` and of saving. The session can be gone on with.
    pub fn ask(&mut self, question: &str, watcher: &mut dyn Watcher) -> Outcome<Asked> {
        let mut history = self.history.clone();
        history.remove_unanswered();
        let entry = Entry { role: Speaker::User, content: question.into(), reasoning: None };
        if let Err(error) = history.push(entry) {
            return Ok(Asked::Refused(error.to_string()));
        }
        let prompt = self.prompt(&history)?;
        if let Some(refused) = self.too_long(&prompt) {
            return Ok(refused);
        }
        self.history = history;
        self.attempts = 0;
        self.file.save(&self.history)?;
        self.answer(prompt, None, watcher)
    }

    /// Asks the last question again, whether it was answered or not. An answer that stands is replaced only by one that can
    /// be kept.
    ///
    /// # Errors
    /// As [`Session::ask`].
    pub fn retry(&mut self, watcher: &mut dyn Watcher) -> Outcome<Asked> {
        let mut history = self.history.clone();
        let earlier = history.remove_answer();
        if history.entries().last().is_none_or(|entry| entry.role != Speaker::User) {
            return Ok(Asked::Refused("there is no question to ask again".into()));
        }
        let prompt = self.prompt(&history)?;
        if let Some(refused) = self.too_long(&prompt) {
            return Ok(refused);
        }
        self.history = history;
        // An answer that was read from the file counts as an attempt.
        self.attempts = self.attempts.max(u64::from(earlier.is_some()));
        let restored = earlier.clone();
        let outcome = self.answer(prompt, earlier, watcher);
        if outcome.is_err() {
            self.restore(restored);
        }
        outcome
    }

    /// Takes back the last question and its answer; returns the question.
    ///
    /// # Errors
    /// If the history cannot be saved.
    pub fn undo(&mut self) -> Outcome<Option<String>> {
        self.history.remove_answer();
        let question = self.history.remove_unanswered();
        self.attempts = 0;
        self.file.save(&self.history)?;
        Ok(question.map(|entry| entry.content))
    }

    /// Forgets everything but the system message.
    ///
    /// # Errors
    /// If the history cannot be saved.
    pub fn reset(&mut self) -> Outcome {
        self.history.reset();
        self.attempts = 0;
        self.file.save(&self.history)
    }

    /// The ids that the model is to go on from.
    fn prompt(&self, history: &History) -> Outcome<Vec<u32>> {
        let options = RenderOptions { thinking: self.settings.thinking, ..RenderOptions::default() };
        let conversation = Conversation { messages: history.messages(), tools: Vec::new(), options };
        Ok(encode(&render(&conversation)?, self.tokenizer)?)
    }

    /// Why a prompt cannot be fed, if it cannot.
    fn too_long(&self, prompt: &[u32]) -> Option<Asked> {
        let (ids, room) = (prompt.len(), self.predictor.capacity());
        let reason = || format!("with it the conversation has {ids} ids, and there is room for {room}");
        (ids > room).then(|| Asked::Refused(reason()))
    }

    /// Generates the answer and keeps what can be kept of it.
    fn answer(&mut self, prompt: Vec<u32>, earlier: Option<Entry>, watcher: &mut dyn Watcher) -> Outcome<Asked> {
        // Each attempt has a random stream of its own; the first has the one that the turn has by itself.
        self.settings.sampler.begin_turn(self.history.turn() ^ self.attempts << 32);
        self.attempts += 1;
        let (ids, stop, timing) = self.generate(prompt, watcher)?;
        self.last = Some(timing);
        let kept = match self.keep(&ids, stop) {
            Ok(()) if stop == Stop::EndOfTurn => Kept::Whole,
            Ok(()) => Kept::Cut,
            Err(error) if earlier.is_some() => {
                self.restore(earlier);
                Kept::Earlier(reason(error))
            }
            Err(error) => Kept::Not(reason(error)),
        };
        self.file.save(&self.history)?;
        Ok(Asked::Answered(Answer { ids, stop, kept, timing }))
    }

    fn keep(&mut self, ids: &[u32], stop: Stop) -> k3_core::Result<()> {
        let (thinking, turn, tokens) = (self.settings.thinking, &self.turn_tokens, self.tokenizer);
        let stored = match (stop, ids) {
            (Stop::EndOfTurn, ids) => read_stored_turn(ids, thinking, turn, tokens)?,
            (Stop::StopId, [ids @ .., _]) | (_, ids) => read_cut_turn(ids, thinking, turn, tokens)?,
        };
        self.history.push(Entry { role: Speaker::Assistant, content: stored.content, reasoning: stored.reasoning })
    }

    /// Puts an answer back that was taken out, unless another stands there.
    fn restore(&mut self, answer: Option<Entry>) {
        if self.history.entries().last().is_some_and(|entry| entry.role == Speaker::User) {
            // It stood there before, so the history admits it again.
            answer.into_iter().try_for_each(|answer| self.history.push(answer)).unwrap_or_default();
        }
    }

    /// Feeds the prompt and then each id that is chosen but the last.
    fn generate(&mut self, prompt: Vec<u32>, watcher: &mut dyn Watcher) -> Outcome<(Vec<u32>, Stop, Timing)> {
        let reuse = self.predictor.keep_prefix_of(&prompt);
        let mut timing = Timing { prompt: prompt.len(), reused: reuse.positions(), ..Timing::default() };
        watcher.see(Progress::Prompt { ids: prompt.len(), reuse }).map_err(not_shown)?;
        let mut stream = TurnStream::new(self.settings.thinking, &self.turn_tokens, self.tokenizer);
        let (begin, started) = (prompt.len(), Instant::now());
        let mut transcript = prompt;
        let stop = loop {
            let mut shown = Ok(());
            let logits = self.predictor.logits_after(&transcript, &mut |fed| {
                shown = watcher.see(Progress::Fed(fed));
                shown.is_ok() && !watcher.wants_stop()
            })?;
            shown.map_err(not_shown)?;
            let Some(logits) = logits else { break Stop::Interrupted };
            let id = self.settings.sampler.draw(logits)?;
            transcript.push(id);
            timing.generated += 1;
            if timing.generated == 1 {
                timing.reading = started.elapsed();
            }
            let stop = self.stop_after(&transcript, begin);
            if stop != Some(Stop::StopId) {
                stream.push(id, watcher).map_err(not_shown)?;
            }
            if let Some(stop) = stop {
                break stop;
            }
        };
        stream.finish(watcher).and_then(|()| watcher.see(Progress::End)).map_err(not_shown)?;
        timing.writing = started.elapsed().saturating_sub(timing.reading);
        Ok((transcript.split_off(begin), stop, timing))
    }

    /// Whether an answer that began at `begin` ends with the last id of `transcript`.
    fn stop_after(&self, transcript: &[u32], begin: usize) -> Option<Stop> {
        let (id, generated) = (*transcript.last()?, transcript.len() - begin);
        if self.turn_tokens.ends_turn(id) {
            Some(Stop::EndOfTurn)
        } else if self.settings.stop_ids.contains(&id) {
            Some(Stop::StopId)
        } else if transcript.len() > self.predictor.capacity() {
            Some(Stop::ContextFull)
        } else {
            (generated == self.settings.generate).then_some(Stop::Limit)
        }
    }
}

/// Why an answer cannot be kept.
fn reason(error: Error) -> String {
    match error {
        Error::Turn(reason) => reason,
        other => other.to_string(),
    }
}

fn not_shown(error: std::io::Error) -> Failure {
    Failure::not_written(anyhow::Error::new(error).context("the answer cannot be shown"))
}
