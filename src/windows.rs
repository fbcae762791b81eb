//! The whole text of a trace in windows: what novelty compares where it is to cover more than the first 512 tokens.
//!
//! Windows begin where a part of the text begins (the objective, or the content of a step), so that parts which
//! come again in another order, or after another beginning, make the same windows again. A long trace is
//! represented by the windows with the smallest hashes: two traces that share text choose the same ones of it, and
//! what share of the chosen ones is new estimates what share of the text is (bottom-k sampling; Broder, "On the
//! resemblance and containment of documents", 1997).

use std::collections::HashMap;

use twox_hash::XxHash3_64;

use crate::trace::Trace;

/// The most bytes of UTF-8 in a window: about 230 tokens of English prose or JSON.
pub const WINDOW_BYTES: usize = 1000;

/// The most windows of a trace that are compared and remembered.
pub const MOST_WINDOWS: usize = 32;

/// A piece of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// The text, without white space around it.
    pub text: String,
    /// How many bytes of the trace read so.
    pub bytes: usize,
}

impl Window {
    /// A text that stands for all.
    #[must_use]
    pub fn whole(text: String) -> Self {
        Self { text, bytes: 1 }
    }
}

/// The windows of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Windows {
    /// At least one and at most [`MOST_WINDOWS`], all different, in the order of the text.
    pub chosen: Vec<Window>,
    /// Whether these are all that there are.
    pub complete: bool,
}

/// Cuts the text of `trace` into windows.
#[must_use]
pub fn of(trace: &Trace) -> Windows {
    let contents = trace.steps.iter().filter_map(|step| step.content.as_deref());
    let pieces = std::iter::once(trace.task.objective.as_str())
        .chain(contents)
        .flat_map(cut);

    let mut positions = HashMap::new();
    let mut windows: Vec<Window> = Vec::new();
    for piece in pieces {
        let position = *positions.entry(piece).or_insert_with(|| {
            windows.push(Window {
                text: piece.to_owned(),
                bytes: 0,
            });
            windows.len() - 1
        });
        windows[position].bytes += piece.len();
    }
    if windows.is_empty() {
        // What the embedder makes of no text at all is compared too.
        windows.push(Window::whole(String::new()));
    }
    choose(windows)
}

/// Keeps the windows with the smallest hashes.
fn choose(mut windows: Vec<Window>) -> Windows {
    let complete = windows.len() <= MOST_WINDOWS;
    if !complete {
        let mut hashes: Vec<_> = windows
            .iter()
            .map(|window| XxHash3_64::oneshot(window.text.as_bytes()))
            .collect();
        let largest = *hashes.clone().select_nth_unstable(MOST_WINDOWS - 1).1;
        let mut hashes = hashes.drain(..);
        windows.retain(|_| hashes.next().is_some_and(|hash| hash <= largest));
        // Different texts of one hash: there are no two in this universe, but the bound must hold.
        windows.truncate(MOST_WINDOWS);
    }
    Windows {
        chosen: windows,
        complete,
    }
}

/// Cuts a part of the text into pieces of at most [`WINDOW_BYTES`], at white space where there is some in the
/// second half of a piece.
fn cut(part: &str) -> impl Iterator<Item = &str> {
    let mut rest = part.trim();
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut end = rest.len();
        if end > WINDOW_BYTES {
            end = rest.floor_char_boundary(WINDOW_BYTES);
            let half = rest.floor_char_boundary(WINDOW_BYTES / 2);
            if let Some(space) = rest[half..end].rfind(char::is_whitespace) {
                end = half + space;
            }
        }
        let (piece, others) = rest.split_at(end);
        rest = others.trim_start();
        Some(piece.trim_end())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{tokens::tests::nasty_text, trace::tests::with_steps};
    use proptest::prelude::*;

    fn trace(objective: &str, contents: &[&str]) -> Trace {
        let mut trace = with_steps(&vec!["thought"; contents.len()]);
        trace.task.objective = objective.into();
        for (step, content) in trace.steps.iter_mut().zip(contents) {
            step.content = Some((*content).into());
        }
        trace
    }

    fn texts(windows: &Windows) -> Vec<&str> {
        windows.chosen.iter().map(|window| window.text.as_str()).collect()
    }

    #[test]
    fn every_part_begins_a_window() {
        let windows = of(&trace(" objective ", &["first", " ", "second\n"]));
        assert_eq!(texts(&windows), ["objective", "first", "second"]);
        assert!(windows.complete);
    }

    #[test]
    fn repeated_text_is_one_window_of_more_weight() {
        let windows = of(&trace("abc", &["ok", "abc", "ok"]));
        let weights: Vec<_> = windows.chosen.iter().map(|window| window.bytes).collect();
        assert_eq!((texts(&windows), weights), (vec!["abc", "ok"], vec![6, 4]));
    }

    #[test]
    fn no_text_is_one_empty_window() {
        assert_eq!(texts(&of(&trace("", &[]))), [""]);
        assert_eq!(texts(&of(&trace("  ", &["\n"]))), [""]);
    }

    #[test]
    fn long_parts_are_cut_at_white_space() {
        let words = "word ".repeat(500);
        let windows = of(&trace("", &[&words]));
        assert_eq!(windows.chosen.len(), 2); // Of three, the first two are the same.
        assert!(windows.chosen.iter().all(|window| window.text.ends_with("word")));
        let unbroken = "ä".repeat(1200);
        let pieces: Vec<_> = cut(&unbroken).map(str::len).collect();
        assert_eq!(pieces, [1000, 1000, 400]);
    }

    #[test]
    fn a_long_text_is_represented_by_the_same_windows_wherever_they_stand() {
        let parts: Vec<_> = (0..200).map(|number| format!("part number {number}")).collect();
        let mut contents: Vec<_> = parts.iter().map(String::as_str).collect();
        let windows = of(&trace("objective", &contents));
        assert_eq!(windows.chosen.len(), MOST_WINDOWS);
        assert!(!windows.complete);
        contents.reverse();
        let mut reversed = of(&trace("objective", &contents)).chosen;
        let mut chosen = windows.chosen;
        chosen.sort_by(|a, b| a.text.cmp(&b.text));
        reversed.sort_by(|a, b| a.text.cmp(&b.text));
        assert_eq!(chosen, reversed);
    }

    proptest! {
        #[test]
        fn windows_are_bounded_and_hold_the_text(contents in prop::collection::vec(nasty_text(), 0..50)) {
            let contents: Vec<_> = contents.iter().map(String::as_str).collect();
            let trace = trace("objective", &contents);
            let windows = of(&trace);
            prop_assert!((1..=MOST_WINDOWS).contains(&windows.chosen.len()));
            for window in &windows.chosen {
                prop_assert!(window.text.len() <= WINDOW_BYTES && window.bytes >= window.text.len());
                prop_assert_eq!(window.text.trim(), window.text.as_str());
            }
            if windows.complete {
                let visible = |text: &str| text.chars().filter(|c| !c.is_whitespace()).count();
                let expected = visible("objective") + contents.iter().map(|text| visible(text)).sum::<usize>();
                let weighed: usize = windows.chosen.iter().map(|window| window.bytes / window.text.len() * visible(&window.text)).sum();
                prop_assert_eq!(weighed, expected);
            }
        }
    }
}
