//! The measure of novelty: compares a trace with a memory by words and, with a model, by the embedding of a digest.
//!
//! DESIGN.md, "The measure", has the formulas: c(t) and w(t) of a word, L, C and E of two traces, and N.

/// The novelty of a trace that cannot be compared: there is no embedder, or the memory is empty.
pub const NEUTRAL_NOVELTY: f64 = 0.5;

/// Returns the novelty for a similarity to the nearest vector; `None` means an empty memory.
#[must_use]
pub fn of_similarity(similarity: Option<f64>) -> f64 {
    similarity.map_or(NEUTRAL_NOVELTY, |similarity| 1.0 - similarity)
}

/// The weights of L and E with an embedding.
const LEXICAL_SHARE: f64 = 0.7;
const EMBEDDED_SHARE: f64 = 1.0 - LEXICAL_SHARE;

/// How similar a trace is to a remembered one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Similarity {
    /// L: the cosine of the weighted words, 0 to 1.
    pub lexical: f64,
    /// C: which part of the trace's words the other one contains, by their weights, 0 to 1.
    pub contained: f64,
    /// E: the cosine of the projected embeddings, 0 to 1; `None` without a model.
    pub embedded: Option<f64>,
}

impl Similarity {
    /// The similarity as one number, 0 to 1: novelty is 1 minus the largest.
    #[must_use]
    pub fn value(&self) -> f64 {
        combine(self.lexical, self.contained, self.embedded)
    }
}

/// Returns L, C and E, or upper bounds of them, as one number.
#[must_use]
pub fn combine(lexical: f64, contained: f64, embedded: Option<f64>) -> f64 {
    let words_and_digest = match embedded {
        Some(embedded) => LEXICAL_SHARE * lexical + EMBEDDED_SHARE * embedded,
        None => lexical,
    };
    // C⁴ is near 0 unless nearly all of a trace is contained in the other.
    let squared = contained * contained;
    words_and_digest.max(squared * squared)
}

/// The weight of a word that `traces` of `memory` remembered traces contain. It is above 0, because `traces` is at
/// most `memory`.
#[must_use]
#[allow(clippy::cast_precision_loss)] // No memory holds 2^53 traces.
pub fn weight(memory: usize, traces: usize) -> f64 {
    ((memory + 1) as f64).ln() - (traces.max(1) as f64).ln()
}

/// The sums over the words of one trace, or those that it shares with another. They are added in the order of the words' hashes, so
/// that the same words give the same bits.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sums {
    /// Σ of the products of the weighted counts.
    pub product: f64,
    /// Σ of the weights.
    pub weight: f64,
}

impl Sums {
    /// Adds a word with the counts that two traces have of it, or one trace twice.
    #[inline]
    pub fn add(&mut self, count: f64, other: f64, weight: f64) {
        self.product += (count * weight) * (other * weight);
        self.weight += weight;
    }

    /// L and C of a trace with the sums `self` and one with the sums `other`, which share words with the sums `shared`.
    #[must_use]
    pub fn compare(&self, other: &Self, shared: &Self) -> (f64, f64) {
        match (self.weight > 0.0, other.weight > 0.0) {
            (false, false) => (1.0, 1.0),
            (true, true) => {
                // Of equal traces the three products are equal, and the root of the square of a number is the number.
                let lexical = shared.product / (self.product * other.product).sqrt();
                (lexical.min(1.0), shared.weight / self.weight)
            }
            _ => (0.0, 0.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_every_trace_weigh_something() {
        for memory in [1, 2, 1000, 100_000_000] {
            assert!(weight(memory, memory) > 0.0);
            assert_eq!(weight(memory, 0), weight(memory, 1));
        }
    }

    #[test]
    fn containment_counts_only_when_it_is_nearly_whole() {
        let similarity = |lexical, contained, embedded| {
            let similarity = Similarity {
                lexical,
                contained,
                embedded,
            };
            similarity.value()
        };
        assert_eq!(similarity(0.5, 1.0, None), 1.0);
        assert_eq!(similarity(0.5, 0.5, None), 0.5);
        assert_eq!(similarity(0.5, 0.5, Some(1.0)), 0.7 * 0.5 + (1.0 - 0.7));
        assert_eq!(similarity(0.0, 0.0, Some(0.0)), 0.0);
    }
}
