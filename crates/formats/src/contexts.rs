//! What programs write into the user's turns, for all agents: the context of an editor, reminders, commands. It is no word of the user.

use std::sync::LazyLock;

use knowledgepulse_json::{Text, Value, parse_str};
use regex::Regex;

use crate::{
    shapes::is,
    values::{has_text, regex, str_of},
    words::{is_begun, is_one, row_where, words},
};

/// Words in a user's turn, by whose they are.
#[derive(Debug, PartialEq)]
pub enum Words {
    /// The user's words.
    Own(Text),
    /// What the user did in a shell, and what that printed.
    Shell(Text),
    /// What a program or another agent says in an element of its own.
    Told(Text),
    /// A command that the program carries out itself.
    Command,
    /// Words of the program.
    Context,
    /// The program says that the user has stopped the agent.
    Stopped,
}

/// The prompts of programs that have the user's task in them, if it is there.
static PROMPT: LazyLock<Regex> = LazyLock::new(|| {
    let all: Vec<_> = words("prompt").collect();
    regex(&format!("^(?s:{})", all.join("|")))
});

/// What programs write before a turn.
static BEFORE: LazyLock<Regex> = LazyLock::new(|| {
    let all: Vec<_> = words("before").collect();
    regex(&format!("^(?:{})+", all.join("|")))
});

/// How a command begins that becomes a prompt, and the tags of its name and its arguments.
const PROMPT_COMMAND: &str = "<command-message>";
const PROMPT_COMMAND_PARTS: [&str; 2] = ["command-name", "command-args"];

/// The longest notice, in bytes.
const LONGEST_NOTICE: usize = 16 * 1024;

/// The longest name of a tag, in bytes.
const LONGEST_TAG: usize = 64;

/// After so many tags without an end, a text goes on as plain text: each of them is searched to the end of the text.
const MOST_BROKEN: usize = 16;

/// Splits a part of a user's turn by whose words they are. A text without words of a program stays as it is.
#[must_use]
pub fn words_of(part: Text) -> Vec<Words> {
    if is_begun(&part, "stopped") {
        return vec![Words::Stopped];
    }
    if is_begun(&part, "program") || object_in(&part).is_some_and(|object| is(&object, "notice")) {
        return vec![Words::Context];
    }
    let text = part.as_str();
    let beginning = text.trim_start();
    if beginning.starts_with(|first: char| "<[".contains(first) || first.is_ascii_uppercase())
        && let Some(found) = BEFORE.find(beginning)
    {
        let own = beginning[found.end()..].into();
        return [Words::Context].into_iter().chain(words_of(own)).collect();
    }
    if let Some(found) = PROMPT.captures(beginning) {
        let mut own = found.iter().skip(1).flatten();
        let own = own.next().map(|task| Words::Own(task.as_str().trim().into()));
        return [Words::Context].into_iter().chain(own).collect();
    }
    if is_begun(text, "shell") {
        return vec![Words::Shell(beginning.into())];
    }
    if !part.contains(['<', '#']) {
        return vec![Words::Own(part)];
    }
    if is_begun(text, "command") {
        return vec![Words::Command];
    }
    if beginning.starts_with(PROMPT_COMMAND) {
        let words = PROMPT_COMMAND_PARTS.iter().filter_map(|tag| inside(text, tag));
        let words: Vec<_> = words.map(|(_, words, _)| words.trim()).collect();
        return vec![Words::Own(words.join(" ").trim().into())];
    }
    if let Some(own) = requests_of(text) {
        return vec![Words::Context, Words::Own(own.into())];
    }
    if let Some(told) = told_in(text) {
        return told;
    }
    let (mut own, mut count) = without_contexts(text);
    if let Some((before, request)) = words("heading").find_map(|heading| own.split_once(heading)) {
        count += usize::from(!before.trim().is_empty());
        own = request.to_owned();
    } else if let Some(words) = unwrapped(&own) {
        own = words.to_owned();
    } else if count == 0 {
        return vec![Words::Own(part)];
    }
    let own = Some(own.trim()).filter(|own| !own.is_empty());
    let own = own.map(|own| Words::Own(own.into()));
    (0..count).map(|_| Words::Context).chain(own).collect()
}

