use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::chat::fixtures::{bare, messages, refused};

/// Two calls with ids `a` and `b` of tools `f` and `g`, then `results`; what the tool messages look like.
fn tool_results(results: &str) -> Vec<(String, String)> {
    let call =
        |id: &str, name: &str| format!(r#"{{"id": "{id}", "function": {{"name": "{name}", "arguments": {{}}}}}}"#);
    let calls = format!(
        r#"{{"role": "assistant", "content": "", "tool_calls": [{}, {}, {}]}}"#,
        call("a", "f"),
        call("b", "g"),
        call("a", "h")
    );
    let all = messages(&format!("[{calls}, {results}]"));
    all.split("<|open|>message role=\"tool\"")
        .skip(1)
        .map(|message| {
            let (attributes, rest) = message.split_once("<|sep|>").expect("a tag");
            let (body, _) = rest.split_once("<|close|>").expect("an element");
            (String::from(attributes.trim_start()), String::from(body))
        })
        .collect()
}

fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|&(tag, body)| (tag.into(), body.into())).collect()
}

#[test]
fn results_take_order_and_name_from_their_calls() {
    // One id given to two calls means the first; two results of one call keep their order; a stale name does not count.
    let results = r#"{"role": "tool", "tool_call_id": "b", "content": "1"}, {"role": "tool", "tool_call_id": "a", "content": "2", "name": "old"},
                     {"role": "tool", "tool_call_id": "a", "content": "3"}"#;
    let expected = [("tool=\"f\" index=\"1\"", "2"), ("tool=\"f\" index=\"2\"", "3"), ("tool=\"g\" index=\"3\"", "1")];
    assert_eq!(tool_results(results), owned(&expected));
    // `id` stands in for an absent `tool_call_id`.
    assert_eq!(
        tool_results(r#"{"role": "tool", "id": "b", "content": "1"}"#),
        owned(&[("tool=\"g\" index=\"1\"", "1")])
    );
}

#[test]
fn a_run_with_one_unknown_id_stays_as_it_came() {
    let results = r#"{"role": "tool", "tool_call_id": "b", "content": "1"}, {"role": "tool", "tool_call_id": "?", "content": "2"}"#;
    assert_eq!(tool_results(results), owned(&[("tool=\"f\" index=\"1\"", "1"), ("tool=\"g\" index=\"2\"", "2")]));
    let null = r#"{"role": "tool", "tool_call_id": null, "id": "b", "content": "1"}"#;
    assert_eq!(tool_results(null), owned(&[("tool=\"f\" index=\"1\"", "1")]));
}

#[test]
fn without_an_id_the_own_name_or_the_position_counts() {
    let named = r#"{"role": "tool", "name": "own", "content": "1"}, {"role": "tool", "content": "2"},
                   {"role": "tool", "tool": "", "name": "n", "content": "3"}, {"role": "tool", "tool": "t", "name": "n", "content": "4"}"#;
    let expected = [
        ("tool=\"own\" index=\"1\"", "1"),
        ("tool=\"g\" index=\"2\"", "2"),
        ("tool=\"\" index=\"3\"", "3"),
        ("tool=\"t\" index=\"4\"", "4"),
    ];
    assert_eq!(tool_results(named), owned(&expected));
    // A null `tool` is there, so that `name` is not asked.
    let null = r#"{"role": "tool", "tool": null, "name": "n", "content": "1"}"#;
    assert_eq!(tool_results(null), owned(&[("tool=\"f\" index=\"1\"", "1")]));
}

#[test]
fn runs_count_on_across_a_user_message() {
    let runs = r#"{"role": "tool", "tool_call_id": "b", "content": "1"}, {"role": "user", "content": "?"},
                  {"role": "tool", "tool_call_id": "a", "content": "2"}"#;
    assert_eq!(tool_results(runs), owned(&[("tool=\"g\" index=\"1\"", "1"), ("tool=\"f\" index=\"2\"", "2")]));
}

#[test]
fn many_results_of_one_call_keep_their_order() {
    let result = |index: usize| {
        let id = if index.is_multiple_of(2) { "b" } else { "a" };
        format!(r#"{{"role": "tool", "tool_call_id": "{id}", "content": "{index}"}}"#)
    };
    let results: Vec<String> = (0..60).map(result).collect();
    let bodies: Vec<String> = tool_results(&results.join(", ")).into_iter().map(|(_, body)| body).collect();
    let expected: Vec<String> = (1..60).step_by(2).chain((0..60).step_by(2)).map(|index| format!("{index}")).collect();
    assert_eq!(bodies, expected);
}

#[test]
fn each_assistant_message_counts_its_results_anew() {
    let turn = r#"{"role": "assistant", "tool_calls": [{"name": "f", "id": "a"}]}, {"role": "tool", "tool_call_id": "a", "content": "1"}"#;
    let twice = messages(&format!("[{turn}, {turn}]"));
    assert_eq!(twice.matches(r#"role="tool" tool="f" index="1""#).count(), 2);
}

#[test]
fn a_result_that_nothing_names_is_refused() {
    let reason = refused(&bare(r#"[{"role": "tool", "content": "x"}]"#));
    assert_eq!(reason, "tool result 1 names no tool, and there is no call that it could answer");
    let after = r#"[{"role": "assistant", "tool_calls": [{"name": "f"}]}, {"role": "tool", "content": "1"}, {"role": "tool", "content": "2"}]"#;
    assert!(refused(&bare(after)).starts_with("tool result 2 "));
    // The next assistant message, with no calls, makes the earlier ones unreachable.
    let gone = r#"[{"role": "assistant", "tool_calls": [{"name": "f", "id": "a"}]}, {"role": "assistant", "content": "."},
                   {"role": "tool", "tool_call_id": "a", "content": "1"}]"#;
    assert!(refused(&bare(gone)).starts_with("tool result 1 "));
}
