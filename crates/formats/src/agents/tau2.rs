//! The results of tau2-bench: a run of each simulation, in which the user may call tools too.

use crate::{prelude::*, verdicts::verdicts_of};

pub static FORMAT: Format = Format::of_messages("tau2", add_turn).end(add_verdicts).rows();

fn add_verdicts(say: &mut Events, run: &Value) {
    say.add_all(verdicts_of(object_of(Some(run))).into_iter().map(What::Fact));
}

fn add_turn(say: &mut Events, message: &Value) {
    // Results of several calls.
    let results = list_at(message, "tool_messages");
    if !results.is_empty() {
        return results.iter().for_each(|inner| add_turn(say, inner));
    }
    say.begin_record(None, message.get("timestamp"));
    match str_of(message.get("role")) {
        Some("tool") => {
            let failed = truth_of(message.get("error"));
            say.answer(id_of(message.get("id")), message.get("content"), failed);
        }
        Some("user") => {
            let text = str_of(message.get("content")).unwrap_or_default();
            let text = words("tau2-end").fold(text, |text, end| {
                text.trim_end().strip_suffix(end).unwrap_or(text).trim_end()
            });
            if !text.is_empty() {
                say.say_parts(TextKind::User, [Part::Text(text.into())]);
            }
            for call in list_at(message, "tool_calls") {
                say.call(Call::of(call));
            }
        }
        _ => add_message(say, message),
    }
}
