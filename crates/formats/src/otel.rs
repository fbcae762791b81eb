//! Spans of OpenTelemetry in OTLP JSON, as the Collector's file exporter and Grafana Tempo write them, with the attributes of the GenAI
//! conventions (https://opentelemetry.io/docs/specs/semconv/gen-ai/), of OpenInference
//! (https://arize-ai.github.io/openinference/spec/) or of Vercel's AI SDK (https://ai-sdk.dev/docs/ai-sdk-core/telemetry).

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

use knowledgepulse_json::{Object, Text, Value, object};

mod attributes;
pub mod said;
pub mod told;

use crate::{
    Entry, FormatName, FormatReader, Found, Place, Wrong,
    conversation::{Conversation, ListId, ToolSpan},
    date,
    open_traces::OpenTraces,
    parts::some_object,
    trace::{Call, Sink, TraceBuilder, fields_of},
    values::{first_of, list_of, object_of, spelled, str_of, string_of},
};
use attributes::{Attributes, parsed, scopes_of, time_of};
use said::{INPUTS, MessageList, Messages, Said, messages_in, said_in};
use told::{About, Told, text_within};

/// The fields of a span that are kept until its trace is complete.
struct Span {
    id: Option<Text>,
    parent: Option<Text>,
    /// In nanoseconds.
    start: i128,
    /// 0 if it is not known, or before the start.
    end: i128,
    /// Whether it is of an agent or a model by its attributes, not of any other program.
    is_of_agent: bool,
    /// Whether it succeeded, if it says so.
    is_ok: Option<bool>,
    model: Option<Value>,
    agent: Option<Text>,
    /// If it is the span of a tool.
    tool: Option<ToolSpan>,
    said: Said,
    /// Whether the span is the AI SDK's wrapper around its calls of a model.
    is_outer: bool,
    /// Whether it is a record of a log, which has what was said in the span of its id.
    is_log: bool,
    /// Input and output that are read where no span of the trace has messages.
    values: Option<[Option<Value>; 2]>,
}

/// A trace whose spans are still coming.
#[derive(Default)]
struct OpenTrace {
    id: Text,
    place: Place,
    spans: Vec<Span>,
    /// The model's input in the last span, if it was JSON.
    given: Option<MessageList>,
    about: About,
}

/// Returns the spans of all resources in a record: of OTLP, of Grafana Tempo (`batches`, or a `trace` in version 2 of its
/// API), of Jaeger's API (`result`), or in `data`.
fn resources_of(value: &Value) -> Option<&[Value]> {
    let record = value.as_object()?;
    let inner = ["trace", "result", "data"].map(|name| fields_of(record, name));
    [record].into_iter().chain(inner).find_map(|holder| {
        if let Some(Value::Array(resources)) = holder.get("resourceSpans") {
            return Some(&resources[..]);
        }
        let batches = list_of(holder.get("batches"));
        let has_scopes = |batch: &Value| scopes_of(object_of(Some(batch))).is_some();
        batches.iter().any(has_scopes).then_some(batches)
    })
}

/// Returns the records of logs of all resources in a record.
fn logs_of(value: &Value) -> Option<&[Value]> {
    value.get("resourceLogs")?.as_array()
}

/// Returns whether a record is of this format.
pub fn recognises(value: &Value) -> bool {
    resources_of(value).is_some() || logs_of(value).is_some()
}

/// The spans of a record.
pub type Translate = fn(&Value) -> Result<Vec<Told<'_>>, Wrong>;

/// Reads the spans of an input, or of another format that is converted to spans.
pub struct Reader {
    format: FormatName,
    translate: Translate,
    open: OpenTraces<OpenTrace>,
}

impl Reader {
    /// Reads one input.
    pub fn new(format: FormatName, translate: Translate) -> Self {
        Self {
            format,
            translate,
            open: OpenTraces::default(),
        }
    }

