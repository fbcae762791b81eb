//! Collections whose size does not grow with the number of values that they are given.

use std::{cmp::Reverse, collections::BTreeMap};

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
