use alloc::format;
use alloc::vec::Vec;

use super::*;
use crate::chat::vocabulary::released;
use crate::chat::{encode, fixtures};
use crate::tokenizer::Mode;
use fixtures::{messages, rendered, text};

#[test]
fn fixtures_render_to_the_released_text_and_segments() {
    for case in fixtures::conversations() {
        let segments = render(&case.conversation).expect(&case.name);
        assert_eq!(text(&segments), case.text, "{}", case.name);
        let pairs: Vec<_> =
            segments.into_iter().map(|segment| (segment.text, segment.kind == SegmentKind::Control)).collect();
        assert_eq!(pairs, case.segments, "{}", case.name);
    }
}

#[test]
fn names_are_attributes_and_empty_ones_are_not() {
    let named = messages(
        r#"[{"role": "user", "name": "A\"&B", "content": "x"}, {"role": "user", "name": "", "content": "y"}]"#,
    );
    assert_eq!(
        named,
        "<|open|>message role=\"user\" name=\"A&quot;&amp;B\"<|sep|>x<|close|>message<|sep|><|end_of_msg|>\
         <|open|>message role=\"user\"<|sep|>y<|close|>message<|sep|><|end_of_msg|>"
    );
    let others = messages(
        r#"[{"role": "system", "name": "s", "content": ""}, {"role": "assistant", "name": "a", "content": null}]"#,
    );
    assert!(others.starts_with("<|open|>message role=\"system\" name=\"s\"<|sep|><|close|>message<|sep|>"));
    assert!(
        others.contains("<|open|>message role=\"assistant\" name=\"a\"<|sep|><|open|>response<|sep|><|close|>response")
    );
}

#[test]
fn a_later_system_message_declares_further_tools() {
    let later = r#"[{"role": "system", "content": "unseen", "tools": [{"b": 1, "a": {"d": 1.0, "c": "é"}}]},
                    {"role": "system", "content": "seen", "tools": []}]"#;
    assert_eq!(
        messages(later),
        "<|open|>message role=\"system\" type=\"tool-declare\"<|sep|>## New Tools Available\n\
         The system dynamically extends the toolset via lazy-loading.\n\
         You have access to all existing and extended tools.\n\
         Here are the specs for the extended tools.\n\n\
         ```json\n[{\"a\":{\"c\":\"é\",\"d\":1.0},\"b\":1}]\n```<|close|>message<|sep|><|end_of_msg|>\
         <|open|>message role=\"system\"<|sep|>seen<|close|>message<|sep|><|end_of_msg|>"
    );
}

#[test]
fn arguments_print_as_python_prints_them() {
    let call = r#"[{"role": "assistant", "tool_calls": [{"name": "f", "arguments":
        "{\"n\": 1e5, \"i\": 123456789012345678901, \"x\": NaN, \"o\": {\"z\":[1,\"é\\n\"],\"a\":{}}, \"n\": -0, \"e\": \"\"}"}]}]"#;
    assert_eq!(
        messages(call),
        "<|open|>message role=\"assistant\"<|sep|><|open|>response<|sep|><|close|>response<|sep|><|open|>tools<|sep|>\
         <|open|>call tool=\"f\" index=\"1\"<|sep|>\
         <|open|>argument key=\"n\" type=\"number\"<|sep|>0<|close|>argument<|sep|>\
         <|open|>argument key=\"i\" type=\"number\"<|sep|>123456789012345678901<|close|>argument<|sep|>\
         <|open|>argument key=\"x\" type=\"number\"<|sep|>NaN<|close|>argument<|sep|>\
         <|open|>argument key=\"o\" type=\"object\"<|sep|>{\"z\": [1, \"é\\n\"], \"a\": {}}<|close|>argument<|sep|>\
         <|open|>argument key=\"e\" type=\"string\"<|sep|><|close|>argument<|sep|>\
         <|close|>call<|sep|><|close|>tools<|sep|><|close|>message<|sep|><|end_of_msg|>"
    );
}

