//! smolagents: the steps of an agent's memory, as `get_full_steps()` and `get_succinct_steps()` return them, and results of runs.

use crate::prelude::*;

pub static FORMAT: Format = Format::of_messages("smolagents", add_step)
    .also(|record| FORMAT.list_in(record).is_some())
    .end(add_outcome);

/// The tool whose argument is the answer.
const ANSWER: &str = "final_answer";

/// A run that had no steps left did not do its task. Tables have the arguments of all tools in each call.
fn add_outcome(say: &mut Events, run: &Value) {
    say.without_null_arguments();
    if str_of(run.get("state")) == Some("max_steps_error") {
        say.add(What::Success(false));
    }
}

fn add_step(say: &mut Events, step: &Value) {
    // Tables of data sets have the fields of all kinds of steps in each.
    let told = |name| first_of(step, &[name]);
    if let task @ Some(_) = told("task") {
        return say.say_content(TextKind::User, task);
    }
    if let plan @ Some(_) = told("plan") {
        return say.say_content(TextKind::Reasoning, plan);
    }
    if !is(step, "smolagents-action") || told("step_number").is_none() {
        return say.system();
    }
    let message = fields_of(step, "model_output_message");
    // A call that has failed is in the message alone.
    let (listed, told) = (list_at(step, "tool_calls"), list_at(message, "tool_calls"));
    let calls = if listed.is_empty() { told } else { listed };
    let text = str_of(step.get("model_output")).unwrap_or_default();
    let is_code = has_text(step, "code_action");
    let begin = words("smolagents-code").filter_map(|code| text.find(code));
    let begin = begin.min().filter(|_| is_code);
    let own = text[..begin.unwrap_or(text.len())].trim();
    // Models write calls as text, which are in the list too.
    let is_written = !calls.is_empty() && own.starts_with('{');
    say.say(TextKind::Message, if is_written { "" } else { own }.into());
    let answers = |call: &Value| str_of(fields_of(call, "function").get("name")) == Some(ANSWER);
    for call in calls.iter().filter(|call| !answers(call)) {
        let mut told = Call::of(call);
        let code = fields_of(call, "function").get("arguments");
        if let Some(code @ Value::String(_)) = code.filter(|_| is_code) {
            told.args = [("code".into(), code.clone())].into_iter().collect();
        }
        say.call(told);
    }
    let is_answer = calls.iter().any(answers);
    if let Some(error) = first_of(step, &["error"]) {
        let error = or(error.get("message"), Some(error));
        match calls.iter().all(answers) {
            true => say.say_content(TextKind::Event, error),
            false => say.answer(None, error, Some(true)),
        }
    } else if calls.len() > usize::from(is_answer) && is_given(step.get("observations")) {
        // One text has the results of all calls.
        say.answer(None, step.get("observations"), None);
    }
    if is_true(step, "is_final_answer") {
        let answer = first_of(step, &["action_output", "observations"]);
        let answer = answer.map(|answer| json_of(answer).into_owned());
        say.say(TextKind::Message, answer.unwrap_or_default());
    }
}
