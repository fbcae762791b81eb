//! Platforms whose spans are records: traces of MLflow, calls of Weave, spans of Braintrust, rows of Logfire. A table says for each where
//! things are.

use std::borrow::Cow;

use knowledgepulse_json::{Object, Text, Value};

use crate::{
    FormatName, Wrong,
    otel::{Translate, told::Told},
    values::{elements_of, is_given, is_truthy, list_of, object_of, spelled, str_of, string_of},
};

/// Where a value is: the names of fields, one within the other; the first path that leads to a value counts.
type Paths = &'static [&'static [&'static str]];

/// Where a platform has what a span is made of.
pub struct Platform {
    /// The format of its records.
    pub format: FormatName,
    /// Returns the spans of a record.
    pub translate: Translate,
    /// Fields that each of its spans has.
    marks: &'static [&'static str],
    /// The list of spans in a record; empty where a record is a span.
    spans: &'static [&'static str],
    trace: Paths,
    id: Paths,
    parent: Paths,
    times: [Paths; 2],
    name: Paths,
    kind: Paths,
    sides: [Paths; 2],
    error: Paths,
    model: Paths,
    scores: Paths,
    /// Attributes of OpenTelemetry.
    attributes: Paths,
}

/// The platforms.
#[rustfmt::skip]
pub static PLATFORMS: [Platform; 4] = [
    Platform {
        format: FormatName::Mlflow, translate: |value| PLATFORMS[0].spans(value),
        marks: &["attributes", "name"], spans: &["data", "spans"],
        trace: &[&["trace_id"], &["context", "trace_id"]], id: &[&["span_id"], &["context", "span_id"]], parent: &[&["parent_span_id"], &["parent_id"]],
        times: [&[&["start_time_unix_nano"], &["start_time"]], &[&["end_time_unix_nano"], &["end_time"]]],
        name: &[&["name"]], kind: &[&["attributes", "mlflow.spanType"]],
        sides: [&[&["attributes", "mlflow.spanInputs"]], &[&["attributes", "mlflow.spanOutputs"]]],
        error: &[&["status", "message"], &["status_message"]], model: &[&["attributes", "mlflow.llm.model"]], scores: &[], attributes: &[],
    },
    Platform {
        format: FormatName::Weave, translate: |value| PLATFORMS[1].spans(value),
        marks: &["op_name", "trace_id", "inputs"], spans: &[],
        trace: &[&["trace_id"]], id: &[&["id"]], parent: &[&["parent_id"]],
        times: [&[&["started_at"]], &[&["ended_at"]]],
        name: &[&["op_name"]], kind: &[&["attributes", "kind"], &["attributes", "weave", "kind"], &["op_name"]],
        sides: [&[&["inputs"]], &[&["output"]]],
        error: &[&["exception"]], model: &[&["inputs", "model"]], scores: &[], attributes: &[],
    },
    Platform {
        format: FormatName::Braintrust, translate: |value| PLATFORMS[2].spans(value),
        marks: &["span_id", "root_span_id", "span_attributes"], spans: &[],
        trace: &[&["root_span_id"]], id: &[&["span_id"]], parent: &[&["span_parents"]],
        times: [&[&["metrics", "start"], &["created"]], &[&["metrics", "end"]]],
        name: &[&["span_attributes", "name"]], kind: &[&["span_attributes", "type"]],
        sides: [&[&["input"]], &[&["output"]]],
        error: &[&["error"]], model: &[&["metadata", "model"]], scores: &[&["scores"]], attributes: &[],
    },
    Platform {
        format: FormatName::Logfire, translate: |value| PLATFORMS[3].spans(value),
        marks: &["trace_id", "span_id", "span_name", "start_timestamp"], spans: &[],
        trace: &[&["trace_id"]], id: &[&["span_id"]], parent: &[&["parent_span_id"]],
        times: [&[&["start_timestamp"]], &[&["end_timestamp"]]],
        name: &[&["span_name"]], kind: &[], sides: [&[], &[]],
        error: &[&["exception_message"]], model: &[], scores: &[], attributes: &[&["attributes"]],
    },
];

/// Parts of the names of functions that call a model.
const OF_MODELS: [&str; 6] = [
    "chat.completions",
    "messages.create",
    "responses.create",
    "generate_content",
    "chatcompletion",
    "litellm",
];

/// Names that Pydantic AI gave attributes before there were others.
const RENAMED: [(&str, &str); 2] = [
    ("tool_arguments", "gen_ai.tool.call.arguments"),
    ("tool_response", "gen_ai.tool.call.result"),
];