    /// Adds a span to its trace.
    fn add(&mut self, told: Told, entry: &Entry, size: u64) -> Result<(), Wrong> {
        let Told {
            span,
            attributes,
            about,
            is_log,
        } = told;
        let id = trace_id_of(span.get("traceId")).ok_or_else(|| Wrong::new("a span has no traceId"))?;
        let before = self.open.get(&id).and_then(|trace| trace.given.as_ref());
        let (mut span, given) = read(&span, &attributes, before)?;
        span.is_log = is_log;
        let trace = self.open.add(&id, size, || OpenTrace {
            id: id.clone(),
            place: Place {
                size: 0,
                ..entry.place
            },
            ..OpenTrace::default()
        })?;
        trace.place.size += size;
        let all = &mut trace.about;
        all.framework = all.framework.take().or(about.framework);
        all.reward = all.reward.take().or(about.reward);
        all.details.extend(about.details);
        if given.is_some() {
            trace.given = given;
        }
        trace.spans.push(span);
        Ok(())
    }

    fn complete(&self, traces: Vec<OpenTrace>, found: &mut Vec<Found>) {
        let format = self.format;
        let build = |trace| Found::later(move || Ok(assemble(format, trace)));
        found.extend(traces.into_iter().map(build));
    }
}

impl FormatReader for Reader {
    fn read(&mut self, entry: &Entry, found: &mut Vec<Found>) -> Result<(), Wrong> {
        let spans = (self.translate)(entry.value)?;
        // Of each span its share.
        let size = entry.place.size.div_ceil(spans.len().max(1) as u64);
        // The first problem; the other spans are read.
        let mut outcome = Ok(());
        for told in spans {
            let added = self.add(told, entry, size);
            outcome = outcome.and(added);
        }
        let traces = self.open.overflow();
        self.complete(traces, found);
        outcome
    }

    fn end(&mut self, found: &mut Vec<Found>) {
        let traces = self.open.take_all();
        self.complete(traces, found);
    }
}

/// Returns the spans of a record of OTLP, each with the name of its service; records of logs as spans with an event.
pub fn spans(value: &Value) -> Result<Vec<Told<'_>>, Wrong> {
    let (spans, logs) = (resources_of(value), logs_of(value));
    if spans.is_none() && logs.is_none() {
        return Err(Wrong::new(
            "it has no resourceSpans, no resourceLogs and no batches",
        ));
    }
    let mut found = Vec::new();
    let resources = [spans, logs].into_iter().flatten().flatten();
    for resource in resources.map(|resource| object_of(Some(resource))) {
        let attributes = Attributes::of(fields_of(resource, "resource").get("attributes"))?;
        let service = string_of(attributes.get("service.name"));
        let mut add = |span, is_log| {
            found.push(Told {
                span,
                attributes: Vec::new(),
                about: About {
                    framework: service.cloned(),
                    ..About::default()
                },
                is_log,
            });
        };
        for scope in list_of(scopes_of(resource)) {
            for span in list_of(scope.get("spans")) {
                add(Cow::Borrowed(object_of(Some(span))), false);
            }
        }
        for scope in list_of(resource.get("scopeLogs")) {
            let records = list_of(scope.get("logRecords")).iter();
            for span in records.filter_map(|record| span_of_log(object_of(Some(record)))) {
                add(Cow::Owned(span), true);
            }
        }
    }
    if found.is_empty() && logs.is_some() {
        return Err(Wrong::new(
            "no record of its resourceLogs is of a model or an agent",
        ));
    }
    Ok(found)
}

/// Returns the span that a record of a log stands for; `None` for one of another program, or of no trace.
fn span_of_log(record: &Object) -> Option<Object> {
    let attributes = list_of(record.get("attributes"));
    let named = |name| {
        let is_it = |each: &&Value| str_of(each.get("key")) == Some(name);
        str_of(attributes.iter().find(is_it)?.get("value")?.get("stringValue"))
    };
    let name = str_of(record.get("eventName")).or_else(|| named("event.name"))?;
    if !name.starts_with("gen_ai.") || string_of(record.get("traceId")).is_none() {
        return None;
    }
    let body = object([
        ("key", "gen_ai.event.content".into()),
        ("value", record.get("body").cloned().unwrap_or_default()),
    ]);
    let all: Vec<Value> = attributes.iter().cloned().chain([body]).collect();
    let event = object([("name", name.into()), ("attributes", all.into())]);
    let time = record.get("timeUnixNano").or(record.get("observedTimeUnixNano"));
    let span = some_object([
        ("traceId", record.get("traceId").cloned()),
        ("spanId", record.get("spanId").cloned()),
        ("startTimeUnixNano", time.cloned()),
        ("endTimeUnixNano", time.cloned()),
        ("attributes", record.get("attributes").cloned()),
        ("events", Some(vec![event].into())),
    ]);
    span.as_object().cloned()
}

