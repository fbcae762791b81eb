//! Crush: the sessions of `.crush/crush.db` in a project, whose messages have parts of a type and data.

use crate::prelude::*;

pub static FORMAT: Format = Format::of_messages("crush", add_message_of).beside(beside);

/// Says the folder that the agent worked in: `.crush` is in it.
fn beside(path: &Path, say: &mut Events) {
    let folder = path.parent().filter(|folder| folder.ends_with(".crush"));
    let project = folder.and_then(Path::parent).and_then(Path::to_str);
    say.fact("cwd", project.map(Value::from).as_ref());
}

fn add_message_of(say: &mut Events, message: &Value) {
    if number_of(message.get("is_summary_message")).is_some_and(|is_summary| is_summary != 0.0) {
        return say.leave_out("summary of a compaction");
    }
    let mut parts = Vec::new();
    for part in list_at(message, "parts") {
        let (kind, data) = (str_of(part.get("type")).unwrap_or_default(), part.get("data"));
        let data = data.unwrap_or(&Value::Null);
        match kind {
            "shell_command" => say.say_shell(data),
            "finish" => {}
            _ => parts.push(Part::named(kind, data)),
        }
    }
    if let Some(role) = str_of(message.get("role")) {
        add_parts(say, object_of(None), role, parts);
    }
}
