//! The turns of a trace, from which sessions in formats of conversations are written.

use std::collections::{HashMap, VecDeque};

use knowledgepulse_formats::trace::REASONING;
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
    /// The result of a call.
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

impl Said {
    pub(crate) fn of_text(text: Text) -> Self {
        Self {
            text,
            ..Self::default()
        }
    }
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
}

/// The result of a call.
#[derive(Debug, PartialEq)]
pub struct Answer {
    /// [`Answer::OF_NO_CALL`] if the trace does not have the call.
    pub id: String,
    /// The name of the tool, or `unknown`.
    pub tool: Text,
    /// What it returned.
    pub text: Text,
    /// Whether the call failed.
    pub failed: bool,
}

impl Answer {
    /// The id of a result whose call the trace does not have.
    pub const OF_NO_CALL: &str = "call_0";
}

fn text_of(value: Option<&Value>) -> Text {
    value.and_then(Value::as_text).cloned().unwrap_or_default()
}

/// Returns the turns of a trace, in its order.
pub fn turns_of(trace: &Value) -> Vec<Turn> {
    let reasoning = trace.at(&["metadata", "imported", REASONING]);
    let reasoning = reasoning.and_then(Value::as_array).unwrap_or_default();
    let mut turns = Turns {
        reasoning: reasoning.iter().filter_map(Value::as_number).collect(),
        ..Turns::default()
    };
    let objective = text_of(trace.at(&["task", "objective"]));
    if !objective
        .as_bytes()
        .starts_with(OBJECTIVE_OF_FIRST_STEP.as_bytes())
    {
        turns.list.push(Turn::User(objective));
    }
    let steps = trace.get("steps").and_then(Value::as_array).unwrap_or_default();
    for (at, (step, role)) in steps.iter().zip(roles_of(trace)).enumerate() {
        turns.add(at, step, role);
    }
    turns.list
}

/// Moves each result behind the turn that has its call, as chats and ATIF want it.
pub(crate) fn results_behind_calls(turns: Vec<Turn>) -> Vec<Turn> {
    let mut callers: HashMap<String, usize> = HashMap::new();
    let mut placed: Vec<(usize, Turn)> = Vec::with_capacity(turns.len());
    for (at, turn) in turns.into_iter().enumerate() {
        let mut place = at;
        match &turn {
            Turn::Agent(said) => callers.extend(said.calls.iter().map(|call| (call.id.clone(), at))),
            Turn::Result(answer) => place = callers.get(&answer.id).copied().unwrap_or(at),
            Turn::User(_) => {}
        }
        placed.push((place, turn));
    }
    // The sort is stable: results stay in their order.
    placed.sort_by_key(|(place, _)| *place);
    placed.into_iter().map(|(_, turn)| turn).collect()
}

#[derive(Default)]
struct Turns {
    list: Vec<Turn>,
    /// The ids and tools of the calls, by their steps.
    calls: HashMap<usize, (String, Text)>,
    /// The places of the steps that are reasoning, in their order.
    reasoning: VecDeque<f64>,
}

impl Turns {
    #[allow(clippy::cast_precision_loss)] // No trace has 2^53 steps.
    fn add(&mut self, at: usize, step: &Value, role: Role) {
        let is_reasoning = self.reasoning.front() == Some(&(at as f64));
        if is_reasoning {
            self.reasoning.pop_front();
        }
        let content = text_of(step.get("content"));
        let failed = step.get("type").and_then(Value::as_str) == Some("error_recovery");
        match role {
            Role::Call => self.call(at, step, content),
            Role::User => self.list.push(Turn::User(content)),
            Role::Result(call) => self.answer(call, content, failed),
            Role::Agent if is_reasoning => self.speak(Said {
                reasoning: content,
                ..Said::default()
            }),
            Role::Agent => self.say(content),
        }
    }

    /// Adds a turn of the agent.
    fn speak(&mut self, said: Said) {
        self.list.push(Turn::Agent(said));
    }

    /// Adds words of the agent, to its reasoning where they follow that.
    fn say(&mut self, words: Text) {
        match self.list.last_mut() {
            Some(Turn::Agent(said)) if said.text.is_empty() && said.calls.is_empty() => said.text = words,
            _ => self.speak(Said::of_text(words)),
        }
    }

    fn call(&mut self, at: usize, step: &Value, content: Text) {
        let id = format!("call_{}", self.calls.len() + 1);
        let tool = text_of(step.at(&["tool", "name"]));
        let input = step
            .get("input")
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        // A reader of logs renders the call as its content, tool first; others have words of the agent there.
        if !content.as_bytes().starts_with(tool.as_bytes()) && !content.is_empty() {
            self.say(content);
        } else if !matches!(self.list.last(), Some(Turn::Agent(_))) {
            self.speak(Said::default());
        }
        self.calls.insert(at, (id.clone(), tool.clone()));
        if let Some(Turn::Agent(said)) = self.list.last_mut() {
            said.calls.push(Call { id, tool, input });
        }
        if let Some(result) = step.get("output_summary").and_then(Value::as_text) {
            self.answer(Some(at), result.clone(), false);
        }
    }

    fn answer(&mut self, call: Option<usize>, text: Text, failed: bool) {
        let known = call.and_then(|call| self.calls.get(&call)).cloned();
        let (id, tool) = known.unwrap_or_else(|| (Answer::OF_NO_CALL.into(), "unknown".into()));
        self.list.push(Turn::Result(Answer {
            id,
            tool,
            text,
            failed,
        }));
    }
}