/// Moves what records of logs say into the spans that they name.
fn move_logs(spans: &mut Vec<Span>) {
    if !spans.iter().any(|span| span.is_log) {
        return;
    }
    // The spans first, so that they are found by their ids.
    spans.sort_by_key(|span| span.is_log);
    let mut places: HashMap<Text, usize> = HashMap::new();
    let mut kept: Vec<Span> = Vec::with_capacity(spans.len());
    // Some write what was said in both signals.
    let is_told: HashSet<Text> = spans
        .iter()
        .filter(|span| !span.is_log && !span.said.is_empty())
        .filter_map(|span| span.id.clone())
        .collect();
    for mut span in spans.drain(..) {
        if span.is_log && span.id.as_ref().is_some_and(|id| is_told.contains(id)) {
            continue;
        }
        let at = span.id.clone().map(|id| *places.entry(id).or_insert(kept.len()));
        match at.and_then(|at| kept.get_mut(at)) {
            Some(other) if span.is_log => {
                other.said.input.append(&mut span.said.input);
                other.said.output.append(&mut span.said.output);
                other.is_of_agent |= span.is_of_agent;
                other.start = other.start.min(span.start);
                other.end = other.end.max(span.end);
            }
            _ => kept.push(span),
        }
    }
    *spans = kept;
}

/// Returns the id of a trace, in the hexadecimal digits of OTLP JSON where it has the length of one; Tempo writes it in
/// base64.
fn trace_id_of(id: Option<&Value>) -> Option<Text> {
    let text = string_of(id)?;
    let Some(id) = text.as_str() else {
        return Some(text.clone());
    };
    if let Some(digits) = id.strip_suffix("==").filter(|digits| digits.len() == 22)
        && let Some(hex) = hex_of_base64(digits.as_bytes())
    {
        return Some(hex.into());
    }
    Some(if text.len_units() == 32 {
        id.to_lowercase().into()
    } else {
        text.clone()
    })
}

/// Returns the 16 bytes of 22 digits of base64, in hexadecimal.
fn hex_of_base64(digits: &[u8]) -> Option<String> {
    let mut number = 0_u128;
    for (at, digit) in digits.iter().enumerate() {
        let bits = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        // The last digit has two bits of the id.
        let bits = u128::from(bits);
        number = if at == 21 {
            number << 2 | bits >> 4
        } else {
            number << 6 | bits
        };
    }
    Some(format!("{number:032x}"))
}

/// Reads a span with attributes beside its own. Also returns the model's input, if it was JSON. `before` is the input in an
/// earlier span of the trace.
fn read(
    span: &Object,
    attributes: &[(Text, Value)],
    before: Option<&MessageList>,
) -> Result<(Span, Option<MessageList>), Wrong> {
    let all = Attributes::of(span.get("attributes"))?.with(attributes);
    let mut lists = [None, None];
    let mut given: Option<MessageList> = None;
    for (name, list) in INPUTS.iter().zip(&mut lists) {
        *list = MessageList::read(all.get(name), given.as_ref().or(before));
        if given.is_none() {
            given.clone_from(list);
        }
    }
    let start = time_of(span.get("startTimeUnixNano"));
    let end = time_of(span.get("endTimeUnixNano"));
    let status = fields_of(span, "status");
    let is_ok = success_of(status.get("code"));
    #[allow(clippy::cast_precision_loss)] // As JavaScript's `Number` does.
    let milliseconds = (end >= start && start > 0).then(|| (end - start) as f64 / 1e6);
    let tool = is_tool(&all).then(|| ToolSpan {
        milliseconds,
        ..tool_of(&all, is_ok, string_of(status.get("message")), span.get("events"))
    });
    let said = match tool {
        Some(_) => Said::default(),
        None => said_in(&all, &lists, span.get("events"))?,
    };
    let values = ["input", "output"].map(|side| {
        let entity = || {
            Some(text_within(&entity_in(
                all.get(&format!("traceloop.entity.{side}")),
            )?))
        };
        all.get(&format!("{side}.value")).cloned().or_else(entity)
    });
    let is_silent = tool.is_none() && said.is_empty() && values[0].is_some();
    let models = [
        "gen_ai.response.model",
        "gen_ai.request.model",
        "llm.model_name",
        "ai.model.id",
    ];
    let agents = ["gen_ai.agent.name", "ai.telemetry.functionId"];
    let span = Span {
        id: string_of(span.get("spanId")).cloned(),
        parent: string_of(span.get("parentSpanId")).cloned(),
        start,
        end,
        is_of_agent: is_of_agent(&all),
        is_ok,
        model: all.first_given(&models).cloned(),
        agent: agents.iter().find_map(|name| string_of(all.get(name))).cloned(),
        tool,
        said,
        is_outer: all.has("ai.prompt"),
        is_log: false,
        values: is_silent.then_some(values),
    };
    Ok((span, given))
}

