//! Parts of messages, decoded from the shapes of all APIs: Chat Completions and Responses of OpenAI, Messages of Anthropic, Converse of
//! Bedrock, Gemini, and the AI SDK.
//!
//! The shapes follow @aws-sdk/client-bedrock-runtime 3, ai 4 and 6, and @google/genai 2.

use knowledgepulse_json::{Object, Text, Value, cut, parse_str};

use crate::{
    values::{
        Fields, NAME_LENGTH, elements_of, fields_of, fields_where, first_at, first_named, first_of, has_list,
        has_text, id_of, input_of, is_blank, is_given, is_true, is_truthy, joined, joined_parts, json_of,
        list_at, list_of, object_of, parsed, str_of, string_of, text_in, text_of_part, truth_of,
    },
    words::{is_one, words},
};

/// A part of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// A text.
    Text(Text),
    /// Reasoning of the model; `None` if it is encrypted.
    Thought(Option<Text>),
    /// A call of a tool.
    Call(Call),
    /// The result of a call.
    Result {
        /// The id of the call; without one, the result is of the first call that has none yet.
        id: Option<Text>,
        /// What the tool returned.
        content: Vec<Part>,
        /// Whether the call failed; `None` if the format does not tell, and the text decides.
        failed: Option<bool>,
    },
    /// A picture or another thing without text, by its kind, which stands in its place.
    Picture(Text),
    /// A part for a page alone, by its kind.
    Page(Text),
    /// A part of a shape that is not known, in JSON.
    Other(Text),
}

/// A call of a tool.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Call {
    /// The id that its result refers to.
    pub id: Option<Text>,
    /// The name of the tool, with something in it.
    pub name: Option<Text>,
    /// The arguments, which [`input_of`] reads.
    pub args: Object,
    /// The server of the Model Context Protocol that has the tool.
    pub server: Option<Text>,
}

impl Call {
    /// Returns a call whose id, name and arguments are in these fields.
    #[must_use]
    pub fn new(id: Option<&Value>, name: Option<&Value>, args: Option<&Value>) -> Self {
        Self {
            id: id_of(id),
            name: string_of(name).cloned(),
            args: input_of(args),
            server: None,
        }
    }

    /// Returns a call of the tool of this name.
    #[must_use]
    pub fn named(name: impl Into<Text>, args: Object) -> Self {
        Self {
            name: Some(name.into()),
            args,
            ..Self::default()
        }
    }

    /// Returns the call that a value is, whose id, name and arguments are in fields of any API, or in an object within it.
    #[must_use]
    pub fn of(call: &impl Fields) -> Self {
        let inner = first_of(call, &["function", "custom"]).filter(|inner| inner.as_object().is_some());
        let get = |kind| inner.map_or_else(|| first_named(call, kind), |inner| first_named(inner, kind));
        Self::new(
            first_named(call, "call-id"),
            get("call-name"),
            get("call-arguments"),
        )
    }
}

impl Part {
    /// Returns a call whose id, name and arguments are in these fields.
    pub fn call(id: Option<&Value>, name: Option<&Value>, args: Option<&Value>) -> Self {
        Self::Call(Call::new(id, name, args))
    }

    /// Returns a result whose id and content are in these fields.
    pub fn result(id: Option<&Value>, content: Option<&Value>, failed: Option<bool>) -> Self {
        Self::Result {
            id: id_of(id),
            content: parts_of(content),
            failed,
        }
    }

    /// Returns a call of the tool of this name whose arguments are in a text.
    pub fn called(name: &str, args: &str) -> Self {
        Self::call(None, Some(&name.into()), Some(&args.trim().into()))
    }

    /// Returns a result that is a text.
    pub fn observed(text: &str) -> Self {
        Self::result(None, Some(&text.trim().into()), None)
    }

    /// Returns reasoning that is a text.
    pub fn thinking(text: &str) -> Self {
        Self::Thought(Some(text.trim().into()))
    }

