//! Aider: the launches in `.aider.chat.history.md`. Lines that begin with `#### ` are the user's, lines that begin with `> ` the program's,
//! and all others the agent's.

use crate::prelude::*;

pub static FORMAT: Format = Format::sessions("aider", decode);

/// How the program says that it has changed a file.
const EDITED: &str = "Applied edit to ";

/// An empty line of a prompt.
const BLANK: &str = "<blank>";

fn decode(record: &Value, say: &mut Events) -> Result<Decoded, Wrong> {
    let text = record.get("text").filter(|_| is(record, "aider"));
    let Some(text) = text.and_then(Value::as_text) else {
        return Ok(Decoded::Unknown);
    };
    say.begin_record(None, record.get("aider"));
    let mut shell = String::new();
    for (whose, text) in passages_of(text) {
        match (whose, text.trim()) {
            (_, "") => {}
            (Whose::Program, text) if !shell.is_empty() => shell.extend(["\n", text]),
            (Whose::Program, text) => add_program(say, text),
            (_, text) => {
                end_shell(say, &mut shell);
                match whose {
                    Whose::User => add_prompt(say, &text.replace(BLANK, ""), &mut shell),
                    _ => say.say(TextKind::Message, text.into()),
                }
            }
        }
    }
    end_shell(say, &mut shell);
    Ok(Decoded::Whole)
}

/// Whose words a line has.
#[derive(Clone, Copy, PartialEq)]
enum Whose {
    User,
    Program,
    Agent,
}

/// Returns the lines of one that follow each other. Blank lines are between all parts.
fn passages_of(text: &str) -> Vec<(Whose, String)> {
    let mut passages = vec![(Whose::Agent, String::new())];
    let mut is_code = false;
    for line in text.lines() {
        let (whose, line) = match (line.strip_prefix("#### "), line.strip_prefix("> ")) {
            (Some(line), _) if !is_code => (Whose::User, line),
            (_, Some(line)) if !is_code => (Whose::Program, line),
            _ => (Whose::Agent, line),
        };
        is_code ^= whose == Whose::Agent && line.starts_with("```");
        let line = line.trim_end();
        let is_between = whose == Whose::Agent && line.is_empty();
        match passages.last_mut() {
            Some((last, lines)) if *last == whose || is_between => lines.extend(["\n", line]),
            _ => passages.push((whose, line.to_owned())),
        }
    }
    passages
}

/// Adds a prompt, or begins the output of a command of a shell.
fn add_prompt(say: &mut Events, text: &str, shell: &mut String) {
    let (command, words) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    if text.starts_with('!') || is_one(command, "aider-shell") {
        shell.push_str(text);
    } else if !text.starts_with('/') {
        say.say_parts(TextKind::User, [Part::Text(text.into())]);
    } else if is_one(command, "aider-prompt") && !words.is_empty() {
        say.say_parts(TextKind::User, [Part::Text(words.into())]);
    } else {
        say.leave_out("command of the program");
    }
}

fn add_program(say: &mut Events, text: &str) {
    for line in text.lines() {
        match line.strip_prefix(EDITED) {
            Some(path) => {
                let args = object([("path", path.into())]);
                say.call(Call::new(None, Some(&"edit".into()), Some(&args)));
            }
            None => say.leave_out("line of the program"),
        }
    }
}

/// Says a command of a shell and its output.
fn end_shell(say: &mut Events, shell: &mut String) {
    if !shell.is_empty() {
        say.say(TextKind::Event, shell.as_str().into());
        shell.clear();
    }
}
