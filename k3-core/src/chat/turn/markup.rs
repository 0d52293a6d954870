//! The tags of elements, as text: `call tool="tide_table" index="1"`.

use alloc::string::String;
use alloc::vec::Vec;

/// What stands between `<|open|>` or `<|close|>` and `<|sep|>`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Tag {
    pub(super) name: String,
    attributes: Vec<(String, String)>,
}

impl Tag {
    /// Reads a tag; none if the text is not formed like one.
    pub(super) fn parse(text: &str) -> Option<Tag> {
        let name_end = text.find(' ').unwrap_or(text.len());
        let (name, mut rest) = text.split_at(name_end);
        let mut attributes = Vec::new();
        while !rest.is_empty() {
            let (key, after_key) = rest.strip_prefix(' ')?.split_once("=\"")?;
            let (value, after_value) = after_key.split_once('"')?;
            attributes.push((key.into(), unescape(value)));
            rest = after_value;
        }
        Some(Tag { name: name.into(), attributes })
    }

    pub(super) fn attribute(&self, key: &str) -> Option<&str> {
        self.attributes.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }
}

/// `&amp;` last: what it yields must not be read as the start of another.
fn unescape(value: &str) -> String {
    value.replace("&quot;", "\"").replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_read_with_their_attributes() {
        let tag = Tag::parse("call tool=\"a &amp;quot; &quot;b&quot; = c\" index=\"1\" empty=\"\"").expect("a tag");
        assert_eq!(tag.name, "call");
        assert_eq!(tag.attribute("tool"), Some("a &quot; \"b\" = c"));
        assert_eq!((tag.attribute("index"), tag.attribute("empty")), (Some("1"), Some("")));
        assert_eq!(tag.attribute("key"), None);
        assert_eq!(Tag::parse("think").map(|tag| tag.name), Some("think".into()));
    }

    #[test]
    fn what_is_no_tag_is_not_read() {
        for text in [
            "call ",
            "call tool",
            "call tool=",
            "call tool=\"",
            "call tool=\"a",
            "call tool=\"a\"b=\"c\"",
            "call  tool",
        ] {
            assert_eq!(Tag::parse(text), None, "{text}");
        }
    }
}
