//! Mistral Vibe: `~/.vibe/logs/session/SESSION/messages.jsonl`, messages of Chat Completions, with `meta.json` beside them.

use crate::prelude::*;

pub static FORMAT: Format = Format::of_messages("vibe", add_line);

fn add_line(say: &mut Events, line: &Value) {
    if is_true(line, "injected") {
        return say.leave_out("message of the program");
    }
    add_message(say, line);
}
