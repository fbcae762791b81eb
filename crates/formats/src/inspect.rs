//! Logs of Inspect, in JSON or as archives (`.eval`), whose files `archive` reads: <https://inspect.aisi.org.uk/eval-logs.html>

use knowledgepulse_json::{Object, Value, object};

use crate::{
    Entry, FormatName, FormatReader, Found, Wrong,
    messages::add_message,
    parts::{result_of, saying, some_object, thinking},
    trace::{Sink, TextKind, TraceBuilder, fields_of},
    values::{first_of, id_of, is_given, list_of, numeric_of, object_of, or, str_of, string_of},
};

/// The fields of a log that are kept.
const OF_EVAL: [&str; 5] = ["task", "task_version", "eval_id", "run_id", "model"];

/// The fields of a sample that are kept.
const OF_SAMPLE: [&str; 5] = ["epoch", "uuid", "limit", "total_time", "model_usage"];

/// Where long texts of a message are that is not written at length.
const ATTACHMENT: &str = "attachment://";

/// Returns the sample of a log.
fn is_sample(record: &Object) -> bool {
    let has = |name| record.contains(name);
    has("epoch") && has("input") && has("target") && has("messages")
}

/// Returns the log itself, with its samples or without.
fn is_log(record: &Object) -> bool {
    let eval = fields_of(record, "eval");
    string_of(eval.get("task")).is_some() && eval.contains("model") && eval.contains("dataset")
}

/// Returns whether a record is of this format.
pub fn recognises(value: &Value) -> bool {
    let record = object_of(Some(value));
    is_log(record) || is_sample(record)
}

/// Reads the logs of an input.
#[derive(Default)]
pub struct Reader {
    /// The log's header for the next samples.
    eval: Object,
}

impl FormatReader for Reader {
    fn read(&mut self, entry: &Entry, found: &mut Vec<Found>) -> Result<(), Wrong> {
        let record = object_of(Some(entry.value));
        if is_sample(record) {
            found.push(read(entry, &self.eval, record)?.into());
            return Ok(());
        }
        if !is_log(record) {
            return Err(Wrong::new("it is no log, and no sample of one"));
        }
        self.eval = fields_of(record, "eval").clone();
        let samples = list_of(record.get("samples"));
        for (at, sample) in samples.iter().enumerate() {
            let read = read(entry, &self.eval, object_of(Some(sample)));
            found.push(match read {
                Err(wrong) => wrong.within(format!("samples[{at}]")).into(),
                Ok(mut builder) => {
                    builder.place.size /= samples.len() as u64;
                    builder.place.index = Some(at as u64);
                    builder.into()
                }
            });
        }
        Ok(())
    }
}

fn read(entry: &Entry, eval: &Object, sample: &Object) -> Result<TraceBuilder, Wrong> {
    let mut builder = TraceBuilder::new(FormatName::Inspect, entry);
    builder.framework = Some("inspect".into());
    builder.ids = match string_of(sample.get("uuid")) {
        Some(id) => vec![id.clone()],
        None => {
            let ids = [eval.get("eval_id"), sample.get("id"), sample.get("epoch")];
            ids.into_iter().filter_map(id_of).collect()
        }
    };
    builder.keep_all(eval, &OF_EVAL);
    builder.keep("sample_id", sample.get("id"));
    builder.keep_all(sample, &OF_SAMPLE);
    builder.at(sample.get("started_at"));
    builder.at(eval.get("created"));
    add_score(&mut builder, sample);
    let attachments = fields_of(sample, "attachments");
    let messages = list_of(sample.get("messages"));
    for (at, message) in messages.iter().enumerate() {
        let message = translated(object_of(Some(message)), attachments);
        add_message(&mut builder, &message).map_err(|wrong| wrong.within(format!("messages[{at}]")))?;
    }
    if messages.is_empty() {
        match sample.get("input") {
            Some(Value::Array(messages)) => {
                for message in messages {
                    add_message(&mut builder, &translated(object_of(Some(message)), attachments))?;
                }
            }
            input => builder.say_content(TextKind::User, input),
        }
    }
    Ok(builder)
}

