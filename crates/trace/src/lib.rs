//! The reasoning trace, reduced to the fields that the scorer reads.

pub mod digest;
pub mod facts;
pub mod features;
#[cfg(any(test, feature = "fixtures"))]
#[path = "../tests/fixtures/mod.rs"]
pub mod fixtures;
pub mod json;
pub mod label;
mod phrases;
pub mod reading;
pub mod roles;
mod shell;
pub mod signs;
pub mod text;
pub mod words;

#[cfg(test)]
#[path = "../tests/texts/mod.rs"]
mod nasty_text;

use crate::label::Label;

/// A reasoning trace: the fields that affect its score, and its label.
#[derive(Debug, Clone, PartialEq)]
pub struct Trace {
    /// The objective of the task in words; the first part of the embedded text.
    pub objective: String,
    /// The steps in order. May be empty.
    pub steps: Vec<Step>,
    /// Whether the run succeeded.
    pub success: bool,
    /// Selects the weight profile; absent or unknown means the default one.
    pub task_domain: Option<String>,
    /// The agent's confidence in the outcome, 0 to 1.
    pub confidence: f64,
    /// The `id` of the trace, its label in the novelty memory. It has no part in the score.
    pub label: Option<Label>,
    /// Whether text beyond the compared part was left out.
    pub text_cut: bool,
}

/// Begins an objective that a reader has taken from the first step, because the log has no words of a user.
pub const OBJECTIVE_OF_FIRST_STEP: &str = "[first step] ";

/// One step of a trace.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The kind of the step.
    pub kind: StepKind,
    /// The step's text; a step without it counts as one with an empty text.
    pub content: Option<String>,
    /// The name of the tool that the step used, if any; tool diversity counts distinct names.
    pub tool: Option<String>,
}

/// The type of a step. Types outside the schema are kept, because each distinct type counts towards complexity.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum StepKind {
    /// `thought`
    Thought,
    /// `tool_call`
    ToolCall,
    /// `observation`
    Observation,
    /// `error_recovery`
    ErrorRecovery,
    /// Any other type.
    Other(String),
}

impl StepKind {
    /// Returns the type with this name.
    #[must_use]
    pub fn of(name: &str) -> Self {
        match name {
            "thought" => Self::Thought,
            "tool_call" => Self::ToolCall,
            "observation" => Self::Observation,
            "error_recovery" => Self::ErrorRecovery,
            name => Self::Other(name.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn step_kind_of_each_name() {
        for (name, kind) in [
            ("thought", StepKind::Thought),
            ("tool_call", StepKind::ToolCall),
            ("observation", StepKind::Observation),
            ("error_recovery", StepKind::ErrorRecovery),
            ("Thought", StepKind::Other("Thought".into())),
        ] {
            assert_eq!(StepKind::of(name), kind);
        }
    }
}