    /// Returns reasoning that is in a value: a text, parts with texts, or an object that has them.
    pub fn thought(value: &Value) -> Self {
        match value {
            Value::Object(fields) => Self::Thought(reasoning_in(fields)),
            value => Self::Thought(Some(joined_parts(
                parts_of(Some(value)).into_iter().map(Self::words),
            ))),
        }
    }

    /// Returns a part of a kind, whose fields or text are in a value. Agents write these names in several ways.
    pub fn named(kind: &str, value: &Value) -> Self {
        let known = of_kind(kind, value).or_else(|| match kind {
            "image_url" | "binary" => Some(Self::Picture("image".into())),
            kind if kind.eq_ignore_ascii_case("text") => Some(Self::Text(
                text_of_part(value)
                    .cloned()
                    .unwrap_or_else(|| value.to_json().into()),
            )),
            _ => None,
        });
        known.unwrap_or_else(|| Self::Picture(kind.to_lowercase().into()))
    }

    /// Returns the words of a part, for a text that is made of several; a picture has its kind in brackets.
    pub fn words(self) -> Text {
        match self {
            Self::Text(text) | Self::Thought(Some(text)) | Self::Other(text) => text,
            Self::Result { content, .. } => joined_parts(content.into_iter().map(Self::words)),
            Self::Call(Call { name, .. }) => bracketed(&name.unwrap_or_else(|| "call".into())),
            Self::Picture(kind) => bracketed(&kind),
            Self::Thought(None) | Self::Page(_) => Text::default(),
        }
    }
}

fn bracketed(name: &str) -> Text {
    ["[", cut(name, NAME_LENGTH), "]"].into_iter().collect()
}

/// What stands before parts in JSON in the database of Hermes.
const HERMES: &str = "\0json:";

/// Where parts have their type.
const TYPES: &[&str] = &["type", "block_type", "content_type", "kind"];

/// Returns whether parts and items of this type call a tool.
pub fn is_call(kind: &str) -> bool {
    is_one(kind, "part-call")
}

/// Returns whether they are the result of a call; Anthropic's server tools have a kind each, as `web_search_tool_result`.
fn is_result(kind: &str) -> bool {
    kind == "function_result"
        || kind.ends_with("tool_call_response")
        || kind.ends_with("tool_result")
        || kind.ends_with("_call_output")
        || kind.ends_with("_call_result")
}

/// Returns whether a value of this type is an item of a conversation.
pub fn is_item(kind: &str) -> bool {
    kind == "message" || kind == "reasoning" || is_tool(kind)
}

/// Returns whether a value of this type is a call or a result.
fn is_tool(kind: &str) -> bool {
    is_call(kind) || is_result(kind) || is_one(kind, "hosted-call")
}

/// Returns the parts of a content: a text, which may hold parts in JSON, or a list.
pub fn parts_of(content: Option<&Value>) -> Vec<Part> {
    let mut parts = Vec::new();
    match content {
        None | Some(Value::Null) => {}
        Some(Value::String(text)) => match within(text) {
            Some(list) => list.iter().for_each(|part| decode(part, &mut parts)),
            None => parts.push(Part::Text(text.clone())),
        },
        Some(Value::Array(list)) => list.iter().for_each(|part| decode(part, &mut parts)),
        Some(content) if has_list(content, "parts") => return parts_of(content.get("parts")),
        Some(content) if has_text(content, "content_type") => decode(content, &mut parts),
        Some(content) => {
            let text = text_of_part(content).cloned();
            parts.push(Part::Text(text.unwrap_or_else(|| content.to_json().into())));
        }
    }
    parts
}

/// Returns the parts that one element of a content stands for.
pub fn parts_in(element: &Value) -> Vec<Part> {
    let mut parts = Vec::new();
    decode(element, &mut parts);
    parts
}

/// Returns the parts that a text holds in JSON, as some instrumentations write them; `None` for any other text.
fn within(text: &str) -> Option<Vec<Value>> {
    if let Some(json) = text.strip_prefix(HERMES) {
        return Some(parse_str(json).ok()?.as_array()?.to_vec());
    }
    let first = text
        .trim_start()
        .strip_prefix('[')?
        .trim_start()
        .strip_prefix('{')?;
    let name = first.trim_start().strip_prefix('"')?.split_once('"')?.0;
    if !is_one(name, "part-beginning") {
        return None;
    }
    let Ok(Value::Array(parts)) = parse_str(text) else {
        return None;
    };
    are_parts(&parts).then_some(parts)
}

