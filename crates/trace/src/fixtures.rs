//! Traces for tests, also of other crates.

use crate::{Step, StepKind, Trace};

/// A successful trace with the given step types, no content and no tools.
#[must_use]
pub fn with_steps(kinds: &[&str]) -> Trace {
    Trace {
        objective: "objective".into(),
        steps: kinds
            .iter()
            .map(|kind| Step {
                kind: StepKind::of(kind),
                content: None,
                tool: None,
            })
            .collect(),
        success: true,
        task_domain: None,
        confidence: 1.0,
        label: None,
        text_cut: false,
    }
}

/// A successful trace of thoughts with this text.
#[must_use]
pub fn with_texts(objective: &str, contents: &[&str]) -> Trace {
    let mut trace = with_steps(&vec!["thought"; contents.len()]);
    trace.objective = objective.into();
    for (step, content) in trace.steps.iter_mut().zip(contents) {
        step.content = Some((*content).into());
    }
    trace
}
