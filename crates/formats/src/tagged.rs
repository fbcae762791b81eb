//! Reasoning, calls and results that open models write as tags in text, as the chat templates of Hermes, Qwen and DeepSeek and the
//! prompts of OpenHands have them.

use knowledgepulse_json::{Object, Value, parse_str};

use crate::{
    parts::{call_of, result_of, saying, thinking},
    values::{elements_of, str_of},
};

const THINK: [&str; 2] = ["<think>", "</think>"];
const CALL: [&str; 2] = ["<tool_call>", "</tool_call>"];
const FUNCTION: [&str; 2] = ["<function=", "</function>"];
const PARAMETER: [&str; 2] = ["<parameter=", "</parameter>"];
const RESULT: [&str; 2] = ["<tool_response>", "</tool_response>"];

/// A text with so many tags that cannot be read goes on as plain text, because each of them is read up to the end of the text.
const MOST_BROKEN: usize = 16;

/// What stands at a `<` in a text.
pub enum Tag<'t> {
    /// A tag that stands for these parts, and the text behind its end.
    Parts(Vec<Value>, &'t str),
    /// A tag that cannot be read.
    Broken,
    /// Plain text.
    None,
}

/// Splits a text into parts. `read` gets the plain text before a `<`, since the tag before, and the text from there.
pub fn split<'t>(text: &'t str, read: impl Fn(&str, &'t str) -> Tag<'t>) -> Parts {
    let (mut parts, mut rest, mut broken) = (Parts::default(), text, 0);
    while broken < MOST_BROKEN
        && let Some(start) = rest.find('<')
    {
        let (before, tagged) = rest.split_at(start);
        parts.plain.push_str(before);
        let tag = read(&parts.plain, tagged);
        if let Tag::Parts(list, after) = tag {
            parts.flush();
            parts.list.extend(list);
            rest = after;
        } else {
            broken += usize::from(matches!(tag, Tag::Broken));
            parts.plain.push('<');
            rest = &tagged[1..];
        }
    }
    parts.plain.push_str(rest);
    parts
}

/// Returns the parts of a model's text; `None` for a text without reasoning and calls in tags.
pub fn parts_of_model(content: Option<&Value>) -> Option<Value> {
    let text = content?.as_str()?;
    let tags = [THINK[0], THINK[1], CALL[0], FUNCTION[0]];
    if !text.contains('<') || !tags.iter().any(|tag| text.contains(tag)) {
        return None;
    }
    let thought = |body: &str| thinking(&body.trim().into());
    // The beginning of a thought may be in the prompt.
    let (first, rest) = match text.split_once(THINK[1]) {
        Some((body, after)) if !body.contains(THINK[0]) => (Some(thought(body)), after),
        _ => (None, text),
    };
    let mut parts = split(rest, |_, tagged| {
        if let Some(inner) = tagged.strip_prefix(THINK[0]) {
            let (body, after) = inner.split_once(THINK[1]).unwrap_or((inner, ""));
            return Tag::Parts(vec![thought(body)], after);
        }
        if !tagged.starts_with(CALL[0]) && !tagged.starts_with(FUNCTION[0]) {
            return Tag::None;
        }
        let calls = between(tagged, CALL).and_then(|(body, after)| Some((calls_in(body)?, after)));
        let function = || {
            let (body, after) = between(tagged, FUNCTION)?;
            Some((vec![function_in(body)?], after))
        };
        calls
            .or_else(function)
            .map_or(Tag::Broken, |(calls, after)| Tag::Parts(calls, after))
    });
    parts.list.splice(0..0, first);
    parts.finish()
}

/// Returns the results at the beginning of a text, and the text behind them; `None` if it begins otherwise.
pub fn parts_of_results(content: Option<&Value>) -> Option<Value> {
    let mut rest = content?.as_str()?;
    let mut parts = Parts::default();
    while let Some((body, after)) = between(rest.trim_start(), RESULT) {
        parts.list.push(result_of(None, Some(body.trim().into()), None));
        rest = after;
    }
    parts.plain.push_str(rest);
    parts.finish()
}

/// Returns the text between a tag, with which the given text begins, and its end, and the rest.
fn between<'t>(text: &'t str, [begin, end]: [&str; 2]) -> Option<(&'t str, &'t str)> {
    text.strip_prefix(begin)?.split_once(end)
}

