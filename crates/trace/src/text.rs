//! The text of a trace that is embedded.

use crate::{Trace, words::pieces};

/// The most UTF-16 code units that a comparison of whole texts reads of a trace. They take 10 to 30 milliseconds of the event loop.
pub const MOST_UNITS: usize = 1 << 20;

/// Joins the objective and the contents of all steps with spaces. A step without content adds its space, as in the SDK's
/// ``${objective} ${steps.map(s => s.content ?? "").join(" ")}``.
#[must_use]
pub fn of(trace: &Trace) -> String {
    let contents: Vec<_> = pieces(trace).skip(1).collect();
    format!("{} {}", trace.objective, contents.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::with_steps;

    #[test]
    fn steps_without_content_add_their_space() {
        let mut trace = with_steps(&["thought", "tool_call", "observation"]);
        trace.steps[0].content = Some("a".into());
        trace.steps[2].content = Some("b".into());
        assert_eq!(of(&trace), "objective a  b");
    }

    #[test]
    fn no_steps_leave_a_trailing_space() {
        assert_eq!(of(&with_steps(&[])), "objective ");
    }
}
