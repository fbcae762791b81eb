//! Platforms whose spans are records: rows and replies of Phoenix, runs of LangSmith, observations of Langfuse, traces of MLflow, calls of
//! Weave, spans of Braintrust, rows of Logfire. A table says for each where things are; `spans` reads the attributes of OpenInference that
//! they become. Seven platforms take more than 120 lines.

use std::borrow::Cow;

use crate::{
    date, langchain,
    prelude::*,
    spans::said::{messages_within, parsed, text_within},
};

/// Where a value is: names of fields, one within the other, with `/` between them. Of several, apart by spaces, the first that leads to a
/// value counts.
type Paths = &'static str;

/// Where a platform has what a span is made of.
pub struct Platform {
    /// Where each of its spans has something.
    marks: &'static [Paths],
    /// The kinds that each of its spans has one of, apart by spaces; empty if they may have any.
    kinds: Paths,
    /// Where a record may have a list of spans, if it is none.
    lists: Paths,
    /// Where a span may have spans within it.
    children: Paths,
    trace: Paths,
    id: Paths,
    parent: Paths,
    times: [Paths; 2],
    name: Paths,
    kind: Paths,
    sides: [Paths; 2],
    /// Where a span says whether it succeeded, and the words for yes and no. Without it, an error says that it did not.
    status: Option<(Paths, [&'static str; 2])>,
    error: Paths,
    model: Paths,
    scores: Paths,
    /// Fields of `metadata.imported`, by the span around all others.
    facts: &'static [(&'static str, Paths)],
    attributes: Attributes,
    /// Returns the span that a record stands for that is around spans of its own.
    around: fn(&Value) -> Option<Value>,
}

/// What the attributes of a span are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Attributes {
    /// Its name, its kind, its input and its output.
    Sides,
    /// Those of OpenTelemetry in `attributes`.
    Flat,
    /// Those of OpenInference in `attributes`, one within the other, or in fields named after them.
    Nested,
}

const USUAL: Platform = Platform {
    marks: &[],
    kinds: "",
    lists: "",
    children: "",
    trace: "trace_id",
    id: "id",
    parent: "parent_id",
    times: ["start_time", "end_time"],
    name: "name",
    kind: "",
    sides: ["input", "output"],
    status: None,
    error: "error",
    model: "",
    scores: "",
    facts: &[],
    attributes: Attributes::Sides,
    around: |_| None,
};

/// Spans of Arize Phoenix: the rows of its data frames, as `to_json(orient="records")` writes them, and the replies of its API.
pub const PHOENIX: Platform = Platform {
    marks: &["context.trace_id context/trace_id", "status_code", "start_time"],
    lists: "data",
    trace: "context.trace_id context/trace_id",
    id: "context.span_id context/span_id",
    kind: "span_kind",
    status: Some(("status_code", ["OK", "ERROR"])),
    error: "status_message",
    scores: "annotations span_annotations",
    attributes: Attributes::Nested,
    ..USUAL
};

/// Runs of LangSmith, as its client and its API list them: one a line, in an array, in `runs`, or as trees of `child_runs`.
pub const LANGSMITH: Platform = Platform {
    marks: &["run_type", "id", "inputs"],
    lists: "runs",
    children: "child_runs",
    trace: "trace_id id",
    parent: "parent_run_id",
    kind: "run_type",
    sides: ["inputs", "outputs"],
    model: "extra/metadata/ls_model_name extra/invocation_params/model extra/invocation_params/model_name",
    scores: "feedback_stats feedback",
    facts: &[("session_name", "session_name"), ("tags", "tags")],
    ..USUAL
};

/// Traces and observations of Langfuse, as its API, its exports and its page write them: a trace with its `observations`, or
/// observations one a line, in an array or in `data`. Names are in camel case or, in exports to a bucket, in snake case.
pub const LANGFUSE: Platform = Platform {
    marks: &["traceId trace_id level", "startTime start_time timestamp"],
    kinds: "GENERATION SPAN EVENT TOOL AGENT CHAIN RETRIEVER EVALUATOR EMBEDDING GUARDRAIL",
    lists: "observations data traces",
    children: "observations",
    trace: "traceId trace_id",
    parent: "parentObservationId parent_observation_id",
    times: ["startTime start_time timestamp", "endTime end_time"],
    kind: "type",
    status: Some(("level", ["", "ERROR"])),
    error: "statusMessage status_message",
    model: "model providedModelName provided_model_name internalModelId",
    scores: "scores",
    facts: &[("session_id", "sessionId session_id"), ("tags", "tags")],
    around: trace_of_langfuse,
    ..USUAL
};

