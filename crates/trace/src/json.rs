//! Reads a [`Trace`] from JSON, with the rules, order and messages of the addon's reader of JavaScript objects.

use std::fmt;

use knowledgepulse_error::{Error, Result};
use knowledgepulse_json::{Object, Text, Value, cut, units_of};

use crate::{
    Metadata, Name, Outcome, Step, StepKind, Task, Tool, Trace,
    label::{Label, MAX_LABEL_BYTES},
    text::MOST_UNITS,
};

/// The part of a trace's text to read.
pub enum Texts<'a> {
    /// None, because nothing is compared. The trace gets no label.
    None,
    /// The part that a function needs: it gets the UTF-16 code units of each text in turn and returns how many it needs.
    Needed(&'a mut dyn FnMut(&[u16]) -> usize),
    /// All, up to [`MOST_UNITS`].
    Whole,
}

/// Reads a trace.
///
/// # Errors
/// [`Error::TraceType`] or [`Error::TraceOutOfRange`], with the path of the first field that is wrong.
pub fn read(trace: &Value, texts: Texts) -> Result<Trace> {
    let trace = object(Some(trace), At::trace("trace"))?;
    let id = match texts {
        Texts::None => None,
        _ => id_of(trace),
    };
    let mut reader = Reader {
        texts,
        units_left: Some(MOST_UNITS),
    };

    let task = object(trace.get("task"), At::trace("trace.task"))?;
    let objective = reader.text(task.get("objective"), At::trace("trace.task.objective"))?;
    let steps = reader.steps(trace.get("steps"))?;

    let metadata = object(trace.get("metadata"), At::trace("trace.metadata"))?;
    let success = match metadata.get("success") {
        Some(Value::Bool(success)) => *success,
        other => return Err(wrong(other, "a boolean", At::trace("trace.metadata.success"))),
    };
    let task_domain = metadata.get("task_domain").filter(|domain| !domain.is_null());
    let at = At::trace("trace.metadata.task_domain");
    let task_domain = task_domain
        .map(|domain| reader.string(Some(domain), at, String::from_utf16_lossy))
        .transpose()?;

    let outcome = object(trace.get("outcome"), At::trace("trace.outcome"))?;
    let confidence = match outcome.get("confidence") {
        Some(Value::Number(confidence)) => *confidence,
        other => return Err(wrong(other, "a number", At::trace("trace.outcome.confidence"))),
    };
    Ok(Trace {
        task: Task { objective },
        steps,
        metadata: Metadata { success, task_domain },
        outcome: Outcome::new(confidence)?,
        label: id.map(|id| Label::from(id.as_str())),
        text_cut: reader.units_left.is_none(),
    })
}

/// The path of a value, which is formatted only for an error.
#[derive(Clone, Copy)]
struct At {
    /// The index of the step that contains the field, if any.
    step: Option<usize>,
    field: &'static str,
}

impl At {
    fn trace(field: &'static str) -> Self {
        Self { step: None, field }
    }

    fn step(index: usize, field: &'static str) -> Self {
        let step = Some(index);
        Self { step, field }
    }
}

impl fmt::Display for At {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(index) = self.step {
            write!(formatter, "trace.steps[{index}]")?;
        }
        formatter.write_str(self.field)
    }
}

fn wrong(value: Option<&Value>, expected: &'static str, at: At) -> Error {
    Error::TraceType {
        path: at.to_string(),
        expected,
        found: value.map_or("undefined", Value::kind),
    }
}

fn object(value: Option<&Value>, at: At) -> Result<&Object> {
    let object = value.and_then(Value::as_object);
    object.ok_or_else(|| wrong(value, "an object", at))
}

fn text_at(value: Option<&Value>, at: At) -> Result<&Text> {
    let text = value.and_then(Value::as_text);
    text.ok_or_else(|| wrong(value, "a string", at))
}

/// Reads the `id`, the label in the memory. It has no part in the score, so an unusable one is ignored, not refused.
fn id_of(trace: &Object) -> Option<&Text> {
    let id = trace.get("id")?.as_text()?;
    (id.len() <= MAX_LABEL_BYTES).then_some(id)
}

/// The state of reading one trace.
struct Reader<'a> {
    texts: Texts<'a>,
    /// The number of units that may still be read of the whole text; `None` once text was left out.
    units_left: Option<usize>,
}

