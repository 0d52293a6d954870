//! Commands: lines that begin with `/`.

use std::path::PathBuf;

/// What the commands do.
pub const HELP: &str = "\
/help       this
/reset      forget everything but the system message
/undo       take back the last question and its answer
/retry      ask the last question again
/save FILE  write the conversation to a file
/stats      how long the last answer took, how full the context is
/exit       end the session (as does Ctrl-D)

A line that ends in \\ goes on in the next. \"\"\" begins a text of many lines, and ends it at the end of a line.
A question that begins with / is typed with a space in front. Ctrl-C stops an answer; three times, the program.";

/// A command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Explain the commands.
    Help,
    /// Forget the conversation.
    Reset,
    /// Take back the last turn.
    Undo,
    /// Ask the last question again.
    Retry,
    /// Write the conversation to a file.
    Save(PathBuf),
    /// Say how it goes.
    Stats,
    /// End the session.
    Exit,
}

impl Command {
    /// Reads a command.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn parse(line: &str) -> Result<Self, String> {
        let line = line.trim();
        let (name, argument) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let argument = argument.trim();
        let command = match name {
            "/help" => Self::Help,
            "/reset" => Self::Reset,
            "/undo" => Self::Undo,
            "/retry" => Self::Retry,
            "/stats" => Self::Stats,
            "/exit" => Self::Exit,
            "/save" if argument.is_empty() => return Err("/save needs the name of a file".into()),
            "/save" => return Ok(Self::Save(argument.into())),
            _ => return Err(format!("{name} is no command; /help lists them")),
        };
        if argument.is_empty() { Ok(command) } else { Err(format!("{name} takes nothing after it")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_or_explained() {
        assert_eq!(Command::parse("/undo "), Ok(Command::Undo));
        assert_eq!(Command::parse("/save  my talk.jsonl "), Ok(Command::Save("my talk.jsonl".into())));
        assert_eq!(Command::parse("/save"), Err("/save needs the name of a file".into()));
        assert_eq!(Command::parse("/exit now"), Err("/exit takes nothing after it".into()));
        assert_eq!(Command::parse("/usr/bin"), Err("/usr/bin is no command; /help lists them".into()));
    }

    #[test]
    fn help_names_every_command() {
        for line in HELP.lines().filter(|line| line.starts_with('/')) {
            let name = line.split("  ").next().unwrap_or_default();
            assert!(Command::parse(name).is_ok(), "{name}");
        }
        assert_eq!(HELP.lines().filter(|line| line.starts_with('/')).count(), 7);
    }
}
