//! Aider: the launches in `.aider.chat.history.md`. Lines that begin with `#### ` are the user's, lines that begin with `> ` the program's,
//! and all others the agent's.

use std::mem;

use super::prelude::*;

/// How the program says that it has changed a file.
const EDITED: &str = "Applied edit to ";

/// Commands whose words are a prompt, and commands of a shell.
const PROMPTS: [&str; 5] = ["/ask", "/code", "/architect", "/context", "/help"];
const SHELL: [&str; 3] = ["/run", "/test", "/git"];

/// An empty line of a prompt.
const BLANK: &str = "<blank>";

/// Launches of Aider.
pub struct Aider;

impl Adapter for Aider {
    fn recognises(&self, launch: &Value, _path: Option<&Path>) -> bool {
        has_all(launch, &["aider", "text"])
    }

    fn decode(&self, record: &Value, say: &mut Events) -> Result<Decoded, Wrong> {
        let Some(text) = record.get("text").and_then(Value::as_text) else {
            return Ok(Decoded::Unknown);
        };
        say.begin_record(None, record.get("aider"));
        let mut chat = Chat {
            say,
            whose: Whose::Agent,
            lines: Vec::new(),
            shell: None,
        };
        let mut is_code = false;
        for line in text.to_string_lossy().lines() {
            let (whose, line) = match (line.strip_prefix("#### "), line.strip_prefix("> ")) {
                (Some(line), _) if !is_code => (Whose::User, line),
                (_, Some(line)) if !is_code => (Whose::Program, line),
                _ => (Whose::Agent, line),
            };
            is_code ^= whose == Whose::Agent && line.starts_with("```");
            chat.add(whose, line.trim_end());
        }
        chat.end();
        chat.end_shell();
        Ok(Decoded::Whole)
    }
}

/// Whose words a line has.
#[derive(Clone, Copy, PartialEq)]
enum Whose {
    User,
    Program,
    Agent,
}

/// The lines of one that follow each other.
struct Chat<'s> {
    say: &'s mut Events,
    whose: Whose,
    lines: Vec<String>,
    /// A command of a shell and its output.
    shell: Option<Vec<String>>,
}

impl Chat<'_> {
    fn add(&mut self, whose: Whose, line: &str) {
        // Blank lines are between all parts.
        if whose != self.whose && !(whose == Whose::Agent && line.is_empty()) {
            self.end();
            self.whose = whose;
        }
        self.lines.push(line.to_owned());
    }

    fn end(&mut self) {
        let text = mem::take(&mut self.lines).join("\n");
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        match self.whose {
            Whose::Agent => {
                self.end_shell();
                self.say.say(TextKind::Message, text.into());
            }
            Whose::User => {
                self.end_shell();
                self.end_prompt(&text.replace(BLANK, ""));
            }
            Whose::Program => match &mut self.shell {
                Some(shell) => shell.push(text.to_owned()),
                None => self.end_program(text),
            },
        }
    }

    fn end_prompt(&mut self, text: &str) {
        let (command, words) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        if text.starts_with('!') || SHELL.contains(&command) {
            self.shell = Some(vec![text.to_owned()]);
        } else if !text.starts_with('/') {
            self.say.say_text(TextKind::User, text.into());
        } else if PROMPTS.contains(&command) && !words.is_empty() {
            self.say.say_text(TextKind::User, words.into());
        } else {
            self.say.leave_out("command of the program");
        }
    }

    fn end_program(&mut self, text: &str) {
        for line in text.lines() {
            match line.strip_prefix(EDITED) {
                Some(path) => {
                    let args = object([("path", path.into())]);
                    self.say.call(Call::new(None, Some(&"edit".into()), Some(&args)));
                }
                None => self.say.leave_out("line of the program"),
            }
        }
    }

    fn end_shell(&mut self) {
        if let Some(lines) = self.shell.take() {
            let lines = lines.iter().map(|line| line.as_str().into());
            self.say.say(TextKind::Event, joined(lines, "\n"));
        }
    }
}
