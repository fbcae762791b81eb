//! The reasoning trace, reduced to the fields that the scorer reads.

mod actions;
pub mod digest;
pub mod facts;
pub mod features;
#[cfg(any(test, feature = "fixtures"))]
#[path = "../tests/fixtures/mod.rs"]
pub mod fixtures;
mod json;
pub mod label;
mod phrases;
pub mod reading;
pub mod roles;
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
    /// The type of the step. Types outside the schema are kept, because each distinct type counts towards complexity.
    pub kind: Name,
    /// The step's text; a step without it counts as one with an empty text.
    pub content: Option<String>,
    /// The name of the tool that the step used, if any; tool diversity counts distinct names.
    pub tool: Option<Name>,
}

/// A name by its UTF-16 code units, as JavaScript compares strings: two lone surrogates are two names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Name(pub Vec<u16>);

impl From<&str> for Name {
    fn from(name: &str) -> Self {
        Self(name.encode_utf16().collect())
    }
}

impl PartialEq<&str> for Name {
    fn eq(&self, name: &&str) -> bool {
        name.encode_utf16().eq(self.0.iter().copied())
    }
}