/// Returns whether a span is of an agent or a model, and of a conversation: embeddings and searches are not.
fn is_of_agent(attributes: &Attributes) -> bool {
    let kinds = [
        "gen_ai.operation.name",
        "openinference.span.kind",
        "ai.operationId",
    ];
    let is_search = |name: &&str| {
        let kind = attributes.get(name).map(spelled);
        match kind.as_ref().and_then(Text::as_str) {
            Some("embeddings" | "EMBEDDING" | "RETRIEVER" | "RERANKER") => true,
            Some(kind) => {
                let is_one_line = !kind.contains(['\n', '\r', '\u{2028}', '\u{2029}']);
                is_one_line && (kind.starts_with("ai.embed") || kind.starts_with("ai.rerank"))
            }
            None => false,
        }
    };
    !kinds.iter().any(is_search) && attributes.names().any(is_name_of_agents)
}

/// Returns whether an attribute is one of agents and models, by the beginning of its name.
fn is_name_of_agents(name: &[u8]) -> bool {
    let beginning = name.iter().position(|&byte| byte == b'.').map(|dot| &name[..dot]);
    let beginning = beginning.and_then(|beginning| std::str::from_utf8(beginning).ok());
    let is_beginning = matches!(
        beginning,
        Some("gen_ai" | "llm" | "ai" | "openinference" | "traceloop" | "langfuse" | "langsmith" | "mlflow")
    );
    is_beginning || name == b"input.value" || name == b"output.value"
}

/// Returns the success by the code of a status.
fn success_of(code: Option<&Value>) -> Option<bool> {
    match (code?.as_number(), code?.as_str()) {
        (Some(1.0), _) | (_, Some("STATUS_CODE_OK")) => Some(true),
        (Some(2.0), _) | (_, Some("STATUS_CODE_ERROR")) => Some(false),
        _ => None,
    }
}

fn is_tool(attributes: &Attributes) -> bool {
    str_of(attributes.get("gen_ai.operation.name")) == Some("execute_tool")
        || str_of(attributes.get("openinference.span.kind")) == Some("TOOL")
        || str_of(attributes.get("traceloop.span.kind")) == Some("tool")
        || attributes.has("ai.toolCall.name")
}

/// Returns what Traceloop has of a function's input or output, in JSON of its own around it.
fn entity_in(value: Option<&Value>) -> Option<Value> {
    let parsed = parsed(value)?;
    let fields = object_of(Some(&parsed));
    let inner = first_of(fields, &["kwargs", "inputs", "input_str", "outputs", "output"]);
    Some(inner.unwrap_or(&parsed).clone())
}

