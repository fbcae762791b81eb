//! Amp: threads as it exports them, `T-….json`, messages of Anthropic whose results say what became of their run.

use crate::prelude::*;

pub static FORMAT: Format = Format::of_messages("amp", add_message_of);

fn add_message_of(say: &mut Events, message: &Value) {
    let parts = list_at(message, "content").iter().flat_map(parts_of_one);
    add_parts(say, object_of(None), role_of(message), parts.collect());
}

/// Returns the parts that one stands for, which may be a result in Amp's own shape.
fn parts_of_one(part: &Value) -> Vec<Part> {
    let Some(id) = part.get("toolUseID") else {
        return parts_in(part);
    };
    let run = fields_of(part, "run");
    let error = fields_of(run, "error").get("message");
    let (content, failed) = match str_of(run.get("status")) {
        Some("error") => (or(error, run.get("error")), Some(true)),
        Some("cancelled" | "rejected-by-user") => (or(run.get("reason"), run.get("status")), Some(false)),
        _ => {
            let code = first_of(fields_of(run, "result"), &["exitCode"]);
            (
                run.get("result"),
                code.map(|code| number_of(Some(code)) != Some(0.0)),
            )
        }
    };
    let inner = first_of(object_of(content), &["output", "content", "diff"]);
    vec![Part::result(Some(id), or(inner, content), failed)]
}
