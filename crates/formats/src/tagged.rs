//! Reasoning, calls and results that open models write as tags in text, as the chat templates of Hermes, Qwen and DeepSeek and the
//! prompts of OpenHands have them.

use knowledgepulse_json::{Object, Value, parse_str};

use crate::{
    parts::{Call, Part, parts_of},
    values::{elements_of, first_of, str_of},
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
    Parts(Vec<Part>, &'t str),
    /// A tag that cannot be read.
    Broken,
    /// Plain text.
    None,
}

/// Splits a text into parts. `read` gets the plain text before a `<`, since the tag before, and the text from there.
pub fn split<'t>(text: &'t str, read: impl Fn(&str, &'t str) -> Tag<'t>) -> Pieces {
    let (mut parts, mut rest, mut broken) = (Pieces::default(), text, 0);
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

/// Returns the parts of a content by somebody of this role: what is in tags of its text, or else what it holds.
pub fn parts_by(role: &str, content: Option<&Value>) -> Vec<Part> {
    let text = content.and_then(Value::as_str);
    let tagged = match role {
        "assistant" | "model" | "ai" => text.and_then(parts_of_model),
        "user" | "human" | "tool" => text.and_then(parts_of_results),
        _ => None,
    };
    tagged.unwrap_or_else(|| parts_of(content))
}

/// Returns the parts of a model's text; `None` for a text without reasoning and calls in tags.
fn parts_of_model(text: &str) -> Option<Vec<Part>> {
    let tags = [THINK[0], THINK[1], CALL[0], FUNCTION[0]];
    if !text.contains('<') || !tags.iter().any(|tag| text.contains(tag)) {
        return None;
    }
    let thought = |body: &str| Part::Thought(Some(body.trim().into()));
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
fn parts_of_results(text: &str) -> Option<Vec<Part>> {
    let (mut parts, mut rest) = (Pieces::default(), text);
    while let Some((body, after)) = between(rest.trim_start(), RESULT) {
        parts
            .list
            .push(Part::result(None, Some(&body.trim().into()), None));
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
pub fn calls_in(text: &str) -> Option<Vec<Part>> {
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
        let args = first_of(call, &["input", "arguments", "args"]);
        Some(Part::call(call.get("id"), call.get("name"), args))
    };
    elements_of(Some(&value)).iter().map(call).collect()
}

/// Returns the call whose name and parameters are in tags.
fn function_in(body: &str) -> Option<Part> {
    let (name, mut rest) = body.split_once('>')?;
    let mut args = Object::new();
    while let Some((parameter, after)) = between(rest.trim_start(), PARAMETER) {
        let (name, value) = parameter.split_once('>')?;
        args.insert(name, value.trim_matches('\n'));
        rest = after;
    }
    Some(Part::Call(Call {
        name: Some(name.into()),
        args,
        ..Call::default()
    }))
}

/// The parts of a text, and the plain text behind them.
#[derive(Default)]
pub struct Pieces {
    list: Vec<Part>,
    plain: String,
}

impl Pieces {
    /// Ends the text before a tag.
    fn flush(&mut self) {
        let text = self.plain.trim();
        if !text.is_empty() {
            self.list.push(Part::Text(text.into()));
        }
        self.plain.clear();
    }

    /// Returns the parts.
    pub fn into_list(mut self) -> Vec<Part> {
        self.flush();
        self.list
    }

    /// Returns the parts, if a tag was among them.
    fn finish(self) -> Option<Vec<Part>> {
        (!self.list.is_empty()).then(|| self.into_list())
    }
}

#[cfg(test)]
mod tests {
    use knowledgepulse_json::object;

    use super::*;

    fn thought(text: &str) -> Part {
        Part::Thought(Some(text.into()))
    }

    fn call(args: Value) -> Part {
        Part::call(None, Some(&"ls".into()), Some(&args))
    }

    #[test]
    fn parts_of_model_splits_reasoning_calls_and_text() {
        let text = || Part::Text("a < b".into());
        let no_args = || call(Value::Null);
        for (written, expected) in [
            ("<think>Hm.</think>\na < b", Some(vec![thought("Hm."), text()])),
            ("Hm.\n</think>\n\na < b", Some(vec![thought("Hm."), text()])),
            ("<think>Hm.", Some(vec![thought("Hm.")])),
            (
                "a < b\n<tool_call>\n{\"name\":\"ls\",\"arguments\":{}}\n</tool_call>",
                Some(vec![text(), no_args()]),
            ),
            (
                "<tool_call>{'name': 'ls', 'arguments': {}}</tool_call>",
                Some(vec![no_args()]),
            ),
            (
                "<function=ls><parameter=path>\na\n</parameter></function>",
                Some(vec![call(object([("path", "a".into())]))]),
            ),
            ("<tool_call>ls</tool_call>", None),
            ("<tool_call>{\"name\":\"ls\"", None),
            ("a < b", None),
        ] {
            assert_eq!(parts_of_model(written), expected, "{written}");
        }
    }

    #[test]
    fn a_text_of_broken_calls_is_read_in_linear_time_and_stays_text() {
        for tag in ["<tool_call>", "<function=", "<tool_call></tool_call>"] {
            let text = tag.repeat(100_000);
            assert_eq!(parts_of_model(&text), None, "{tag}");
            let parts = parts_of_model(&format!("<think>Hm.</think>{text}"));
            assert_eq!(parts.map(|parts| parts.len()), Some(2), "{tag}");
        }
    }

    #[test]
    fn parts_of_results_splits_results_at_the_beginning() {
        let result = |text: &str| Part::result(None, Some(&text.into()), None);
        assert_eq!(
            parts_of_results("<tool_response>\n1\n</tool_response>\n<tool_response>2</tool_response>"),
            Some(vec![result("1"), result("2")])
        );
        assert_eq!(
            parts_of_results("What is <tool_response>1</tool_response>?"),
            None
        );
    }
}