/// The fields of a trace of Langfuse that its span has.
#[rustfmt::skip]
const LANGFUSE_TRACE: [&str; 10] = [
    "name", "input", "output", "timestamp", "startTime", "start_time", "sessionId", "session_id", "tags", "scores",
];

/// Traces of MLflow.
pub const MLFLOW: Platform = Platform {
    marks: &["attributes", "name"],
    lists: "data/spans",
    trace: "trace_id context/trace_id",
    id: "span_id context/span_id",
    parent: "parent_span_id parent_id",
    times: ["start_time_unix_nano start_time", "end_time_unix_nano end_time"],
    kind: "attributes/mlflow.spanType",
    sides: ["attributes/mlflow.spanInputs", "attributes/mlflow.spanOutputs"],
    error: "status/message status_message",
    model: "attributes/mlflow.llm.model",
    ..USUAL
};

/// Calls of Weave.
pub const WEAVE: Platform = Platform {
    marks: &["op_name", "trace_id", "inputs"],
    times: ["started_at", "ended_at"],
    name: "op_name",
    kind: "attributes/kind attributes/weave/kind op_name",
    sides: ["inputs", "output"],
    error: "exception",
    model: "inputs/model",
    ..USUAL
};

/// Spans of Braintrust.
pub const BRAINTRUST: Platform = Platform {
    marks: &["span_id", "root_span_id", "span_attributes"],
    trace: "root_span_id",
    id: "span_id",
    parent: "span_parents",
    times: ["metrics/start created", "metrics/end"],
    name: "span_attributes/name",
    kind: "span_attributes/type",
    model: "metadata/model",
    scores: "scores",
    ..USUAL
};

/// Rows of Logfire.
pub const LOGFIRE: Platform = Platform {
    marks: &["trace_id", "span_id", "span_name", "start_timestamp"],
    id: "span_id",
    parent: "parent_span_id",
    times: ["start_timestamp", "end_timestamp"],
    error: "exception_message",
    attributes: Attributes::Flat,
    ..USUAL
};

/// Parts of the names of functions that call a model.
#[rustfmt::skip]
const OF_MODELS: [&str; 6] = [
    "chat.completions", "messages.create", "responses.create", "generate_content", "chatcompletion", "litellm",
];

/// Names of scores that say whether the task was done; others judge something else, such as the tone.
#[rustfmt::skip]
const VERDICTS: [&str; 9] = [
    "reward", "success", "correctness", "correct", "resolved", "passed", "pass", "task_completion", "goal_accuracy",
];

/// Where a score may have its value.
const VALUES: [&str; 5] = ["score", "value", "stringValue", "string_value", "label"];

impl Adapter for Platform {
    fn recognises(&self, record: &Value, _path: Option<&Path>) -> bool {
        let mut firsts = all_at(record, self.lists).filter_map(|list| list_of(Some(list)).first());
        self.is_span(record) || firsts.any(|first| self.is_span(first))
    }

    fn decode(&self, value: &Value, say: &mut Events) -> Result<Decoded, Wrong> {
        if self.is_span(value) {
            return self.tell(value, None, None, say).map(|()| Decoded::GoesOn);
        }
        // The spans of one trace may leave its id to the record around them.
        let name = self.trace.split(' ').next().unwrap_or_default();
        let trace = string_of(value.get(name));
        // The first problem; the other spans are read.
        let told = all_in(value, self.lists).map(|span| self.tell(span, trace, None, say));
        told.fold(Ok(()), Result::and).map(|()| Decoded::GoesOn)
    }
}

impl Platform {
    /// Returns whether a record is a span, or is around spans of its own.
    fn is_span(&self, value: &Value) -> bool {
        let is_kind = |kind: &str| self.kinds.split(' ').any(|known| known == kind);
        let is_known =
            || self.kinds.is_empty() || str_of(at(value, self.kind).as_deref()).is_some_and(is_kind);
        let is_one = self.marks.iter().all(|mark| all_at(value, mark).next().is_some()) && is_known();
        is_one || (self.around)(value).is_some()
    }

