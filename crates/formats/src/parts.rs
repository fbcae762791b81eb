//! Parts of messages that other APIs write, in the terms of Anthropic and OpenAI, which `messages` takes.
//!
//! The shapes follow @aws-sdk/client-bedrock-runtime 3, ai 4 and 6, and @google/genai 2.

use knowledgepulse_json::{Object, Value, object, parse_str};

pub use crate::values::some_object;
use crate::values::{fields_of, first_of, is_true, joined, json_of, list_of, str_of, string_of};

/// Parts of the AI SDK that are for a page alone.
#[rustfmt::skip]
const OF_PAGE: &[&str] = &[
    "step-start", "source", "source-url", "source-document", "tool-approval-request", "tool-approval-response",
];

/// How a list of parts in JSON begins within a text: the name of the first field of its first part.
#[rustfmt::skip]
const BEGINNINGS: &[&str] = &[
    "type", "text", "toolUse", "toolResult", "reasoningContent", "functionCall", "functionResponse", "image", "json",
];

/// Where parts of agents have the id of a call.
const CALL_IDS: &[&str] = &["toolUseId", "tool_call_id", "tool_use_id", "toolCallId", "id"];

/// Types of items that call a tool that OpenAI runs itself, each named after its tool; some come with the result.
#[rustfmt::skip]
const HOSTED_CALLS: &[&str] = &[
    "web_search_call", "file_search_call", "computer_call", "code_interpreter_call", "mcp_call", "image_generation_call",
    "local_shell_call", "shell_call", "apply_patch_call",
];

/// Types of parts and items that call a tool.
#[rustfmt::skip]
const CALLS: &[&str] = &[
    "tool_use", "server_tool_use", "mcp_tool_use", "tool_call", "function_call", "custom_tool_call", "toolCall",
    "server_tool_call", "invalid_tool_call", "tool_call_chunk",
];

/// Returns whether parts and items of this type call a tool.
pub fn is_call(kind: &str) -> bool {
    CALLS.contains(&kind)
}

/// Returns whether they are the result of a call; Anthropic's server tools have a kind each, as `web_search_tool_result`.
pub fn is_result(kind: &str) -> bool {
    kind == "tool_call_response" || kind.ends_with("tool_result") || kind.ends_with("_call_output")
}

/// Returns whether they call a tool that OpenAI runs itself, each named after its tool; some come with the result.
pub fn is_hosted_call(kind: &str) -> bool {
    HOSTED_CALLS.contains(&kind)
}

/// Returns whether a value of this type is an item of a conversation.
pub fn is_item(kind: &str) -> bool {
    kind == "message" || kind == "reasoning" || is_call(kind) || is_result(kind) || is_hosted_call(kind)
}

/// Returns whether a part is more than text.
pub fn is_act(kind: &str) -> bool {
    matches!(kind, "thinking" | "redacted_thinking" | "think") || (kind != "message" && is_item(kind))
}

/// Returns the parts that this one stands for, none if it is no step; `None` if it is one that needs no translation.
pub fn translated(part: &Value) -> Option<Vec<Value>> {
    let part = part.as_object()?;
    if let Some(kind) = part.get("type").and_then(Value::as_str) {
        return of_ai_sdk(part, kind);
    }
    if let Some(text @ Value::String(_)) = part.get("text") {
        let is_thought = part.get("thought") == Some(&Value::Bool(true));
        return is_thought.then(|| vec![thinking(text)]);
    }
    part.iter().find_map(|(name, value)| of_block(name, value))
}

/// Returns the parts that a text holds in JSON, as some instrumentations write them; `None` for any other text.
pub fn within(content: Option<&Value>) -> Option<Value> {
    let text = content?.as_str()?;
    let first = text
        .trim_start()
        .strip_prefix('[')?
        .trim_start()
        .strip_prefix('{')?;
    let name = first.trim_start().strip_prefix('"')?.split_once('"')?.0;
    if !BEGINNINGS.contains(&name) {
        return None;
    }
    let parts = parse_str(text).ok()?;
    let is_part = |part: &Value| {
        let is_text = |name| part.get(name).is_some_and(|value| value.as_text().is_some());
        let fields = part.as_object().map_or(0, Object::len);
        match str_of(part.get("type")) {
            Some("text" | "input_text" | "output_text") => is_text("text"),
            Some(kind) => is_act(kind),
            None => fields == 1 && (is_text("text") || translated(part).is_some()),
        }
    };
    let is_all = |parts: &&[Value]| !parts.is_empty() && parts.iter().all(is_part);
    parts.as_array().filter(is_all)?;
    Some(parts)
}

/// Returns the meaning of a block, which its only field names.
fn of_block(name: &str, value: &Value) -> Option<Vec<Value>> {
    if name == "json" {
        return Some(vec![saying(text_of(value))]);
    }
    let fields = value.as_object()?;
    let get = |name| fields.get(name);
    Some(match name {
        "toolUse" | "functionCall" => vec![part_of(name, value)],
        "toolResult" => {
            let failed = match get("status").and_then(Value::as_str) {
                Some("error") => Some(true),
                Some("success") => Some(false),
                _ => None,
            };
            vec![result_of(
                get("toolUseId"),
                get("content").map(content_of),
                failed,
            )]
        }
        "reasoningContent" => {
            let text = get("reasoningText");
            vec![match text.and_then(|text| text.get("text")).or(text) {
                Some(text @ Value::String(_)) => thinking(text),
                _ => kind_alone("redacted_thinking"),
            }]
        }
        "citationsContent" | "searchResult" => list_of(get("content")).to_vec(),
        "guardContent" => match get("text") {
            Some(text @ Value::Object(_)) => vec![text.clone()],
            _ => vec![kind_alone("image")],
        },
        "image" | "document" | "video" | "audio" | "inlineData" | "fileData" => vec![kind_alone(name)],
        "cachePoint" | "toolAddition" | "toolRemoval" => Vec::new(),
        "functionResponse" => vec![result_of(get("id"), get("response").map(text_of), None)],
        _ => return None,
    })
}