impl Platform {
    /// Returns the platform of a format.
    #[must_use]
    pub fn of(format: FormatName) -> Option<&'static Self> {
        PLATFORMS.iter().find(|platform| platform.format == format)
    }

    fn spans_in<'v>(&self, value: &'v Value) -> &'v [Value] {
        if self.spans.is_empty() {
            return std::slice::from_ref(value);
        }
        list_of(self.spans.iter().try_fold(value, |value, name| value.get(name)))
    }

    /// Returns whether a record is of this platform.
    #[must_use]
    pub fn recognises(&self, value: &Value) -> bool {
        let has_all = |span: &Value| self.marks.iter().all(|name| span.get(name).is_some());
        self.spans_in(value).first().is_some_and(has_all)
    }

    fn spans(&self, value: &Value) -> Result<Vec<Told<'static>>, Wrong> {
        self.spans_in(value)
            .iter()
            .map(|span| self.span_of(span))
            .collect()
    }

    fn span_of(&self, span: &Value) -> Result<Told<'static>, Wrong> {
        let trace = at(span, self.trace).ok_or_else(|| Wrong::new("a span has no trace"))?;
        let parent = at(span, self.parent);
        let parent = elements_of(parent.as_deref()).first();
        let id = at(span, self.id);
        let mut told = Told::new(spelled(&trace), id.as_deref(), parent);
        let [start, end] = self.times.map(|paths| at(span, paths));
        told.times(start.as_deref(), end.as_deref());
        if let Some(error) = at(span, self.error).filter(|error| is_truthy(Some(error))) {
            told.status(false, Some(&error));
        }
        let name = at(span, self.name).map(|name| short(&name));
        if let Some(attributes) = at(span, self.attributes) {
            add_attributes(&mut told, object_of(Some(&attributes)));
        } else {
            let kind = at(span, self.kind).map_or("CHAIN", |kind| kind_of(&kind));
            let [input, output] = self.sides.map(|paths| at(span, paths));
            let output = output.map(|output| reply_in(output));
            told.run(
                kind,
                [name.as_ref(), input.as_deref(), output.as_deref()],
                parent.is_none(),
            );
            told.attribute("llm.model_name", at(span, self.model).as_deref());
        }
        for (name, score) in object_of(at(span, self.scores).as_deref()) {
            told.about.score(Some(&name.clone().into()), Some(score));
        }
        Ok(told)
    }
}

/// Returns the value at the first path that leads to one. JSON in a text is parsed.
fn at<'v>(span: &'v Value, paths: Paths) -> Option<Cow<'v, Value>> {
    let mut values = paths
        .iter()
        .map(|path| path.iter().try_fold(span, |value, name| value.get(name)));
    let value = values.find(|value| is_given(*value))??;
    let json = value.as_text().filter(|text| {
        text.as_bytes().starts_with(b"{")
            || text.as_bytes().starts_with(b"[")
            || text.as_bytes().starts_with(b"\"")
    });
    let parsed = json.and_then(|json| json.parse().ok());
    Some(parsed.map_or(Cow::Borrowed(value), Cow::Owned))
}

/// Returns the name of a function of Weave, without its place and its version: `weave:///team/project/op/NAME:VERSION`.
fn short(name: &Value) -> Value {
    let text = str_of(Some(name)).and_then(|name| name.rsplit_once("/op/"));
    let text = text.map(|(_, name)| name.split_once(':').map_or(name, |(name, _)| name));
    text.map_or_else(|| name.clone(), Value::from)
}

/// Returns the kind of a span in OpenInference.
fn kind_of(kind: &Value) -> &'static str {
    let kind = str_of(Some(kind)).unwrap_or_default().to_lowercase();
    match kind.as_str() {
        "llm" | "chat_model" | "generation" => "LLM",
        "tool" => "TOOL",
        "retriever" => "RETRIEVER",
        "embedding" => "EMBEDDING",
        kind if OF_MODELS.iter().any(|part| kind.contains(part)) => "LLM",
        _ => "CHAIN",
    }
}

/// Returns the message in a list of choices.
fn reply_in(output: Cow<Value>) -> Cow<Value> {
    let message = list_of(Some(&output))
        .first()
        .and_then(|choice| choice.get("message"))
        .cloned();
    message.map_or(output, Cow::Owned)
}

/// Adds the attributes of a row. Pydantic AI has the messages in lists of events in its older versions.
fn add_attributes(told: &mut Told<'static>, attributes: &Object) {
    if attributes.contains("gen_ai.tool.name") {
        told.attribute("openinference.span.kind", Some(&"TOOL".into()));
    }
    for (name, value) in attributes {
        let renamed = RENAMED.iter().find(|(old, _)| *name == **old);
        match renamed {
            Some((_, new)) => told.attribute(*new, Some(value)),
            None if *name == "events" => add_events(told, value),
            None => told.attribute(name.clone(), Some(value)),
        }
    }
}

fn add_events(told: &mut Told<'static>, events: &Value) {
    let parsed = events.as_text().and_then(|text: &Text| text.parse().ok());
    let (mut given, mut said) = (Vec::new(), Vec::new());
    for event in list_of(parsed.as_ref().or(Some(events))) {
        let mut fields = object_of(Some(event)).clone();
        fields.remove("event.name");
        match fields
            .get("message")
            .filter(|message| string_of(message.get("role")).is_some())
        {
            Some(message) => said.push(message.clone()),
            None => given.push(fields.into()),
        }
    }
    told.attribute("gen_ai.input.messages", Some(&given.into()));
    told.attribute("gen_ai.output.messages", Some(&said.into()));
}
