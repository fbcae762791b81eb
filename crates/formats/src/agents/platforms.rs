//! Platforms whose spans are records: rows and replies of Phoenix, runs of LangSmith, observations of Langfuse, traces of MLflow, calls of
//! Weave, spans of Braintrust and Mastra, rows of Logfire. `tables/platforms.tsv` says for each where things are; `spans` reads the attributes of
//! OpenInference that they become.

use std::{borrow::Cow, collections::HashMap, sync::LazyLock};

use jiff::Timestamp;
use rustc_hash::FxBuildHasher;

use crate::{
    date, langchain,
    prelude::*,
    spans::said::{messages_within, text_within},
    verdicts::is_verdict,
};

/// The rows of the table: paths by a platform and what is there.
static PATHS: LazyLock<HashMap<[&str; 2], &str, FxBuildHasher>> = LazyLock::new(|| {
    let rows = include_str!("../../tables/platforms.tsv").lines();
    let cells = rows.map(|row| row.split('\t'));
    cells
        .filter_map(|mut row| Some(([row.next()?, row.next()?], row.next()?)))
        .collect()
});

/// A platform, by its name in the table.
pub struct Platform(pub &'static str);

/// Declares platforms, by their names in the table.
macro_rules! platforms {
    ($($format:ident = $name:literal;)*) => {
        $(pub static $format: Format = Format::new(
            $name,
            Kind::Spans,
            |record, say| Platform($name).decode(record, say),
        )
        .also(|record| Platform($name).recognises(record));)*
    };
}

platforms! {
    LANGSMITH = "langsmith";
    LANGFUSE = "langfuse";
    OPIK = "opik";
    PHOENIX = "phoenix";
    MLFLOW = "mlflow";
    WEAVE = "weave";
    BRAINTRUST = "braintrust";
    LOGFIRE = "logfire";
    OPENAI_AGENTS = "openai-agents";
    MASTRA = "mastra";
}

const LANGFUSE_SPANS: Platform = Platform("langfuse");

impl Platform {
    /// Returns whether a record is a span, or has spans.
    pub fn recognises(&self, record: &Value) -> bool {
        let mut firsts = self
            .lists_in(record)
            .filter_map(|list| list_of(Some(list)).first());
        self.is_span(record) || firsts.any(|first| self.is_span(first))
    }

    /// Says the spans in a record.
    ///
    /// # Errors
    /// If a span names no trace.
    pub fn decode(&self, value: &Value, say: &mut Events) -> Result<Decoded, Wrong> {
        if self.is_span(value) {
            return self.tell(value, None, None, say).map(|()| Decoded::GoesOn);
        }
        if is(value, "mastra-page") {
            return Err("a page of traces has no spans of models and tools: write each trace, as `getTrace` returns it".into());
        }
        // The spans of one trace may leave its id to the record around them.
        let trace = self.word("trace").and_then(|name| string_of(value.get(name)));
        // The first problem; the other spans are read.
        let told = objects_in(self.lists_in(value)).map(|span| self.tell(span, trace, None, say));
        let told = told.fold(Ok(()), Result::and).map(|()| Decoded::GoesOn);
        self.add_scores(value, say);
        told
    }

    /// Returns the paths, apart by spaces, that the table has of this platform, or of all; empty if it has none.
    fn paths(&self, what: &str) -> &'static str {
        let paths = [self.0, "usual"].map(|platform| PATHS.get(&[platform, what]).copied());
        paths.into_iter().flatten().next().unwrap_or_default()
    }

    /// Returns the first of these.
    fn word(&self, what: &str) -> Option<&'static str> {
        self.paths(what).split_whitespace().next()
    }

    /// Returns the values, be they lists or not, where a record may have spans.
    fn lists_in<'v>(&self, record: &'v Value) -> impl Iterator<Item = &'v Value> {
        all_at(record, self.paths("lists"))
    }

    /// Returns the span that a record stands for that is around spans of its own.
    fn around(&self, record: &Value) -> Option<Value> {
        (self.0 == LANGFUSE_SPANS.0).then(|| trace_of_langfuse(record))?
    }

    /// Returns whether a record is a span, or is around spans of its own.
    fn is_span(&self, value: &Value) -> bool {
        is(value, self.0) || self.around(value).is_some()
    }

    /// Tells a span and those within it. Both have the trace and the parent of those around them, if they name none.
    fn tell(
        &self,
        value: &Value,
        trace: Option<&Text>,
        parent: Option<&Value>,
        say: &mut Events,
    ) -> Result<(), Wrong> {
        let around = self.around(value);
        let record = around.as_ref().unwrap_or(value);
        let [own, id, own_parent] = ["trace", "id", "parent"].map(|what| at(record, self.paths(what)));
        let names = self.paths("trace");
        let no_trace = || Wrong::from(format!("a span has no {}", names.replace(' ', " and no ")));
        let trace = trace.cloned().or(id_of(own.as_deref())).ok_or_else(no_trace)?;
        let own_parent = elements_of(own_parent.as_deref()).first();
        let parent = own_parent.filter(|own| string_of(Some(own)).is_some()).or(parent);
        say.begin_in_run(Some(trace.clone()), None);
        let span = self.span_of(record, parent);
        say.add(What::Span(Box::new(span)));
        for name in words("span-fact").filter(|_| parent.is_none()) {
            let fact = at(record, self.paths(name)).filter(|fact| **fact != Value::Array(Vec::new()));
            say.fact(name, fact.as_deref());
        }
        self.add_scores(record, say);
        let mut children = objects_in(all_at(value, self.paths("children")));
        children.try_for_each(|child| self.tell(child, Some(&trace), id.as_deref(), say))
    }

    /// Returns the span that a record is, in another one if it names none.
    pub fn span_of(&self, record: &Value, parent: Option<&Value>) -> Span {
        let [id, own_parent, start, end, status] =
            ["id", "parent", "start", "end", "status"].map(|what| at(record, self.paths(what)));
        let parent = parent.or(own_parent.as_deref());
        let error = first_at(record, self.paths("error")).filter(|error| is_truthy(Some(error)));
        let is_ok = if self.paths("status").is_empty() {
            error.map(|_| false)
        } else {
            let status = status.map(|status| json_of(&status).into_owned());
            let is = |word| {
                self.paths(word)
                    .split(' ')
                    .any(|known| status.as_deref() == Some(known))
            };
            is("yes").then_some(true).or(is("no").then_some(false))
        };
        let kind = self.word("attributes").unwrap_or_default();
        let fields = |record: &Value| match record.get("attributes") {
            list @ Some(Value::Array(_)) => attributes_of(list),
            fields => fields_where(object_of(fields), |_, value| !value.is_null()),
        };
        let events = objects_in(all_at(record, self.paths("events")));
        let events = events.map(|event| (text_at(event, "name").unwrap_or_default(), fields(event)));
        let mut span = Span {
            id: string_of(id.as_deref()).cloned(),
            parent: string_of(parent).cloned(),
            start: nanoseconds_of(start.as_deref()),
            end: nanoseconds_of(end.as_deref()),
            is_ok,
            message: string_of(error).cloned(),
            events: events.collect(),
            may_have_all: kind == "sides",
            ..Span::default()
        };
        match kind {
            "flat" => span.attributes = fields(record),
            "nested" => {
                // The attributes repeat it, mostly.
                let kind = at(record, self.paths("kind"));
                add(&mut span.attributes, "openinference.span.kind", kind.as_deref());
                for (name, value) in object_of(Some(record)) {
                    let inner = name.strip_prefix("attributes.");
                    if let Some(name) = inner.or((*name == "attributes").then_some("")) {
                        flatten(&mut span.attributes, &name.into(), value);
                    }
                }
            }
            _ => self.add_sides(&mut span, record, parent.is_none()),
        }
        span
    }

    /// Adds the name, the input and the output of a span, by its kind in OpenInference. A root has no span around it.
    fn add_sides(&self, span: &mut Span, record: &Value, is_root: bool) {
        let [kind, name, model, input, output] =
            ["kind", "name", "model", "input", "output"].map(|what| at(record, self.paths(what)));
        let is_tool = kind.is_some() && str_of(kind.as_deref()) == self.word("tool");
        let kind = kind.map_or("CHAIN", |kind| if is_tool { "TOOL" } else { kind_of(&kind) });
        let name = name.map(|name| short(&name));
        let output = output.filter(|_| kind != "ASKED");
        let kind = if kind == "ASKED" { "LLM" } else { kind };
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
            // Those of other kinds are in the output around them.
            "CHUNK" if str_of(record.get("name")) == Some("chunk: 'reasoning'") => {
                let thought = object([("thinking", output.map(text_within).unwrap_or_default())]);
                let message = message_by("assistant", vec![thought].into());
                attributes.insert("gen_ai.output.messages", vec![message]);
            }
            "TOOL" => {
                add(attributes, "tool.name", name.as_ref());
                add(attributes, "input.value", input);
                add_output_of_tool(attributes, output);
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
        for list in all_at(record, self.paths("scores")) {
            // Exports in bulk have it as JSON in a text.
            let list = parsed(Some(list));
            let list = list.as_deref();
            for (name, score) in object_of(list) {
                let alone = Some(score).filter(|score| score.as_object().is_none());
                add(&mut scores, name.clone(), score.get("avg").or(alone));
            }
            for score in list_of(list) {
                let result = first_of(score, &["result", "feedback"]).and_then(Value::as_object);
                let value = first_named(result.unwrap_or(object_of(Some(score))), "score-value");
                if let Some(name) = string_of(first_of(score, &["name", "key", "assessment_name"])) {
                    add(&mut scores, name.clone(), value);
                }
            }
        }
        if scores.is_empty() {
            return;
        }
        if let Some((_, score)) = scores.iter().find(|(name, _)| is_verdict(name)) {
            say.add(What::Fact(Fact::Reward(score.clone())));
        }
        say.fact("scores", Some(&scores.into()));
    }
}

