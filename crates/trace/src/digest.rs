//! The digest of a trace: a text of at most [`MOST_CHARACTERS`] with a part of every step, which is embedded once.

use crate::{Trace, words};

/// The most characters of a digest. 1,900 characters of English are about 400 of a model's 512 tokens. Text with more tokens to the
/// character loses its end.
pub const MOST_CHARACTERS: usize = 1_900;

/// Joins the pieces of `trace` by spaces, each cut to its first `k` characters, with the largest `k` that fits [`MOST_CHARACTERS`]. If one
/// character of each is too much, takes the first pieces.
#[must_use]
pub fn of(trace: &Trace) -> String {
    let pieces: Vec<&str> = words::pieces(trace).filter(|piece| !piece.is_empty()).collect();
    // Reads no more of a piece than fits into the digest.
    let lengths: Vec<usize> = pieces
        .iter()
        .map(|piece| piece.chars().take(MOST_CHARACTERS).count())
        .collect();
    let spaces = pieces.len().saturating_sub(1);
    let fits = |most: usize| {
        let characters: usize = lengths.iter().map(|&length| length.min(most)).sum();
        characters + spaces <= MOST_CHARACTERS
    };
    let (mut most, mut too_many) = (1, MOST_CHARACTERS + 1);
    while too_many - most > 1 {
        let middle = most.midpoint(too_many);
        if fits(middle) {
            most = middle;
        } else {
            too_many = middle;
        }
    }
    let mut digest = String::new();
    for (index, piece) in pieces.iter().enumerate().take(MOST_CHARACTERS) {
        if index > 0 {
            digest.push(' ');
        }
        digest.extend(piece.chars().take(most));
    }
    if let Some((end, _)) = digest.char_indices().nth(MOST_CHARACTERS) {
        digest.truncate(end);
    }
    digest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::with_texts;
    use proptest::prelude::*;

    #[test]
    fn short_traces_are_whole() {
        assert_eq!(of(&with_texts("a", &["b c", "", "d"])), "a b c d");
        assert_eq!(of(&with_texts("", &[])), "");
        assert_eq!(
            of(&with_texts(&"x".repeat(5_000), &[])),
            "x".repeat(MOST_CHARACTERS)
        );
    }

    #[test]
    fn long_pieces_are_cut_for_the_others() {
        let digest = of(&with_texts(
            "objective",
            &[&"x".repeat(5_000), "short", &"é".repeat(5_000)],
        ));
        // 1,900 less three spaces, "objective" and "short", in two.
        assert_eq!(
            digest,
            format!("objective {} short {}", "x".repeat(941), "é".repeat(941))
        );
    }

    #[test]
    fn digest_of_too_many_pieces_has_the_first() {
        let contents = vec!["word"; 5_000];
        assert_eq!(
            of(&with_texts("o", &contents)),
            format!("o{}", " w".repeat(950))[..1_900]
        );
    }

    proptest! {
        #[test]
        fn no_digest_is_longer(contents in prop::collection::vec(".{0,200}", 0..40)) {
            let contents: Vec<_> = contents.iter().map(String::as_str).collect();
            prop_assert!(of(&with_texts("objective", &contents)).chars().count() <= MOST_CHARACTERS);
        }
    }
}
