//! Cuts the whole text of a trace into windows, for novelty that covers more than the first 512 tokens.
//!
//! A window begins where a part of the text begins (the objective, or the content of a step). So parts that appear again
//! in another order, or after another beginning, give the same windows again. A long part is cut at places that its text
//! decides, not at fixed offsets, so an insertion changes only the windows around it. A long trace is represented by the
//! windows with the smallest hashes: two traces that share text choose the same windows of it, so the share of the chosen
//! windows that is new estimates the share of the text that is new (bottom-k sampling; Broder, "On the resemblance and
//! containment of documents", 1997).

use std::collections::HashMap;

use twox_hash::XxHash3_64;

use crate::trace::Trace;

/// The most bytes of UTF-8 in a window: about 230 tokens of English prose or JSON. A byte gives at most one token, so a
/// window takes at most two inferences of 512 tokens.
pub const WINDOW_BYTES: usize = 1000;

/// The fewest bytes of a window that is not the last of its part, with the white space around it.
const LEAST_BYTES: usize = 250;

/// How many bytes before a position decide whether the text is cut there.
const CONTEXT_BYTES: usize = 32;

/// The most windows of a trace that are compared and remembered.
pub const MOST_WINDOWS: usize = 32;

/// A piece of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// The text, without white space around it.
    pub text: String,
    /// How many bytes of the trace have this text: its length times how often it appears.
    pub bytes: usize,
}

impl Window {
    /// The only window of a trace, so that its weight does not matter.
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
    /// Whether no window was left out.
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
        // A trace without text is compared too, by the embedding of the empty text.
        windows.push(Window::whole(String::new()));
    }
    choose(windows)
}

/// Keeps the [`MOST_WINDOWS`] windows with the smallest hashes.
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
        // Only different texts with the same hash could make this necessary. That never happens, but the bound must hold.
        windows.truncate(MOST_WINDOWS);
    }
    Windows {
        chosen: windows,
        complete,
    }
}

/// Cuts a part of the text into pieces of at most [`WINDOW_BYTES`].
fn cut(part: &str) -> impl Iterator<Item = &str> {
    cut_by(part, XxHash3_64::oneshot)
}

fn cut_by<H: FnMut(&[u8]) -> u64>(part: &str, mut hash: H) -> impl Iterator<Item = &str> {
    let mut rest = part.trim();
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (piece, others) = rest.split_at(end_of_first(rest, &mut hash));
        rest = others.trim_start();
        Some(piece.trim_end())
    })
}

/// The end of the first piece of `rest`: before the white space whose context has the smallest hash, among those within
/// [`LEAST_BYTES`] and [`WINDOW_BYTES`], or before such a character if there is no white space. Of equal hashes, the last.
///
/// A position that has the smallest hash here also has it for most other pieces that reach it, wherever they began. So soon
/// after an insertion, the text is cut at the same places as without it.
fn end_of_first<H: FnMut(&[u8]) -> u64>(rest: &str, hash: &mut H) -> usize {
    if rest.len() <= WINDOW_BYTES {
        return rest.len();
    }
    let positions = || {
        (LEAST_BYTES..=WINDOW_BYTES)
            .rev()
            .filter(|&at| rest.is_char_boundary(at))
    };
    let mut context = |&at: &usize| hash(&rest.as_bytes()[at - CONTEXT_BYTES..at]);
    positions()
        .filter(|&at| rest[at..].starts_with(char::is_whitespace))
        .min_by_key(&mut context)
        .or_else(|| positions().min_by_key(&mut context))
        .unwrap_or(rest.len()) // Never taken: any four positions include a character boundary.
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{embed::fixtures::nasty_text, trace::tests::with_steps};
    use proptest::prelude::*;
    use std::collections::HashSet;

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

    /// Words of two to nine letters and digits, with `glue` between them.
    fn random_text(seed: u64, words: usize, glue: &str) -> String {
        let word = |number: usize| {
            let hash = XxHash3_64::oneshot_with_seed(seed, &number.to_le_bytes());
            format!("{hash:016x}")[..2 + usize::from(hash.to_le_bytes()[0]) % 8].to_owned()
        };
        (0..words).map(word).collect::<Vec<_>>().join(glue)
    }

    #[test]
    fn cuts_are_the_same_everywhere() {
        let text: String = (0..500).map(|number| format!("word {number} ")).collect();
        let pieces: Vec<_> = cut(&text).map(str::len).collect();
        assert_eq!(pieces, [389, 858, 845, 278, 845, 841, 327]);
        let unbroken: String = (0..500).map(|number| format!("ä{number}")).collect();
        let pieces: Vec<_> = cut(&unbroken).map(str::len).collect();
        assert_eq!(pieces, [276, 463, 880, 771]);
    }

    #[test]
    fn the_hashes_are_bounded_by_the_text() {
        for glue in ["", " "] {
            let text = random_text(1, 100_000, glue);
            let mut hashes = 0;
            let count = |context: &[u8]| {
                assert_eq!(context.len(), CONTEXT_BYTES);
                hashes += 1;
                XxHash3_64::oneshot(context)
            };
            assert!(cut_by(&text, count).eq(cut(&text)));
            assert!(hashes <= text.len() / LEAST_BYTES * (WINDOW_BYTES - LEAST_BYTES + 1));
            assert!(glue.is_empty() || hashes <= text.len());
        }
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
        fn after_an_insertion_the_windows_are_soon_the_same(
            seed in any::<u64>(),
            glue in prop::sample::select(vec![" ", "", "\n", "中"]),
            words in 0usize..600,
            at in 0usize..1000,
        ) {
            let text = random_text(seed, 10_000, glue);
            let inserted = random_text(!seed, words, glue) + " ";
            let windows: HashSet<_> = cut(&text).collect();
            let (before, after) = text.split_at(text.floor_char_boundary(at));
            let changed = [before, &inserted, after].concat();
            let changed: HashSet<_> = cut(&changed).collect();
            // Of about ninety.
            prop_assert!(windows.difference(&changed).count() <= 16);
        }

        #[test]
        fn pieces_hold_the_text_in_its_order(texts in prop::collection::vec(nasty_text(), 0..100)) {
            let text = texts.concat();
            let visible = |text: &str| text.split_whitespace().collect::<String>();
            let pieces: Vec<_> = cut(&text).collect();
            prop_assert_eq!(visible(&pieces.concat()), visible(&text));
            prop_assert!(pieces.iter().all(|piece| !piece.is_empty() && piece.len() <= WINDOW_BYTES));
        }

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