/// Returns a time in nanoseconds since 1970, which OTLP has in a text; 0 without a time.
pub fn nanoseconds_of(time: Option<&Value>) -> i128 {
    match time {
        Some(Value::String(text) | Value::Digits(text))
            if let Ok(nanoseconds) = trim(text).parse::<i64>() =>
        {
            nanoseconds.into()
        }
        time => date::of(time).map_or(0, Timestamp::as_nanosecond),
    }
}

/// Returns the attributes of a list of OTLP, without those whose value is of no type that is known.
pub fn attributes_of(list: Option<&Value>) -> Object {
    let attributes = list_of(list).iter().filter_map(|attribute| {
        let name = attribute.get("key")?.as_text()?;
        Some((name.clone(), unwrapped(attribute.get("value"))?))
    });
    attributes.collect()
}

/// Returns the value of an attribute, which OTLP wraps by its type.
pub fn unwrapped(wrapped: Option<&Value>) -> Option<Value> {
    let (name, value) = wrapped?.as_object()?.iter().next()?;
    Some(match name.as_str() {
        "stringValue" | "boolValue" => value.clone(),
        "intValue" | "doubleValue" => numeric_of(Some(value))?.into(),
        "arrayValue" => {
            let values = list_at(value, "values").iter();
            values
                .map(|value| unwrapped(Some(value)).unwrap_or_default())
                .collect()
        }
        "kvlistValue" => attributes_of(value.get("values")).into(),
        _ => return None,
    })
}

