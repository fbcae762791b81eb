//! smolagents: the steps of an agent's memory, as `get_full_steps()` and `get_succinct_steps()` return them, and results of runs.

use crate::prelude::*;

pub static FORMAT: Format = Format::sessions("smolagents", decode)
    .also(|record| !steps_of(record).is_empty())
    .of_any_domain();

/// Where results and rows have the steps.
const MEMORIES: [&str; 4] = ["steps", "agent_memory", "memory", "intermediate_steps"];

/// The tool whose argument is the answer.
const ANSWER: &str = "final_answer";

/// How the code of a code agent begins in its text.
const CODE: [&str; 3] = ["<code>", "```py", "```"];

/// Returns the steps of a result, or of a row that has them beside its task.
fn steps_of(record: &Value) -> &[Value] {
    let inner = MEMORIES.iter().filter_map(|name| record.get(name));
    let lists = inner.flat_map(|inner| [list_of(Some(inner)), list_at(inner, "steps")]);
    let mut lists = lists.filter(|list| list.first().is_some_and(|step| is(step, "smolagents")));
    lists.next().unwrap_or_default()
}

fn decode(record: &Value, say: &mut Events) -> Result<Decoded, Wrong> {
    if is(record, "smolagents") {
        add_step(say, record);
        return Ok(Decoded::GoesOn);
    }
    let steps = steps_of(record);
    if steps.is_empty() {
        return Ok(Decoded::Unknown);
    }
    say.begin_run("smolagents-facts", record);
    if str_of(record.get("state")) == Some("max_steps_error") {
        say.add(What::Success(false));
    }
    steps.iter().for_each(|step| add_step(say, step));
    Ok(Decoded::Whole)
}

fn add_step(say: &mut Events, step: &Value) {
    say.begin_record(
        None,
        milliseconds_of(fields_of(step, "timing").get("start_time")).as_ref(),
    );
    if let Some(task) = step.get("task") {
        return say.say_content(TextKind::User, Some(task));
    }
    if let Some(plan) = step.get("plan") {
        return say.say_content(TextKind::Reasoning, Some(plan));
    }
    if !is(step, "smolagents-action") {
        return say.system();
    }
    let message = fields_of(step, "model_output_message");
    // A call that has failed is in the message alone.
    let lists = [list_at(step, "tool_calls"), list_at(message, "tool_calls")];
    let calls = lists
        .into_iter()
        .find(|list| !list.is_empty())
        .unwrap_or_default();
    let text = str_of(step.get("model_output")).unwrap_or_default();
    let is_code = has_text(step, "code_action");
    let begin = CODE
        .iter()
        .filter_map(|code| text.find(code))
        .min()
        .filter(|_| is_code);
    let own = text[..begin.unwrap_or(text.len())].trim();
    // Models write calls as text, which are in the list too.
    let own = if calls.is_empty() || !own.starts_with('{') {
        own
    } else {
        ""
    };
    say.say(TextKind::Message, own.into());
    let answers = |call: &Value| str_of(fields_of(call, "function").get("name")) == Some(ANSWER);
    for call in calls.iter().filter(|call| !answers(call)) {
        let mut told = Call::of(call);
        if let Some(code @ Value::String(_)) =
            fields_of(call, "function").get("arguments").filter(|_| is_code)
        {
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
        say.say(
            TextKind::Message,
            answer
                .map(|answer| json_of(answer).into_owned())
                .unwrap_or_default(),
        );
    }
}
