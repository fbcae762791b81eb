//! Logs of Inspect, in JSON or as archives (`.eval`), whose files `archive` reads: <https://inspect.aisi.org.uk/eval-logs.html>

use std::{borrow::Cow, path::Path};

use knowledgepulse_json::{Object, Value, object};

use super::{Adapter, Decoded, Inner, Kind};
use crate::{
    FormatName, Wrong,
    event::{Events, Fact, Origin, TextKind, What},
    messages::add_message,
    parts::{result_of, saying, some_object, thinking},
    values::{fields_of, first_of, id_of, is_given, list_of, numeric_of, object_of, or, str_of, string_of},
};

/// Logs of Inspect.
pub struct Inspect;

/// The fields of a log that are kept.
const OF_EVAL: [&str; 5] = ["task", "task_version", "eval_id", "run_id", "model"];

/// The fields of a sample that are kept.
const OF_SAMPLE: [&str; 5] = ["epoch", "uuid", "limit", "total_time", "model_usage"];

/// The field of a sample that has the header of its log, as `input::archive` adds it too.
pub const LOG: &str = "log";

/// Where long texts of a message are that is not written at length.
const ATTACHMENT: &str = "attachment://";

/// Returns whether a record is a sample of a log.
fn is_sample(record: &Object) -> bool {
    let has = |name| record.contains(name);
    has("epoch") && has("input") && has("target") && has("messages")
}

/// Returns the log itself, with its samples or without.
fn is_log(record: &Object) -> bool {
    let eval = fields_of(record, "eval");
    string_of(eval.get("task")).is_some() && eval.contains("model") && eval.contains("dataset")
}

impl Adapter for Inspect {
    fn format(&self) -> FormatName {
        FormatName::Inspect
    }

    fn kind(&self) -> Kind {
        Kind::Rows
    }

    fn recognises(&self, first: &[&Value], _path: Option<&Path>) -> bool {
        let mut first = first.iter().map(|value| object_of(Some(value)));
        first.any(|record| is_log(record) || is_sample(record))
    }

    fn inner<'v>(&self, record: &'v Value) -> Vec<Inner<'v>> {
        let samples = list_of(record.get("samples")).iter().zip(0..);
        let inner = samples.map(|(sample, at)| {
            let mut sample = object_of(Some(sample)).clone();
            sample.insert(LOG, record.get("eval").cloned().unwrap_or_default());
            Inner {
                value: Cow::Owned(sample.into()),
                name: format!("samples[{at}]").into(),
                index: Some(at),
            }
        });
        inner.collect()
    }

    fn decode(&self, record: &Value, say: &mut Events) -> Result<Decoded, Wrong> {
        let sample = object_of(Some(record));
        if sample.contains(LOG) || is_sample(sample) {
            add_sample(say, sample)?;
        } else if !is_log(sample) {
            return Err(Wrong::new("it is no log, and no sample of one"));
        }
        Ok(Decoded::Whole)
    }
}

fn add_sample(say: &mut Events, sample: &Object) -> Result<(), Wrong> {
    let eval = fields_of(sample, LOG);
    say.begin(Origin {
        time: or(sample.get("started_at"), eval.get("created")).cloned(),
        ..Origin::default()
    });
    let ids = match sample.get("uuid") {
        uuid @ Some(_) if string_of(uuid).is_some() => vec![uuid],
        _ => vec![eval.get("eval_id"), sample.get("id"), sample.get("epoch")],
    };
    say.add_all(
        ids.into_iter()
            .filter_map(id_of)
            .map(|id| What::Fact(Fact::Name(id))),
    );
    say.add(What::Fact(Fact::Framework("inspect".into())));
    say.facts(eval, &OF_EVAL);
    say.fact("sample_id", sample.get("id"));
    say.facts(sample, &OF_SAMPLE);
    add_score(say, sample);
    let attachments = fields_of(sample, "attachments");
    let messages = list_of(sample.get("messages"));
    let input = sample.get("input");
    if messages.is_empty() && input.and_then(Value::as_array).is_none() {
        say.say_content(TextKind::User, input);
    }
    let messages = if messages.is_empty() {
        list_of(input)
    } else {
        messages
    };
    for (at, message) in messages.iter().enumerate() {
        let message = translated(object_of(Some(message)), attachments);
        add_message(say, &message).map_err(|wrong| wrong.within(format!("messages[{at}]")))?;
    }
    Ok(())
}

/// Takes the outcome from the first score: of several scorers, Inspect reports the first before the others.
fn add_score(say: &mut Events, sample: &Object) {
    let scores = fields_of(sample, "scores");
    let first = scores.values().next();
    let value = or(first, sample.get("score")).and_then(|score| score.get("value"));
    let values = scores
        .iter()
        .filter_map(|(name, score)| Some((name.clone(), score.get("value")?.clone())));
    let values: Object = values.collect();
    if !values.is_empty() {
        say.fact("scores", Some(&values.into()));
    }
    if is_given(value) {
        say.add(What::Fact(Fact::Reward(float_of(value))));
    } else if let Some(error) = sample.get("error").filter(|error| error.as_object().is_some()) {
        say.add(What::Success(false));
        say.fact("error", error.get("message"));
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
