//! Mistral Vibe: `~/.vibe/logs/session/SESSION/messages.jsonl`, messages of Chat Completions, with `meta.json` beside them.

use crate::prelude::*;

pub static FORMAT: Format = Format::of_messages("vibe", add_line).named(named);

/// A session is named by its folder, which is in the folder `agents` of its parent's if it is a sub-agent's.
fn named(path: &Path) -> Named {
    let mut folders = folders_of(path);
    Named {
        session: folders.next().map(Into::into),
        parent: (folders.next() == Some("agents"))
            .then(|| folders.next())
            .flatten()
            .map(Into::into),
    }
}

fn add_line(say: &mut Events, line: &Value) {
    if is_true(line, "injected") {
        return say.leave_out("message of the program");
    }
    add_message(say, line);
}
