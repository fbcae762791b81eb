//! Collections whose size does not grow with the number of values that they are given.

use knowledgepulse_json::Value;

use crate::values::{IntoValue, list};

/// A long sequence of values as at most `limit` buckets of equal width, in order.
#[derive(Debug)]
pub(super) struct Sequence {
    buckets: Vec<Bucket>,
    limit: usize,
    /// How many values a bucket takes.
    width: u64,
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    count: u64,
    sum: f64,
    min: f64,
    max: f64,
}

impl Bucket {
    fn of(value: f64) -> Self {
        Self {
            count: 1,
            sum: value,
            min: value,
            max: value,
        }
    }

    fn merge(&mut self, other: Self) {
        self.count += other.count;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }
}

impl Sequence {
    /// Returns a sequence without values. `limit` is even, so that buckets merge in pairs.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            buckets: Vec::new(),
            limit,
            width: 1,
        }
    }

    /// Appends a value.
    pub(super) fn add(&mut self, value: f64) {
        match self.buckets.last_mut() {
            Some(last) if last.count < self.width => last.merge(Bucket::of(value)),
            _ => {
                if self.buckets.len() == self.limit {
                    self.halve();
                }
                self.buckets.push(Bucket::of(value));
            }
        }
    }

    fn halve(&mut self) {
        let pairs = self.buckets.chunks(2).map(|pair| {
            let mut merged = pair[0];
            pair[1..].iter().for_each(|&bucket| merged.merge(bucket));
            merged
        });
        self.buckets = pairs.collect();
        self.width *= 2;
    }

    /// Returns how many values a bucket takes.
    pub(super) fn width(&self) -> u64 {
        self.width
    }

    /// Returns `[mean, min, max, count]` of each bucket, to four decimals.
    #[allow(clippy::cast_precision_loss)] // Nothing is counted up to 2^53.
    pub(super) fn buckets(&self) -> Value {
        list(self.buckets.iter().map(|bucket| {
            let mean = bucket.sum / bucket.count as f64;
            let figures = [mean, bucket.min, bucket.max].map(|value| rounded(value).into_value());
            list(figures.into_iter().chain([bucket.count.into_value()]))
        }))
    }
}

/// Rounds to four decimals as JavaScript's `Math.round` does: halves go up.
pub(super) fn rounded(value: f64) -> f64 {
    let scaled = value * 1e4;
    let below = scaled.floor();
    let up = if scaled - below >= 0.5 { 1.0 } else { 0.0 };
    (below + up) / 1e4
}

/// The `limit` items with the largest keys, the largest first; of equals the first ones, in their order.
#[derive(Debug)]
pub(super) struct Top<T> {
    items: Vec<(f64, T)>,
    limit: usize,
}

impl<T> Top<T> {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            items: Vec::new(),
            limit,
        }
    }

    /// Adds the item that `make` returns, if its key is among the largest.
    pub(super) fn offer(&mut self, key: f64, make: impl FnOnce() -> T) {
        let at = self.items.partition_point(|&(other, _)| other >= key);
        if at < self.limit {
            self.items.truncate(self.limit - 1);
            self.items.insert(at, (key, make()));
        }
    }

    /// Returns the items in their order.
    pub(super) fn items(&self) -> impl Iterator<Item = &T> {
        self.items.iter().map(|(_, item)| item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sequence_keeps_the_order_in_few_buckets(values in proptest::collection::vec(-1.0..2.0, 0..300)) {
            let mut sequence = Sequence::new(10);
            values.iter().for_each(|&value| sequence.add(value));
            prop_assert!(sequence.buckets.len() <= 10);
            let parts: Vec<&[f64]> = values.chunks(sequence.width as usize).collect();
            prop_assert_eq!(sequence.buckets.len(), parts.len());
            for (bucket, part) in sequence.buckets.iter().zip(parts) {
                let sum: f64 = part.iter().sum();
                prop_assert!((bucket.sum - sum).abs() < 1e-9);
                prop_assert_eq!(bucket.count, part.len() as u64);
                prop_assert!(part.contains(&bucket.min) && part.contains(&bucket.max));
                prop_assert!(part.iter().all(|value| (bucket.min..=bucket.max).contains(value)));
            }
        }
    }

    #[test]
    fn rounded_is_what_javascript_rounds_to() {
        for (value, expected) in [
            (0.000_05, 1e-4),
            (-0.000_05, 0.0),
            (0.123_449_9, 0.1234),
            (-1.5e-4, -1e-4),
        ] {
            assert_eq!(rounded(value), expected);
        }
    }

    #[test]
    fn top_keeps_the_first_of_equals() {
        let mut top = Top::new(3);
        for (at, key) in [5.0, 1.0, 5.0, 7.0, 5.0, 7.0].into_iter().enumerate() {
            top.offer(key, || at);
        }
        assert_eq!(top.items().collect::<Vec<_>>(), [&3, &5, &0]);
    }
}
