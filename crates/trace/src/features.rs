//! The features of a trace: the numbers that the score needs besides the text.

use std::collections::HashSet;

use crate::{StepKind, Trace};

/// The numbers of one trace from which the dimensions and overrides are computed.
#[derive(Debug, Clone, PartialEq)]
pub struct Features {
    /// Number of steps.
    pub steps: usize,
    /// Number of distinct step types.
    pub unique_types: usize,
    /// Number of steps whose type is `error_recovery`.
    pub error_recoveries: usize,
    /// Number of distinct tool names over the steps that have a tool.
    pub unique_tools: usize,
    /// Whether the trace is exactly one step and that step is a thought.
    pub single_thought: bool,
    /// Whether the run succeeded.
    pub success: bool,
    /// The agent's confidence in the outcome, 0 to 1.
    pub confidence: f64,
}

impl Features {
    /// Counts the features of `trace` in one pass over its steps.
    #[must_use]
    pub fn of(trace: &Trace) -> Self {
        let mut types = HashSet::new();
        let mut tools = HashSet::new();
        let mut error_recoveries = 0;
        for step in &trace.steps {
            types.insert(&step.kind);
            error_recoveries += usize::from(step.kind == StepKind::ErrorRecovery);
            if let Some(tool) = &step.tool {
                tools.insert(tool);
            }
        }
        Self {
            steps: trace.steps.len(),
            unique_types: types.len(),
            error_recoveries,
            unique_tools: tools.len(),
            single_thought: matches!(trace.steps.as_slice(), [step] if step.kind == StepKind::Thought),
            success: trace.success,
            confidence: trace.confidence,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::with_steps;

    #[test]
    fn counts_types_recoveries_and_tools() {
        let mut trace = with_steps(&[
            "thought",
            "error_recovery",
            "error_recovery",
            "reflection",
            "reflection",
        ]);
        for (step, tool) in [(0, "a"), (1, "b"), (3, "a")] {
            trace.steps[step].tool = Some(tool.into());
        }
        let features = Features::of(&trace);
        assert_eq!(features.steps, 5);
        assert_eq!(features.unique_types, 3);
        assert_eq!(features.error_recoveries, 2);
        assert_eq!(features.unique_tools, 2);
        assert!(!features.single_thought);
    }

    #[test]
    fn an_empty_tool_name_is_a_tool() {
        let mut trace = with_steps(&["tool_call"]);
        trace.steps[0].tool = Some("".into());
        assert_eq!(Features::of(&trace).unique_tools, 1);
    }

    #[test]
    fn single_thought_is_exactly_one_thought() {
        assert!(Features::of(&with_steps(&["thought"])).single_thought);
        assert!(!Features::of(&with_steps(&["observation"])).single_thought);
        assert!(!Features::of(&with_steps(&["thought", "thought"])).single_thought);
        assert!(!Features::of(&with_steps(&[])).single_thought);
    }
}