    /// Tells a span and those within it. Both have the trace and the parent of those around them, if they name none.
    fn tell(
        &self,
        value: &Value,
        trace: Option<&Text>,
        parent: Option<&Value>,
        say: &mut Events,
    ) -> Result<(), Wrong> {
        let around = (self.around)(value);
        let record = around.as_ref().unwrap_or(value);
        let own = id_of(at(record, self.trace).as_deref());
        let no_trace = || Wrong::new(format!("a span has no {}", self.trace.replace(' ', " and no ")));
        let trace = trace.cloned().or(own).ok_or_else(no_trace)?;
        let (id, own) = (at(record, self.id), at(record, self.parent));
        let own = elements_of(own.as_deref()).first();
        let parent = own.filter(|own| string_of(Some(own)).is_some()).or(parent);
        say.begin(Origin {
            run: Some(trace.clone()),
            ..Origin::default()
        });
        let span = self.span_of(record, id.as_deref(), parent);
        say.add(What::Span(Box::new(span)));
        for (name, paths) in self.facts.iter().filter(|_| parent.is_none()) {
            let fact = at(record, paths).filter(|fact| **fact != Value::Array(Vec::new()));
            say.fact(name, fact.as_deref());
        }
        self.add_scores(record, say);
        let mut children = all_in(value, self.children);
        children.try_for_each(|child| self.tell(child, Some(&trace), id.as_deref(), say))
    }

    fn span_of(&self, record: &Value, id: Option<&Value>, parent: Option<&Value>) -> Span {
        let [start, end] = self
            .times
            .map(|paths| nanoseconds_of(at(record, paths).as_deref()).unwrap_or_default());
        let error = at(record, self.error).filter(|error| is_truthy(Some(error)));
        let is_ok = match self.status {
            Some((paths, [yes, no])) => match at(record, paths).as_deref().and_then(Value::as_str) {
                Some(word) if word == yes => Some(true),
                Some(word) if word == no => Some(false),
                _ => None,
            },
            None => error.as_ref().map(|_| false),
        };
        let mut span = Span {
            id: string_of(id).cloned(),
            parent: string_of(parent).cloned(),
            start,
            end,
            is_ok,
            message: string_of(error.as_deref()).cloned(),
            may_have_all: self.attributes == Attributes::Sides,
            ..Span::default()
        };
        match self.attributes {
            Attributes::Sides => self.add_sides(&mut span, record, parent.is_none()),
            Attributes::Flat => add_flat(&mut span.attributes, fields_of(record, "attributes")),
            Attributes::Nested => {
                // The attributes repeat it, mostly.
                let kind = at(record, self.kind);
                add(&mut span.attributes, "openinference.span.kind", kind.as_deref());
                for (name, value) in object_of(Some(record)) {
                    let inner = name.strip_prefix("attributes.");
                    if let Some(name) = inner.or((*name == "attributes").then_some("")) {
                        flatten(&mut span.attributes, &name.into(), value);
                    }
                }
            }
        }
        span
    }

    /// Adds the name, the input and the output of a span, by its kind in OpenInference. A root has no span around it.
    fn add_sides(&self, span: &mut Span, record: &Value, is_root: bool) {
        let kind = at(record, self.kind).map_or("CHAIN", |kind| kind_of(&kind));
        let name = at(record, self.name).map(|name| short(&name));
        let model = at(record, self.model);
        let [input, output] = self.sides.map(|paths| at(record, paths));
        let (input, output) = (input.as_deref(), output.as_deref());
        // A list of choices has the message.
        let reply = list_of(output).first().and_then(|choice| choice.get("message"));
        let output = reply.or(output);
        let attributes = &mut span.attributes;
        add(attributes, "openinference.span.kind", Some(&kind.into()));
        add(attributes, "llm.model_name", model.as_deref());
        match kind {
            "LLM" => {
                add(attributes, "input.value", input);
                add(attributes, "output.value", output);
            }
            "TOOL" => {
                add(attributes, "tool.name", name.as_ref());
                add(attributes, "input.value", input);
                add_output_of_tool(span, output);
            }
            "CHAIN" if is_root => {
                add(attributes, "gen_ai.agent.name", name.as_ref());
                // Messages, or else a text that is read if no span has messages.
                for (side, role, value) in [("input", "user", input), ("output", "assistant", output)] {
                    let Some(value) = value else { continue };
                    match messages_within(value, role).filter(|messages| !messages.is_empty()) {
                        Some(messages) => attributes.insert(format!("gen_ai.{side}.messages"), messages),
                        None => add(attributes, format!("{side}.value"), Some(&text_within(value))),
                    }
                }
            }
            _ => {}
        }
    }

