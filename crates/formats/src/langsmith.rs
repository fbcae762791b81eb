//! Runs of LangSmith, as its client and its API list them: one a line, in an array, in `runs`, or as trees of `child_runs`.

use knowledgepulse_json::{Object, Text, Value};

use crate::{
    Wrong,
    otel::told::{About, Told},
    trace::fields_of,
    values::{first_of, list_of, object_of, or, str_of, string_of},
};

/// Returns whether a record is of this format.
pub fn recognises(value: &Value) -> bool {
    is_run(value) || list_of(value.get("runs")).first().is_some_and(is_run)
}

fn is_run(value: &Value) -> bool {
    let has = |name| value.get(name).is_some();
    str_of(value.get("run_type")).is_some() && has("id") && has("inputs")
}

/// Returns the runs of a record.
pub fn spans(value: &Value) -> Result<Vec<Told<'_>>, Wrong> {
    let mut found = Vec::new();
    let mut waiting: Vec<(&Value, Option<Text>)> = match value.get("runs") {
        // The runs of one trace may leave its id to the record around them.
        Some(Value::Array(runs)) => {
            let trace = string_of(value.get("trace_id"));
            runs.iter().rev().map(|run| (run, trace.cloned())).collect()
        }
        _ => vec![(value, None)],
    };
    while let Some((run, trace)) = waiting.pop() {
        let run = object_of(Some(run));
        let own = string_of(or(run.get("trace_id"), run.get("id")));
        let trace = trace.or_else(|| own.cloned());
        let trace = trace.ok_or_else(|| Wrong::new("a run has no trace_id and no id"))?;
        found.push(span_of(run, trace.clone()));
        let children = list_of(run.get("child_runs")).iter().rev();
        waiting.extend(children.map(|child| (child, Some(trace.clone()))));
    }
    Ok(found)
}

fn span_of(run: &Object, trace: Text) -> Told<'static> {
    let parent = run.get("parent_run_id");
    let mut span = Told::new(trace, run.get("id"), parent);
    span.times(run.get("start_time"), run.get("end_time"));
    if let Some(error) = string_of(run.get("error")) {
        span.status(false, Some(&error.clone().into()));
    }
    let kind = match str_of(run.get("run_type")) {
        Some("llm") => "LLM",
        Some("tool") => "TOOL",
        Some("retriever") => "RETRIEVER",
        Some("embedding") => "EMBEDDING",
        _ => "CHAIN",
    };
    let sides = ["name", "inputs", "outputs"].map(|name| run.get(name));
    span.run(kind, sides, string_of(parent).is_none());
    let extra = fields_of(run, "extra");
    let model = first_of(fields_of(extra, "metadata"), &["ls_model_name"]);
    let model = model.or_else(|| first_of(fields_of(extra, "invocation_params"), &["model", "model_name"]));
    span.attribute("llm.model_name", model);
    add_about(&mut span.about, run);
    span
}

fn add_about(about: &mut About, run: &Object) {
    for name in ["session_name", "tags"] {
        let value = run
            .get(name)
            .filter(|_| string_of(run.get("parent_run_id")).is_none());
        if let Some(value) = value.filter(|value| !value.is_null()) {
            about.details.insert(name, value.clone());
        }
    }
    for (name, stats) in fields_of(run, "feedback_stats") {
        about.score(Some(&name.clone().into()), stats.get("avg"));
    }
    for feedback in list_of(run.get("feedback")) {
        about.score(
            feedback.get("key"),
            or(feedback.get("score"), feedback.get("value")),
        );
    }
}
