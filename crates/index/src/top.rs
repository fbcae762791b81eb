//! The largest of many values.

use std::{cmp::Reverse, collections::BinaryHeap};

use crate::room::with_room;

/// Keeps the largest `count` values that it is offered.
#[derive(Debug)]
pub(crate) struct Top<T> {
    count: usize,
    /// The least of them on top.
    values: BinaryHeap<Reverse<T>>,
}

impl<T: Ord> Top<T> {
    /// `None` if there is not enough memory for `count` values.
    pub(crate) fn new(count: usize) -> Option<Self> {
        Some(Self {
            count,
            values: with_room(count)?.into(),
        })
    }

    /// Returns the value that another one must exceed to be kept; `None` while any is kept.
    #[inline]
    pub(crate) fn least(&self) -> Option<&T> {
        let least = self.values.peek().filter(|_| self.values.len() == self.count);
        least.map(|Reverse(least)| least)
    }

    /// Keeps a value if it exceeds the least, which leaves then.
    #[inline]
    pub(crate) fn offer(&mut self, value: T) {
        if self.values.len() < self.count {
            self.values.push(Reverse(value));
        } else if let Some(mut least) = self.values.peek_mut()
            && value > least.0
        {
            *least = Reverse(value);
        }
    }

    /// Returns the values, the largest first.
    pub(crate) fn into_sorted(self) -> impl Iterator<Item = T> {
        self.values
            .into_sorted_vec()
            .into_iter()
            .map(|Reverse(value)| value)
    }
}