/// Takes the outcome from the first score: of several scorers, Inspect reports the first before the others.
fn add_score(builder: &mut TraceBuilder, sample: &Object) {
    let scores = fields_of(sample, "scores");
    let first = scores.iter().next().map(|(_, score)| score);
    let value = or(first, sample.get("score")).and_then(|score| score.get("value"));
    let values = scores
        .iter()
        .filter_map(|(name, score)| Some((name.clone(), score.get("value")?.clone())));
    let values: Object = values.collect();
    if !values.is_empty() {
        builder.details.insert("scores", values);
    }
    if is_given(value) {
        builder.reward(Some(&float_of(value)));
    } else if let Some(error) = sample.get("error").filter(|error| error.as_object().is_some()) {
        builder.success = Some(false);
        builder.keep("error", error.get("message"));
    }
}

/// Returns the value of a score as Inspect's `value_to_float` reads it; as it is, if that could not.
fn float_of(value: Option<&Value>) -> Value {
    let word = value.and_then(Value::as_str).unwrap_or_default();
    let number = match word {
        "C" => Some(1.0),
        "P" => Some(0.5),
        "I" | "N" => Some(0.0),
        _ => match word.to_lowercase().as_str() {
            "yes" | "true" => Some(1.0),
            "no" | "false" => Some(0.0),
            _ => numeric_of(value),
        },
    };
    number.map_or_else(|| value.cloned().unwrap_or_default(), Value::from)
}

/// Returns a message in the terms of Anthropic and OpenAI.
fn translated(message: &Object, attachments: &Object) -> Value {
    let mut content = match message.get("content") {
        Some(Value::Array(parts)) => {
            let parts = parts.iter().flat_map(|part| parts_of(part, attachments));
            Value::from(parts.collect::<Vec<_>>())
        }
        content => whole(content, attachments),
    };
    let mut failed = Value::Null;
    if let Some(Value::Object(error)) = message.get("error") {
        let is_refused = matches!(str_of(error.get("type")), Some("approval" | "cancelled"));
        failed = (!is_refused).into();
        if string_of(Some(&content)).is_none() && list_of(Some(&content)).is_empty() {
            content = whole(error.get("message"), attachments);
        }
    }
    let given = |value: Value| Some(value).filter(|value| !value.is_null());
    let field = |name| first_of(message, &[name]).cloned();
    some_object([
        ("role", field("role")),
        ("content", given(content)),
        ("is_error", given(failed)),
        ("tool_calls", field("tool_calls")),
        ("tool_call_id", field("tool_call_id")),
    ])
}

fn parts_of(part: &Value, attachments: &Object) -> Vec<Value> {
    let fields = object_of(Some(part));
    let is_redacted = fields.get("redacted") == Some(&Value::Bool(true));
    match str_of(fields.get("type")) {
        Some("reasoning") => match string_of(first_of(fields, &["summary"])) {
            Some(summary) if is_redacted => vec![thinking(&summary.clone().into())],
            _ if is_redacted => vec![object([("type", "redacted_thinking".into())])],
            _ => vec![thinking(&whole(fields.get("reasoning"), attachments))],
        },
        Some("tool_use") => {
            let error = string_of(fields.get("error"));
            let result = error.cloned().map(Value::from);
            let result = result.unwrap_or_else(|| whole(fields.get("result"), attachments));
            let failed = error.map(|_| true);
            vec![part.clone(), result_of(fields.get("id"), Some(result), failed)]
        }
        Some("text") => vec![saying(whole(fields.get("text"), attachments))],
        _ => vec![part.clone()],
    }
}

/// Returns a text, which may be among the attachments of the sample.
fn whole(text: Option<&Value>, attachments: &Object) -> Value {
    let reference = str_of(text).and_then(|text| text.strip_prefix(ATTACHMENT));
    let attached = reference.and_then(|name| attachments.get(name));
    attached.or(text).cloned().unwrap_or_default()
}
