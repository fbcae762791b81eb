//! Figures of the scores of a run.

/// Returns the mean of scores; `None` without scores.
#[allow(clippy::cast_precision_loss)] // Counts are far below 2^53.
pub(crate) fn mean(scores: &[f64]) -> Option<f64> {
    (!scores.is_empty()).then(|| scores.iter().sum::<f64>() / scores.len() as f64)
}

/// Scores in ascending order.
#[derive(Debug)]
pub(crate) struct Sorted(Vec<f64>);

#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss
)] // Counts are far below 2^53.
impl Sorted {
    /// Sorts scores.
    pub(crate) fn of(scores: &[f64]) -> Self {
        let mut scores = scores.to_vec();
        scores.sort_by(f64::total_cmp);
        Self(scores)
    }

    /// Returns the score below which the share `p` of all lies; `None` without scores. Between two scores it lies in proportion, as by
    /// default in NumPy and R: method 7 of Hyndman and Fan, "Sample Quantiles in Statistical Packages" (1996).
    pub(crate) fn quantile(&self, p: f64) -> Option<f64> {
        let rank = p * self.0.len().checked_sub(1)? as f64;
        let (below, above) = (self.0[rank.floor() as usize], self.0[rank.ceil() as usize]);
        Some(below + rank.fract() * (above - below))
    }

    /// Returns the share of the scores that are less than this one, 0 to 1; 0 without scores.
    pub(crate) fn share_below(&self, score: f64) -> f64 {
        self.0.partition_point(|other| *other < score) as f64 / self.0.len().max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn quantile_and_share_below_agree_with_counting(
            scores in proptest::collection::vec(0.0..=1.0, 1..50),
            p in 0.0..=1.0,
        ) {
            let all = Sorted::of(&scores);
            let quantile = all.quantile(p).unwrap();
            let below = scores.iter().filter(|score| **score < quantile).count() as f64;
            prop_assert_eq!(all.share_below(quantile), below / scores.len() as f64);
            let rank = p * (scores.len() - 1) as f64;
            prop_assert!(below >= rank.floor() && below <= rank.ceil());
            let range = [0.0, 1.0].map(|p| all.quantile(p).unwrap());
            let least = scores.iter().copied().fold(1.0, f64::min);
            prop_assert_eq!(range, [least, scores.iter().copied().fold(0.0, f64::max)]);
        }
    }

    #[test]
    fn no_scores_have_no_figures() {
        let none = Sorted::of(&[]);
        assert_eq!(
            (mean(&[]), none.quantile(0.5), none.share_below(0.5)),
            (None, None, 0.0)
        );
    }
}
