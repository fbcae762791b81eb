//! Statistics in bounded memory, however many values they are given.

use knowledgepulse_json::Text;

/// How finely scores are counted: their quantiles are exact to the width of a bin. The summary and the report count alike, so that
/// they tell the same figures.
pub const SCORE_BINS: usize = 10_000;

/// The largest value: novelty may be as much; everything else is at most 1.
const GREATEST: usize = 2;

/// Counts values from 0 to 2 in bins of equal width, `bins` of them between 0 and 1. Values outside count in the first or
/// the last bin.
#[derive(Debug, Clone)]
pub struct Histogram {
    bins: usize,
    counts: Vec<u64>,
    sums: Vec<f64>,
    sum: f64,
    count: u64,
    min: f64,
    max: f64,
}

#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss
)] // Counts are far below 2^53.
impl Histogram {
    /// Returns a histogram without values.
    pub fn new(bins: usize) -> Self {
        Self {
            bins,
            counts: vec![0; GREATEST * bins + 1],
            sums: vec![0.0; GREATEST * bins + 1],
            sum: 0.0,
            count: 0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
        }
    }

    /// Adds a value.
    pub fn add(&mut self, value: f64) {
        let bin = self.bin_of(value);
        self.counts[bin] += 1;
        self.sums[bin] += value;
        self.sum += value;
        self.count += 1;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Returns the bin `k` with `k / bins <= value < (k + 1) / bins`, in just these terms: `value * bins` alone may round up.
    fn bin_of(&self, value: f64) -> usize {
        let last = GREATEST * self.bins;
        let bins = self.bins as f64;
        // A negative value becomes 0.
        let mut bin = ((value * bins).floor() as usize).min(last);
        if bin > 0 && value < bin as f64 / bins {
            bin -= 1;
        }
        if bin < last && value >= (bin + 1) as f64 / bins {
            bin += 1;
        }
        bin
    }

    /// Returns how many values there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the smallest and the largest value; `None` without values.
    pub fn range(&self) -> Option<(f64, f64)> {
        (self.count > 0).then_some((self.min, self.max))
    }

    /// Returns the mean; `None` without values.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }

    /// Returns the value below which the share `p` of all lies, to the width of a bin; `None` without values. Between two values it
    /// lies in proportion, as by default in NumPy and R: method 7 of Hyndman and Fan, "Sample Quantiles in Statistical Packages" (1996).
    pub fn quantile(&self, p: f64) -> Option<f64> {
        let greatest = self.count.checked_sub(1)?;
        let rank = p * greatest as f64;
        let below = rank.floor();
        let value = self.value_at(below as u64);
        let rest = rank - below;
        if rest > 0.0 {
            return Some(value + rest * (self.value_at(below as u64 + 1) - value));
        }
        Some(value)
    }

    /// Returns the value at a rank in ascending order, counted from 0.
    fn value_at(&self, rank: u64) -> f64 {
        if rank == 0 {
            return self.min;
        }
        if rank + 1 >= self.count {
            return self.max;
        }
        let mut before = 0;
        let bin = self.counts.iter().position(|count| {
            before += count;
            before > rank
        });
        // The mean of the values in the bin, which is exact if there is only one value or if all are equal.
        bin.map_or(self.max, |bin| self.sums[bin] / self.counts[bin] as f64)
    }

    /// Returns the share of the values that lie in bins below that of `value`, 0 to 1; 0 without values.
    pub fn share_below(&self, value: f64) -> f64 {
        let below: u64 = self.counts[..self.bin_of(value)].iter().sum();
        below as f64 / self.count.max(1) as f64
    }

    /// Returns the bins that are not empty, as pairs of number and count, in a coarser division of 0 to 1 than it counts in.
    pub fn filled(&self, bins: usize) -> Vec<(usize, u64)> {
        let width = self.bins / bins;
        let mut filled: Vec<(usize, u64)> = Vec::new();
        for (fine, &count) in self.counts.iter().enumerate().filter(|&(_, &count)| count > 0) {
            match filled.last_mut() {
                Some((bin, total)) if *bin == fine / width => *total += count,
                _ => filled.push((fine / width, count)),
            }
        }
        filled
    }
}

/// The name that collects all names beyond a limit.
const REST: &str = "(others)";

/// A value for each name, in the order of their first use; names beyond a limit share one value.
#[derive(Debug)]
pub(crate) struct Named<T> {
    values: Vec<(Text, T)>,
    limit: usize,
}

impl<T> Named<T> {
    pub(crate) const fn new(limit: usize) -> Self {
        Self {
            values: Vec::new(),
            limit,
        }
    }

    /// Returns the value of a name; `make` creates that of a new one.
    pub(crate) fn entry(&mut self, name: Text, make: impl FnOnce() -> T) -> &mut T {
        let place = |name: &Text| self.values.iter().position(|(other, _)| other == name);
        let (name, at) = match place(&name) {
            None if self.values.len() >= self.limit => (REST.into(), place(&REST.into())),
            at => (name, at),
        };
        let at = at.unwrap_or_else(|| {
            self.values.push((name, make()));
            self.values.len() - 1
        });
        &mut self.values[at].1
    }

    /// Returns the names and their values.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Text, &T)> {
        self.values.iter().map(|(name, value)| (name, value))
    }
}

impl Named<u64> {
    /// Counts a name.
    pub(crate) fn count(&mut self, name: &str) {
        *self.entry(name.into(), || 0) += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn quantile_is_exact_to_a_bin(mut values in proptest::collection::vec(0.0..2.0, 1..50), p in 0.0..=1.0) {
            let mut histogram = Histogram::new(SCORE_BINS);
            values.iter().for_each(|&value| histogram.add(value));
            values.sort_by(f64::total_cmp);
            let rank: f64 = p * (values.len() - 1) as f64;
            let (below, above) = (values[rank.floor() as usize], values[rank.ceil() as usize]);
            let exact = below + rank.fract() * (above - below);
            prop_assert!((histogram.quantile(p).unwrap() - exact).abs() <= 1.0 / SCORE_BINS as f64);
            prop_assert_eq!(histogram.quantile(0.0), Some(values[0]));
            prop_assert_eq!(histogram.range(), Some((values[0], values[values.len() - 1])));
        }

        #[test]
        fn filled_counts_every_value_in_its_bin(values in proptest::collection::vec(0_u32..=1000, 1..50)) {
            let mut histogram = Histogram::new(SCORE_BINS);
            values.iter().for_each(|&value| histogram.add(f64::from(value) / 1000.0));
            for (bin, count) in histogram.filled(1000) {
                prop_assert_eq!(count, values.iter().filter(|&&value| value as usize == bin).count() as u64);
            }
        }
    }

    #[test]
    fn a_histogram_without_values_has_no_figures() {
        let histogram = Histogram::new(10);
        assert_eq!(
            (histogram.mean(), histogram.quantile(0.5), histogram.range()),
            (None, None, None)
        );
        assert!(histogram.filled(10).is_empty());
    }

    #[test]
    fn named_counts_further_names_together() {
        let mut named = Named::new(40);
        for name in (0..100).chain(0..100) {
            named.count(&name.to_string());
        }
        assert_eq!(named.iter().count(), 41);
        assert_eq!(named.iter().last(), Some((&REST.into(), &120)));
    }
}
