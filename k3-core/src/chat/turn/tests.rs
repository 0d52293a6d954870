use alloc::vec::Vec;

use super::*;
use crate::chat::vocabulary::{ReleasedTokens, released};
use crate::chat::{Message, Part, Role, fixtures};

/// Reads a turn written with spaces between its tokens, after a prompt with thinking on. A blank in a token is written
/// `_`, and a brace or slash that is text has a backslash.
fn read(written: &str) -> Turn {
    let vocabulary = released();
    let texts: Vec<String> = written
        .split_whitespace()
        .map(|token| match token {
            "{" => "<|open|>".into(),
            "/" => "<|close|>".into(),
            "}" => "<|sep|>".into(),
            "END" => "[EOS]".into(),
            literal if literal.starts_with("<|") => literal.into(),
            other => other.trim_start_matches('\\').replace('_', " "),
        })
        .collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    Turn::read(&vocabulary.ids(&texts), Thinking::On(None), &vocabulary.turn_tokens(), vocabulary)
}

fn turn(reasoning: &str, content: &str, ending: Ending) -> Turn {
    Turn {
        reasoning: reasoning.into(),
        content: content.into(),
        tool_calls: Vec::new(),
        unread_calls: String::new(),
        ending,
    }
}

fn call(name: &str, arguments: &[(&str, Json)]) -> ToolCall {
    let arguments = arguments.iter().map(|(key, value)| ((*key).into(), value.clone())).collect();
    ToolCall { id: None, name: name.into(), arguments: Arguments::Named(arguments) }
}

#[test]
fn a_whole_turn_is_taken_apart() {
    let whole = "_Paris / think } { response } _London / response } / message } END";
    assert_eq!(read(whole), turn(" Paris", " London", Ending::Finished));
}

#[test]
fn a_turn_cut_anywhere_keeps_its_text_in_its_channel() {
    assert_eq!(read(""), turn("", "", Ending::Cut));
    assert_eq!(read("_Paris"), turn(" Paris", "", Ending::Cut));
    assert_eq!(read("_Paris END"), turn(" Paris", "", Ending::Unclosed));
    assert_eq!(read("_Paris / think"), turn(" Paris<|close|>think", "", Ending::Cut));
    assert_eq!(read("_Paris / think }"), turn(" Paris", "", Ending::Cut));
    assert_eq!(read("_Paris / think } { response } _London"), turn(" Paris", " London", Ending::Cut));
    assert_eq!(read("_Paris / think } { response } _London END"), turn(" Paris", " London", Ending::Unclosed));
    assert_eq!(
        read("_Paris / think } { response } _London / message } END"),
        turn(" Paris", " London", Ending::Unclosed)
    );
}

#[test]
fn a_channel_may_be_left_without_closing_it_or_entered_without_opening_it() {
    assert_eq!(read("_Paris { response } _London END"), turn(" Paris", " London", Ending::Unclosed));
    assert_eq!(read("_Paris / think } _London END"), turn(" Paris", " London", Ending::Unclosed));
    assert_eq!(read("_Paris / response } _London"), turn(" Paris", " London", Ending::Cut));
    let after = read("/ think } { response } _Paris / response } / message } _London END");
    assert_eq!(after, turn("", " Paris London", Ending::Unclosed));
}

#[test]
fn markup_that_makes_no_sense_is_text() {
    assert_eq!(read("_Paris } { } END").reasoning, " Paris<|sep|><|open|><|sep|>");
    assert_eq!(
        read("{ _Paris } { call } / argument }").reasoning,
        "<|open|> Paris<|sep|><|open|>call<|sep|><|close|>argument<|sep|>"
    );
    assert_eq!(read("{ { response } _Paris").content, " Paris");
    assert_eq!(read("{ { response } _Paris").reasoning, "<|open|>");
    assert_eq!(read("/ think <|media_pad|> _Paris").reasoning, "<|close|>think<|media_pad|> Paris");
}

const CALL: &str = "{ call _tool =\" think \" }";
const STRING: &str = "{ argument _key =\" json \" _type =\" string \" }";
const NUMBER: &str = "{ argument _key =\" tool \" _type =\" number \" }";

#[test]
fn calls_have_typed_arguments() {
    let tools = "/ think } { response } / response } { tools }";
    let written = [
        tools,
        CALL,
        STRING,
        "1 / argument }",
        NUMBER,
        "1 / argument } / call }",
        CALL,
        "/ call } / tools } / message } END",
    ];
    let read = read(&written.join(" "));
    let first = call("think", &[("json", Json::String("1".into())), ("tool", Json::Integer("1".into()))]);
    let expected = Turn { tool_calls: [first, call("think", &[])].into(), ..turn("", "", Ending::Finished) };
    assert_eq!(read, expected);
}

#[test]
fn calls_without_a_response_are_read() {
    let read = read(&["_Paris / think } { tools }", CALL, "/ call } / tools } / message } END"].join(" "));
    let expected = Turn { tool_calls: [call("think", &[])].into(), ..turn(" Paris", "", Ending::Finished) };
    assert_eq!(read, expected);
}

