//! Whose each step of a trace is. A reader writes what a user says behind the first turn as an observation, like the result of a call.

use std::collections::VecDeque;

use knowledgepulse_json::Value;

/// Names, in `metadata.imported.left_out`, the calls of a trace that have no result.
pub const UNANSWERED: &str = "call without a result";

/// Whose a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Words of the agent.
    Agent,
    /// A call of a tool.
    Call,
    /// The result of the call at this step; `None` if the trace does not have the call.
    Result(Option<usize>),
    /// Words of the user, or of a program that was not called.
    User,
}

/// Returns whose each step of a trace is. Results go to the calls before them in turn; a call that waits while the agent goes on
/// is one of those without a result.
#[must_use]
pub fn roles_of(trace: &Value) -> Vec<Role> {
    let unanswered = trace.at(&["metadata", "imported", "left_out", UNANSWERED]);
    let mut unanswered = unanswered.and_then(Value::as_number).unwrap_or_default();
    let mut waiting = VecDeque::new();
    let mut roles: Vec<Role> = Vec::new();
    let steps = trace.get("steps").and_then(Value::as_array).unwrap_or_default();
    for (at, step) in steps.iter().enumerate() {
        let is_call = step.at(&["tool", "name"]).and_then(Value::as_text).is_some();
        let kind = step.get("type").and_then(Value::as_str).unwrap_or_default();
        let is_result = !is_call && matches!(kind, "observation" | "error_recovery");
        // Calls that follow each other are made at once.
        let goes_on = match roles.last() {
            Some(Role::Call) => !is_result && !is_call,
            _ => !is_result,
        };
        while goes_on && unanswered > 0.0 && waiting.pop_front().is_some() {
            unanswered -= 1.0;
        }
        roles.push(match kind {
            _ if is_call => {
                // Its result may be a part of it.
                if step.get("output_summary").and_then(Value::as_text).is_none() {
                    waiting.push_back(at);
                }
                Role::Call
            }
            "observation" if waiting.is_empty() => Role::User,
            _ if is_result => Role::Result(waiting.pop_front()),
            _ => Role::Agent,
        });
    }
    roles
}

/// Returns how many turns of the agent there are: what it says and calls between two results or turns of the user.
#[must_use]
pub fn turns_in(roles: &[Role]) -> usize {
    let is_agent = |role: &Role| matches!(role, Role::Agent | Role::Call);
    let turns = roles.chunk_by(|one, other| is_agent(one) == is_agent(other));
    turns.filter(|turn| is_agent(&turn[0])).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use knowledgepulse_json::parse_str;

    #[test]
    fn roles_of_results_go_to_calls_in_turn_and_other_observations_are_of_the_user() {
        let steps = |steps: &[&str], unanswered: u8| {
            let steps: Vec<_> = steps
                .iter()
                .map(|step| match *step {
                    "call" => r#"{"type":"tool_call","tool":{"name":"t"}}"#.to_owned(),
                    "told" => r#"{"type":"tool_call","tool":{"name":"t"},"output_summary":"x"}"#.to_owned(),
                    kind => format!(r#"{{"type":"{kind}"}}"#),
                })
                .collect();
            let left = format!(r#"{{"imported":{{"left_out":{{"{UNANSWERED}":{unanswered}}}}}}}"#);
            let trace = format!(r#"{{"metadata":{left},"steps":[{}]}}"#, steps.join(","));
            roles_of(&parse_str(&trace).unwrap())
        };
        use Role::{Agent, Call, Result, User};
        assert_eq!(
            steps(
                &[
                    "thought",
                    "call",
                    "call",
                    "observation",
                    "error_recovery",
                    "observation"
                ],
                0
            ),
            [Agent, Call, Call, Result(Some(1)), Result(Some(2)), User]
        );
        assert_eq!(
            steps(&["told", "observation", "error_recovery"], 0),
            [Call, User, Result(None)]
        );
        assert_eq!(
            steps(&["call", "thought", "observation"], 1),
            [Call, Agent, User],
            "the call has no result"
        );
        assert_eq!(
            steps(&["call", "thought", "observation"], 0),
            [Call, Agent, Result(Some(0))],
            "the result comes late"
        );
        assert!(steps(&[], 0).is_empty());
        assert_eq!(turns_in(&[Agent, Call, Result(None), User, Agent]), 2);
    }
}
