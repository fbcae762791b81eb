//! The turns of a trace, from which sessions in formats of conversations are written.

use std::collections::{HashMap, VecDeque};

use knowledgepulse_formats::trace::UNANSWERED;
use knowledgepulse_json::{Object, Text, Value};
use knowledgepulse_trace::OBJECTIVE_OF_FIRST_STEP;

/// A turn of a conversation.
#[derive(Debug, PartialEq)]
pub(crate) enum Turn {
    /// Words of the user, or of a program that was not called.
    User(Text),
    /// Words of the agent, and the calls that it makes at once.
    Agent(Text, Vec<Call>),
    /// The result of a call.
    Result(Answer),
}

/// A call of a tool.
#[derive(Debug, PartialEq)]
pub(crate) struct Call {
    /// `call_1`, `call_2`, …
    pub id: String,
    pub tool: Text,
    pub input: Object,
}

/// The result of a call; that of a call that is not in the trace has the id `call_0`.
#[derive(Debug, PartialEq)]
pub(crate) struct Answer {
    pub id: String,
    pub tool: Text,
    pub text: Text,
    pub failed: bool,
}

fn text_of(value: Option<&Value>) -> Text {
    value.and_then(Value::as_text).cloned().unwrap_or_default()
}

/// Returns the turns of a trace, in its order. Results go to the calls before them in turn.
pub(crate) fn turns_of(trace: &Value) -> Vec<Turn> {
    let unanswered = trace.at(&["metadata", "imported", "left_out", UNANSWERED]);
    let mut turns = Turns {
        unanswered: unanswered.and_then(Value::as_number).unwrap_or_default(),
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
    steps.iter().for_each(|step| turns.add(step));
    turns.list
}

/// Moves each result behind the turn that has its call, as chats and ATIF want it.
pub(crate) fn with_results_behind_calls(turns: Vec<Turn>) -> Vec<Turn> {
    let mut callers: HashMap<String, usize> = HashMap::new();
    let mut placed: Vec<(usize, Turn)> = Vec::with_capacity(turns.len());
    for (at, turn) in turns.into_iter().enumerate() {
        let mut place = at;
        match &turn {
            Turn::Agent(_, calls) => callers.extend(calls.iter().map(|call| (call.id.clone(), at))),
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
    calls: usize,
    /// The ids and tools of calls without a result so far.
    waiting: VecDeque<(String, Text)>,
    /// How many of the calls have no result.
    unanswered: f64,
}

impl Turns {
    fn add(&mut self, step: &Value) {
        let content = text_of(step.get("content"));
        let tool = step.at(&["tool", "name"]).and_then(Value::as_text);
        let kind = step.get("type").and_then(Value::as_str).unwrap_or_default();
        match (tool, kind) {
            (Some(tool), _) => self.call(step, tool, content),
            (None, "observation") if self.waiting.is_empty() => self.list.push(Turn::User(content)),
            (None, "observation" | "error_recovery") => self.answer(content, kind == "error_recovery"),
            _ => self.speak(content, Vec::new()),
        }
    }

    /// Adds a turn of the agent. A call that waits while the agent goes on is one of those without a result.
    fn speak(&mut self, words: Text, calls: Vec<Call>) {
        while self.unanswered > 0.0 && self.waiting.pop_front().is_some() {
            self.unanswered -= 1.0;
        }
        self.list.push(Turn::Agent(words, calls));
    }

    fn call(&mut self, step: &Value, tool: &Text, content: Text) {
        self.calls += 1;
        let id = format!("call_{}", self.calls);
        let input = step
            .get("input")
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        // A reader of logs renders the call as its content, tool first; others have words of the agent there.
        let words = if content.as_bytes().starts_with(tool.as_bytes()) {
            Text::default()
        } else {
            content
        };
        let call = Call {
            id: id.clone(),
            tool: tool.clone(),
            input,
        };
        match self.list.last_mut() {
            Some(Turn::Agent(_, calls)) if words.is_empty() => calls.push(call),
            _ => self.speak(words, vec![call]),
        }
        self.waiting.push_back((id, tool.clone()));
        if let Some(result) = step.get("output_summary").and_then(Value::as_text) {
            self.waiting.rotate_right(1);
            self.answer(result.clone(), false);
        }
    }

    fn answer(&mut self, text: Text, failed: bool) {
        let (id, tool) = self
            .waiting
            .pop_front()
            .unwrap_or_else(|| ("call_0".into(), "unknown".into()));
        self.list.push(Turn::Result(Answer {
            id,
            tool,
            text,
            failed,
        }));
    }
}