/// Returns whether all elements of a list are parts of a message, and it has some.
fn are_parts(list: &[Value]) -> bool {
    let is_part = |fields: &Object| {
        let is_text = matches!(fields.get("text"), Some(Value::String(_)));
        match str_of(fields.get("type")) {
            Some("text" | "input_text" | "output_text") => is_text,
            Some(kind) => is_one(kind, "part-thought") || is_tool(kind),
            None => {
                fields.len() == 1
                    && (is_text
                        || fields
                            .iter()
                            .any(|(name, value)| of_block(name, value, &mut Vec::new())))
            }
        }
    };
    !list.is_empty() && list.iter().all(|part| part.as_object().is_some_and(is_part))
}

/// Appends the parts that a value stands for.
fn decode(part: &Value, parts: &mut Vec<Part>) {
    let Some(fields) = part.as_object() else {
        let text = part.as_text().cloned().map(Part::Text);
        return parts.push(text.unwrap_or_else(|| Part::Other(part.to_json().into())));
    };
    if let Some(kind) = string_of(first_of(fields, TYPES)) {
        return of_type(fields, part, kind, parts);
    }
    if let Some(Value::String(text)) = fields.get("text") {
        return parts.push(if is_true(fields, "thought") {
            Part::Thought(Some(text.clone()))
        } else {
            Part::Text(text.clone())
        });
    }
    if fields.iter().any(|(name, value)| of_block(name, value, parts)) {
        return;
    }
    parts.push(match text_in(fields) {
        _ if is_shape(fields) => by_shape(fields, &Text::default()),
        Some(text) => Part::Text(text.clone()),
        // Reasoning may have no type.
        None if fields.contains("summary") || first_named(fields, "reasoning-field").is_some() => {
            Part::Thought(reasoning_in(fields))
        }
        None if fields.len() == 1 && first_of(fields, &["data", "url"]).is_some() => {
            Part::Picture("file".into())
        }
        None => Part::Other(part.to_json().into()),
    });
}

/// Appends the meaning of a block, which its only field names. Returns whether it has one.
fn of_block(name: &str, value: &Value, parts: &mut Vec<Part>) -> bool {
    if value.as_object().is_none() && name != "json" {
        return false;
    }
    match name {
        "json" => parts.push(text_part(value)),
        "citationsContent" | "searchResult" => {
            let inner = list_at(value, "content").iter();
            inner.for_each(|part| decode(part, parts));
        }
        "guardContent" => match value.get("text") {
            Some(text @ Value::Object(_)) => decode(text, parts),
            _ => parts.push(Part::Picture("image".into())),
        },
        "image" | "document" | "video" | "audio" => parts.push(Part::Picture(name.into())),
        "inlineData" | "fileData" | "inline_data" | "file_data" => parts.push(Part::Picture("file".into())),
        "cachePoint" | "toolAddition" | "toolRemoval" => parts.push(Part::Page(name.into())),
        name => {
            let part = of_kind(name, value);
            let is_known = part.is_some();
            parts.extend(part);
            return is_known;
        }
    }
    true
}