/// Returns the calls in a text: an object of JSON, a list of these, or an object as Python prints it; `None` if one has no name.
pub fn calls_in(text: &str) -> Option<Vec<Value>> {
    let text = text.trim();
    if let Some((body, _)) = between(text, FUNCTION) {
        return function_in(body).map(|call| vec![call]);
    }
    let of_python = || {
        let json = text.replace('\'', "\"").replace(": None", ": null");
        parse_str(&json.replace(": True", ": true").replace(": False", ": false")).ok()
    };
    let value = parse_str(text)
        .ok()
        .or_else(|| (!text.contains('"')).then(of_python)?)?;
    let call = |call: &Value| {
        str_of(call.get("name"))?;
        let mut call = call.as_object()?.clone();
        call.insert("type", "tool_use");
        Some(call.into())
    };
    elements_of(Some(&value)).iter().map(call).collect()
}

/// Returns the call whose name and parameters are in tags.
fn function_in(body: &str) -> Option<Value> {
    let (name, mut rest) = body.split_once('>')?;
    let mut arguments = Vec::new();
    while let Some((parameter, after)) = between(rest.trim_start(), PARAMETER) {
        let (name, value) = parameter.split_once('>')?;
        arguments.push((name.into(), value.trim_matches('\n').into()));
        rest = after;
    }
    let arguments: Object = arguments.into_iter().collect();
    Some(call_of(None, Some(&name.into()), Some(&arguments.into())))
}

/// The parts of a text, and the plain text behind them.
#[derive(Default)]
pub struct Parts {
    list: Vec<Value>,
    plain: String,
}

impl Parts {
    /// Ends the text before a tag.
    fn flush(&mut self) {
        let text = self.plain.trim();
        if !text.is_empty() {
            self.list.push(saying(text.into()));
        }
        self.plain.clear();
    }

    /// Returns the parts.
    pub fn into_list(mut self) -> Vec<Value> {
        self.flush();
        self.list
    }

    /// Returns the parts, if a tag was among them.
    fn finish(self) -> Option<Value> {
        (!self.list.is_empty()).then(|| self.into_list().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::list_of;

    #[test]
    fn parts_of_model_splits_reasoning_calls_and_text() {
        let parts = |text: &str| parts_of_model(Some(&text.into())).map(|parts| parts.to_json());
        let thinking = r#"{"type":"thinking","thinking":"Hm."}"#;
        let call = r#"{"name":"ls","arguments":{},"type":"tool_use"}"#;
        let text = r#"{"type":"text","text":"a < b"}"#;
        for (written, expected) in [
            ("<think>Hm.</think>\na < b", Some(format!("[{thinking},{text}]"))),
            ("Hm.\n</think>\n\na < b", Some(format!("[{thinking},{text}]"))),
            ("<think>Hm.", Some(format!("[{thinking}]"))),
            (
                "a < b\n<tool_call>\n{\"name\":\"ls\",\"arguments\":{}}\n</tool_call>",
                Some(format!("[{text},{call}]")),
            ),
            (
                "<tool_call>{'name': 'ls', 'arguments': {}}</tool_call>",
                Some(format!("[{call}]")),
            ),
            (
                "<function=ls><parameter=path>\na\n</parameter></function>",
                Some(r#"[{"type":"tool_use","name":"ls","input":{"path":"a"}}]"#.to_owned()),
            ),
            ("<tool_call>ls</tool_call>", None),
            ("<tool_call>{\"name\":\"ls\"", None),
            ("a < b", None),
        ] {
            assert_eq!(parts(written), expected, "{written}");
        }
    }

    #[test]
    fn a_text_of_broken_calls_is_read_in_linear_time_and_stays_text() {
        for tag in ["<tool_call>", "<function=", "<tool_call></tool_call>"] {
            let text = tag.repeat(100_000);
            assert_eq!(parts_of_model(Some(&text.as_str().into())), None, "{tag}");
            let parts = parts_of_model(Some(&format!("<think>Hm.</think>{text}").into()));
            assert_eq!(
                parts.as_ref().map(|parts| list_of(Some(parts)).len()),
                Some(2),
                "{tag}"
            );
        }
    }

    #[test]
    fn parts_of_results_splits_results_at_the_beginning() {
        let parts = |text: &str| parts_of_results(Some(&text.into())).map(|parts| parts.to_json());
        assert_eq!(
            parts("<tool_response>\n1\n</tool_response>\n<tool_response>2</tool_response>").as_deref(),
            Some(r#"[{"type":"tool_result","content":"1"},{"type":"tool_result","content":"2"}]"#)
        );
        assert_eq!(parts("What is <tool_response>1</tool_response>?"), None);
    }
}
