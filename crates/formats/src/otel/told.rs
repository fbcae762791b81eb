//! Converts the exports of other formats to spans of OTLP with attributes of OpenInference.

use std::borrow::Cow;

use knowledgepulse_json::{Object, Text, Value};

use super::said::messages_within;
use crate::{
    date, langchain,
    parts::some_object,
    trace::with_end,
    values::{is_given, number_of, str_of, string_of},
};

/// A span of OTLP that is put together, and its record's statements about the trace.
pub struct Told<'a> {
    /// The span as OTLP has it.
    pub span: Cow<'a, Object>,
    /// Attributes beside those in the span.
    pub attributes: Vec<(Text, Value)>,
    /// The statements about the trace.
    pub about: About,
    /// Whether it stands for a record of a log.
    pub is_log: bool,
}

/// Statements about a trace outside of its spans.
#[derive(Default)]
pub struct About {
    /// `metadata.framework`
    pub framework: Option<Text>,
    /// The verdict of a verifier or a person on the outcome.
    pub reward: Option<Value>,
    /// The fields of `metadata.imported`.
    pub details: Object,
}

/// Names of scores that say whether the task was done; others judge something else, such as the tone.
const VERDICTS: [&str; 9] = [
    "reward",
    "success",
    "correctness",
    "correct",
    "resolved",
    "passed",
    "pass",
    "task_completion",
    "goal_accuracy",
];

impl About {
    /// Takes a score with a name. All are kept; the first that says whether the task was done is the reward.
    pub fn score(&mut self, name: Option<&Value>, score: Option<&Value>) {
        let (Some(name), Some(score)) = (string_of(name), score.filter(|score| is_given(Some(score)))) else {
            return;
        };
        if !self.details.contains("scores") {
            self.details.insert("scores", Object::new());
        }
        if let Some(Value::Object(scores)) = self.details.get_mut("scores") {
            scores.insert(name.clone(), score.clone());
        }
        let is_verdict = name
            .as_str()
            .is_some_and(|name| VERDICTS.contains(&name.to_lowercase().replace([' ', '-'], "_").as_str()));
        if is_verdict && self.reward.is_none() {
            self.reward = Some(match truth_word(score) {
                Some(is_true) => is_true.into(),
                None => score.clone(),
            });
        }
    }
}

/// Returns the values of labels that are no numbers.
fn truth_word(score: &Value) -> Option<bool> {
    match score.as_str()?.to_lowercase().as_str() {
        "true" | "yes" | "correct" | "pass" | "passed" | "success" => Some(true),
        "false" | "no" | "incorrect" | "fail" | "failed" | "failure" => Some(false),
        _ => None,
    }
}

