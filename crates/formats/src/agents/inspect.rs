//! Logs of Inspect, in JSON or as archives (`.eval`), whose samples `input::archive` reads: <https://inspect.aisi.org.uk/eval-logs.html>

use crate::{input::archive::LOG, prelude::*, tagged, verdicts::score_of};

pub static FORMAT: Format = Format::new("inspect", Kind::Rows, decode);

/// Where long texts of a message are that is not written at length.
const ATTACHMENT: &str = "attachment://";

fn decode(record: &Value, say: &mut Events) -> Result<Decoded, Wrong> {
    if record.get(LOG).is_some() || is(record, "inspect-sample") {
        add_sample(say, object_of(Some(record)));
    } else if !is(record, "inspect-log") {
        return Err(Wrong::from("it is no log, and no sample of one"));
    }
    Ok(Decoded::Whole)
}

fn add_sample(say: &mut Events, sample: &Object) {
    let eval = fields_of(sample, LOG);
    say.begin_record(None, or(sample.get("started_at"), eval.get("created")));
    let ids = match text_at(sample, "uuid") {
        Some(_) => vec![sample.get("uuid")],
        None => vec![eval.get("eval_id"), sample.get("id"), sample.get("epoch")],
    };
    let names = ids.into_iter().filter_map(id_of);
    say.add_all(names.map(|id| What::Fact(Fact::Name(id))));
    say.add(What::Fact(Fact::Framework("inspect".into())));
    say.facts("inspect-facts", sample);
    add_score(say, sample);
    let attachments = fields_of(sample, "attachments");
    let input = sample.get("input");
    let messages = match list_at(sample, "messages") {
        [] => list_of(input),
        messages => messages,
    };
    if messages.is_empty() && input.and_then(Value::as_array).is_none() {
        say.say_content(TextKind::User, input);
    }
    for message in messages {
        add_turn(say, object_of(Some(message)), attachments);
    }
}

/// Takes the outcome from the first score: of several scorers, Inspect reports the first before the others.
fn add_score(say: &mut Events, sample: &Object) {
    let scores = fields_of(sample, "scores");
    let values = scores
        .iter()
        .filter_map(|(name, score)| Some((name.clone(), score.get("value")?.clone())));
    let values: Object = values.collect();
    if !values.is_empty() {
        say.fact("scores", Some(&values.into()));
    }
    if let Some(score) = score_of(or(scores.values().next(), sample.get("score"))) {
        say.add(What::Fact(Fact::Reward(score)));
    } else if has_object(sample, "error") {
        say.add(What::Success(false));
        say.fact("error", fields_of(sample, "error").get("message"));
    }
}

fn add_turn(say: &mut Events, message: &Object, attachments: &Object) {
    let role = role_of(message);
    let inner = |part| parts_of_one(part, attachments);
    let mut parts = match message.get("content") {
        Some(Value::Array(parts)) => parts.iter().flat_map(inner).collect(),
        content => tagged::parts_by(role, Some(&whole(content, attachments))),
    };
    if role != "tool" {
        return add_parts(say, message, role, parts);
    }
    let error = message.get("error").and_then(Value::as_object);
    if error.is_some() && parts.iter().all(|part| *part == Part::Text(Text::default())) {
        let told = whole(fields_of(message, "error").get("message"), attachments);
        parts = parts_of(Some(&told));
    }
    let is_refused = |error: &Object| matches!(str_of(error.get("type")), Some("approval" | "cancelled"));
    let result = Part::Result {
        id: text_at(message, "tool_call_id"),
        content: parts,
        failed: error.map(|error| !is_refused(error)),
    };
    say.say_parts(TextKind::Event, [result]);
}

fn parts_of_one(part: &Value, attachments: &Object) -> Vec<Part> {
    match str_of(part.get("type")) {
        Some("reasoning") if is_true(part, "redacted") => vec![Part::Thought(text_at(part, "summary"))],
        Some("reasoning") => vec![Part::thought(&whole(part.get("reasoning"), attachments))],
        Some("tool_use") => {
            let error = text_at(part, "error").map(Value::from);
            let failed = error.as_ref().map(|_| true);
            let result = error.unwrap_or_else(|| whole(part.get("result"), attachments));
            let mut parts = parts_in(part);
            parts.push(Part::result(part.get("id"), Some(&result), failed));
            parts
        }
        Some("text") => vec![Part::Text(
            json_of(&whole(part.get("text"), attachments)).into_owned(),
        )],
        _ => parts_in(part),
    }
}

/// Returns a text, which may be among the attachments of the sample.
fn whole(text: Option<&Value>, attachments: &Object) -> Value {
    let reference = str_of(text).and_then(|text| text.strip_prefix(ATTACHMENT));
    let attached = reference.and_then(|name| attachments.get(name));
    attached.or(text).cloned().unwrap_or_default()
}