#[test]
fn images_take_the_place_of_parts_and_placeholders() {
    let json = r#"{"messages": [{"role": "user", "content": [{"type": "text", "text": "a<|kimi_image_placeholder|>b"},
        {"type": "image_url", "image_url": {"url": "x"}}, {"type": "image"}]}],
        "options": {"thinking": false, "add_generation_prompt": false}}"#;
    let mut conversation = Conversation::from_json(json.as_bytes()).expect("valid");
    let segments = render(&conversation).expect("no prompts are needed");
    let bodies: Vec<_> =
        segments[7..segments.len() - 4].iter().map(|segment| (segment.text.as_str(), segment.kind)).collect();
    let placeholder = (IMAGE_PLACEHOLDER, SegmentKind::Control);
    assert_eq!(bodies, [("a<|kimi_image_placeholder|>b", SegmentKind::Text), placeholder, placeholder]);

    let prompts = [image_prompt(14, 28), image_prompt(1, 2), image_prompt(3, 4)];
    conversation.options.image_prompts = Some(prompts.to_vec());
    let segments = render(&conversation).expect("three images");
    let bodies: Vec<_> =
        segments[7..segments.len() - 4].iter().map(|segment| (segment.text.as_str(), segment.kind)).collect();
    let first = "<|media_begin|>image 14x28<|media_content|><|media_pad|><|media_end|>";
    let (second, third) = (prompts[1].as_str(), prompts[2].as_str());
    let control = SegmentKind::Control;
    assert_eq!(
        bodies,
        [("a", SegmentKind::Text), (first, control), ("b", SegmentKind::Text), (second, control), (third, control)]
    );

    conversation.options.image_prompts = Some(prompts[..2].to_vec());
    assert_eq!(render(&conversation), Err(Error::Chat("there are more images than image prompts".into())));
    conversation.options.image_prompts = Some([&prompts[..], &prompts[..1]].concat());
    assert_eq!(render(&conversation), Err(Error::Chat("there are more image prompts than images".into())));
}

#[test]
fn a_typed_placeholder_without_image_prompts_is_plain_text() {
    let conversation =
        Conversation { messages: [Message::new(Role::User, IMAGE_PLACEHOLDER)].into(), ..Conversation::default() };
    let segments = render(&conversation).expect("valid");
    assert!(segments.contains(&Segment { text: IMAGE_PLACEHOLDER.into(), kind: SegmentKind::Text }));
}

#[test]
fn python_white_space_makes_no_reasoning() {
    let blank = r#"{"messages": [{"role": "assistant", "reasoning_content": "\u001c\u3000\u0085", "reasoning": "other", "content": "x"}],
        "options": {"thinking_effort": null, "add_generation_prompt": false}}"#;
    assert!(rendered(blank).contains("<|open|>think<|sep|><|close|>think"));
    let fallback = blank.replace(r"\u001c\u3000\u0085", "");
    assert!(rendered(&fallback).contains("<|open|>think<|sep|>other<|close|>think"));
    let kept = blank.replace(r"\u0085", " . ");
    assert!(rendered(&kept).contains("<|sep|>\u{1c}\u{3000} . <|close|>think"));
}

#[test]
fn a_schema_is_sought_where_the_released_encoder_seeks_it() {
    let body = |options: &str| {
        let json = format!(
            r#"{{"messages": [], "options": {{"thinking": false, "add_generation_prompt": false, {options}}}}}"#
        );
        rendered(&json)
    };
    let with = |schema: &str| {
        format!(
            "<|open|>message role=\"system\" type=\"response-format\"<|sep|>The system is invoked with \
             `response_format=json_schema`.\nYour response must be raw JSON data without markdown code blocks (```json) or \
             any additional formatting.\nThe JSON data must match the following schema:\n```json\n{schema}\n```\
             <|close|>message<|sep|><|end_of_msg|>"
        )
    };
    let format =
        |json_schema: &str| format!(r#""response_format": {{"type": "json_schema", "json_schema": {json_schema}}}"#);
    assert_eq!(body(&format(r#"{"schema": {"b": 1, "a": 2}}"#)), with(r#"{"a":2,"b":1}"#));
    assert_eq!(body(&format(r#"{"json_schema": {"b": 1}}"#)), with(r#"{"b":1}"#));
    assert_eq!(body(&format(r#"{"type": "object"}"#)), with(r#"{"type":"object"}"#));
    assert_eq!(body(r#""response_format": "json_schema""#), with("null"));
    let given = format!(r#"{}, "response_schema": {{"c": 3}}"#, format("{}"));
    assert_eq!(body(&given), with(r#"{"c":3}"#));
    let null = format!(r#"{}, "response_schema": null"#, format("{}"));
    assert_eq!(body(&null), with("null"));
    assert_eq!(body(r#""response_format": {"type": "text"}"#), "");
    assert_eq!(body(r#""tool_choice": {"type": "function"}"#), "");
    assert!(
        body(r#""response_format": "json_object""#)
            .ends_with("any additional formatting.<|close|>message<|sep|><|end_of_msg|>")
    );
}

#[test]
fn fixtures_encode_to_the_released_ids() {
    let mut edges = 0;
    for case in fixtures::conversations() {
        let segments = render(&case.conversation).expect(&case.name);
        assert_eq!(encode(&segments, released()), Ok(case.ids.clone()), "{}", case.name);
        // Encoding neighbours together would give other ids.
        edges += usize::from(released().encode(&case.text, Mode::Special) != case.ids);
    }
    assert!(edges > 0, "no fixture shows the edges of segments");
}
