//! The turns of a trace, from which sessions in formats of conversations are written.

use std::collections::HashMap;

use knowledgepulse_formats::trace::{BEFORE_OBJECTIVE, REASONING};
use knowledgepulse_json::{Object, Text, Value};
use knowledgepulse_trace::{
    OBJECTIVE_OF_FIRST_STEP,
    roles::{Role, roles_of},
};

/// A turn of a conversation.
#[derive(Debug, PartialEq)]
pub enum Turn {
    /// Words of the user, or of a program that was not called.
    User(Text),
    /// What the agent says at once.
    Agent(Said),
    /// A result whose call the trace does not have.
    Result(Answer),
}

/// What an agent says at once, in this order.
#[derive(Debug, Default, PartialEq)]
pub struct Said {
    /// What it thinks, which the user does not see.
    pub reasoning: Text,
    /// Its words to the user.
    pub text: Text,
    /// The tools that it calls.
    pub calls: Vec<Call>,
}

/// A call of a tool.
#[derive(Debug, PartialEq)]
pub struct Call {
    /// `call_1`, `call_2`, …
    pub id: String,
    /// The name of the tool.
    pub tool: Text,
    /// Its arguments.
    pub input: Object,
    /// Its result, if the trace has one.
    pub result: Option<Answer>,
}

/// The result of a call.
#[derive(Debug, PartialEq)]
pub struct Answer {
    /// What it returned.
    pub text: Text,
    /// Whether the call failed.
    pub failed: bool,
}

fn text_of(value: Option<&Value>) -> Text {
    value.and_then(Value::as_text).cloned().unwrap_or_default()
}

/// Returns the turns of a trace, in its order. Results are with their calls, which they may follow late.
pub fn turns_of(trace: &Value) -> Vec<Turn> {
    let mut turns = Turns::default();
    let objective = Some(text_of(trace.at(&["task", "objective"])));
    let mut objective = objective.filter(|objective| !objective.starts_with(OBJECTIVE_OF_FIRST_STEP));
    let before = trace.at(&["metadata", "imported", BEFORE_OBJECTIVE]);
    let reasoning = trace.at(&["metadata", "imported", REASONING]);
    let reasoning = reasoning.and_then(Value::as_array).unwrap_or_default().iter();
    let mut reasoning = reasoning.peekable();
    let steps = trace.get("steps").and_then(Value::as_array).unwrap_or_default();
    for (at, (step, role)) in steps.iter().zip(roles_of(trace)).enumerate() {
        if before.is_none_or(|before| *before == at.into()) {
            turns.list.extend(objective.take().map(Turn::User));
        }
        let is_reasoning = reasoning.next_if_eq(&&at.into()).is_some();
        let text = text_of(step.get("content"));
        let failed = step.get("type").and_then(Value::as_str) == Some("error_recovery");
        match role {
            Role::Call => turns.call(at, step, text),
            Role::User => turns.list.push(Turn::User(text)),
            Role::Result(call) => turns.answer(call, Answer { text, failed }),
            Role::Agent if is_reasoning => turns.list.push(Turn::Agent(Said {
                reasoning: text,
                ..Said::default()
            })),
            Role::Agent => turns.say(text),
        }
    }
    turns.list.extend(objective.map(Turn::User));
    turns.list
}

#[derive(Default)]
struct Turns {
    list: Vec<Turn>,
    /// The places of the calls, by their steps: a turn, and a call of it.
    calls: HashMap<usize, (usize, usize)>,
}

impl Turns {
    /// Adds words of the agent, to its reasoning where they follow that.
    fn say(&mut self, text: Text) {
        match self.list.last_mut() {
            Some(Turn::Agent(said)) if said.text.is_empty() && said.calls.is_empty() => said.text = text,
            _ => self.list.push(Turn::Agent(Said {
                text,
                ..Said::default()
            })),
        }
    }

    fn call(&mut self, at: usize, step: &Value, content: Text) {
        let id = format!("call_{}", self.calls.len() + 1);
        let tool = text_of(step.at(&["tool", "name"]));
        let input = step.get("input").and_then(Value::as_object);
        let result = step.get("output_summary").and_then(Value::as_text).cloned();
        let result = result.map(|text| Answer { text, failed: false });
        let waits = |said: &Said| said.calls.first().is_none_or(|first| first.result.is_none());
        // A reader of logs renders the call as its content, tool first; others have words of the agent there.
        if !content.starts_with(tool.as_str()) && !content.is_empty() {
            self.say(content);
        } else if !matches!(self.list.last(), Some(Turn::Agent(said)) if waits(said)) {
            self.list.push(Turn::Agent(Said::default()));
        }
        let turn = self.list.len() - 1;
        if let Some(Turn::Agent(said)) = self.list.last_mut() {
            self.calls.insert(at, (turn, said.calls.len()));
            said.calls.push(Call {
                id,
                tool,
                input: input.cloned().unwrap_or_default(),
                result,
            });
        }
    }

    /// Adds a result to the call of a step, or by itself where there is none.
    fn answer(&mut self, call: Option<usize>, answer: Answer) {
        let place = call.and_then(|call| self.calls.get(&call));
        match place.and_then(|&(turn, call)| Some((self.list.get_mut(turn)?, call))) {
            Some((Turn::Agent(said), call)) => said.calls[call].result = Some(answer),
            _ => self.list.push(Turn::Result(answer)),
        }
    }
}
