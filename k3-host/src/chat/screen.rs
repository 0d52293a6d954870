//! Shows a session: answers on one output, notes about them on another.

use std::io::{self, Write};

use k3_core::chat::Channel;
use k3_core::model::sequence::Reuse;

use super::turn::{Progress, Watcher};
use crate::interrupt::Interrupt;

const DIM: &str = "\x1b[2m";
const NORMAL: &str = "\x1b[0m";
const ERASE_LINE: &str = "\r\x1b[K";

/// What the answers are written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// A pipe or a file: the text as it is.
    Plain,
    /// A terminal: thoughts are dimmed, work is shown, control characters are made visible.
    Terminal,
}

/// Whether thoughts are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thoughts {
    /// They are.
    Shown,
    /// Only that there are some.
    Hidden,
}

/// A part of an answer that is set apart from the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    Thoughts,
    Response,
    Calls,
}

/// Writes what happens.
pub struct Screen {
    answers: Box<dyn Write + Send>,
    notes: Box<dyn Write + Send>,
    look: Look,
    thoughts: Thoughts,
    interrupt: Interrupt,
    /// The section being written.
    section: Option<Section>,
    ends_line: bool,
    /// Whether a line stands there that says what is being done.
    has_status: bool,
    /// Ids of the prompt.
    prompt: usize,
    /// Whether the model is known to think.
    thinks: bool,
}

impl Screen {
    /// A screen on standard output and standard error.
    #[must_use]
    pub fn standard(look: Look, thoughts: Thoughts, interrupt: Interrupt) -> Self {
        Self::new(Box::new(io::stdout()), Box::new(io::stderr()), look).with(thoughts, interrupt)
    }

    /// A screen that shows no thoughts.
    #[must_use]
    pub fn new(answers: Box<dyn Write + Send>, notes: Box<dyn Write + Send>, look: Look) -> Self {
        Self {
            answers,
            notes,
            look,
            thoughts: Thoughts::Hidden,
            interrupt: Interrupt::default(),
            section: None,
            ends_line: true,
            has_status: false,
            prompt: 0,
            thinks: false,
        }
    }

    /// The same, with other thoughts and another interrupt.
    #[must_use]
    pub fn with(self, thoughts: Thoughts, interrupt: Interrupt) -> Self {
        Self { thoughts, interrupt, ..self }
    }

    /// The interrupt that stops an answer.
    #[must_use]
    pub fn interrupt(&self) -> &Interrupt {
        &self.interrupt
    }

    /// Writes a note, each line of it marked.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn note(&mut self, text: &str) -> io::Result<()> {
        self.clear_status()?;
        for line in text.lines() {
            writeln!(self.notes, "chat: {line}")?;
        }
        self.notes.flush()
    }

    fn text(&mut self, channel: Channel, text: &str) -> io::Result<()> {
        self.thinks = channel == Channel::Think;
        let section = match channel {
            Channel::Think if self.thoughts == Thoughts::Hidden => return Ok(()),
            Channel::Think => Section::Thoughts,
            Channel::Response => Section::Response,
            Channel::Tools | Channel::Argument => Section::Calls,
        };
        self.clear_status()?;
        if self.section != Some(section) {
            self.end_section()?;
            self.section = Some(section);
            match (section, self.look) {
                (Section::Thoughts, Look::Terminal) => self.answers.write_all(DIM.as_bytes())?,
                (Section::Thoughts, Look::Plain) => self.answers.write_all(b"<think>\n")?,
                _ => {}
            }
        }
        match self.look {
            Look::Plain => self.answers.write_all(text.as_bytes())?,
            Look::Terminal => self.answers.write_all(text.chars().map(visible).collect::<String>().as_bytes())?,
        }
        self.ends_line = text.ends_with('\n');
        self.answers.flush()
    }

    /// Ends the line and the look of the section being written.
    fn end_section(&mut self) -> io::Result<()> {
        let Some(section) = self.section.take() else { return Ok(()) };
        if !self.ends_line {
            self.answers.write_all(b"\n")?;
        }
        self.ends_line = true;
        match (section, self.look) {
            (Section::Thoughts, Look::Terminal) => self.answers.write_all(NORMAL.as_bytes()),
            (Section::Thoughts, Look::Plain) => self.answers.write_all(b"</think>\n"),
            _ => Ok(()),
        }
    }

    /// Says what is being done, where nothing else is to be seen.
    fn fed(&mut self, positions: usize) -> io::Result<()> {
        if self.look == Look::Plain || self.section.is_some() {
            return Ok(());
        }
        let status = match positions.checked_sub(self.prompt) {
            None => format!("reading: {positions} of {}", self.prompt),
            // What is about to be fed is the last of the ids that were chosen.
            Some(fed) if self.thinks => format!("thinking: {} ids", fed + 1),
            Some(fed) => format!("answering: {} ids", fed + 1),
        };
        self.has_status = true;
        write!(self.answers, "{ERASE_LINE}{DIM}{status}{NORMAL}")?;
        self.answers.flush()
    }

    fn clear_status(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.has_status) {
            self.answers.write_all(ERASE_LINE.as_bytes())?;
            self.answers.flush()?;
        }
        Ok(())
    }

    fn prompt(&mut self, ids: usize, reuse: Reuse) -> io::Result<()> {
        self.prompt = ids;
        self.thinks = false;
        self.note(&match reuse {
            Reuse::Empty => format!("{ids} positions to read"),
            Reuse::Positions(reused) => format!("{reused} of {ids} positions reused, {} to read", ids - reused),
            Reuse::Departs { common, fed } => format!(
                "{ids} positions to read: none of the {fed} read before can be reused, since the prompt departs from them \
                 after {common}"
            ),
        })
    }
}

