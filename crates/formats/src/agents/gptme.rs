//! gptme: `conversation.jsonl`, a message a line. Calls are in the words of the model: `@TOOL(ID): JSON`, blocks of code or elements. Results
//! are messages of the system that the program does not hide.

use std::{array, sync::LazyLock};

use regex::Regex;

use crate::{prelude::*, tagged, written};

pub static FORMAT: Format = Format::of_messages("gptme", add_message_of);

static CALL: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?ms)^@([A-Za-z0-9_]+)(?:\(([^)\n]*)\))?: ?(\{)|^```([a-z_]+) ?([^\n]*)\n(.*?)^```[ \t]*$|<tool-use>[ \n]*<([a-z_]+)[^>]*>(.*?)</[a-z_]+>[ \n]*</tool-use>",
    )
});

fn add_message_of(say: &mut Events, message: &Value) {
    say.begin_record(None, message.get("timestamp"));
    say.first_fact("model", in_path(message, "metadata/model"));
    let content = message.get("content");
    let text = str_of(content).unwrap_or_default();
    match role_of(message) {
        "system" if !is_true(message, "hide") => {
            let code = text.trim_end().rsplit_once("\nReturn code: ");
            let failed = code.map(|(_, code)| code != "0");
            say.answer(id_of(message.get("call_id")), content, failed);
        }
        "assistant" => add_parts(say, object_of(None), "assistant", parts_of_model(text)),
        role => add_said(say, role, content),
    }
}

/// Returns the parts of a model's text. A block of code is a call if its language is a tool.
fn parts_of_model(text: &str) -> Vec<Part> {
    let words = |text: &str| tagged::parts_by("assistant", Some(&text.trim().into()));
    let (mut parts, mut rest) = (Vec::new(), 0);
    for found in CALL.captures_iter(text) {
        let (start, mut end) = (found.get_match().start(), found.get_match().end());
        let groups = array::from_fn(|at| found.get(at + 1).map(|group| group.as_str()));
        let [tool, id, json, language, told, code, tag, body] = groups;
        let language = language.filter(|language| is_one(language, "gptme-tool"));
        let Some(name) = tool.or(language).or(tag).filter(|_| start >= rest) else {
            continue;
        };
        let text_in = |text: Option<&str>| Some(text?.trim().into()).filter(|text| *text != Value::from(""));
        let mut args = some_object([("args", text_in(told)), ("content", text_in(code.or(body)))]);
        if json.is_some() {
            let Some((given, after)) = written::literal(&text[end - 1..]) else {
                break;
            };
            (args, end) = (given, text.len() - after.len());
        }
        parts.extend(words(&text[rest..start]));
        let id = id.map(Text::from);
        parts.push(Part::Call(Call {
            id,
            ..Call::named(name, input_of(Some(&args)))
        }));
        rest = end;
    }
    parts.extend(words(&text[rest..]));
    parts.retain(|part| !matches!(part, Part::Text(text) if is_blank(text)));
    parts
}