/// Returns the text before the first element of this tag, in it and after it.
pub fn inside<'t>(text: &'t str, tag: &str) -> Option<(&'t str, &'t str, &'t str)> {
    let begin = format!("<{tag}");
    let is_whole = |(at, _): &(usize, &str)| text[at + begin.len()..].starts_with(['>', ' ']);
    let (at, _) = text.match_indices(&begin).find(is_whole)?;
    let (before, tagged) = text.split_at(at);
    let (_, rest) = tagged.split_once('>')?;
    let (within, after) = rest.split_once(&format!("</{tag}>"))?;
    Some((before, within, after))
}

/// Returns the user's words where tags are around them.
fn requests_of(text: &str) -> Option<String> {
    words("request").find_map(|tag| {
        let mut words = Vec::new();
        let mut rest = text;
        while let Some((_, within, after)) = inside(rest, tag) {
            words.push(without_contexts(within).0.trim().to_owned());
            rest = after;
        }
        (!words.is_empty()).then(|| words.join("\n"))
    })
}

/// Returns the text within a tag that is around all of it.
fn unwrapped(text: &str) -> Option<&str> {
    let text = text.trim();
    words("wrapper").find_map(|tag| {
        let (before, within, after) = inside(text, tag)?;
        (before.is_empty() && after.trim().is_empty()).then_some(within)
    })
}

/// Returns what the elements say that a text is made of, if they are a program's by their shape: a name with a dash, or
/// attributes. `None` for another text.
fn told_in(text: &str) -> Option<Vec<Words>> {
    let (mut parts, mut told, mut rest) = (Vec::new(), Vec::new(), text.trim());
    while !rest.is_empty() {
        let (tag, _) = rest.strip_prefix('<')?.split_once('>')?;
        let name = tag.split_ascii_whitespace().next()?;
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_:".contains(&byte);
        let (_, within, after) = inside(rest, name)?;
        let asked = row_where("told", |told| told == name).and_then(|[_, part]| inside(within, part));
        let is_shape = asked.is_some() || tag.contains("=\"") || name.contains('-');
        if !is_shape || name.len() > LONGEST_TAG || !name.bytes().all(is_name) || is_one(name, "wrapper") {
            return None;
        }
        let within = asked.map_or(within, |(_, part, _)| part).trim();
        // In an element it is a notice whatever it says.
        let notice = object_in(within).filter(|object| has_text(object, "type"));
        // A task that is given says what is to be done.
        let task = notice
            .as_ref()
            .and_then(|notice| str_of(notice.get("description")));
        if let Some(task) = task {
            told.push(task.to_owned());
        } else if context_in(rest).is_some() || within.is_empty() || notice.is_some() {
            parts.push(Words::Context);
        } else {
            told.push(within.to_owned());
        }
        rest = after.trim_start();
    }
    if !told.is_empty() {
        parts.push(Words::Told(told.join("\n").into()));
    }
    (!parts.is_empty()).then_some(parts)
}

/// Returns the object in JSON that a text is, if it is short enough for a notice of a program.
fn object_in(text: &str) -> Option<Value> {
    let text = text.trim();
    if !text.starts_with('{') || !text.ends_with('}') || text.len() > LONGEST_NOTICE {
        return None;
    }
    parse_str(text).ok()
}

/// Returns the name of the tag with which a text begins, if its contents are the program's.
fn context_in(tagged: &str) -> Option<&str> {
    let end = tagged.bytes().take(LONGEST_TAG).position(|byte| byte == b'>')?;
    let name = &tagged[1..end];
    let is_tag = |tag: &&str| match tag.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == *tag || name.strip_prefix(tag).is_some_and(|more| more.starts_with(' ')),
    };
    words("context").any(|tag| is_tag(&tag)).then_some(name)
}

/// Returns the end of the tag of this name.
fn end_of(name: &str) -> String {
    let name = if name == "permissions instructions" {
        name
    } else {
        name.split(' ').next().unwrap_or_default()
    };
    format!("</{name}>")
}