/// Returns what a value of a kind is, which a type or a field's name says; `None` for other kinds.
fn of_kind(kind: &str, value: &Value) -> Option<Part> {
    let get = |name| value.get(name);
    Some(match kind.replace('_', "").to_lowercase().as_str() {
        "thinking" | "think" | "thoughts" | "reasoning" | "textreasoning" | "reasoningcontent" => {
            Part::thought(first_at(value, "reasoningText content/reasoningText").unwrap_or(value))
        }
        "redactedthinking" => Part::Thought(None),
        "tooluse" | "toolcall" | "toolrequest" | "functioncall" => Part::Call(Call::of(value)),
        "toolcallresult" => {
            let id = fields_of(value, "origin").get("id");
            Part::result(id, get("result"), failure_of(value))
        }
        "toolresult" | "toolresponse" => {
            let content = first_named(value, "result-content").or_else(|| get(kind));
            let is_well = str_of(get("status")) == Some("success");
            let failed = failure_of(value)
                .filter(|failed| *failed)
                .or(is_well.then_some(false));
            Part::result(first_named(value, "call-id"), content, failed)
        }
        "functionresponse" => {
            // Tools of Google's kit say so in a field.
            let is_error =
                get("response").and_then(|response| str_of(response.get("status"))) == Some("error");
            result_part(get("id"), get("response"), is_error.then_some(true))
        }
        "executablecode" => Part::call(None, Some(&"code_execution".into()), Some(value)),
        "codeexecutionresult" => {
            let failed = str_of(get("outcome")).map(|outcome| !outcome.ends_with("OK"));
            Part::result(None, get("output"), failed)
        }
        _ => return None,
    })
}

/// Appends the parts that an object with a type stands for.
fn of_type(part: &Object, value: &Value, kind: &Text, parts: &mut Vec<Part>) {
    if is_one(kind, "part-of-page") || kind.starts_with("data-") {
        return parts.push(Part::Page(kind.clone()));
    }
    let tool = kind
        .strip_prefix("tool-")
        .or((kind == "dynamic-tool").then_some(""));
    if let Some(name) = tool.filter(|name| *name != "invocation" && has_text(part, "state")) {
        return of_tool(part, name, parts);
    }
    match kind.as_str() {
        "tool-invocation" => of_tool(fields_of(part, "toolInvocation"), "", parts),
        "tool-call" => of_item(part, kind, parts),
        "tool-result" => parts.push(of_tool_result(part)),
        "non_standard" => part
            .get("value")
            .into_iter()
            .for_each(|value| decode(value, parts)),
        kind if is_tool(kind) => of_item(part, kind, parts),
        "text" | "input_text" | "output_text" => {
            // The OpenAI Agents SDK has the reasoning of chat APIs in the part.
            let inner = [part, fields_of(part, "providerData")].into_iter();
            let mut reasoning = inner.filter_map(|inner| first_named(inner, "reasoning-field"));
            parts.extend(reasoning.next().map(Part::thought));
            parts.push(by_shape(part, kind));
        }
        _ => parts.push(of_kind(kind, value).unwrap_or_else(|| by_shape(part, kind))),
    }
}

/// Returns whether an object is a call with a name and arguments, or a result with the id of a call.
fn is_shape(part: &Object) -> bool {
    let has = |kind| first_named(part, kind).is_some();
    has_text(part, "name") && has("call-arguments") || has("result-id") && has("result-content")
}

/// Returns what a part of an unknown type is by its shape: a call with a name and arguments, a result with the id of a call, a text, a
/// file by the words of its type, or else its JSON.
fn by_shape(part: &Object, kind: &Text) -> Part {
    if let (Some(id), Some(content)) = (
        first_named(part, "result-id"),
        first_named(part, "result-content"),
    ) {
        return Part::result(Some(id), Some(content), failure_of(part));
    }
    if is_shape(part) {
        return Part::Call(Call::of(part));
    }
    let named = || string_of(part.get(kind)).filter(|_| *kind != "image");
    // The text of a blob is its bytes in Base64.
    match text_in(part).or_else(named).filter(|_| *kind != "blob") {
        Some(text) => Part::Text(text.clone()),
        None if part.len() == 1 || words("part-of-file").any(|word| kind.contains(word)) => {
            // The AI SDK makes files of pictures.
            let media = str_of(first_of(part, &["mediaType", "mimeType", "mime_type"]));
            let is_image = media.is_some_and(|media| media.starts_with("image/"));
            Part::Picture(if is_image { "image".into() } else { kind.clone() })
        }
        None => Part::Other(Value::from(part.clone()).to_json().into()),
    }
}

