//! The four dimensions of a score. Formulas: the table "The score" of the SDK's scoring contract.

use knowledgepulse_trace::features::Features;

/// A number for each of the four dimensions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ByDimension {
    /// Of the variety and length of the reasoning.
    pub complexity: f64,
    /// Of the distance from the nearest remembered trace.
    pub novelty: f64,
    /// Of the variety of the tools relative to the number of steps.
    pub tool_diversity: f64,
    /// Of the confidence, which is discounted when the run failed.
    pub outcome: f64,
}

impl ByDimension {
    /// The names of the dimensions in JavaScript.
    pub const NAMES: [&str; 4] = ["complexity", "novelty", "toolDiversity", "outcomeConfidence"];

    /// Returns these numbers, which are in the order of [`Self::NAMES`].
    #[must_use]
    pub const fn from_array([complexity, novelty, tool_diversity, outcome]: [f64; 4]) -> Self {
        Self {
            complexity,
            novelty,
            tool_diversity,
            outcome,
        }
    }

    /// Returns the numbers in the order of [`Self::NAMES`].
    #[must_use]
    pub const fn to_array(self) -> [f64; 4] {
        [self.complexity, self.novelty, self.tool_diversity, self.outcome]
    }

    /// Returns the sum, added up in the order of [`Self::NAMES`].
    #[must_use]
    pub fn sum(self) -> f64 {
        self.complexity + self.novelty + self.tool_diversity + self.outcome
    }
}

/// Returns the dimensions of a trace with these features. All are in \[0, 1\], except novelty: a negative similarity takes it above 1.
#[must_use]
pub fn of(features: &Features, novelty: f64) -> ByDimension {
    ByDimension {
        complexity: complexity(features),
        novelty,
        tool_diversity: tool_diversity(features),
        outcome: outcome(features),
    }
}

// The operations below have the contract's order: floating point is not associative, and the scores agree with JavaScript's
// to the last bit only if both add in the same order.

#[allow(clippy::cast_precision_loss)] // No trace has 2^53 steps.
fn complexity(features: &Features) -> f64 {
    let recovery = if features.error_recoveries > 0 { 0.3 } else { 0.0 };
    let types = features.unique_types as f64 / 4.0 * 0.5;
    let length = features.steps as f64 / 20.0 * 0.2;
    (types + recovery + length).min(1.0)
}

#[allow(clippy::cast_precision_loss)]
fn tool_diversity(features: &Features) -> f64 {
    (features.unique_tools as f64 / features.steps.max(1) as f64 * 3.0).min(1.0)
}

fn outcome(features: &Features) -> f64 {
    features.confidence * if features.success { 1.0 } else { 0.3 }
}

#[cfg(test)]
mod tests {
    use knowledgepulse_index::similarity::NEUTRAL_NOVELTY;
    use knowledgepulse_trace::{Trace, fixtures::with_steps};

    use super::*;

    fn dimensions(kinds: &[&str], tools: &[&str]) -> ByDimension {
        let mut trace = with_steps(kinds);
        for (step, tool) in trace.steps.iter_mut().zip(tools) {
            step.tool = Some((*tool).into());
        }
        of(&Features::of(&trace), NEUTRAL_NOVELTY)
    }

    #[test]
    fn complexity_follows_the_formula() {
        assert_eq!(dimensions(&[], &[]).complexity, 0.0);
        assert_eq!(dimensions(&["thought"], &[]).complexity, 0.125 + 0.01);
        assert_eq!(
            dimensions(&["thought", "error_recovery"], &[]).complexity,
            0.25 + 0.3 + 0.02
        );
        assert_eq!(dimensions(&["error_recovery"; 200], &[]).complexity, 1.0);
    }

    #[test]
    fn tool_diversity_follows_the_formula() {
        assert_eq!(dimensions(&[], &[]).tool_diversity, 0.0);
        assert_eq!(dimensions(&["tool_call"; 6], &["a"]).tool_diversity, 0.5);
        assert_eq!(dimensions(&["tool_call"; 2], &["a", "b"]).tool_diversity, 1.0);
    }

    #[test]
    fn outcome_is_discounted_by_failure() {
        let mut trace = with_steps(&["thought"]);
        trace.confidence = 0.8;
        let outcome = |trace: &Trace| of(&Features::of(trace), 0.0).outcome;
        assert_eq!(outcome(&trace), 0.8);
        trace.success = false;
        assert_eq!(outcome(&trace), 0.8 * 0.3);
    }
}
