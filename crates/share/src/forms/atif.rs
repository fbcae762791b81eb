//! The Agent Trajectory Interchange Format of Harbor.

use knowledgepulse_json::{Value, object};

use super::{
    agent_of, model_of, session_of, some, text_at, time_of,
    turns::{Answer, Call, Said, Turn, results_behind_calls, turns_of},
    with_some,
};

/// Returns a trace as a trajectory.
pub(crate) fn trajectory_of(trace: &Value) -> Value {
    let mut steps: Vec<Step> = Vec::new();
    for turn in results_behind_calls(turns_of(trace)) {
        match turn {
            Turn::User(text) => steps.push(Step::new("user", Said::of_text(text))),
            Turn::Agent(said) => steps.push(Step::new("agent", said)),
            Turn::Result(answer) => {
                let is_call = |call: &Call| call.id == answer.id;
                let has_call = steps
                    .last()
                    .is_some_and(|step| step.said.calls.iter().any(is_call));
                // Where the trace does not have the call, the result is a step of its own.
                if !has_call {
                    steps.push(Step::new("agent", Said::default()));
                }
                if let Some(step) = steps.last_mut() {
                    step.results.push((has_call, answer));
                }
            }
        }
    }
    let mut time = time_of(trace);
    let steps = (1_u64..).zip(steps);
    let steps: Value = steps.map(|(id, step)| step.into_value(id, time.take())).collect();
    let version = text_at(trace, &["metadata", "imported", "version"]).unwrap_or_else(|| "unknown".into());
    let agent = with_some([
        ("name", Some(agent_of(trace).into())),
        ("version", Some(version.into())),
        ("model_name", model_of(trace)),
    ]);
    object([
        ("schema_version", "ATIF-v1.7".into()),
        ("session_id", session_of(trace).into()),
        ("agent", agent),
        ("steps", steps),
    ])
}

/// A step of ATIF.
struct Step {
    source: &'static str,
    said: Said,
    /// The results, and whether the step has their calls.
    results: Vec<(bool, Answer)>,
}

impl Step {
    fn new(source: &'static str, said: Said) -> Self {
        Self {
            source,
            said,
            results: Vec::new(),
        }
    }

    fn into_value(self, id: u64, time: Option<Value>) -> Value {
        let call = |call: Call| {
            object([
                ("tool_call_id", call.id.into()),
                ("function_name", call.tool.into()),
                ("arguments", call.input.into()),
            ])
        };
        let result = |(has_call, Answer { id, text, failed, .. }): (bool, Answer)| {
            with_some([
                ("source_call_id", has_call.then(|| id.into())),
                ("content", Some(text.into())),
                ("extra", failed.then(|| object([("is_error", true.into())]))),
            ])
        };
        let calls: Value = self.said.calls.into_iter().map(call).collect();
        let results: Value = self.results.into_iter().map(result).collect();
        let is_some = |list: &Value| list.as_array().is_some_and(|list| !list.is_empty());
        let results = Some(results).filter(is_some);
        with_some([
            ("step_id", Some(id.into())),
            ("source", Some(self.source.into())),
            ("message", Some(self.said.text.into())),
            ("reasoning_content", some(self.said.reasoning)),
            ("tool_calls", Some(calls).filter(is_some)),
            (
                "observation",
                results.map(|results| object([("results", results)])),
            ),
            ("timestamp", time),
        ])
    }
}