    /// Says the scores of a span. All are kept; the first that says whether the task was done is the reward.
    fn add_scores(&self, record: &Value, say: &mut Events) {
        let mut scores = Object::new();
        for list in all_at(record, self.scores) {
            for (name, score) in object_of(Some(list)) {
                let alone = Some(score).filter(|score| score.as_object().is_none());
                add(&mut scores, name.clone(), score.get("avg").or(alone));
            }
            for score in list_of(Some(list)) {
                let result = score.get("result").and_then(Value::as_object);
                let value = first_of(result.unwrap_or(object_of(Some(score))), &VALUES);
                if let Some(name) = string_of(first_of(score, &["name", "key"])) {
                    add(&mut scores, name.clone(), value);
                }
            }
        }
        if scores.is_empty() {
            return;
        }
        let is_verdict = |(name, _): &(&Text, &Value)| {
            let name = name.to_lowercase().replace([' ', '-'], "_");
            VERDICTS.contains(&name.as_str())
        };
        if let Some((_, score)) = scores.iter().find(is_verdict) {
            let reward = truth_word(score).map_or_else(|| score.clone(), Value::from);
            say.add(What::Fact(Fact::Reward(reward)));
        }
        say.fact("scores", Some(&scores.into()));
    }
}

/// Returns what labels mean that are no numbers.
fn truth_word(score: &Value) -> Option<bool> {
    match score.as_str()?.to_lowercase().as_str() {
        "true" | "yes" | "correct" | "pass" | "passed" | "success" => Some(true),
        "false" | "no" | "incorrect" | "fail" | "failed" | "failure" => Some(false),
        _ => None,
    }
}

/// Returns the values, be they `null`, at all paths.
fn all_at(value: &Value, paths: Paths) -> impl Iterator<Item = &Value> {
    let at = move |path: &str| path.split('/').try_fold(value, |value, name| value.get(name));
    paths.split(' ').filter_map(at)
}

/// Returns the objects in the lists at all paths.
fn all_in(value: &Value, paths: Paths) -> impl Iterator<Item = &Value> {
    let lists = all_at(value, paths).flat_map(|list| list_of(Some(list)));
    lists.filter(|element| element.as_object().is_some())
}

/// Returns the value at the first path that leads to one. JSON in a text is parsed.
fn at(span: &Value, paths: Paths) -> Option<Cow<'_, Value>> {
    let value = all_at(span, paths).find(|value| !value.is_null())?;
    let json = value.as_str().filter(|text| text.starts_with(['{', '[', '"']));
    let parsed = json.and_then(|json| parse_str(json).ok());
    Some(parsed.map_or(Cow::Borrowed(value), Cow::Owned))
}

/// Returns the span of a trace of Langfuse, which is around its observations; `None` for another record.
fn trace_of_langfuse(record: &Value) -> Option<Value> {
    let names = ["htmlPath", "sessionId", "session_id", "userId", "user_id"];
    let is_named = names.iter().any(|name| record.get(name).is_some());
    let is_trace = is_named && has_all(record, &["id", "timestamp", "input", "output"]);
    if record.get("observations").is_none() && !is_trace {
        return None;
    }
    // A page may have the trace in a field of its own.
    let trace = record.get("trace").and_then(Value::as_object);
    let trace = trace.unwrap_or(object_of(Some(record)));
    let id = string_of(first_of(trace, &["id", "traceId", "trace_id"]))?;
    let mut span = fields_where(trace, |name, _| LANGFUSE_TRACE.contains(&name));
    span.insert("id", id.clone());
    span.insert("traceId", id.clone());
    span.insert("type", "CHAIN");
    if let Some(scores) = first_of(record, &["scores"]) {
        span.insert("scores", scores.clone());
    }
    let is_failed = |observation: &&Value| {
        at(observation, LANGFUSE.parent).is_none() && str_of(observation.get("level")) == Some("ERROR")
    };
    if let Some(failed) = list_at(record, "observations").iter().find(is_failed) {
        span.insert("level", "ERROR");
        let message = at(failed, LANGFUSE.error).map(Cow::into_owned);
        span.insert("statusMessage", message.unwrap_or_default());
    }
    Some(span.into())
}

