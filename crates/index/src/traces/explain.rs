//! The words of a trace that explain its similarity to another one.

use knowledgepulse_trace::words::Words;

use super::WordShare;

/// The most shared words, and the most new words.
const MOST_EXPLAINED: usize = 10;

/// A word of a trace that is compared.
#[derive(Debug, Clone, PartialEq)]
pub struct ExplainedWord {
    /// The word after normalisation, cut to 64 characters.
    pub text: String,
    /// For a shared word its part of L, for a new one its part of 1 - C.
    pub weight: f64,
    /// Its document frequency in the memory.
    pub traces: usize,
}

/// The heaviest words in the similarity of a trace to another one.
#[derive(Debug, Clone, PartialEq)]
pub struct ExplainedWords {
    /// The heaviest shared words, at most ten, the heaviest first.
    pub shared: Vec<ExplainedWord>,
    /// The heaviest words that the other trace lacks, at most ten.
    pub new: Vec<ExplainedWord>,
}

impl ExplainedWords {
    /// Those among `words`, by what each says about the similarity.
    #[must_use]
    pub fn of(words: &Words, shares: &[WordShare]) -> Self {
        let spelled = |(share, weight): (&WordShare, f64)| {
            Some(ExplainedWord {
                text: words.spelling(share.hash)?.to_owned(),
                weight,
                traces: share.traces,
            })
        };
        let shared = heaviest(shares.iter().filter(|share| share.shared), |share| share.lexical);
        let new = heaviest(shares.iter().filter(|share| !share.shared), |share| share.weight);
        Self {
            shared: shared.into_iter().filter_map(spelled).collect(),
            new: new.into_iter().filter_map(spelled).collect(),
        }
    }
}

/// The words with the largest weights, of equal ones those with the smallest hashes.
fn heaviest<'s>(
    shares: impl Iterator<Item = &'s WordShare>,
    weight: impl Fn(&WordShare) -> f64,
) -> Vec<(&'s WordShare, f64)> {
    let mut words: Vec<_> = shares.map(|share| (share, weight(share))).collect();
    words.sort_unstable_by(|(one, heavy), (other, light)| {
        light.total_cmp(heavy).then(one.hash.cmp(&other.hash))
    });
    words.truncate(MOST_EXPLAINED);
    words
}

#[cfg(test)]
mod tests {
    use knowledgepulse_trace::{Trace, fixtures::with_texts};

    use super::*;
    use crate::{method::Method, options::MemoryOptions, shared::SharedMemory, traces::TraceMemory};
    use std::time::Instant;

    fn explained(remembered: &[&str], trace: &Trace) -> (f64, f64, ExplainedWords) {
        let now = Instant::now();
        let mut memory = TraceMemory::new(Method::Lexical, MemoryOptions::default());
        for text in remembered {
            memory
                .add((&Words::of(&with_texts(text, &[]))).into(), now)
                .unwrap();
        }
        let words = Words::of(trace);
        let (nearest, shares) = memory
            .compare_and_explain((&words).into(), true, true, now)
            .unwrap();
        let similarity = nearest.unwrap().similarity;
        // Leaves out the trace that this call has added.
        assert_eq!(memory.len(now), remembered.len() + 1);
        (
            similarity.lexical,
            similarity.contained,
            ExplainedWords::of(&Words::spelled(trace), &shares),
        )
    }

    fn texts(words: &[ExplainedWord]) -> Vec<&str> {
        words.iter().map(|word| word.text.as_str()).collect()
    }

    fn sum(words: &[ExplainedWord]) -> f64 {
        words.iter().map(|word| word.weight).sum()
    }

    #[test]
    fn the_heaviest_words_come_first_and_add_up() {
        let trace = with_texts("FLIGHT to Boston", &["tomorrow, to Boston", "Tomorrow"]);
        let (lexical, contained, words) = explained(&["flight to boston", "flight to seattle"], &trace);
        assert_eq!(texts(&words.new), ["tomorrow"]);
        assert_eq!(words.new[0].traces, 0);
        // The other two are in both remembered traces, and Boston counts twice here.
        assert_eq!(words.shared[0].text, "boston");
        assert_eq!(words.shared[0].traces, 1);
        assert_eq!(texts(&words.shared[1..]), ["to", "flight"]);
        assert!((sum(&words.shared) - lexical).abs() < 1e-12);
        assert!((sum(&words.new) - (1.0 - contained)).abs() < 1e-12);
    }

    #[test]
    fn at_most_ten_are_told() {
        let many: String = (0..40).map(|number| format!("word{number} ")).collect();
        let (lexical, _, words) = explained(&[&many], &with_texts(&many, &["only here"]));
        assert_eq!((words.shared.len(), texts(&words.new).len()), (10, 2));
        assert!(sum(&words.shared) < lexical);
    }
}
