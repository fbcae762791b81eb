//! A trace in JSON. A value is `None` where JavaScript has `undefined`.

use std::fmt::Arguments;

use knowledgepulse_error::Result;
use knowledgepulse_json::{Value, units_of};

use crate::reading::Source;

impl Source for Option<&Value> {
    fn kind(self) -> &'static str {
        self.map_or("undefined", Value::kind)
    }

    fn get(self, key: &'static str, _: Arguments) -> Result<Self> {
        Ok(self.and_then(|object| object.get(key)))
    }

    fn length(self, _: Arguments) -> Result<Option<usize>> {
        Ok(self.and_then(Value::as_array).map(<[_]>::len))
    }

    fn element(self, index: usize, _: Arguments) -> Result<Self> {
        Ok(self.and_then(|array| array.as_array()?.get(index)))
    }

    fn boolean(self) -> bool {
        self.and_then(Value::as_bool).unwrap_or_default()
    }

    fn number(self) -> f64 {
        self.and_then(Value::as_number).unwrap_or(f64::NAN)
    }

    fn units(self) -> usize {
        self.and_then(Value::as_text).map_or(0, |text| units_of(text))
    }

    fn copy_units(self, count: usize, units: &mut Vec<u16>) {
        let text = self.and_then(Value::as_text).map_or("", |text| text);
        units.clear();
        match text.is_ascii() {
            true => units.extend(text.bytes().map(u16::from).take(count)),
            false => units.extend(text.encode_utf16().take(count)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Trace,
        reading::{self, Texts},
        text::MOST_UNITS,
    };

    const TRACE: &str = r#"{"id":"a","task":{"objective":"o\ud800"},"steps":[{"type":"thought","content":null},
        {"type":"new","content":"c","tool":{"name":"t"}}],"metadata":{"success":true},"outcome":{"confidence":0.5}}"#;

    fn parsed(json: &str) -> Value {
        knowledgepulse_json::parse_str(json).unwrap()
    }

    fn read(trace: &Value, texts: Texts) -> Result<Trace> {
        reading::read(Some(trace), texts)
    }

    #[test]
    fn read_takes_the_fields_of_a_trace() {
        let trace = read(&parsed(TRACE), Texts::Whole).unwrap();
        assert_eq!(trace.objective, "o\u{fffd}");
        assert_eq!(trace.steps[0].content, None);
        assert_eq!(trace.steps[1].kind, "new");
        assert_eq!(trace.steps[1].tool, Some("t".into()));
        assert_eq!(trace.label.as_deref(), Some("a"));
        assert!(!trace.text_cut);
        let other = TRACE.replace("\"type\":\"new\",", "\"x\":1,\"type\":\"new\",");
        assert_eq!(read(&parsed(&other), Texts::Whole).unwrap().label, trace.label);
        let without_text = read(&parsed(TRACE), Texts::None).unwrap();
        assert_eq!(
            (without_text.label, without_text.objective),
            (None, String::new())
        );
        let mut one = |units: &[u16], _| (!units.is_empty()).then_some(1);
        assert_eq!(
            read(&parsed(TRACE), Texts::Needed(&mut one)).unwrap().objective,
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
