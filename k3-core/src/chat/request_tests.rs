use alloc::format;

use super::*;
use crate::chat::Thinking;

fn refused(json: &str) -> String {
    match Conversation::from_json(json.as_bytes()) {
        Err(Error::Chat(reason)) => reason,
        other => panic!("{json}: {other:?}"),
    }
}

fn refused_message(message: &str) -> String {
    refused(&format!(r#"{{"messages": [{message}]}}"#))
}

#[test]
fn absent_fields_have_the_released_defaults() {
    let conversation = Conversation::from_json(br#"{"messages": [], "tools": null}"#).expect("valid");
    assert_eq!(conversation, Conversation::default());
    let options = RenderOptions::from_json(br#"{"thinking_effort": null}"#).expect("valid");
    assert_eq!(options, RenderOptions { thinking: Thinking::On(None), ..RenderOptions::default() });
}

#[test]
fn efforts_beyond_the_three_are_refused_unless_thinking_is_off() {
    for effort in ["medium", "", "MAX", "none"] {
        let reason = RenderOptions::from_json(format!(r#"{{"thinking_effort": "{effort}"}}"#).as_bytes());
        let named = format!("thinking_effort `{effort}` is not supported");
        assert!(matches!(&reason, Err(Error::Chat(reason)) if reason.starts_with(&named)), "{effort}: {reason:?}");
        let off =
            RenderOptions::from_json(format!(r#"{{"thinking": false, "thinking_effort": "{effort}"}}"#).as_bytes());
        assert_eq!(off.expect("not looked at").thinking, Thinking::Off);
    }
}

#[test]
fn arguments_that_are_no_object_are_refused() {
    for arguments in ["[1]", "3", "true", r#""[1]""#, r#""null""#, r#""\"text\"""#, r#"" 7 ""#] {
        let call = format!(r#"{{"role": "assistant", "tool_calls": [{{"name": "f", "arguments": {arguments}}}]}}"#);
        assert!(refused_message(&call).contains("must be a JSON object"), "{arguments}");
    }
}

#[test]
fn arguments_are_read_from_text_and_kept_if_unreadable() {
    let read = |arguments: &str| {
        let json = format!(
            r#"{{"messages": [{{"role": "assistant", "tool_calls": [{{"function": {{"name": "f", "arguments": {arguments}}}}}]}}]}}"#
        );
        let mut conversation = Conversation::from_json(json.as_bytes()).expect(arguments);
        conversation.messages.remove(0).tool_calls.remove(0).arguments
    };
    let empty = Arguments::Named(Vec::new());
    for blank in ["null", "{}", r#""""#, r#"" \n\u001c""#, r#""{}""#] {
        assert_eq!(read(blank), empty, "{blank}");
    }
    assert_eq!(read(r#""{\"a\": 1}""#), Arguments::Named([("a".into(), Json::Integer("1".into()))].into()));
    assert_eq!(read(r#""{a: 1}""#), Arguments::Unreadable("{a: 1}".into()));
}

#[test]
fn ids_and_names_may_be_integers() {
    let json = br#"{"messages": [{"role": "assistant", "tool_calls": [{"id": 7, "name": "f"}]}, {"role": "tool", "tool_call_id": 7}]}"#;
    let conversation = Conversation::from_json(json).expect("valid");
    assert_eq!(conversation.messages[0].tool_calls[0].id.as_deref(), Some("7"));
    assert_eq!(conversation.messages[1].call_id.as_deref(), Some("7"));
}

#[test]
fn fields_of_the_wrong_type_are_refused() {
    for (message, named) in [
        (r#"{"content": "x"}"#, "role"),
        (r#"{"role": 1}"#, "expected a string"),
        (r#"{"role": "user", "content": 5}"#, "`content`"),
        (r#"{"role": "user", "content": {"type": "text"}}"#, "`content`"),
        (r#"{"role": "user", "content": ["x"]}"#, "`content`"),
        (r#"{"role": "user", "content": [{"text": "x"}]}"#, "`type`"),
        (r#"{"role": "user", "content": [{"type": "text", "text": null}]}"#, "`text`"),
        (r#"{"role": "user", "name": true}"#, "`name`"),
        (r#"{"role": "tool", "tool": []}"#, "`tool`"),
        (r#"{"role": "tool", "tool_call_id": 1.5}"#, "`tool_call_id`"),
        (r#"{"role": "assistant", "reasoning_content": 1}"#, "expected a string"),
        (r#"{"role": "assistant", "tool_calls": {}}"#, "expected a sequence"),
        (r#"{"role": "assistant", "tool_calls": [{"id": "a"}]}"#, "function"),
        (r#"{"role": "assistant", "tool_calls": [{"function": {}}]}"#, "name"),
        (r#"{"role": "system", "tools": "t"}"#, "expected a sequence"),
        ("1", "expected struct"),
    ] {
        let reason = refused_message(message);
        assert!(reason.contains(named), "{message}: {reason}");
    }
    for json in [
        "",
        "[]",
        "{}",
        "{\"messages\": null}",
        "{\"messages\": []",
        "{\"messages\": []} x",
        "{\"messages\": [], \"tools\": {}}",
    ] {
        refused(json);
    }
    assert!(Conversation::from_json(b"{\"messages\": [{\"role\": \"\xff\"}]}").is_err());
}

#[test]
fn deep_nesting_is_refused_and_does_not_exhaust_the_stack() {
    let deep = "[".repeat(1_000_000);
    assert!(Conversation::from_json(format!(r#"{{"messages": [], "tools": [{deep}"#).as_bytes()).is_err());
    let closed = format!(r#"{{"messages": [], "tools": [{deep}{}]}}"#, "]".repeat(1_000_000));
    assert!(refused(&closed).contains("512 deep"));
}