/// Returns a text without the program's words in tags, and how many of them there were.
fn without_contexts(text: &str) -> (String, usize) {
    let (mut own, mut count, mut broken, mut rest) = (String::new(), 0, 0, text);
    while broken < MOST_BROKEN
        && let Some(at) = rest.find('<')
    {
        let (before, tagged) = rest.split_at(at);
        own.push_str(before);
        let end = context_in(tagged).map(end_of);
        match end.as_ref().and_then(|end| Some(tagged.find(end)? + end.len())) {
            Some(end) => {
                count += 1;
                rest = &tagged[end..];
            }
            // The text was cut off.
            None if end.is_some() && own.trim().is_empty() => return (own, count + 1),
            None => {
                broken += usize::from(end.is_some());
                own.push('<');
                rest = &tagged[1..];
            }
        }
    }
    own.push_str(rest);
    (own, count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_tells_the_words_of_the_user_from_those_of_the_program() {
        let own = |text: &str| Words::Own(text.into());
        for (text, parts) in [
            ("a < b # c", vec![own("a < b # c")]),
            (" Fix <ide_opened_file", vec![own(" Fix <ide_opened_file")]),
            (
                "<ide_opened_file>x</ide_opened_file>\nIs it <b>?",
                vec![Words::Context, own("Is it <b>?")],
            ),
            ("<ide_selection>x</ide_selection>", vec![Words::Context]),
            (
                "<git-context>x</git-context>\nFix it\n<qwen:user-prompt-submit-context>y</qwen:user-prompt-submit-context>",
                vec![Words::Context, Words::Context, own("Fix it")],
            ),
            ("<environment_context>\n <cwd>", vec![Words::Context]),
            (
                "<goal-status state=\"active\">\nkeep going until it renders\n</goal-status>",
                vec![Words::Context],
            ),
            ("<goal>Fix it</goal>", vec![own("<goal>Fix it</goal>")]),
            (
                "Fix it\n<system-reminder>a</system-reminder>\nnow<system-reminder>b</system-reminder>",
                vec![Words::Context, Words::Context, own("Fix it\n\nnow")],
            ),
            (
                "<task>\nFix it\n</task>\n\n<environment_details>x</environment_details>",
                vec![Words::Context, own("Fix it")],
            ),
            ("<task>a</task> b", vec![own("<task>a</task> b")]),
            (
                "<user_info>x</user_info><user_query>\nFix it\n</user_query>",
                vec![Words::Context, own("Fix it")],
            ),
            (
                "# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>",
                vec![Words::Context],
            ),
            (
                "# Context from my IDE setup:\n\n## My request for Codex:\nFix it\n",
                vec![Words::Context, own("Fix it")],
            ),
            (
                "<teammate-message teammate_id=\"north\" color=\"blue\">\nTwo posts are loose.\n</teammate-message>",
                vec![Words::Told("Two posts are loose.".into())],
            ),
            (
                "<note from=\"a\">{\"type\":\"idle\",\"from\":\"a\"}</note>\n<some-new-thing>x</some-new-thing>",
                vec![Words::Context, Words::Told("x".into())],
            ),
            (
                "<teammate-message teammate_id=\"lead\">{\"type\":\"task_assignment\",\"subject\":\"Posts\",\"description\":\"Check each post\",\"timestamp\":\"t\"}</teammate-message>",
                vec![Words::Told("Check each post".into())],
            ),
            (
                "<teammate-message teammate_id=\"system\">{\"type\":\"gone\",\"message\":\"north has gone.\"}</teammate-message>",
                vec![Words::Context],
            ),
            (
                "<note from=\"a\">{\"type\":7}</note>",
                vec![Words::Told("{\"type\":7}".into())],
            ),
            ("{\"type\":\"gone\"}", vec![own("{\"type\":\"gone\"}")]),
            (
                "{\"type\":\"idle\",\"timestamp\":\"2026-01-01\"}",
                vec![Words::Context],
            ),
            (
                "<task>\nSort it\n</task>\n\n<file_content path=\"a\">\nb\n</file_content>",
                vec![Words::Context, own("Sort it")],
            ),
            (
                "[TASK RESUMPTION] This task was interrupted.\n\nNew instructions:\n<user_message>\nSort it\n</user_message>",
                vec![Words::Context, Words::Context, own("Sort it")],
            ),
            (
                "[TASK RESUMPTION] This task was interrupted.",
                vec![Words::Context, own("")],
            ),
            (
                "Another Claude session sent a message:\n<agent-message from=\"b\">Two are loose.</agent-message>",
                vec![Words::Context, Words::Told("Two are loose.".into())],
            ),
            (
                "<apps_instructions>x</apps_instructions>\nSort it",
                vec![Words::Context, own("Sort it")],
            ),
            ("[SUGGESTION MODE: Suggest what comes next]", vec![Words::Context]),
            (
                "<codex_delegation>\n  <source_thread_id>a</source_thread_id>\n  <input>Count the plums</input>\n</codex_delegation>",
                vec![Words::Told("Count the plums".into())],
            ),
            (
                "<heartbeat>\n<automation_id>a</automation_id>\n<instructions>\nCount the plums\n</instructions>\n</heartbeat>",
                vec![Words::Told("Count the plums".into())],
            ),
            ("<heartbeat>a</heartbeat>", vec![own("<heartbeat>a</heartbeat>")]),
            (
                "Warning: The maximum number of unified exec processes you can keep open is 60",
                vec![Words::Context],
            ),
            ("<a-b>x</a-b><c-d>y</c-d>", vec![Words::Told("x\ny".into())]),
            ("<b>a</b>", vec![own("<b>a</b>")]),
            (
                "<pr_description>a</pr_description>",
                vec![own("<pr_description>a</pr_description>")],
            ),
            (
                "<my-tag>a</my-tag> is it closed?",
                vec![own("<my-tag>a</my-tag> is it closed?")],
            ),
            (
                "Sender (untrusted metadata):\n```json\n{\"id\":\"a\"}\n```\n\n[Sun 2026-04-19 00:33 GMT+8] Water the beans",
                vec![Words::Context, own("Water the beans")],
            ),
            ("@agent Continue: \"Continue to iterate?\"", vec![Words::Context]),
            (
                "[cron:7f3a-11 plums] Count the plums\nCurrent time: Monday\n\nReturn your summary as plain text.",
                vec![Words::Context, own("Count the plums")],
            ),
            (
                "[IMPORTANT: You are running as a scheduled cron job. SILENT: say \"[SILENT]\".]\n\nCount the plums",
                vec![Words::Context, own("Count the plums")],
            ),
            (
                "[Subagent Context] You are a subagent.\n\n[Subagent Task]: Count the plums",
                vec![Words::Context, own("Count the plums")],
            ),
            ("[Sun] is it open?", vec![own("[Sun] is it open?")]),
            (
                "System: [2026-09-18 11:21:00 GMT+1] Exec completed (ab1, code 0) :: done\n\nWater the beans",
                vec![Words::Context, own("Water the beans")],
            ),
            (
                "System: [2026-09-18 11:21:00 GMT+1] Node: on\n\nRead HEARTBEAT.md if it exists (workspace context).",
                vec![Words::Context, Words::Context],
            ),
            ("System: is it open?", vec![own("System: is it open?")]),
            (
                "A new session was started via /new or /reset. Execute your Session Startup sequence now",
                vec![Words::Context],
            ),
            (
                "[SYSTEM: The user has invoked the \"mow\" skill.]\n\n# Mow\nSlowly.\n\nThe user has provided the following instruction alongside the skill invocation: Mow the lawn",
                vec![Words::Context, own("Mow the lawn")],
            ),
            (
                "<goal_context>\nContinue working toward the active thread goal.\n</goal_context>",
                vec![Words::Context],
            ),
            (
                "<codex_internal_context source=\"goal\">Continue</codex_internal_context>",
                vec![Words::Context],
            ),
            ("<command-name>/clear</command-name>", vec![Words::Command]),
            (
                "<command-message>review</command-message>\n<command-name>/review</command-name>\n<command-args>a</command-args>",
                vec![own("/review a")],
            ),
            (
                "<tools>\n[{\"name\": \"sh\"}]\n</tools>\n\nCount the plums",
                vec![Words::Context, own("Count the plums")],
            ),
            (
                "<tools>\n[]\n</tools>\n\nYou are a helpful assistant that can interact with a computer.",
                vec![Words::Context, own("")],
            ),
            (
                "<tools>\n<saw/>\n</tools>",
                vec![own("<tools>\n<saw/>\n</tools>")],
            ),
            (
                "You are a world expert at analyzing a situation to derive facts.\nHere is your task:\n```\nRun\n```\nls\n```\n```\nFirst in part 1, write the facts.",
                vec![Words::Context, own("Run\n```\nls\n```")],
            ),
            ("Now proceed and carry out this plan.", vec![Words::Context]),
            (
                "\n<bash-input>ls</bash-input>",
                vec![Words::Shell("<bash-input>ls</bash-input>".into())],
            ),
        ] {
            assert_eq!(words_of(text.into()), parts, "{text}");
        }
    }

    #[test]
    fn words_of_takes_linear_time_on_tags_that_nothing_ends() {
        let text = "<ide_x>".repeat(20_000);
        assert_eq!(words_of(text.as_str().into()), [Words::Context]);
        let text = format!("a{text}");
        assert_eq!(words_of(text.as_str().into()), [Words::Own(text.into())]);
    }
}
