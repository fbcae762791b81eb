//! Figures of the scores of a run.

/// Scores in the order in which they were added, 8 bytes each.
#[derive(Debug, Default)]
pub(crate) struct Scores(Vec<f64>);

#[allow(clippy::cast_precision_loss)] // Counts are far below 2^53.
impl Scores {
    /// Adds a score.
    pub(crate) fn add(&mut self, score: f64) {
        self.0.push(score);
    }

    /// Returns how many scores there are.
    pub(crate) fn count(&self) -> u64 {
        self.0.len() as u64
    }

    /// Returns the mean; `None` without scores.
    pub(crate) fn mean(&self) -> Option<f64> {
        (!self.0.is_empty()).then(|| self.0.iter().sum::<f64>() / self.0.len() as f64)
    }

    /// Sorts the scores.
    pub(crate) fn sorted(&self) -> Sorted {
        let mut scores = self.0.clone();
        scores.sort_by(f64::total_cmp);
        Sorted(scores)
    }
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

    fn sorted(scores: &[f64]) -> Sorted {
        let mut all = Scores::default();
        scores.iter().for_each(|score| all.add(*score));
        all.sorted()
    }

    proptest! {
        #[test]
        fn quantile_and_share_below_agree_with_counting(
            scores in proptest::collection::vec(0.0..=1.0, 1..50),
            p in 0.0..=1.0,
        ) {
            let all = sorted(&scores);
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
        assert_eq!(
            (Scores::default().mean(), sorted(&[]).quantile(0.5)),
            (None, None)
        );
        assert_eq!(sorted(&[]).share_below(0.5), 0.0);
    }
}