/// Appends a call or a result, or a call and its result, which it may have in a field.
fn of_item(item: &Object, kind: &str, parts: &mut Vec<Part>) {
    let (own, failed) = (Call::of(item), failure_of(item));
    let (id, inner) = (own.id.clone(), item.get(kind));
    if is_result(kind) {
        let content =
            first_named(item, "result-content").or_else(|| first_of(inner?, &["results"]).or(inner));
        let content = parts_of(content);
        return parts.push(Part::Result { id, content, failed });
    }
    if let Some(inner) = inner.filter(|inner| own.name.is_none() && has_text(*inner, "name")) {
        return of_item(object_of(Some(inner)), "", parts);
    }
    let is_hosted = is_one(kind, "hosted-call");
    parts.push(Part::Call(if is_hosted && kind != "mcp_call" {
        Call {
            name: kind.strip_suffix("_call").map(Text::from),
            args: fields_where(item, |name, _| !is_one(name, "hosted-call-field")),
            ..own
        }
    } else {
        // Those of a server's tool are in an object of the name of the type.
        let inner = inner.filter(|_| first_named(item, "call-arguments").is_none());
        let inner = inner.map(|inner| match inner.get("arguments") {
            None => fields_where(object_of(Some(inner)), |name, _| name != "type"),
            arguments => input_of(arguments),
        });
        let server = str_of(first_of(item, &["server_label", "server_name"]));
        // Codex has its tools in groups, one for each server.
        let group = || str_of(item.get("namespace"))?.strip_prefix("mcp__");
        Call {
            server: server.or_else(group).map(Text::from),
            args: inner.unwrap_or(own.args),
            ..own
        }
    }));
    let error = item.get("error").filter(|_| is_hosted && failed == Some(true));
    let content = first_of(item, &["output", "outputs", "results", "result"]).or(error);
    if is_given(content) {
        let content = parts_of(content);
        parts.push(Part::Result { id, content, failed });
    }
}

/// Returns whether the call failed, if the format says so; that it did not is not said of the text.
pub fn failure_of(item: &impl Fields) -> Option<bool> {
    let says_so = || {
        let status = item.field("status").and_then(Value::as_str);
        let is_failed = matches!(status, Some("failed" | "error" | "incomplete"))
            || is_truthy(first_of(item, &["error", "exception"]));
        is_failed.then_some(true)
    };
    truth_of(first_of(item, &["is_error", "isError", "tool_call_error"])).or_else(says_so)
}

/// Returns the reasoning in the fields of an object; `None` if it has none that can be read.
fn reasoning_in(item: &Object) -> Option<Text> {
    let content = item.get("content");
    let is_told = |value: &&Value| value.as_text().is_none_or(|text| !text.is_empty());
    let mut single =
        words("reasoning-text").filter_map(|name| item.get(name).filter(|value| !value.is_null()));
    let texts = [content, item.get("summary")].into_iter().flatten();
    let mut texts = texts.filter(|value| value.as_text().is_some());
    let single = single.find(is_told).or_else(|| texts.find(is_told));
    let lists = list_of(item.get("summary")).iter().chain(list_of(content));
    let mut parts = Vec::new();
    lists.for_each(|part| decode(part, &mut parts));
    parts.extend(parts_of(single));
    (!parts.is_empty()).then(|| joined_parts(parts.into_iter().map(Part::words)))
}

/// Returns what a message of a model has beside its content: reasoning before it, a refusal and calls after it. LangChain and LlamaIndex
/// have what others have in the message in a field of it.
pub fn beside(message: &Object) -> [Vec<Part>; 2] {
    let more = ["additional_kwargs", "options"].map(|name| fields_of(message, name));
    let holders = [message].into_iter().chain(more);
    // A field of it may be a blank that providers want.
    let is_told = |value: &&Value| !value.is_null() && value.as_text().is_none_or(|text| !is_blank(text));
    let mut fields = holders
        .clone()
        .flat_map(|holder| words("reasoning-field").filter_map(|name| holder.get(name)));
    let reasoning = fields.find(is_told);
    let refusal = holders
        .clone()
        .find_map(|holder| holder.get("refusal")?.as_text());
    let mut after: Vec<_> = refusal.cloned().map(Part::Text).into_iter().collect();
    // The tools of messages of a UI are in the parts, too.
    if list_of(message.get("parts")).is_empty() {
        let tools = list_of(message.get("toolInvocations")).iter();
        tools.for_each(|tool| of_tool(object_of(Some(tool)), "", &mut after));
    }
    let mut calls = holders.map(calls_beside);
    let calls = calls.find(|calls| !calls.is_empty()).unwrap_or_default();
    let mut before: Vec<_> = reasoning.map(Part::thought).into_iter().collect();
    // The words of an agent that has the results already follow them.
    let is_answered = calls.iter().any(|part| matches!(part, Part::Result { .. }));
    if is_answered { &mut before } else { &mut after }.extend(calls);
    [before, after]
}