/// Returns the name of a function of Weave, without its place and its version: `weave:///team/project/op/NAME:VERSION`.
fn short(name: &Value) -> Value {
    let text = str_of(Some(name)).and_then(|name| name.rsplit_once("/op/"));
    let text = text.and_then(|(_, name)| name.split(':').next());
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

/// Adds an attribute, if it has a value.
fn add(attributes: &mut Object, name: impl Into<Text>, value: Option<&Value>) {
    if let Some(value) = value.filter(|value| !value.is_null()) {
        attributes.insert(name, value.clone());
    }
}

/// Adds the output of a tool, which may be the message that LangChain makes of it.
fn add_output_of_tool(span: &mut Span, output: Option<&Value>) {
    let has_any = |output: &&Value| output.as_object().is_none_or(|fields| !fields.is_empty());
    let Some(output) = output.filter(has_any) else {
        return;
    };
    let output = output.get("output").unwrap_or(output);
    let Some(message) = output.as_object().and_then(langchain::translated) else {
        return add(&mut span.attributes, "output.value", Some(&text_within(output)));
    };
    add(&mut span.attributes, "tool_call.id", message.get("tool_call_id"));
    add(&mut span.attributes, "output.value", message.get("content"));
    if str_of(message.get("status")) == Some("error") {
        span.is_ok = span.is_ok.or(Some(false));
    }
}

/// Adds the attributes of a row. Pydantic AI had other names and the messages in lists of events in its older versions.
fn add_flat(attributes: &mut Object, row: &Object) {
    if row.contains("gen_ai.tool.name") {
        attributes.insert("openinference.span.kind", "TOOL");
    }
    for (name, value) in row {
        match name.as_str() {
            "tool_arguments" => add(attributes, "gen_ai.tool.call.arguments", Some(value)),
            "tool_response" => add(attributes, "gen_ai.tool.call.result", Some(value)),
            "events" => {
                let events = parsed(Some(value));
                let (said, given): (Vec<_>, Vec<_>) = list_of(events.as_deref())
                    .iter()
                    .partition(|event| has_text(fields_of(*event, "message"), "role"));
                let given = given
                    .into_iter()
                    .map(|event| fields_where(object_of(Some(event)), |name, _| name != "event.name").into());
                let said = said.into_iter().filter_map(|event| event.get("message").cloned());
                attributes.insert("gen_ai.input.messages", given.collect::<Vec<Value>>());
                attributes.insert("gen_ai.output.messages", said.collect::<Vec<Value>>());
            }
            _ => add(attributes, name.clone(), Some(value)),
        }
    }
}

/// Adds an attribute for each leaf of a value, named by the path to it.
fn flatten(attributes: &mut Object, name: &Text, value: &Value) {
    let mut flatten_inner = |key: &Text, value| {
        let mut inner = with_end(name, if name.is_empty() { "" } else { "." });
        inner.push_str(key);
        flatten(attributes, &inner, value);
    };
    match value {
        Value::Object(fields) => fields.iter().for_each(|(key, value)| flatten_inner(key, value)),
        Value::Array(elements) => {
            let keyed = elements.iter().enumerate();
            keyed.for_each(|(at, value)| flatten_inner(&at.to_string().into(), value));
        }
        leaf => add(attributes, name.clone(), Some(leaf)),
    }
}

/// Nanoseconds since 1970 of a time in ISO 8601, or of a number of seconds, milliseconds, microseconds or nanoseconds.
fn nanoseconds_of(time: Option<&Value>) -> Option<i128> {
    if let Some(number) = number_of(time).filter(|&number| number > 0.0) {
        // Whole microseconds: a double has no more of a time.
        let microseconds = match number {
            ..1e11 => number * 1e6,
            ..1e14 => number * 1e3,
            ..1e17 => number,
            _ => number / 1e3,
        };
        #[allow(clippy::cast_possible_truncation)] // Such times are as late as any.
        return Some(microseconds.round() as i128 * 1000);
    }
    Some(date::parse(str_of(time)?)?.as_nanosecond())
}

#[cfg(test)]
mod tests {
    use super::*;
    use knowledgepulse_json::parse_str;

    #[test]
    fn nanoseconds_of_reads_times_of_every_unit_with_their_fractions() {
        for (time, nanoseconds) in [
            (
                r#""2026-01-02T00:00:00.123456Z""#,
                Some(1_767_312_000_123_456_000),
            ),
            (r#""2026-01-02 00:00:00.000001""#, Some(1_767_312_000_000_001_000)),
            (
                r#""2026-01-02T01:00:00.5+01:00""#,
                Some(1_767_312_000_500_000_000),
            ),
            ("1767312000", Some(1_767_312_000_000_000_000)),
            ("1767312000123", Some(1_767_312_000_123_000_000)),
            ("1767312000123456", Some(1_767_312_000_123_456_000)),
            (r#""soon""#, None),
            ("null", None),
        ] {
            assert_eq!(
                nanoseconds_of(parse_str(time).ok().as_ref()),
                nanoseconds,
                "{time}"
            );
        }
    }
}