impl Reader<'_> {
    fn steps(&mut self, steps: Option<&Value>) -> Result<Vec<Step>> {
        let Some(Value::Array(steps)) = steps else {
            return Err(wrong(steps, "an array", At::trace("trace.steps")));
        };
        let steps = steps.iter().enumerate();
        steps.map(|(index, step)| self.step(step, index)).collect()
    }

    fn step(&mut self, step: &Value, index: usize) -> Result<Step> {
        let step = object(Some(step), At::step(index, ""))?;
        let at = At::step(index, ".type");
        let kind = self.string(step.get("type"), at, StepKind::of)?;
        let given = |name| step.get(name).filter(|value| !value.is_null());
        let content = given("content");
        let at = At::step(index, ".content");
        let content = content.map(|content| self.text(Some(content), at)).transpose()?;
        let tool = given("tool");
        let tool = match tool {
            None => None,
            tool => {
                let tool = object(tool, At::step(index, ".tool"))?;
                let at = At::step(index, ".tool.name");
                let name = self.string(tool.get("name"), at, Name::of)?;
                Some(Tool { name })
            }
        };
        Ok(Step { kind, content, tool })
    }

    /// Reads a string and converts its UTF-16 code units.
    fn string<T>(&mut self, value: Option<&Value>, at: At, convert: impl FnOnce(&[u16]) -> T) -> Result<T> {
        let units: Vec<u16> = text_at(value, at)?.encode_utf16().collect();
        Ok(convert(&units))
    }

    /// Reads a part of the compared text.
    fn text(&mut self, value: Option<&Value>, at: At) -> Result<String> {
        let text = text_at(value, at)?;
        Ok(match &mut self.texts {
            Texts::None => String::new(),
            Texts::Needed(needed) => {
                let units: Vec<u16> = text.encode_utf16().collect();
                cut(text, needed(&units)).to_owned()
            }
            Texts::Whole => match self.units_left {
                None => String::new(),
                Some(left) => {
                    self.units_left = left.checked_sub(units_of(text));
                    cut(text, left).to_owned()
                }
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = r#"{"id":"a","task":{"objective":"o\ud800"},"steps":[{"type":"thought","content":null},
        {"type":"new","content":"c","tool":{"name":"t"}}],"metadata":{"success":true},"outcome":{"confidence":0.5}}"#;

    fn parsed(json: &str) -> Value {
        knowledgepulse_json::parse(json.as_bytes()).unwrap()
    }

    #[test]
    fn read_takes_the_fields_of_a_trace() {
        let trace = read(&parsed(TRACE), Texts::Whole).unwrap();
        assert_eq!(trace.task.objective, "o\u{fffd}");
        assert_eq!(trace.steps[0].content, None);
        assert_eq!(trace.steps[1].kind, StepKind::Other("new".into()));
        assert_eq!(trace.steps[1].tool, Some(Tool { name: "t".into() }));
        assert_eq!(trace.label.as_deref(), Some("a"));
        assert!(!trace.text_cut);
        let other = TRACE.replace("\"type\":\"new\",", "\"x\":1,\"type\":\"new\",");
        assert_eq!(read(&parsed(&other), Texts::Whole).unwrap().label, trace.label);
        let without_text = read(&parsed(TRACE), Texts::None).unwrap();
        assert_eq!(
            (without_text.label, without_text.task.objective),
            (None, String::new())
        );
        let mut one = |_: &[u16]| 1;
        assert_eq!(
            read(&parsed(TRACE), Texts::Needed(&mut one))
                .unwrap()
                .task
                .objective,
            "o"
        );
    }

    #[test]
    fn read_takes_a_task_domain_of_null_for_an_absent_one() {
        let with_null = TRACE.replace("true", "true,\"task_domain\":null");
        let with_null = read(&parsed(&with_null), Texts::Whole).unwrap();
        assert_eq!(with_null, read(&parsed(TRACE), Texts::Whole).unwrap());
    }

    #[test]
    fn read_cuts_the_whole_text_after_its_limit() {
        let long = TRACE.replace("\"c\"", &format!("\"{}\"", "x".repeat(MOST_UNITS)));
        let trace = read(&parsed(&long), Texts::Whole).unwrap();
        assert!(trace.text_cut);
        assert_eq!(
            trace.steps[1].content.as_ref().map(String::len),
            Some(MOST_UNITS - 2)
        );
    }

    #[test]
    fn errors_name_the_first_field_that_is_wrong() {
        for (from, to, message) in [
            (
                "{\"objective\":\"o\\ud800\"}",
                "null",
                "trace.task must be an object, got null",
            ),
            (
                "\"o\\ud800\"",
                "[]",
                "trace.task.objective must be a string, got array",
            ),
            (
                "\"thought\"",
                "1",
                "trace.steps[0].type must be a string, got number",
            ),
            (
                "\"c\"",
                "{}",
                "trace.steps[1].content must be a string, got object",
            ),
            (
                "{\"name\":\"t\"}",
                "{}",
                "trace.steps[1].tool.name must be a string, got undefined",
            ),
            (
                "\"success\":true",
                "\"success\":0",
                "trace.metadata.success must be a boolean, got number",
            ),
            (
                "true",
                "true,\"task_domain\":1",
                "trace.metadata.task_domain must be a string, got number",
            ),
            (
                "0.5",
                "\"1\"",
                "trace.outcome.confidence must be a number, got string",
            ),
            (
                "0.5",
                "1.5",
                "trace.outcome.confidence must be a finite number in [0, 1], got 1.5",
            ),
        ] {
            let error = read(&parsed(&TRACE.replace(from, to)), Texts::None).unwrap_err();
            assert_eq!(error.to_string(), message);
        }
        let error = read(&parsed("[]"), Texts::None).unwrap_err();
        assert_eq!(error.to_string(), "trace must be an object, got array");
    }
}
