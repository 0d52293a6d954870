//! Messages of one or more lines.

const BLOCK: &str = "\"\"\"";

/// What was typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// A line that begins with `/`.
    Command(String),
    /// Anything else that is not blank.
    Question(String),
}

/// Puts lines together. A line that ends in `\` goes on in the next one; from `"""` on everything up to the next `"""` at the
/// end of a line is one question.
#[derive(Debug, Clone, Default)]
pub struct Lines {
    open: Option<Open>,
}

/// A message that is not over.
#[derive(Debug, Clone)]
struct Open {
    text: String,
    form: Form,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Form {
    Continued,
    Block,
}

impl Lines {
    /// Takes the next line, without its end; gives the message that it completes.
    pub fn push(&mut self, line: &str) -> Option<Message> {
        let (mut text, form) = match self.open.take() {
            Some(Open { text, form }) => (text, Some(form)),
            None => (String::new(), None),
        };
        let (form, line) = match (form, line.strip_prefix(BLOCK)) {
            (None, Some(rest)) => (Some(Form::Block), rest),
            (form, _) => (form, line),
        };
        let (end, next_form) = match form {
            Some(Form::Block) => (line.trim_end().strip_suffix(BLOCK), Form::Block),
            _ if line.ends_with('\\') => (None, Form::Continued),
            _ => (Some(line), Form::Continued),
        };
        let Some(end) = end else {
            // The opening quotes may stand on a line of their own, which is then no part of the text.
            let begins = next_form == Form::Block && text.is_empty() && line.is_empty();
            if !begins {
                text.push_str(if next_form == Form::Block { line } else { &line[..line.len() - 1] });
                text.push('\n');
            }
            self.open = Some(Open { text, form: next_form });
            return None;
        };
        text.push_str(end);
        message(text, form)
    }

    /// Whether a message has begun that is not over.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Forgets a message that is not over.
    pub fn clear(&mut self) {
        self.open = None;
    }

    /// Ends a message that is not over: there are no more lines.
    pub fn finish(&mut self) -> Option<Message> {
        let Open { mut text, form } = self.open.take()?;
        text.pop();
        message(text, Some(form))
    }
}

/// Only a line by itself can be a command.
fn message(mut text: String, form: Option<Form>) -> Option<Message> {
    if text.trim().is_empty() {
        return None;
    }
    if form == Some(Form::Block) && text.ends_with('\n') {
        text.pop();
    }
    if form.is_none() && text.starts_with('/') && !text.contains('\n') {
        return Some(Message::Command(text));
    }
    Some(Message::Question(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All messages of these lines; a last one may not be over.
    fn messages(lines: &[&str]) -> Vec<Message> {
        let mut assembler = Lines::default();
        let mut all: Vec<Message> = lines.iter().filter_map(|line| assembler.push(line)).collect();
        all.extend(assembler.finish());
        all
    }

    fn question(text: &str) -> Message {
        Message::Question(text.into())
    }

    #[test]
    fn a_line_is_a_message_and_blank_ones_are_none() {
        assert_eq!(messages(&["why?", "", "  ", " so"]), [question("why?"), question(" so")]);
        assert_eq!(messages(&["/undo", " /undo"]), [Message::Command("/undo".into()), question(" /undo")]);
    }

    #[test]
    fn a_backslash_goes_on() {
        assert_eq!(messages(&["one \\", "two\\", "", "three"]), [question("one \ntwo\n"), question("three")]);
        assert_eq!(messages(&["one\\", "/exit"]), [question("one\n/exit")]);
        assert_eq!(messages(&["one\\"]), [question("one")]);
    }

    #[test]
    fn quotes_hold_a_block() {
        assert_eq!(
            messages(&["\"\"\"", "one\\", "", "/two", "\"\"\"", "x"]),
            [question("one\\\n\n/two"), question("x")]
        );
        assert_eq!(messages(&["\"\"\"one", "two\"\"\"  "]), [question("one\ntwo")]);
        assert_eq!(messages(&["\"\"\"/one\"\"\""]), [question("/one")]);
        assert_eq!(messages(&["\"\"\"one", "two"]), [question("one\ntwo")]);
        assert_eq!(messages(&["\"\"\"", "\"\"\""]), []);
    }

    #[test]
    fn what_was_begun_can_be_forgotten() {
        let mut lines = Lines::default();
        assert_eq!(lines.push("\"\"\"one"), None);
        assert!(lines.is_open());
        lines.clear();
        assert!(!lines.is_open());
        assert_eq!(lines.push("two"), Some(question("two")));
    }
}
