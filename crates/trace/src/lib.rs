//! The reasoning trace, reduced to the fields that the scorer reads.

pub mod digest;
pub mod facts;
pub mod features;
#[cfg(any(test, feature = "fixtures"))]
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
mod nasty_text;

use knowledgepulse_error::{Code, Error, Result, javascript_number};

use crate::label::Label;

/// A reasoning trace: the fields that affect its score, and its label.
#[derive(Debug, Clone, PartialEq)]
pub struct Trace {
    /// The task.
    pub task: Task,
    /// The steps in order. May be empty.
    pub steps: Vec<Step>,
    /// Domain and success of the run.
    pub metadata: Metadata,
    /// The outcome.
    pub outcome: Outcome,
    /// The `id` of the trace, its label in the novelty memory. It has no part in the score.
    pub label: Option<Label>,
    /// Whether text beyond the compared part was left out.
    pub text_cut: bool,
}

/// Begins an objective that a reader has taken from the first step, because the log has no words of a user.
pub const OBJECTIVE_OF_FIRST_STEP: &str = "[first step] ";

/// The task of a trace.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// The objective in words; the first part of the embedded text.
    pub objective: String,
}

/// One step of a trace.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The kind of the step.
    pub kind: StepKind,
    /// The step's text; a step without it counts as one with an empty text.
    pub content: Option<String>,
    /// The tool that the step used, if any.
    pub tool: Option<Tool>,
}

/// The tool of a step.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// The tool's name; tool diversity counts distinct names.
    pub name: Name,
}

/// Domain and success of the run.
#[derive(Debug, Clone, PartialEq)]
pub struct Metadata {
    /// Whether the run succeeded.
    pub success: bool,
    /// Selects the weight profile; absent or unknown means the default one.
    pub task_domain: Option<String>,
}

/// The outcome of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The agent's confidence, 0 to 1.
    pub confidence: f64,
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
    Other(Name),
}

impl StepKind {
    /// Returns the type with this name, given in UTF-16.
    #[must_use]
    pub fn of(name: &[u16]) -> Self {
        match String::from_utf16(name).as_deref() {
            Ok("thought") => Self::Thought,
            Ok("tool_call") => Self::ToolCall,
            Ok("observation") => Self::Observation,
            Ok("error_recovery") => Self::ErrorRecovery,
            _ => Self::Other(Name::of(name)),
        }
    }
}

/// A name, compared by its UTF-16 code units as JavaScript compares strings: two lone surrogates are two names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Name(Box<[u16]>);

impl Name {
    /// Returns the name with these code units.
    #[must_use]
    pub fn of(units: &[u16]) -> Self {
        Self(units.into())
    }
}

impl From<&str> for Name {
    fn from(name: &str) -> Self {
        Self(name.encode_utf16().collect())
    }
}

impl Outcome {
    /// Checks the confidence.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] unless the confidence is a finite number in \[0, 1\].
    pub fn new(confidence: f64) -> Result<Self> {
        // A range does not contain NaN, so this also refuses NaN.
        if (0.0..=1.0).contains(&confidence) {
            Ok(Self { confidence })
        } else {
            let found = javascript_number(confidence);
            let problem = format!("trace.outcome.confidence must be a finite number in [0, 1], got {found}");
            Err(Error::OutOfRange(Code::InvalidTrace, problem))
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
            let units: Vec<u16> = name.encode_utf16().collect();
            assert_eq!(StepKind::of(&units), kind);
        }
    }

    #[test]
    fn confidence_must_be_in_range() {
        for confidence in [-0.1, 1.5, f64::NAN, f64::INFINITY] {
            let error = Outcome::new(confidence).unwrap_err();
            assert_eq!(error.code(), "ERR_INVALID_TRACE");
            assert!(error.to_string().contains("trace.outcome.confidence"), "{error}");
        }
        for confidence in [0.0, 0.5, 1.0] {
            assert!(Outcome::new(confidence).is_ok());
        }
    }
}