fn tool_of(
    attributes: &Attributes,
    is_ok: Option<bool>,
    message: Option<&Text>,
    events: Option<&Value>,
) -> ToolSpan {
    let [entity_args, entity_content] = ["input", "output"].map(|side| {
        let value = attributes.get(&format!("traceloop.entity.{side}"));
        entity_in(value)
    });
    let name = attributes.first(&[
        "gen_ai.tool.name",
        "ai.toolCall.name",
        "tool.name",
        "traceloop.entity.name",
    ]);
    let id = attributes.first(&["gen_ai.tool.call.id", "ai.toolCall.id", "tool_call.id"]);
    let content = attributes.first(&["gen_ai.tool.call.result", "ai.toolCall.result", "output.value"]);
    let failed = is_ok.map(|is_ok| !is_ok);
    let failure = || message.cloned().unwrap_or_else(|| "error".into()).into();
    // OpenInference has the tool's parameters in `tool.parameters`, and its input in `input.value`.
    let args = attributes.first(&[
        "gen_ai.tool.call.arguments",
        "ai.toolCall.args",
        "input.value",
        "tool.parameters",
    ]);
    // Strands has both in events.
    let told = |event: &str, name: &str| {
        let is_it = |each: &&Value| str_of(each.get("name")) == Some(event);
        let event = list_of(events).iter().find(is_it)?;
        let attributes = Attributes::of(event.get("attributes")).ok()?;
        attributes.get(name).cloned()
    };
    let told_args = args
        .is_none()
        .then(|| told("gen_ai.tool.message", "content"))
        .flatten();
    let told_content = content
        .is_none()
        .then(|| told("gen_ai.choice", "message"))
        .flatten();
    let content = content.or(told_content.as_ref()).or(entity_content.as_ref());
    let args = args.or(entity_args.as_ref());
    ToolSpan {
        call: Call {
            id: string_of(id).cloned(),
            ..Call::new(None, name, args.or(told_args.as_ref()))
        },
        is_named: name.is_some(),
        content: content
            .map(text_in)
            .or_else(|| (failed == Some(true)).then(failure)),
        failed,
        milliseconds: None,
    }
}

/// Returns the text in a string of JSON, or the value that is something else.
fn text_in(value: &Value) -> Value {
    let quoted = value.as_text().filter(|text| text.as_bytes().starts_with(b"\""));
    match quoted.map(Text::parse) {
        Some(Ok(text @ Value::String(_))) => text,
        _ => value.clone(),
    }
}

/// When a span adds something to the conversation: first a tool's call or a model's input, then the result or the output.
struct Act {
    at: i128,
    is_end: bool,
    span: usize,
    is_first: bool,
    /// Whether the output repeats some of the messages within its span.
    repeats: bool,
}

/// The end of a span that is around all others, or around others with its own end not known.
const LATEST: i128 = 1 << 64;

fn assemble(format: FormatName, trace: OpenTrace) -> TraceBuilder {
    let mut spans = trace.spans;
    let entry = Entry {
        value: &Value::Null,
        place: trace.place,
    };
    let mut builder = TraceBuilder::new(format, &entry);
    builder.ids = vec![trace.id.clone()];
    builder.framework = trace.about.framework;
    builder.details.insert("trace_id", trace.id);
    move_logs(&mut spans);
    builder.details.insert("spans", spans.len() as f64);
    builder.details.extend(trace.about.details);
    builder.is_conversation = spans.iter().any(|span| span.is_of_agent);
    spans.sort_by_key(|span| span.start);
    if let Some(first) = spans.first().filter(|first| first.start > 0) {
        builder.created_at = date::from_number((first.start / 1_000_000) as f64).map(date::to_iso);
    }
    keep_outermost(format, &mut spans, &mut builder);
    let has_messages = spans.iter().any(|span| !span.said.is_empty());
    if !has_messages {
        read_outer_values(&mut spans);
    }
    let around_tools = spans_around(&spans, |span| span.tool.is_some());
    let around_messages = spans_around(&spans, |span| !span.said.is_empty());
    let is_in = |ids: &HashSet<Text>, id: &Option<Text>| id.as_ref().is_some_and(|id| ids.contains(id));
    let mut acts = Vec::new();
    for (at, span) in spans.iter_mut().enumerate() {
        if builder.agent_id.is_none() {
            builder.agent_id = span.agent.take();
        }
        if !builder.details.contains("model") {
            builder.keep("model", span.model.as_ref());
        }
        // A run that has ended well may not have done its task.
        if span.parent.is_none() && span.is_ok == Some(false) {
            builder.success = Some(false);
        }
        let repeats = is_in(&around_messages, &span.id) || span.end == LATEST;
        let is_around = repeats || is_in(&around_tools, &span.id);
        match &span.tool {
            Some(tool) if has_messages && !tool.is_named => builder.leave_out("tool span without a name"),
            Some(_) => acts.extend(acts_of(at, span, is_around, repeats)),
            None if span.said.is_empty() => builder.leave_out("span without messages"),
            None => {
                // The AI SDK puts the texts of all calls together in the span around them.
                if span.is_outer && repeats {
                    span.said.output = Vec::new();
                }
                // Only items within the span come between a model's input and its output.
                if !is_around {
                    span.end = span.start;
                }
                acts.extend(acts_of(at, span, is_around, repeats));
            }
        }
    }
    // A span that begins when another ends comes after it.
    acts.sort_by_key(|act| (act.at, !act.is_end));
    converse(&spans, acts).tell(&mut builder);
    builder.reward(trace.about.reward.as_ref());
    builder
}

