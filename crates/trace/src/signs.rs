//! The signs by which runs are ordered whose outcome nobody knows. They order; none is a verdict. "Unknown outcomes" in
//! crates/score/DESIGN.md has how well each tells successes from failures.

use crate::{
    Step, Trace,
    phrases::{are_in, count_in, first},
};

/// The characters of a tool's result that are searched for words of an error.
const MOST_OF_RESULT: usize = 4_000;

/// What a run shows of how it went.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Signs {
    /// Number of steps.
    pub steps: usize,
    /// Number of the agent's turns: its steps between two results.
    pub turns: usize,
    /// Number of errors among the last third of the results.
    pub late_errors: usize,
    /// Number of hedging words in the last thought, divided by the root of 1 + hundreds of characters.
    pub hedging: f64,
}

impl Signs {
    /// Reads the signs of `trace`.
    #[must_use]
    pub fn of(trace: &Trace) -> Self {
        let is_result = |step: &Step| step.kind == "observation" || step.kind == "error_recovery";
        let steps = &trace.steps;
        let runs = steps.chunk_by(|one, other| is_result(one) == is_result(other));
        let results: Vec<_> = steps.iter().filter(|step| is_result(step)).collect();
        let late = &results[results.len() - (results.len() / 3).max(1).min(results.len())..];
        let late_errors = late.iter().filter(|step| {
            let content = step.content.as_deref().unwrap_or_default();
            step.kind == "error_recovery" || are_in("error", first(content, MOST_OF_RESULT))
        });
        let thoughts = steps.iter().rev().filter(|step| step.kind == "thought");
        let last = thoughts.filter_map(|step| step.content.as_deref()).next();
        Self {
            steps: steps.len(),
            turns: runs.filter(|run| !is_result(&run[0])).count(),
            late_errors: late_errors.count(),
            hedging: hedging(last.unwrap_or_default()),
        }
    }
}

#[allow(clippy::cast_precision_loss)] // No text has 2^53 characters.
fn hedging(text: &str) -> f64 {
    let hedges = count_in("hedge", text) as f64;
    hedges / (1.0 + text.chars().count() as f64 / 100.0).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{with_steps, with_texts};

    #[test]
    fn signs_of_steps_turns_and_late_errors() {
        let mut trace = with_steps(&[
            "thought",
            "tool_call",
            "observation",
            "tool_call",
            "error_recovery",
            "observation",
            "tool_call",
            "observation",
            "observation",
            "observation",
            "thought",
        ]);
        let of = |trace: &Trace| {
            let Signs {
                steps,
                turns,
                late_errors,
                ..
            } = Signs::of(trace);
            (steps, turns, late_errors)
        };
        assert_eq!(of(&trace), (11, 4, 0));
        for (content, errors) in [
            ("an Error: x", 1),
            ("terrors, error_count", 0),
            ("No such file", 1),
            ("File ‘x’ not found.", 1),
            (&format!("{} error", "é".repeat(MOST_OF_RESULT)), 0),
            (&format!("{}. error", "é".repeat(100)), 1),
        ] {
            trace.steps[9].content = Some(content.to_owned());
            assert_eq!(of(&trace), (11, 4, errors), "{content}");
        }
        trace.steps[8].kind = "error_recovery".into();
        assert_eq!(of(&trace), (11, 4, 2), "the last two of six results");
        assert_eq!(of(&with_steps(&[])), (0, 0, 0));
        assert_eq!(of(&with_steps(&["tool_call", "error_recovery"])), (2, 1, 1));
    }

    #[test]
    fn hedges_of_each_language_are_counted() {
        let texts = [
            ("Unfortunately, it STILL fails.", 2),
            ("It is done; mighty, unstill.", 0),
            ("Leider konnte nicht alles getan werden.", 2),
            ("Désolé, je ne peux pas.", 2),
            ("No se pudo; lo siento.", 2),
            ("Infelizmente não consegui.", 2),
            ("Purtroppo non riesco.", 2),
            ("Helaas, dat lijkt zo.", 2),
            ("Tyvärr är det oklart.", 2),
            ("Niestety, nie mogę.", 2),
            ("Bohužel to nelze.", 2),
            ("Maalesef mümkün değil.", 2),
            ("К сожалению, не удалось.", 2),
            ("На жаль, не вдалося.", 2),
            ("残念ながらまだ動きません。", 2),
            ("안타깝게도 아직 안 됩니다.", 2),
            ("抱歉,我无法完成。", 2),
            ("للأسف لم أتمكن من ذلك", 2),
            ("לצערי לא הצלחתי", 2),
        ];
        for (text, hedges) in texts {
            assert_eq!(count_in("hedge", text), hedges, "{text}");
        }
        let languages = include_str!("../tables/words.tsv")
            .lines()
            .filter(|line| line.starts_with("hedge\t"));
        assert_eq!(languages.count(), texts.len() - 1);
        let trace = with_texts("", &["sorry", &format!("sorry{}", " ".repeat(295))]);
        assert_eq!(Signs::of(&trace).hedging, 0.5);
    }
}