impl Watcher for Screen {
    fn see(&mut self, progress: Progress<'_>) -> io::Result<()> {
        match progress {
            Progress::Prompt { ids, reuse } => self.prompt(ids, reuse),
            Progress::Fed(positions) => self.fed(positions),
            Progress::Text { channel, text } => self.text(channel, text),
            Progress::End => {
                self.clear_status()?;
                self.end_section()?;
                self.answers.flush()
            }
        }
    }

    fn wants_stop(&self) -> bool {
        self.interrupt.is_requested()
    }
}

/// What a terminal would obey is shown as a picture of it instead.
fn visible(character: char) -> char {
    match character {
        '\n' | '\t' => character,
        '\0'..' ' => char::from_u32(0x2400 + u32::from(character)).unwrap_or(char::REPLACEMENT_CHARACTER),
        '\u{7f}' => '\u{2421}',
        '\u{80}'..='\u{9f}' => char::REPLACEMENT_CHARACTER,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Paper(Arc<Mutex<Vec<u8>>>);

    impl Write for Paper {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What is written of a thought, a response and a call.
    fn shown(look: Look, thoughts: Thoughts) -> String {
        let paper = Paper::default();
        let mut screen =
            Screen::new(Box::new(paper.clone()), Box::new(io::sink()), look).with(thoughts, Interrupt::default());
        let pieces = [
            (Channel::Think, "hm"),
            (Channel::Think, "…\n"),
            (Channel::Response, "a\tb\x1b[2J"),
            (Channel::Response, "\u{9b}c"),
            (Channel::Tools, "clock"),
            (Channel::Argument, "now"),
        ];
        screen.see(Progress::Prompt { ids: 9, reuse: Reuse::Empty }).unwrap();
        screen.see(Progress::Fed(4)).unwrap();
        for (channel, text) in pieces {
            screen.see(Progress::Text { channel, text }).unwrap();
        }
        screen.see(Progress::End).unwrap();
        let bytes = paper.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn plain_text_is_as_it_is() {
        assert_eq!(shown(Look::Plain, Thoughts::Hidden), "a\tb\x1b[2J\u{9b}c\nclocknow\n");
        assert_eq!(shown(Look::Plain, Thoughts::Shown), "<think>\nhm…\n</think>\na\tb\x1b[2J\u{9b}c\nclocknow\n");
    }

    #[test]
    fn a_terminal_gets_nothing_to_obey_but_ours() {
        assert_eq!(
            shown(Look::Terminal, Thoughts::Shown),
            "\r\x1b[K\x1b[2mreading: 4 of 9\x1b[0m\r\x1b[K\x1b[2mhm…\n\x1b[0ma\tb\u{241b}[2J\u{fffd}c\nclocknow\n"
        );
    }
}
