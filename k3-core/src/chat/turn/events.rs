//! What becomes known of a turn while it is read.

use alloc::string::String;
use core::ops::Range;

/// Where a piece of text belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    /// What the model thinks.
    Think,
    /// What it says.
    Response,
    /// What stands beside the arguments where it calls tools.
    Tools,
    /// An argument of a call.
    Argument,
}

/// What happens in a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// One of the first three channels begins, or goes on.
    Enter(Channel),
    /// A token of text.
    Text {
        /// Where it belongs.
        channel: Channel,
        /// The token.
        id: u32,
    },
    /// A call of a tool begins.
    Call {
        /// The tool's name.
        tool: String,
    },
    /// An argument begins.
    Argument {
        /// Its name.
        key: String,
        /// The name of its type.
        type_name: String,
    },
    /// A block of JSON begins that holds all arguments.
    JsonArguments,
    /// The argument, or block, is complete.
    ArgumentEnd,
    /// The call is over.
    CallEnd {
        /// Whether all of it is closed and in its place. If not, it must not be carried out.
        whole: bool,
        /// Which of the turn's tokens it consists of.
        tokens: Range<usize>,
    },
    /// The turn is over.
    End {
        /// Whether everything was closed before.
        closed: bool,
    },
}
