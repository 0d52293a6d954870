//! What happens in a turn, and how it ends.

use std::io;
use std::time::Duration;

use k3_core::chat::Channel;
use k3_core::model::sequence::Reuse;

/// Follows a turn as it happens.
pub trait Watcher: Send {
    /// Something happened.
    ///
    /// # Errors
    /// If it cannot be shown; the turn then ends.
    fn see(&mut self, progress: Progress<'_>) -> io::Result<()>;

    /// Whether the turn should end here. Asked before each pass over the model.
    fn wants_stop(&self) -> bool;
}

/// What happens in a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress<'a> {
    /// A prompt of so many ids is about to be fed.
    Prompt {
        /// Ids of the whole prompt.
        ids: usize,
        /// How many of them need not be fed again.
        reuse: Reuse,
    },
    /// So many positions are fed. Comes before each pass.
    Fed(usize),
    /// The model wrote something: whole characters.
    Text {
        /// Where it belongs.
        channel: Channel,
        /// The characters.
        text: &'a str,
    },
    /// The answer is over.
    End,
}

/// How it went to ask something.
#[derive(Debug, Clone, PartialEq)]
pub enum Asked {
    /// It was not asked, for this reason; the session is as before.
    Refused(String),
    /// The model answered.
    Answered(Answer),
}

/// An answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The ids generated, the one that ended it included.
    pub ids: Vec<u32>,
    /// Why there are no more.
    pub stop: Stop,
    /// What became of it.
    pub kept: Kept,
    /// How long it took.
    pub timing: Timing,
}

/// Why an answer went no further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The model ended its turn.
    EndOfTurn,
    /// An id was generated at which to stop.
    StopId,
    /// As many ids as were allowed.
    Limit,
    /// There is no room for more positions.
    ContextFull,
    /// The watcher wanted it.
    Interrupted,
}

/// What became of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kept {
    /// It is part of the conversation.
    Whole,
    /// It is part of the conversation as far as it went.
    Cut,
    /// It is not, for this reason; its question waits for another.
    Not(String),
    /// It is not, for this reason; the earlier answer stands.
    Earlier(String),
}

/// How long a turn took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Timing {
    /// Ids of the prompt.
    pub prompt: usize,
    /// Of these, positions that were fed before.
    pub reused: usize,
    /// Ids generated.
    pub generated: usize,
    /// Time until the first of them was chosen.
    pub reading: Duration,
    /// Time from there to the last.
    pub writing: Duration,
}
