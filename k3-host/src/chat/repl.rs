//! Lines in, answers out, until there are no more lines.

use std::io;
use std::path::Path;

use super::command::{Command, HELP};
use super::input::{Entry, Input, Place};
use super::lines::{Lines, Message};
use super::predictor::Predictor;
use super::screen::Screen;
use super::session::Session;
use super::store;
use super::turn::{Answer, Asked, Kept, Stop, Timing};
use crate::failure::{Failure, Outcome};

/// A session with its input and its screen.
pub struct Repl<'a, P> {
    session: Session<'a, P>,
    input: Box<dyn Input + 'a>,
    screen: Screen,
}

/// Whether there is more to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Line,
    Exit,
}

impl<'a, P: Predictor> Repl<'a, P> {
    /// A loop over the lines of `input`.
    #[must_use]
    pub fn new(session: Session<'a, P>, input: Box<dyn Input + 'a>, screen: Screen) -> Self {
        Self { session, input, screen }
    }

    /// Runs until `/exit` or the end of the input.
    ///
    /// # Errors
    /// If the input cannot be read or the answers not be written, and with nobody attending any failure.
    pub fn run(mut self) -> Outcome {
        let mut lines = Lines::default();
        loop {
            let place = if lines.is_open() { Place::Continued } else { Place::First };
            let entry = self.input.next(place)?;
            let ends = entry == Entry::End;
            let message = match entry {
                Entry::Line(line) => lines.push(&line),
                Entry::End => lines.finish(),
                Entry::Interrupted => {
                    lines.clear();
                    self.note("Ctrl-D or /exit ends the session")?;
                    None
                }
            };
            let next = message.map_or(Ok(Next::Line), |message| self.perform(&message));
            match next {
                Ok(Next::Exit) => return Ok(()),
                Ok(Next::Line) => {}
                Err(failure) if self.input.is_attended() => self.note(&format!("error: {:#}", failure.error))?,
                Err(failure) => return Err(failure),
            }
            if ends {
                return Ok(());
            }
        }
    }

    fn perform(&mut self, message: &Message) -> Outcome<Next> {
        self.screen.interrupt().clear();
        match message {
            Message::Question(question) => {
                self.input.remember(question);
                let asked = self.session.ask(question, &mut self.screen)?;
                self.tell(asked)?;
            }
            Message::Command(line) => {
                self.input.remember(line);
                return match Command::parse(line) {
                    Ok(command) => self.obey(&command),
                    Err(reason) => self.note(&reason).map(|()| Next::Line),
                };
            }
        }
        Ok(Next::Line)
    }

    fn obey(&mut self, command: &Command) -> Outcome<Next> {
        match command {
            Command::Exit => return Ok(Next::Exit),
            Command::Help => self.note(HELP)?,
            Command::Stats => self.note(&self.stats())?,
            Command::Save(path) => self.save(path)?,
            Command::Reset => {
                self.session.reset()?;
                self.note("the conversation begins anew")?;
            }
            Command::Undo => match self.session.undo()? {
                Some(question) => self.note(&format!("taken back: {}", first_line(&question)))?,
                None => self.note("there is nothing to take back")?,
            },
            Command::Retry => {
                let asked = self.session.retry(&mut self.screen)?;
                self.tell(asked)?;
            }
        }
        Ok(Next::Line)
    }

    fn save(&mut self, path: &Path) -> Outcome {
        store::write(self.session.history(), path)?;
        self.note(&format!("saved to {}", path.display()))
    }

    fn tell(&mut self, asked: Asked) -> Outcome {
        match asked {
            Asked::Refused(reason) => self.note(&format!("not asked: {reason}")),
            Asked::Answered(answer) => describe(&answer).map_or(Ok(()), |text| self.note(&text)),
        }
    }

    fn stats(&self) -> String {
        let predictor = self.session.predictor();
        let context = format!("{} of {} positions are in use", predictor.positions(), predictor.capacity());
        match self.session.last_timing() {
            Some(timing) => format!("{context}\n{}", speed(&timing)),
            None => context,
        }
    }

    fn note(&mut self, text: &str) -> Outcome {
        self.screen.note(text).map_err(not_noted)
    }
}

fn not_noted(error: io::Error) -> Failure {
    Failure::not_written(anyhow::Error::new(error).context("a note cannot be shown"))
}

/// What is to be said of an answer, if anything.
fn describe(answer: &Answer) -> Option<String> {
    let why = match answer.stop {
        Stop::EndOfTurn => "the answer breaks the format",
        Stop::StopId => "the answer ends at a stop id",
        Stop::Limit => "the answer was cut at the most ids it may have (--gen)",
        Stop::ContextFull => "the context is full; /undo and /reset make room",
        Stop::Interrupted => "stopped",
    };
    match &answer.kept {
        Kept::Whole => None,
        Kept::Cut => Some(format!("{why}; the answer is kept as far as it went")),
        Kept::Not(reason) => Some(format!(
            "{why}; the answer is not kept ({reason}): /retry asks again, another question takes the place of this one"
        )),
        Kept::Earlier(reason) => Some(format!("{why}; the answer is not kept ({reason}), the earlier one stands")),
    }
}

fn speed(timing: &Timing) -> String {
    let read = timing.prompt - timing.reused;
    let rate = (timing.generated.saturating_sub(1)) as f64 / timing.writing.as_secs_f64().max(f64::MIN_POSITIVE);
    format!(
        "last turn: {} positions reused, {read} read in {:.2} s; {} ids written in {:.2} s, {rate:.2} a second",
        timing.reused,
        timing.reading.as_secs_f64(),
        timing.generated,
        timing.writing.as_secs_f64()
    )
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