#[test]
fn a_block_of_json_holds_all_arguments_or_is_kept_as_it_is() {
    let with = |block: &str| {
        let turn = read(&["{ tools }", CALL, "{ json _type =\" object \" }", block, "/ json } / call }"].join(" "));
        assert_eq!(turn.unread_calls, "");
        turn.tool_calls
    };
    let one = call("think", &[("json", Json::Integer("1".into()))]);
    assert_eq!(with("\\{ \" json \" : 1 \\}"), [one]);
    let unreadable = ToolCall { id: None, name: "think".into(), arguments: Arguments::Unreadable(" Paris".into()) };
    assert_eq!(with("_Paris"), [unreadable]);
}

#[test]
fn a_call_that_is_not_whole_is_kept_as_text_and_not_called() {
    let head = "<|open|>call tool=\"think\"<|sep|>";
    let string = "<|open|>argument key=\"json\" type=\"string\"<|sep|>";
    let number = "<|open|>argument key=\"tool\" type=\"number\"<|sep|>";
    let cases = [
        // Cut in the argument, after it, and by the end of the turn.
        ([CALL, STRING, "_Paris"].join(" "), [head, string, " Paris"].concat()),
        ([CALL, STRING, "_Paris / argument }"].join(" "), [head, string, " Paris<|close|>argument<|sep|>"].concat()),
        ([CALL, STRING, "_Paris END"].join(" "), [head, string, " Paris"].concat()),
        // An argument that is not closed, and one that is not opened.
        ([CALL, STRING, "_Paris / call }"].join(" "), [head, string, " Paris<|close|>call<|sep|>"].concat()),
        ([CALL, "/ argument } / call }"].join(" "), [head, "<|close|>argument<|sep|><|close|>call<|sep|>"].concat()),
        // Text beside the arguments, a control token in one, and the same argument twice.
        ([CALL, "_Paris / call }"].join(" "), [head, " Paris<|close|>call<|sep|>"].concat()),
        (
            [CALL, STRING, "<|media_pad|> / argument } / call }"].join(" "),
            [head, string, "<|media_pad|><|close|>argument<|sep|><|close|>call<|sep|>"].concat(),
        ),
        (
            [CALL, STRING, "/ argument }", STRING, "/ argument } / call }"].join(" "),
            [head, string, "<|close|>argument<|sep|>", string, "<|close|>argument<|sep|><|close|>call<|sep|>"].concat(),
        ),
        // A number that is none.
        (
            [CALL, NUMBER, "_Paris / argument } / call }"].join(" "),
            [head, "<|open|>argument key=\"tool\" type=\"number\"<|sep|> Paris<|close|>argument<|sep|><|close|>call<|sep|>"].concat(),
        ),
        // JSON, but no number.
        (
            [CALL, NUMBER, "null / argument } / call }"].join(" "),
            [head, number, "null<|close|>argument<|sep|><|close|>call<|sep|>"].concat(),
        ),
        // A channel closed around it: the markup that interrupts is not part of the call.
        ([CALL, STRING, "_Paris / tools }"].join(" "), [head, string, " Paris"].concat()),
    ];
    for (written, unread) in cases {
        let turn = read(&["{ tools }", &written].join(" "));
        assert_eq!((turn.tool_calls.len(), turn.unread_calls), (0, unread), "{written}");
    }
}

#[test]
fn a_call_after_a_broken_one_is_still_read() {
    let turn = read(&["{ tools } _London", CALL, STRING, CALL, "/ call }"].join(" "));
    assert_eq!(turn.tool_calls, [call("think", &[])]);
    assert_eq!(
        turn.unread_calls,
        " London<|open|>call tool=\"think\"<|sep|><|open|>argument key=\"json\" type=\"string\"<|sep|>"
    );
}

/// What the released tokenizer made of each assistant message is read back as that message.
#[test]
fn rendered_answers_are_read_back() {
    let vocabulary = released();
    let tokens = vocabulary.turn_tokens();
    let header = vocabulary.ids(&["<|open|>", "message", " role", "=\"", "assistant", "\"", "<|sep|>", "<|open|>"]);
    let mut answers = 0;
    for case in fixtures::conversations() {
        let mut rest = &case.ids[..];
        let thinking = case.conversation.options.thinking;
        for message in case.conversation.messages.iter().filter(|message| message.role == Role::Assistant) {
            let at = rest.windows(header.len()).position(|window| window == header).expect("an answer");
            // After the header: the name of the first channel and a separator.
            rest = &rest[at + header.len() + 2..];
            let turn = Turn::read(rest, thinking, &tokens, vocabulary);
            assert_eq!(turn, as_read(message, thinking), "{}", case.name);
            answers += 1;
        }
    }
    assert_eq!(answers, ANSWERS);
}

/// How many assistant messages the fixtures have.
const ANSWERS: usize = 19;

fn as_read(message: &Message, thinking: Thinking) -> Turn {
    let text = |part: &Part| {
        if let Part::Text(text) = part { text.clone() } else { String::new() }
    };
    let reasoning = if thinking == Thinking::Off { "" } else { message.reasoning.trim() };
    let calls = message.tool_calls.iter().map(|call| match &call.arguments {
        Arguments::Named(_) => ToolCall { id: None, ..call.clone() },
        Arguments::Unreadable(_) => {
            ToolCall { id: None, name: call.name.clone(), arguments: Arguments::Named(Vec::new()) }
        }
    });
    Turn {
        tool_calls: calls.collect(),
        ..turn(reasoning, &message.content.iter().map(text).collect::<String>(), Ending::Finished)
    }
}
