//! The features of a trace: the numbers that the score needs besides the text.

use std::collections::HashSet;

use crate::Trace;

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
    /// Counts the features of `trace`.
    #[must_use]
    pub fn of(trace: &Trace) -> Self {
        let steps = &trace.steps;
        let types: HashSet<_> = steps.iter().map(|step| &step.kind).collect();
        let tools: HashSet<_> = steps.iter().filter_map(|step| step.tool.as_ref()).collect();
        let recoveries = steps.iter().filter(|step| step.kind == "error_recovery");
        Self {
            steps: steps.len(),
            unique_types: types.len(),
            error_recoveries: recoveries.count(),
            unique_tools: tools.len(),
            single_thought: matches!(&steps[..], [step] if step.kind == "thought"),
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
