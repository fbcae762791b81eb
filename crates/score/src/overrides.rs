//! The rules that correct a composite score, and the final clamp.

use knowledgepulse_error::named;
use knowledgepulse_trace::features::Features;

/// The score of a trace whose only step is a thought.
const SINGLE_THOUGHT: f64 = 0.1;
/// The bonus for a successful trace that recovered from more than [`RECOVERIES_REWARDED_ABOVE`] errors.
const RECOVERY_BONUS: f64 = 0.1;
const RECOVERIES_REWARDED_ABOVE: usize = 2;
/// The deduction for a trace that uses exactly one distinct tool.
const SINGLE_TOOL_PENALTY: f64 = 0.1;

named! {
    /// A rule that can change a score, with its name in a breakdown.
    pub enum OverrideRule {
        /// A trace whose only step is a thought scores [`SINGLE_THOUGHT`].
        SingleThought = "single-thought",
        /// Recoveries in a successful trace add [`RECOVERY_BONUS`]; the result is at most 1.
        RecoveryBonus = "recovery-bonus",
        /// Using one tool only takes [`SINGLE_TOOL_PENALTY`] away; the result is at least 0.
        SingleToolPenalty = "single-tool-penalty",
        /// A score outside \[0, 1\], which a novelty above 1 or rounding can cause, becomes 0 or 1.
        Clamp = "clamp",
    }
}

/// A rule that applied, with its effect.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Override {
    /// The rule.
    pub rule: OverrideRule,
    /// The score before.
    pub before: f64,
    /// The score after; it may equal the one before.
    pub after: f64,
}

/// Applies the three overrides in order, and clamps the result to \[0, 1\]. Returns the score and the applied rules; the clamp is among
/// them only if it changed the score.
#[must_use]
pub fn apply(composite: f64, features: &Features) -> (f64, Vec<Override>) {
    let mut score = composite;
    let mut applied = Vec::new();
    let mut set = |rule, before: &mut f64, after| {
        applied.push(Override {
            rule,
            before: *before,
            after,
        });
        *before = after;
    };
    if features.single_thought {
        set(OverrideRule::SingleThought, &mut score, SINGLE_THOUGHT);
    }
    if features.error_recoveries > RECOVERIES_REWARDED_ABOVE && features.success {
        let after = (score + RECOVERY_BONUS).min(1.0);
        set(OverrideRule::RecoveryBonus, &mut score, after);
    }
    if features.unique_tools == 1 {
        let after = (score - SINGLE_TOOL_PENALTY).max(0.0);
        set(OverrideRule::SingleToolPenalty, &mut score, after);
    }
    let clamped = score.clamp(0.0, 1.0);
    #[allow(clippy::float_cmp)] // Whether it is another number at all.
    if clamped != score {
        set(OverrideRule::Clamp, &mut score, clamped);
    }
    (score, applied)
}

#[cfg(test)]
mod tests {
    use knowledgepulse_trace::{Trace, fixtures::with_steps};

    use super::*;

    fn applied(composite: f64, trace: &Trace) -> f64 {
        let (score, applied) = apply(composite, &Features::of(trace));
        let mut value = composite;
        for Override { before, after, .. } in applied {
            assert_eq!(before, value);
            value = after;
        }
        assert_eq!(value, score);
        score
    }

    #[test]
    fn single_thought_scores_a_tenth() {
        assert_eq!(applied(0.9, &with_steps(&["thought"])), 0.1);
    }

    #[test]
    fn recoveries_are_rewarded_above_two_and_on_success_only() {
        let mut trace = with_steps(&["error_recovery"; 3]);
        assert_eq!(applied(0.5, &trace), 0.6);
        assert_eq!(applied(0.95, &trace), 1.0);
        trace.success = false;
        assert_eq!(applied(0.5, &trace), 0.5);
        assert_eq!(applied(0.5, &with_steps(&["error_recovery"; 2])), 0.5);
    }

    #[test]
    fn a_single_tool_is_penalised_and_none_is_not() {
        let mut trace = with_steps(&["tool_call", "tool_call"]);
        assert_eq!(applied(0.5, &trace), 0.5);
        let tool = |name: &str| Some(name.into());
        trace.steps[0].tool = tool("a");
        assert_eq!(applied(0.5, &trace), 0.4);
        assert_eq!(applied(0.05, &trace), 0.0);
        trace.steps[1].tool = tool("b");
        assert_eq!(applied(0.5, &trace), 0.5);
    }

    #[test]
    fn the_order_is_thought_then_bonus_then_penalty() {
        let mut trace = with_steps(&["thought"]);
        trace.steps[0].tool = Some("a".into());
        assert_eq!(applied(0.9, &trace), 0.0);

        // The bonus is capped at 1 before the penalty is taken from it.
        let mut trace = with_steps(&["error_recovery"; 3]);
        trace.steps[0].tool = Some("a".into());
        assert_eq!(applied(0.95, &trace), 0.9);
    }

    #[test]
    fn the_result_is_clamped() {
        let trace = with_steps(&["thought", "observation"]);
        assert_eq!(applied(1.2, &trace), 1.0);
        assert_eq!(applied(-0.2, &trace), 0.0);
    }

    #[test]
    fn the_rules_that_applied_are_told() {
        let rules = |composite, trace: &Trace| -> Vec<OverrideRule> {
            let (_, applied) = apply(composite, &Features::of(trace));
            applied.into_iter().map(|applied| applied.rule).collect()
        };
        let mut trace = with_steps(&["error_recovery"; 3]);
        trace.steps[0].tool = Some("a".into());
        assert_eq!(
            rules(0.5, &trace),
            [OverrideRule::RecoveryBonus, OverrideRule::SingleToolPenalty]
        );
        assert_eq!(
            rules(0.5, &with_steps(&["thought"])),
            [OverrideRule::SingleThought]
        );
        assert_eq!(rules(1.5, &with_steps(&[])), [OverrideRule::Clamp]);
        assert_eq!(rules(1.0, &with_steps(&[])), []);
    }

    #[test]
    fn rules_are_found_by_their_names() {
        let names = ["single-thought", "recovery-bonus", "single-tool-penalty", "clamp"];
        assert!(
            names
                .into_iter()
                .filter_map(OverrideRule::from_name)
                .eq(OverrideRule::ALL.iter().copied())
        );
        assert_eq!(OverrideRule::from_name(""), None);
    }
}
