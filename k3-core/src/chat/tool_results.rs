//! Which call a tool result answers, and in which order results stand.
//!
//! A run of results that all name a call of the last assistant message by its id is put into the order of the calls, and
//! takes the tools' names from them. If a single one does not, the whole run stays as it came.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::conversation::{Message, Role, ToolCall};

/// A message in its place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Placed<'a> {
    pub(super) message: &'a Message,
    /// Of a tool result: the tool's name, if the id or the message itself gives one.
    pub(super) tool: Option<&'a str>,
}

/// All messages, with the results of tool calls put into the order of the calls.
pub(super) fn place_tool_results(messages: &[Message]) -> Vec<Placed<'_>> {
    let mut placed = Vec::with_capacity(messages.len());
    let mut calls = CallsById::default();
    let mut rest = messages;
    while let Some(message) = rest.first() {
        let results = rest.iter().take_while(|message| message.role == Role::Tool).count();
        let taken = results.max(1);
        if results > 0 {
            place_run(&rest[..results], &calls, &mut placed);
        } else {
            if message.role == Role::Assistant {
                calls = calls_by_id(&message.tool_calls);
            }
            placed.push(Placed { message, tool: None });
        }
        rest = &rest[taken..];
    }
    placed
}

/// The place and name of each call that has an id; of two with the same id, the first.
type CallsById<'a> = BTreeMap<&'a str, (usize, &'a str)>;

fn calls_by_id(calls: &[ToolCall]) -> CallsById<'_> {
    let mut by_id = CallsById::new();
    for (place, call) in calls.iter().enumerate() {
        if let Some(id) = &call.id {
            by_id.entry(id).or_insert((place, &call.name));
        }
    }
    by_id
}

fn place_run<'a>(run: &'a [Message], calls: &CallsById<'a>, placed: &mut Vec<Placed<'a>>) {
    let find = |message: &'a Message| calls.get(message.call_id.as_deref()?).map(|&call| (call, message));
    match run.iter().map(find).collect::<Option<Vec<_>>>() {
        Some(mut found) => {
            // Stable: several results of one call keep their order.
            found.sort_by_key(|&((place, _), _)| place);
            placed.extend(found.into_iter().map(|((_, name), message)| Placed { message, tool: Some(name) }));
        }
        None => placed.extend(run.iter().map(|message| Placed { message, tool: message.tool.as_deref() })),
    }
}

#[cfg(test)]
#[path = "tool_results_tests.rs"]
mod tests;