fn of_ai_sdk(part: &Object, kind: &str) -> Option<Vec<Value>> {
    if OF_PAGE.contains(&kind) || kind.starts_with("data-") {
        return Some(Vec::new());
    }
    let name = part.get("toolName");
    let of_kind = kind.strip_prefix("tool-").map(Value::from);
    let used = if kind == "dynamic-tool" {
        name
    } else {
        of_kind.as_ref()
    };
    if let (Some(Value::String(state)), true) =
        (part.get("state"), kind == "dynamic-tool" || of_kind.is_some())
    {
        return Some(of_tool(part, state, used));
    }
    match kind {
        "tool-invocation" => {
            let invocation = fields_of(part, "toolInvocation");
            let state = str_of(invocation.get("state")).unwrap_or_default();
            Some(of_tool(invocation, state, invocation.get("toolName")))
        }
        "tool-call" => {
            let args = first_of(part, &["input", "args"]);
            Some(vec![call_of(part.get("toolCallId"), name, args)])
        }
        "tool-result" => Some(vec![of_tool_result(part)]),
        _ => None,
    }
}

/// Returns a tool in a message of a UI, of any version: its call, and the result where it is there.
fn of_tool(part: &Object, state: &str, name: Option<&Value>) -> Vec<Value> {
    let id = part.get("toolCallId");
    let args = first_of(part, &["input", "rawInput", "args"]);
    let (content, failed) = match state {
        "output-available" => (part.get("output").map(text_of), None),
        "result" => (part.get("result").map(text_of), None),
        "output-error" => (part.get("errorText").cloned(), Some(true)),
        "output-denied" => {
            let reason = fields_of(part, "approval").get("reason");
            (Some(denied_of(reason)), Some(false))
        }
        _ => return vec![call_of(id, name, args)],
    };
    vec![call_of(id, name, args), result_of(id, content, failed)]
}

fn of_tool_result(part: &Object) -> Value {
    let id = part.get("toolCallId");
    let Some(Value::Object(output)) = part.get("output") else {
        let failed = is_true(part, "isError").then_some(true);
        return result_of(id, first_of(part, &["result", "output"]).map(text_of), failed);
    };
    let value = output.get("value");
    match output.get("type").and_then(Value::as_str) {
        Some("execution-denied") => result_of(id, Some(denied_of(output.get("reason"))), Some(false)),
        Some("error-text" | "error-json") => result_of(id, value.map(text_of), Some(true)),
        Some("content") => result_of(id, value.cloned(), None),
        _ => result_of(id, value.map(text_of), None),
    }
}

fn denied_of(reason: Option<&Value>) -> Value {
    let texts = ["denied by the user".into()].into_iter();
    joined(texts.chain(string_of(reason).cloned()), ": ").into()
}

/// Returns the content of a result, each of its blocks translated.
fn content_of(content: &Value) -> Value {
    match content {
        Value::Array(blocks) => blocks
            .iter()
            .flat_map(|block| translated(block).unwrap_or_else(|| vec![block.clone()]))
            .collect::<Vec<_>>()
            .into(),
        content => content.clone(),
    }
}

fn text_of(value: &Value) -> Value {
    json_of(value).into_owned().into()
}

/// Returns a part of a kind, whose fields or text are in a value, as Anthropic writes it. Agents write names in several ways.
pub fn part_of(kind: &str, value: &Value) -> Value {
    let first = |names: &[&str]| first_of(value, names);
    let text = |names: &[&str]| first(names).unwrap_or(value).clone();
    match kind.replace('_', "").to_lowercase().as_str() {
        "text" => saying(text(&["text"])),
        "thinking" | "reasoning" => thinking(&text(&["thinking", "text"])),
        "redactedthinking" => kind_alone("redacted_thinking"),
        "tooluse" | "toolcall" | "functioncall" => {
            let args = first(&["input", "raw_input", "args", "arguments"]);
            call_of(first(CALL_IDS), value.get("name"), args)
        }
        "toolresult" => {
            let failed = is_true(value, "is_error").then_some(true);
            result_of(first(CALL_IDS), value.get("content").cloned(), failed)
        }
        "image" | "imageurl" | "binary" => kind_alone("image"),
        _ => kind_alone(&kind.to_lowercase()),
    }
}

/// Returns a part of which only the kind is told.
pub fn kind_alone(kind: &str) -> Value {
    object([("type", kind.into())])
}

/// Returns a part with text.
pub fn saying(text: Value) -> Value {
    object([("type", "text".into()), ("text", text)])
}

/// Returns a part with reasoning.
pub fn thinking(text: &Value) -> Value {
    object([("type", "thinking".into()), ("thinking", text.clone())])
}

/// Returns a part that calls a tool.
pub fn call_of(id: Option<&Value>, name: Option<&Value>, input: Option<&Value>) -> Value {
    some_object([
        ("type", Some("tool_use".into())),
        ("id", id.cloned()),
        ("name", name.cloned()),
        ("input", input.cloned()),
    ])
}

/// Returns a part with the result of a call.
pub fn result_of(id: Option<&Value>, content: Option<Value>, failed: Option<bool>) -> Value {
    some_object([
        ("type", Some("tool_result".into())),
        ("tool_use_id", id.cloned()),
        ("content", content),
        ("is_error", failed.map(Value::Bool)),
    ])
}