impl Told<'static> {
    /// Creates a span with its ids, the last of which names the span around it.
    pub fn new(trace: Text, id: Option<&Value>, parent: Option<&Value>) -> Self {
        let mut span = Object::new();
        span.insert("traceId", trace);
        for (name, id) in [("spanId", id), ("parentSpanId", parent)] {
            if let Some(id) = string_of(id) {
                span.insert(name, id.clone());
            }
        }
        Self {
            span: Cow::Owned(span),
            attributes: Vec::new(),
            about: About::default(),
            is_log: false,
        }
    }

    /// Takes when it began and ended.
    pub fn times(&mut self, start: Option<&Value>, end: Option<&Value>) {
        for (name, time) in [("startTimeUnixNano", start), ("endTimeUnixNano", end)] {
            if let Some(time) = nanoseconds_of(time) {
                self.span.to_mut().insert(name, time.to_string());
            }
        }
    }

    /// Takes a status: whether the run ended well, and its message.
    pub fn status(&mut self, is_ok: bool, message: Option<&Value>) {
        let code = if is_ok { 1.0 } else { 2.0 };
        let status = some_object([("code", Some(code.into())), ("message", message.cloned())]);
        self.span.to_mut().insert("status", status);
    }

    /// Takes an attribute, if it has a value.
    pub fn attribute(&mut self, name: impl Into<Text>, value: Option<&Value>) {
        if let Some(value) = value.filter(|value| !value.is_null()) {
            self.attributes.push((name.into(), value.clone()));
        }
    }

    /// Takes the name, the input and the output of a run, by its kind in OpenInference. A root has no run around it.
    pub fn run(&mut self, kind: &str, [name, input, output]: [Option<&Value>; 3], is_root: bool) {
        self.attribute("openinference.span.kind", Some(&kind.into()));
        match kind {
            "LLM" => {
                self.attribute("input.value", input);
                self.attribute("output.value", output);
            }
            "TOOL" => self.tool(name, input, output),
            "CHAIN" if is_root => {
                self.attribute("gen_ai.agent.name", name);
                self.sides(input, output);
            }
            _ => {}
        }
    }

    /// Takes the input and output of the run around all others: its messages, or else a text that is read if no run has
    /// messages.
    fn sides(&mut self, input: Option<&Value>, output: Option<&Value>) {
        for (side, role, value) in [("input", "user", input), ("output", "assistant", output)] {
            let Some(value) = value else { continue };
            match messages_within(value, role).filter(|messages| !messages.is_empty()) {
                Some(messages) => self.attribute(format!("gen_ai.{side}.messages"), Some(&messages.into())),
                None => self.attribute(format!("{side}.value"), Some(&text_within(value))),
            }
        }
    }

    /// Takes the call of a tool. Its output may be the message that LangChain makes of it.
    fn tool(&mut self, name: Option<&Value>, input: Option<&Value>, output: Option<&Value>) {
        self.attribute("tool.name", name);
        self.attribute("input.value", input);
        let is_given = |output: &&Value| output.as_object().is_none_or(|fields| !fields.is_empty());
        let Some(output) = output.filter(is_given) else {
            return;
        };
        let output = output.get("output").unwrap_or(output);
        let Some(message) = output.as_object().and_then(langchain::translated) else {
            return self.attribute("output.value", Some(&text_within(output)));
        };
        self.attribute("tool_call.id", message.get("tool_call_id"));
        self.attribute("output.value", message.get("content"));
        if str_of(message.get("status")) == Some("error") && !self.span.contains("status") {
            self.status(false, None);
        }
    }

    /// Takes an attribute for each leaf of a value, named by the path to it.
    pub fn flattened(&mut self, name: &Text, value: &Value) {
        let inner = |key: &Text| {
            let mut inner = with_end(name, if name.is_empty() { "" } else { "." });
            inner.push_text(key);
            inner
        };
        match value {
            Value::Object(fields) => fields
                .iter()
                .for_each(|(key, value)| self.flattened(&inner(key), value)),
            Value::Array(elements) => {
                for (at, element) in elements.iter().enumerate() {
                    self.flattened(&inner(&at.to_string().into()), element);
                }
            }
            leaf => self.attribute(name.clone(), Some(leaf)),
        }
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
    let text = str_of(time)?;
    let milliseconds = date::parse(text)?;
    // Runs follow each other within a millisecond.
    let fraction = text.split_once('.').map_or("", |(_, fraction)| fraction);
    let digits = fraction.bytes().take_while(u8::is_ascii_digit).skip(3).take(6);
    let rest = digits.chain(std::iter::repeat(b'0')).take(6);
    let rest = rest.fold(0, |number, digit| number * 10 + i128::from(digit - b'0'));
    Some(i128::from(milliseconds) * 1_000_000 + rest)
}

/// Returns the text in a value, as of an input or an output: for an object with one field, the text in that field.
pub fn text_within(value: &Value) -> Value {
    match value {
        Value::Object(fields) if fields.len() == 1 => {
            let only = fields.values().next();
            only.map_or(Value::Null, text_within)
        }
        Value::Object(_) | Value::Array(_) => value.to_json().into(),
        value => value.clone(),
    }
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