fn calls_beside(message: &Object) -> Vec<Part> {
    // The type of a message of AgentKit says what its tools are.
    let are_calls = str_of(message.get("type")).is_some_and(is_call);
    let tools = message.get("tools").filter(|_| are_calls);
    let call = message
        .get("function_call")
        .filter(|call| call.as_object().is_some());
    let lists = words("calls-field").map(|name| message.get(name)).chain([tools]);
    let mut calls = Vec::new();
    // Data sets and databases have them as JSON in texts.
    for list in lists.filter_map(parsed) {
        let list = elements_of(Some(&list)).iter().filter(|call| !call.is_null());
        let list = list.filter_map(|call| parsed(Some(call)));
        list.for_each(|call| of_item(object_of(Some(&call)), "", &mut calls));
    }
    calls.extend(call.map(|call| Part::Call(Call::of(call))));
    calls
}

/// Appends a tool in a message of a UI, of any version, whose type may have its name: its call, and the result where it is there.
fn of_tool(part: &Object, name: &str, parts: &mut Vec<Part>) {
    let (id, call) = (part.get("toolCallId"), Call::of(part));
    let name = Some(name).filter(|name| !name.is_empty()).map(Text::from);
    parts.push(Part::Call(Call {
        name: name.or(call.name),
        ..call
    }));
    parts.push(match str_of(part.get("state")).unwrap_or_default() {
        "output-available" | "result" => of_tool_result(part),
        "output-error" => result_part(id, part.get("errorText"), Some(true)),
        "output-denied" => denied(id, fields_of(part, "approval").get("reason")),
        _ => return,
    });
}

fn of_tool_result(part: &Object) -> Part {
    let id = part.get("toolCallId");
    match first_of(part, &["result"]) {
        None => of_output(id, part.get("output")),
        result => result_part(id, result, is_true(part, "isError").then_some(true)),
    }
}

/// Returns the result whose output is a value, or one that the AI SDK has with its type.
fn of_output(id: Option<&Value>, output: Option<&Value>) -> Part {
    let typed = object_of(output);
    let value = typed.get("value");
    match str_of(typed.get("type")) {
        Some("execution-denied") => denied(id, typed.get("reason")),
        Some("error-text" | "error-json") => result_part(id, value, Some(true)),
        Some("content") => Part::result(id, value, None),
        Some("text" | "json") if value.is_some() => result_part(id, value, None),
        _ => result_part(id, output, None),
    }
}

/// Returns the result of a call that the user has not allowed.
fn denied(id: Option<&Value>, reason: Option<&Value>) -> Part {
    let texts = [Text::from("denied by the user")].into_iter();
    let text = joined(texts.chain(string_of(reason).cloned()), ": ");
    Part::result(id, Some(&text.into()), Some(false))
}

/// Returns a result whose value is a text, a list of parts, or something else, which is a text in JSON.
fn result_part(id: Option<&Value>, value: Option<&Value>, failed: Option<bool>) -> Part {
    Part::Result {
        id: id_of(id),
        content: match value {
            Some(Value::Array(list)) if !are_parts(list) => value.map(text_part).into_iter().collect(),
            Some(Value::String(_) | Value::Array(_)) => parts_of(value),
            value => value.map(text_part).into_iter().collect(),
        },
        failed,
    }
}

fn text_part(value: &Value) -> Part {
    Part::Text(json_of(value).into_owned())
}
