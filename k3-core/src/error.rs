//! The one error type of the core: a variant per thing a caller can act on.

use alloc::string::String;
use alloc::vec::Vec;

/// What can go wrong in the core.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// `config.json` cannot be trusted; every fault that was found, in the order of the fields.
    #[error("config.json: {}", .0.join("; "))]
    Config(Vec<String>),
    /// A checkpoint file is damaged, contradictory or not understood.
    #[error("{file}: {reason}")]
    Checkpoint {
        /// The file at fault.
        file: String,
        /// What is wrong with it, naming the tensor or field.
        reason: String,
    },
    /// A tensor that the model needs is not in the checkpoint, or not in the form it must have.
    #[error("tensor {name}: {reason}")]
    Tensor {
        /// The tensor's name as released.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A read failed or came back short.
    #[error("{file}: reading {length} bytes at {offset}: {reason}")]
    Read {
        /// The file that was read.
        file: String,
        /// Where the read began, in bytes from the start of the file.
        offset: u64,
        /// How many bytes were wanted.
        length: u64,
        /// The system's own words.
        reason: String,
    },
    /// A routed expert could not be read. What it would have added is not known, so the pass is void.
    #[error("layer {layer}, expert {expert}: {reason}")]
    Expert {
        /// The layer, from 0.
        layer: usize,
        /// The expert within its layer, from 0.
        expert: usize,
        /// What went wrong, naming the file.
        reason: String,
    },
    /// There is not so much memory.
    #[error("no memory for {bytes} bytes")]
    Memory {
        /// How many bytes were wanted at once.
        bytes: u64,
    },
    /// A token id is outside the vocabulary.
    #[error("token id {id} is outside the vocabulary of {vocabulary}")]
    TokenId {
        /// The id as given.
        id: u64,
        /// The number of ids that exist.
        vocabulary: usize,
    },
    /// More positions were asked for than the state was made for.
    #[error("position {wanted} is beyond the {capacity} positions this state was made for")]
    Capacity {
        /// The number of positions that the call would have filled.
        wanted: usize,
        /// The number the state has room for.
        capacity: usize,
    },
    /// A pass over no positions, or over more positions or logits than there is room for.
    #[error("a pass over {wanted} positions, with room for 1 to {room}")]
    ChunkSize {
        /// The number of positions given.
        wanted: usize,
        /// The most that a pass can take.
        room: usize,
    },
    /// An earlier pass over this state failed half way.
    #[error("an earlier step failed half way; the state cannot be used any more")]
    BrokenState,
    /// A forward pass produced a number that is not finite.
    #[error("the logits at position {position} are not finite: a weight in the checkpoint is damaged or out of range")]
    NotFinite {
        /// The position whose logits are not finite.
        position: usize,
    },
    /// A tokenizer file is malformed or does not fit the model.
    #[error("{file}{}: {reason}", line_suffix(.line))]
    Vocabulary {
        /// The file at fault.
        file: String,
        /// The one-based line, where there is one.
        line: Option<usize>,
        /// What is wrong.
        reason: String,
    },
    /// A saved state cannot be used.
    #[error("state: {0}")]
    State(String),
    /// A conversation cannot be rendered.
    #[error("chat: {0}")]
    Chat(String),
    /// A generated turn breaks the format, so that it cannot be stored.
    #[error("generated turn: {0}")]
    Turn(String),
    /// A history file is malformed, or a message does not fit into one.
    #[error("history{}: {reason}", line_suffix(.line))]
    History {
        /// The one-based line, if the fault is in a file.
        line: Option<usize>,
        /// What is wrong.
        reason: String,
    },
    /// A sampling setting is out of range.
    #[error("sampling: {0}")]
    Sampling(String),
}

impl Error {
    /// Whether an input cannot be trusted, and no work was begun on it; otherwise, work failed on the way.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        !matches!(
            self,
            Self::Read { .. } | Self::Expert { .. } | Self::Memory { .. } | Self::NotFinite { .. } | Self::BrokenState
        )
    }
}

fn line_suffix(line: &Option<usize>) -> String {
    line.map(|line| alloc::format!(", line {line}")).unwrap_or_default()
}

/// A result of the core.
pub type Result<T> = core::result::Result<T, Error>;
