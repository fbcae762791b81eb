//! Collections whose size does not grow with the number of values that they are given.

use std::{cmp::Reverse, collections::BTreeMap};

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

/// The order in which traces are listed: a standing that goes before the score, the bits of the score, and the position.
pub(super) type Key = (u8, u64, Reverse<u64>);

/// Items of the highest keys, within a limit of their sizes together.
#[derive(Debug)]
pub(super) struct Best<T> {
    items: BTreeMap<Key, (usize, T)>,
    size: usize,
    limit: usize,
    /// The highest key that was left out.
    left_out: Option<Key>,
}

impl<T> Best<T> {
    /// Returns a collection without items.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            items: BTreeMap::new(),
            size: 0,
            limit,
            left_out: None,
        }
    }

    /// Returns whether no item of a higher key was left out.
    pub(super) fn takes(&self, key: Key) -> bool {
        self.left_out < Some(key)
    }

    /// Adds an item, and removes those of the lowest keys beyond the limit.
    pub(super) fn insert(&mut self, key: Key, size: usize, item: T) {
        if !self.takes(key) {
            return;
        }
        self.size += size;
        self.items.insert(key, (size, item));
        while self.size > self.limit
            && let Some((lowest, (size, _))) = self.items.pop_first()
        {
            self.size -= size;
            self.left_out = Some(lowest);
        }
    }

    /// Returns the item of a key.
    pub(super) fn get(&self, key: Key) -> Option<&T> {
        self.items.get(&key).map(|(_, item)| item)
    }

    /// Returns the items, the highest key first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Key, &T)> {
        self.items.iter().rev().map(|(key, (_, item))| (*key, item))
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

    proptest! {
        #[test]
        fn best_keeps_the_highest_keys_that_fit(items in proptest::collection::vec((0..3_u8, 0..9_u64, 1..40_usize), 0..60)) {
            let mut best = Best::new(100);
            let mut all = Vec::new();
            for (position, &(standing, bits, size)) in (0..).zip(&items) {
                let key = (standing, bits, Reverse(position));
                best.insert(key, size, size);
                all.push((key, size));
            }
            all.sort_by(|one, other| other.cmp(one));
            let kept: Vec<_> = best.iter().map(|(key, size)| (key, *size)).collect();
            prop_assert_eq!(&kept[..], &all[..kept.len()]);
            prop_assert!(kept.iter().map(|(_, size)| size).sum::<usize>() <= 100);
        }
    }
}
