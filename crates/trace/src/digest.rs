//! The digest of a trace: a text of at most [`MOST_CHARACTERS`] with a part of every step, which is embedded once.

use crate::{Trace, phrases::first, words};

/// The most characters of a digest. 1,900 characters of English are about 400 of a model's 512 tokens. Text with more tokens to the
/// character loses its end.
pub const MOST_CHARACTERS: usize = 1_900;

/// Joins the pieces of `trace` by spaces, each cut to its first `k` characters, with the largest `k` that fits [`MOST_CHARACTERS`]. If one
/// character of each is too much, takes the first pieces.
#[must_use]
pub fn of(trace: &Trace) -> String {
    let pieces: Vec<&str> = words::pieces(trace).filter(|piece| !piece.is_empty()).collect();
    // Reads no more of a piece than fits into the digest.
    let length = |piece: &&str| piece.chars().take(MOST_CHARACTERS).count();
    let lengths: Vec<usize> = pieces.iter().map(length).collect();
    let spaces = pieces.len().saturating_sub(1);
    let fits = |most: &usize| {
        let characters: usize = lengths.iter().map(|length| length.min(most)).sum();
        characters + spaces <= MOST_CHARACTERS
    };
    let sizes: Vec<usize> = (2..=MOST_CHARACTERS).collect();
    let most = 1 + sizes.partition_point(fits);
    let pieces = pieces.iter().take(MOST_CHARACTERS);
    let pieces: Vec<&str> = pieces.map(|piece| first(piece, most)).collect();
    first(&pieces.join(" "), MOST_CHARACTERS).to_owned()
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
