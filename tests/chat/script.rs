//! A predictor that says what a test wants, and a watcher that remembers.

use std::collections::VecDeque;

use k3_core::chat::{Channel, Thinking};
use k3_core::model::sequence::Reuse;
use k3_core::sample::Sampler;
use k3_core::tokenizer::Mode;
use k3_host::chat::{Answer, Asked, HistoryFile, Predictor, Progress, Session, Settings, Watcher};

use crate::support::text::TOKENIZER;

/// Answers from a list, one for each prompt. It is fed like a sequence, in passes of four positions.
pub struct Script {
    answers: VecDeque<Vec<u32>>,
    answer: Vec<u32>,
    prompt: usize,
    fed: Vec<u32>,
    capacity: usize,
    logits: Vec<f32>,
    pub prompts: Vec<Vec<u32>>,
}

const PASS: usize = 4;

impl Script {
    /// Answers as text in which special tokens are spelled out.
    pub fn new(answers: &[&str]) -> Self {
        Self::with_ids(answers.iter().map(|answer| ids(answer)))
    }

    pub fn with_ids(answers: impl IntoIterator<Item = Vec<u32>>) -> Self {
        Self {
            answers: answers.into_iter().collect(),
            answer: Vec::new(),
            prompt: 0,
            fed: Vec::new(),
            capacity: 4096,
            logits: vec![0.0; TOKENIZER.vocabulary()],
            prompts: Vec::new(),
        }
    }

    pub fn with_room(self, capacity: usize) -> Self {
        Self { capacity, ..self }
    }
}

impl Predictor for Script {
    fn capacity(&self) -> usize {
        self.capacity
    }

    fn positions(&self) -> usize {
        self.fed.len()
    }

    fn keep_prefix_of(&mut self, transcript: &[u32]) -> Reuse {
        self.answer = self.answers.pop_front().expect("the script has another answer");
        self.prompt = transcript.len();
        self.prompts.push(transcript.to_vec());
        let fed = self.fed.len();
        if fed > 0 && transcript.starts_with(&self.fed) {
            return Reuse::Positions(fed);
        }
        let common = self.fed.iter().zip(transcript).take_while(|(fed, id)| fed == id).count();
        self.fed.clear();
        if fed == 0 { Reuse::Empty } else { Reuse::Departs { common, fed } }
    }

    fn logits_after(
        &mut self,
        transcript: &[u32],
        go_on: &mut (dyn FnMut(usize) -> bool + Send),
    ) -> k3_core::Result<Option<&[f32]>> {
        assert!(transcript.len() <= self.capacity, "fed beyond the room");
        while self.fed.len() < transcript.len() {
            if !go_on(self.fed.len()) {
                return Ok(None);
            }
            let until = transcript.len().min(self.fed.len() + PASS);
            self.fed.extend_from_slice(&transcript[self.fed.len()..until]);
        }
        self.logits.fill(0.0);
        self.logits[self.answer[transcript.len() - self.prompt] as usize] = 1.0;
        Ok(Some(&self.logits))
    }
}

/// Ids of a text in which special tokens are spelled out.
pub fn ids(text: &str) -> Vec<u32> {
    TOKENIZER.encode(text, Mode::Special)
}

/// Remembers what it sees, and wants to stop when it has seen enough.
#[derive(Default)]
pub struct Memory {
    pub thoughts: String,
    pub response: String,
    pub calls: String,
    pub reuse: Option<Reuse>,
    /// How often the model was about to be fed.
    pub passes: usize,
    /// Stop before this pass.
    pub stop_before: Option<usize>,
}

impl Watcher for Memory {
    fn see(&mut self, progress: Progress<'_>) -> std::io::Result<()> {
        match progress {
            Progress::Prompt { reuse, .. } => self.reuse = Some(reuse),
            Progress::Fed(_) => self.passes += 1,
            Progress::Text { channel: Channel::Think, text } => self.thoughts += text,
            Progress::Text { channel: Channel::Response, text } => self.response += text,
            Progress::Text { text, .. } => self.calls += text,
            Progress::End => {}
        }
        Ok(())
    }

    fn wants_stop(&self) -> bool {
        self.stop_before.is_some_and(|pass| self.passes > pass)
    }
}

pub fn settings(thinking: Thinking) -> Settings {
    Settings { thinking, generate: 100, stop_ids: vec![7], sampler: Sampler::greedy() }
}

/// A session that follows a script and saves nothing.
pub fn scripted(script: Script, thinking: Thinking) -> Session<'static, Script> {
    Session::new(script, &TOKENIZER, settings(thinking), HistoryFile::open(None, None).unwrap()).unwrap()
}

/// The same, with answers of at most `generate` ids.
pub fn limited(script: Script, thinking: Thinking, generate: usize) -> Session<'static, Script> {
    let settings = Settings { generate, ..settings(thinking) };
    Session::new(script, &TOKENIZER, settings, HistoryFile::open(None, None).unwrap()).unwrap()
}

/// The answer, which must have been asked for.
pub fn answered(asked: Asked) -> Answer {
    match asked {
        Asked::Answered(answer) => answer,
        Asked::Refused(reason) => panic!("refused: {reason}"),
    }
}
