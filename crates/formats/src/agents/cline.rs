//! Cline, Roo Code and Kilo Code: `tasks/ID/api_conversation_history.json`, messages of Anthropic in which calls may be XML in the text; and
//! Cline's `ID.messages.json` of today, one object.

use crate::{
    prelude::*,
    tagged::{Tag, split},
};

pub static FORMAT: Format = Format::of_messages("cline", add_message_of)
    .also(is_task)
    .of_file("api_conversation_history.json", "cline-line")
    .end(add_parent)
    .beside(beside);

/// What stands between the name of a call, in brackets, and its result.
const RESULT: &str = "] Result:";

/// The end of the user's context, which follows each turn.
const DETAILS: &str = "<environment_details>";

/// The tag of reasoning.
const THOUGHT: &str = "thinking";

/// Says the folder that an agent worked in, by `SESSION/SESSION.json`, or Roo's `history_item.json`, which names the task around a task.
fn beside(path: &Path, say: &mut Events) {
    let session = path
        .parent()
        .and_then(|folder| Some(folder.join(folder.file_name()?).with_extension("json")));
    say.facts_in(session);
    say.facts_in(Some(path.with_file_name("history_item.json")));
}

/// Returns whether a message is the first one, which begins a task.
fn is_task(record: &Value) -> bool {
    let parts = elements_of(record.get("content")).iter();
    let mut texts = parts.filter_map(|part| str_of(part.get("text")));
    let begins = |text: &str| words("cline-task").any(|tag| text.starts_with(tag));
    let first = texts.clone().next().filter(|_| record.get("role").is_some());
    first.is_some_and(begins) && texts.any(|text| text.contains(DETAILS))
}

/// A sub-agent of Cline today is no lead.
fn add_parent(say: &mut Events, session: &Value) {
    let parent = first_at(session, "parentSessionId origin/parentThreadId");
    say.sub_agent(str_of(session.get("agent")) != Some("lead"), parent);
}

fn add_message_of(say: &mut Events, message: &Value) {
    say.begin_record(message.get("id"), message.get("ts"));
    say.first_fact("model", fields_of(message, "modelInfo").get("id"));
    let is_set = |name: &&str| is_truthy(message.get(name));
    let is_program = ["isSummary", "isTruncationMarker"].iter().any(is_set);
    match str_of(message.get("role")) {
        _ if is_program || fields_of(message, "metadata").contains("kind") => {
            say.leave_out("message of the program");
        }
        Some(role) => add_turn(say, role, message.get("content")),
        None => add_message(say, message),
    }
}

fn add_turn(say: &mut Events, role: &str, content: Option<&Value>) {
    // The text of a result, while its parts come.
    let mut result: Option<String> = None;
    let mut others = Vec::new();
    for part in elements_of(content) {
        let is_text = str_of(part.get("type")) == Some("text");
        let text = part
            .as_str()
            .or_else(|| str_of(part.get("text")).filter(|_| is_text));
        match (text, &mut result) {
            (Some(text), _) if role == "assistant" => add_reply(say, text),
            (Some(text), _) if is_result(text) => {
                end(say, result.take());
                result = text.split_once(RESULT).map(|(_, text)| text.trim().to_owned());
            }
            (Some(text), Some(so_far)) if !text.trim_start().starts_with(DETAILS) => {
                so_far.push_str(if so_far.is_empty() { "" } else { "\n" });
                so_far.push_str(text);
            }
            (None, Some(so_far)) => so_far.push_str("\n[image]"),
            // The text of a file is the program's.
            _ if str_of(part.get("type")) == Some("file") => others.push(Part::Picture("file".into())),
            _ => others.extend(parts_in(part).into_iter().map(without_tags)),
        }
    }
    end(say, result);
    if !others.is_empty() {
        add_parts(say, object_of(None), role, others);
    }
}

fn is_result(text: &str) -> bool {
    text.starts_with('[') && text.lines().next().is_some_and(|line| line.contains(RESULT))
}

/// Returns a result without the tags around the user's words; another part as it is.
fn without_tags(mut part: Part) -> Part {
    if let Part::Result { content, .. } = &mut part
        && let [Part::Text(text)] = &mut content[..]
    {
        *text = text_without_tags(text);
    }
    part
}

fn text_without_tags(text: &str) -> Text {
    let text = words("cline-words").fold(text.to_owned(), |text, tag| {
        text.replace(&format!("<{tag}>\n"), "")
            .replace(&format!("\n</{tag}>"), "")
    });
    text.into()
}

fn end(say: &mut Events, result: Option<String>) {
    let Some(text) = result else {
        return;
    };
    let has_failed = text.contains("The tool execution failed with the following error");
    let is_over = has_failed || text.starts_with("The user denied this operation");
    say.result(None, text_without_tags(&text), is_over.then_some(has_failed));
}

/// Adds a text of the agent with its reasoning and its calls, whose tags stand at the beginning of lines.
fn add_reply(say: &mut Events, text: &str) {
    let parts = split(text, |before, tagged| {
        let is_at_beginning = before.is_empty() || before.ends_with('\n');
        let is_own = |name: &&str| *name == THOUGHT || name.contains('_');
        let Some(name) = name_of(tagged).filter(|name| is_at_beginning && is_own(name)) else {
            return Tag::None;
        };
        let Some((body, after)) = element_of(tagged, name) else {
            return Tag::Broken;
        };
        if name == THOUGHT {
            return Tag::Parts(vec![Part::Thought(Some(body.trim().into()))], after);
        }
        // A call has a parameter.
        if name_of(body.trim_start()).is_none() {
            return Tag::Broken;
        }
        Tag::Parts(vec![call_in(name, body)], after)
    });
    say.say_parts(TextKind::Message, parts.into_list());
}

/// Returns the name of the tag with which a text begins.
fn name_of(text: &str) -> Option<&str> {
    let name = text.strip_prefix('<')?;
    let end = name.find(|character: char| !character.is_ascii_lowercase() && character != '_')?;
    (end > 0 && name[end..].starts_with('>')).then_some(&name[..end])
}

/// Returns the contents of the element of this name with which a text begins, and the text behind it. A text may have tags in it that
/// are like its own.
fn element_of<'t>(text: &'t str, name: &str) -> Option<(&'t str, &'t str)> {
    let body = text.get(name.len() + 2..)?;
    let end = format!("</{name}>");
    if is_one(name, "cline-file") {
        body.rsplit_once(&end)
    } else {
        body.split_once(&end)
    }
}

fn call_in(name: &str, body: &str) -> Part {
    let mut args = Object::new();
    let mut rest = body.trim_start();
    while let Some(name) = name_of(rest)
        && let Some((value, after)) = element_of(rest, name)
    {
        args.insert(name, value.trim_matches('\n'));
        rest = after.trim_start();
    }
    let tool = text_at(&args, "tool_name").or_else(|| text_at(&args, "uri"));
    let Some((server, tool)) = text_at(&args, "server_name").zip(tool) else {
        return Part::Call(Call::named(name, args));
    };
    Part::Call(Call {
        server: Some(server),
        ..Call::named(tool, input_of(args.get("arguments")))
    })
}