/// Returns the values, be they `null`, at all paths.
fn all_at<'v>(value: &'v Value, paths: &'static str) -> impl Iterator<Item = &'v Value> {
    paths.split(' ').filter_map(|path| in_path(value, path))
}

/// Returns the objects in lists, or beside them.
fn objects_in<'v>(lists: impl Iterator<Item = &'v Value>) -> impl Iterator<Item = &'v Value> {
    let elements = lists.flat_map(|list| elements_of(Some(list)));
    elements.filter(|element| element.as_object().is_some())
}

/// Returns the value at the first path that leads to one. JSON in a text is parsed.
fn at<'v>(span: &'v Value, paths: &'static str) -> Option<Cow<'v, Value>> {
    let value = first_at(span, paths)?;
    let json = value.as_str().filter(|text| text.starts_with(['{', '[', '"']));
    let parsed = json.and_then(|json| parse_str(json).ok());
    Some(parsed.map_or(Cow::Borrowed(value), Cow::Owned))
}

/// Returns the span of a trace of Langfuse, which is around its observations; `None` for another record.
fn trace_of_langfuse(record: &Value) -> Option<Value> {
    if !is(record, "langfuse-trace") {
        return None;
    }
    // A page may have the trace in a field of its own.
    let trace = record.get("trace").and_then(Value::as_object);
    let trace = trace.unwrap_or(object_of(Some(record)));
    let id = string_of(first_of(trace, &["id", "traceId", "trace_id"]))?;
    let mut span = fields_where(trace, |name, _| is_one(name, "langfuse-trace"));
    span.insert("id", id.clone());
    span.insert("traceId", id.clone());
    span.insert("type", "CHAIN");
    add(&mut span, "scores", record.get("scores"));
    let is_failed = |observation: &&Value| {
        at(observation, LANGFUSE_SPANS.paths("parent")).is_none()
            && str_of(observation.get("level")) == Some("ERROR")
    };
    if let Some(failed) = list_at(record, "observations").iter().find(is_failed) {
        span.insert("level", "ERROR");
        let message = at(failed, LANGFUSE_SPANS.paths("error")).map(Cow::into_owned);
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
    let is_of_model = || words("function-of-model").any(|part| kind.contains(part));
    let known = row_where("span-kind", |name| name == kind).map(|[_, known]| known);
    known.unwrap_or_else(|| if is_of_model() { "LLM" } else { "CHAIN" })
}

/// Adds an attribute, if it has a value.
fn add(attributes: &mut Object, name: impl Into<Text>, value: Option<&Value>) {
    if let Some(value) = value.filter(|value| !value.is_null()) {
        attributes.insert(name, value.clone());
    }
}

/// Adds the output of a tool, which may be in a field of its name.
fn add_output_of_tool(attributes: &mut Object, output: Option<&Value>) {
    let has_any = |output: &&Value| output.as_object().is_none_or(|fields| !fields.is_empty());
    let Some(output) = output.filter(has_any) else {
        return;
    };
    let output = output.get("output").unwrap_or(output);
    let text = langchain::is_message(output).then(|| output.clone());
    let text = text.unwrap_or_else(|| text_within(output));
    add(attributes, "output.value", Some(&text));
}

/// Adds an attribute for each leaf of a value, named by the path to it.
fn flatten(attributes: &mut Object, name: &Text, value: &Value) {
    let mut flatten_inner = |key: &Text, value| {
        let inner = [name.as_str(), if name.is_empty() { "" } else { "." }, key]
            .concat()
            .into();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_have_each_row_of_the_table_under_a_name_of_its_own_and_a_platform_that_is_read() {
        let rows = include_str!("../../tables/platforms.tsv").lines();
        assert_eq!(PATHS.len(), rows.filter(|row| !row.starts_with('#')).count());
        for [platform, _] in PATHS.keys() {
            let is_read = crate::FormatName::from_name(platform).is_some();
            assert!(
                is_read || ["usual", "otel-printed"].contains(platform),
                "{platform}"
            );
        }
    }
}
