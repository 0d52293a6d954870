//! Talking with a model.
//!
//! [`Session`] is the conversation: what was said, what was fed, what may be kept of an answer. It knows no terminal; what
//! happens in a turn it tells a [`Watcher`]. [`Repl`] reads lines from an [`Input`] and gives them to it, and [`Screen`] is
//! the watcher that prints.

mod command;
mod input;
mod lines;
mod predictor;
mod repl;
mod screen;
mod session;
mod store;
mod stream;
mod terminal;
mod turn;

pub use command::{Command, HELP};
pub use input::{Entry, Input, PipedInput};
pub use lines::{Lines, Message};
pub use predictor::{Predictor, ThreadedSequence};
pub use repl::Repl;
pub use screen::{Look, Screen, Thoughts};
pub use session::{Session, Settings};
pub use store::HistoryFile;
pub use terminal::TerminalInput;
pub use turn::{Answer, Asked, Kept, Progress, Stop, Timing, Watcher};
