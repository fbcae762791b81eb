//! Traces and observations of Langfuse, as its API, its exports and its page write them: a trace with its `observations`, or
//! observations one a line, in an array or in `data`. Names are in camel case or, in exports to a bucket, in snake case.

use knowledgepulse_json::{Object, Text, Value};

use crate::{
    Wrong,
    otel::told::Told,
    values::{first_of, list_of, object_of, or, str_of, string_of},
};

/// Names of fields in camel case and in snake case.
const TRACE: [&str; 2] = ["traceId", "trace_id"];
const PARENT: [&str; 2] = ["parentObservationId", "parent_observation_id"];
const START: [&str; 3] = ["startTime", "start_time", "timestamp"];
const END: [&str; 2] = ["endTime", "end_time"];
const MESSAGE: [&str; 2] = ["statusMessage", "status_message"];
const MODEL: [&str; 4] = [
    "model",
    "providedModelName",
    "provided_model_name",
    "internalModelId",
];
const SESSION: [&str; 2] = ["sessionId", "session_id"];

/// Returns whether a record is of this format.
pub fn recognises(value: &Value) -> bool {
    let is_first = |name| list_of(value.get(name)).first();
    is_observation(value)
        || is_trace(object_of(Some(value)))
        || ["observations", "data"]
            .into_iter()
            .filter_map(is_first)
            .any(is_observation)
        || is_first("traces").is_some_and(|trace| is_trace(object_of(Some(trace))))
}

/// Returns whether a record is a trace, which may be without its observations.
fn is_trace(record: &Object) -> bool {
    let own = [
        "observations",
        "htmlPath",
        "sessionId",
        "session_id",
        "userId",
        "user_id",
    ];
    let all = ["id", "timestamp", "input", "output"];
    all.iter().all(|name| record.contains(name)) && own.iter().any(|name| record.contains(name))
}

fn is_observation(value: &Value) -> bool {
    let fields = object_of(Some(value));
    let kinds = [
        "GENERATION",
        "SPAN",
        "EVENT",
        "TOOL",
        "AGENT",
        "CHAIN",
        "RETRIEVER",
        "EVALUATOR",
        "EMBEDDING",
        "GUARDRAIL",
    ];
    str_of(fields.get("type")).is_some_and(|kind| kinds.contains(&kind))
        && (first_of(fields, &TRACE).is_some() || fields.contains("level"))
        && first_of(fields, &START).is_some()
}

/// Returns the observations of a record.
pub fn spans(value: &Value) -> Result<Vec<Told<'_>>, Wrong> {
    let record = object_of(Some(value));
    let no_id = || Wrong::new("an observation has no traceId");
    if is_observation(value) {
        return Ok(vec![span_of(record, None).ok_or_else(no_id)?]);
    }
    if let Some(Value::Array(traces)) = record.get("traces") {
        let told: Result<Vec<_>, _> = traces.iter().map(spans).collect();
        return Ok(told?.into_iter().flatten().collect());
    }
    let objects = |name| list_of(record.get(name)).iter().filter_map(Value::as_object);
    if !record.contains("observations") && !is_trace(record) {
        let told = objects("data").map(|observation| span_of(observation, None).ok_or_else(no_id));
        return told.collect();
    }
    // A page may have the trace in a field of its own.
    let trace = match record.get("trace") {
        Some(Value::Object(trace)) => trace,
        _ => record,
    };
    let id = string_of(trace.get("id")).or_else(|| string_of(first_of(trace, &TRACE)));
    let id = id.ok_or_else(|| Wrong::new("a trace has no id"))?;
    let is_failed = |observation: &&Object| {
        string_of(first_of(observation, &PARENT)).is_none()
            && str_of(observation.get("level")) == Some("ERROR")
    };
    let failed = objects("observations").find(is_failed);
    let mut found = vec![root_of(trace, record, id, failed)];
    found.extend(objects("observations").filter_map(|observation| span_of(observation, Some(id))));
    Ok(found)
}

/// Returns the span of a trace, which is around its observations.
fn root_of(trace: &Object, record: &Object, id: &Text, failed: Option<&Object>) -> Told<'static> {
    let mut span = Told::new(id.clone(), Some(&id.clone().into()), None);
    span.times(first_of(trace, &START), None);
    span.run("CHAIN", sides_of(trace), true);
    if let Some(failed) = failed {
        span.status(false, first_of(failed, &MESSAGE));
    }
    span.about.details = details_of(trace);
    for score in list_of(or(record.get("scores"), trace.get("scores"))) {
        let value = or(score.get("stringValue"), score.get("string_value"));
        span.about.score(score.get("name"), or(score.get("value"), value));
    }
    span
}

/// Returns the span of an observation; without a parent, it is within that of its trace, if there is one.
fn span_of(observation: &Object, trace: Option<&Text>) -> Option<Told<'static>> {
    let id = trace.or_else(|| string_of(first_of(observation, &TRACE)))?;
    let parent = first_of(observation, &PARENT).cloned();
    let parent = parent.or_else(|| trace.map(|trace| trace.clone().into()));
    let mut span = Told::new(id.clone(), observation.get("id"), parent.as_ref());
    span.times(first_of(observation, &START), first_of(observation, &END));
    if str_of(observation.get("level")) == Some("ERROR") {
        span.status(false, first_of(observation, &MESSAGE));
    }
    let kind = match str_of(observation.get("type")) {
        Some("GENERATION") => "LLM",
        Some("TOOL") => "TOOL",
        Some("EMBEDDING") => "EMBEDDING",
        Some("RETRIEVER") => "RETRIEVER",
        _ => "CHAIN",
    };
    span.run(kind, sides_of(observation), parent.is_none());
    span.attribute("llm.model_name", first_of(observation, &MODEL));
    span.about.details = details_of(observation);
    Some(span)
}

fn sides_of(record: &Object) -> [Option<&Value>; 3] {
    ["name", "input", "output"].map(|name| record.get(name))
}

/// Returns the fields that are kept.
fn details_of(record: &Object) -> Object {
    let fields = [
        ("session_id", first_of(record, &SESSION)),
        ("tags", record.get("tags")),
    ];
    let is_kept = |value: &&Value| !list_of(Some(value)).is_empty() || value.as_str().is_some();
    let mut details = Object::new();
    for (name, value) in fields {
        if let Some(value) = value.filter(is_kept) {
            details.insert(name, value.clone());
        }
    }
    details
}