/// Leaves out all spans but the outermost if that one has the whole conversation, as the state of a graph: the spans within
/// repeat it, or belong to sub-agents.
fn keep_outermost(format: FormatName, spans: &mut Vec<Span>, builder: &mut TraceBuilder) {
    if matches!(
        format,
        FormatName::Otel | FormatName::Phoenix | FormatName::Logfire
    ) {
        return;
    }
    let is_outer = |span: &Span| span.parent.is_none() && span.said.output.len() > 1;
    let Some(outer) = spans.iter().position(is_outer) else {
        return;
    };
    if builder.details.get("model").is_none() {
        let model = spans.iter().find_map(|span| span.model.as_ref());
        builder.keep("model", model);
    }
    builder.leave_out_times("span within the conversation", spans.len() as u64 - 1);
    *spans = vec![spans.swap_remove(outer)];
}

/// Returns the acts of a span: one at its start, and one at its end if that is known or the span has others within it.
fn acts_of(at: usize, span: &Span, is_around: bool, repeats: bool) -> [Act; 2] {
    let is_later = span.end > span.start;
    let last = match (is_later, is_around) {
        (true, _) => span.end,
        (false, true) => LATEST,
        (false, false) => span.start,
    };
    let first = Act {
        at: span.start,
        is_end: false,
        span: at,
        is_first: true,
        repeats,
    };
    let last = Act {
        at: last,
        is_end: is_around || is_later,
        is_first: false,
        ..first
    };
    [first, last]
}

/// Carries the acts out. Where there are spans of tools within that of a model, the model has returned after them; where there are
/// messages in them, as within the span of an agent, its output repeats some of these.
fn converse(spans: &[Span], acts: Vec<Act>) -> Conversation {
    let mut conversation = Conversation::default();
    let mut calls: HashMap<usize, usize> = HashMap::new();
    let mut lists: HashMap<usize, ListId> = HashMap::new();
    for act in acts {
        let span = &spans[act.span];
        match (&span.tool, act.is_first) {
            (Some(tool), true) => {
                calls.insert(act.span, conversation.add_call(tool));
            }
            (Some(tool), false) => {
                if let Some(call) = calls.remove(&act.span) {
                    conversation.add_result(call, tool);
                }
            }
            (None, true) => {
                lists.insert(act.span, conversation.add(&span.said.input, None));
            }
            (None, false) => {
                let list = lists.remove(&act.span);
                let new = conversation.add(&span.said.output, list.filter(|_| !act.repeats));
                for list in list.into_iter().chain([new]) {
                    conversation.end(list);
                }
            }
        }
    }
    conversation
}

/// Reads the values of the first span that has any. Where no span has messages, it is around the others.
fn read_outer_values(spans: &mut [Span]) {
    let outer = spans.iter_mut().find(|span| span.values.is_some());
    let Some(Span {
        values: Some([input, output]),
        said,
        end,
        ..
    }) = outer
    else {
        return;
    };
    let messages = |value: &Option<Value>, role| -> Messages {
        let messages = messages_in(value.as_ref(), role);
        messages.into_iter().map(Into::into).collect()
    };
    said.input = messages(input, "user");
    said.output = messages(output, "assistant");
    *end = LATEST;
}

/// Returns the ids of the spans around spans for which a condition holds.
fn spans_around(spans: &[Span], holds: impl Fn(&Span) -> bool) -> HashSet<Text> {
    let ids = spans
        .iter()
        .filter_map(|span| Some((span.id.as_ref()?, span.parent.as_ref())));
    let parents: HashMap<&Text, Option<&Text>> = ids.collect();
    let mut around = HashSet::new();
    for span in spans.iter().filter(|span| holds(span)) {
        let mut next = span.parent.as_ref();
        while let Some(id) = next.filter(|id| !around.contains(*id)) {
            around.insert(id.clone());
            next = parents.get(id).copied().flatten();
        }
    }
    around
}
