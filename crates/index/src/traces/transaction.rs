//! Transactions of a trace memory. An undo log lists added and evicted traces; evicted ones stay until the commit. A rollback takes as long as
//! the changes did, and a commit next to nothing.
//!
//! Every change is part of a transaction. One that is neither committed nor continued, because its batch was cancelled or its thread has
//! panicked, is rolled back before the memory's next use: see [`Shared`].

use std::{ops::Range, sync::Arc, time::Instant};

use super::{
    Document, TraceMemory, held_bytes,
    projection::Sample,
    rate::{self, NormBound},
    terms::DocumentWord,
};
use crate::{
    method::Method,
    moment::Moment,
    shared::Shared,
    vectors::{ModelIdentity, blocks::Placed},
};

/// The undo log of a transaction.
#[derive(Debug, Clone)]
pub(super) struct Transaction {
    number: u64,
    /// The sequence numbers of the traces at its beginning.
    before: Range<u64>,
    /// The model at its beginning.
    model: Option<ModelIdentity>,
    /// The changes in order. Each is logged before it is made, so the last one may be incomplete.
    changes: Vec<Change>,
    /// The blocks of embeddings that it has emptied, in order.
    emptied: Vec<Placed>,
}

/// A change, with the sequence number of its trace.
#[derive(Debug, Clone)]
pub(super) enum Change {
    Added(u64),
    Forgotten(u64, Arc<Document>),
}

impl Transaction {
    /// Returns the sequence number of the oldest trace that it can restore.
    pub(super) fn departed(&self) -> u64 {
        self.before.start
    }
}

impl TraceMemory {
    /// Begins a transaction and returns its number. No other may be open.
    pub(super) fn begin(&mut self) -> u64 {
        debug_assert!(self.transaction.is_none());
        self.transactions += 1;
        self.transaction = Some(Transaction {
            number: self.transactions,
            before: self.departed..self.sequence_end(),
            model: self.model.clone(),
            changes: Vec::new(),
            emptied: Vec::new(),
        });
        self.transactions
    }

    /// Logs a change in the open transaction, if there is one, before it is made.
    pub(super) fn log(&mut self, change: Change) {
        if let Some(transaction) = &mut self.transaction {
            transaction.changes.push(change);
        }
    }

    /// Keeps a block of embeddings that the open transaction has emptied, if there is one.
    pub(super) fn keep(&mut self, emptied: Option<Placed>) {
        if let Some(transaction) = &mut self.transaction {
            transaction.emptied.extend(emptied);
        }
    }

    /// Returns whether the transaction with this number is open.
    pub(super) fn is_in_transaction(&self, number: u64) -> bool {
        self.transaction
            .as_ref()
            .is_some_and(|transaction| transaction.number == number)
    }

    /// Commits the transaction.
    pub(super) fn commit(&mut self) {
        let Some(transaction) = self.transaction.take() else {
            return;
        };
        for change in transaction.changes {
            if let Change::Forgotten(_, held) = change {
                for word in &held.words {
                    self.terms.tidy(word.term);
                }
            }
        }
        for block in transaction.emptied {
            self.vectors.reuse(block);
        }
    }

    /// Rolls the transaction back.
    pub(super) fn roll_back(&mut self) {
        let Some(mut transaction) = self.transaction.take() else {
            return;
        };
        while let Some(change) = transaction.changes.pop() {
            match change {
                Change::Added(sequence) => self.take_back_newest(sequence),
                Change::Forgotten(sequence, held) => {
                    self.restore_oldest(sequence, held, &mut transaction.emptied);
                }
            }
        }
        self.model = transaction.model;
        if self.method == Method::Full {
            self.projection.roll_back(&mut self.sample, &self.vectors);
        }
    }

    /// Returns the number of living traces, without those of an open transaction.
    pub fn committed_len(&mut self, now: Instant) -> usize {
        let Some(Transaction { before, changes, .. }) = &self.transaction else {
            return self.len(now);
        };
        let forgotten = changes.iter().filter_map(|change| match change {
            Change::Forgotten(sequence, held) => before.contains(sequence).then_some(held),
            Change::Added(_) => None,
        });
        let count =
            |sequence: u64| usize::try_from(before.end.saturating_sub(sequence)).unwrap_or(usize::MAX);
        let left = self.held.iter().take(count(self.departed));
        let now = Moment::at(now);
        let expired = forgotten
            .chain(left)
            .take_while(|held| self.is_expired(held, now))
            .count();
        count(before.start) - expired
    }

    /// Returns the model of the embeddings without an open transaction.
    pub fn committed_model(&self) -> Option<&ModelIdentity> {
        match &self.transaction {
            Some(transaction) => transaction.model.as_ref(),
            None => self.model(),
        }
    }

    /// Changes the memory in the open transaction, or in one of its own, which an error rolls back.
    pub(super) fn in_transaction<T, E>(
        &mut self,
        change: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<T, E> {
        if self.transaction.is_some() {
            return change(self);
        }
        self.begin();
        let result = change(self);
        if result.is_ok() {
            self.commit();
        } else {
            self.roll_back();
        }
        result
    }

    /// Undoes [`TraceMemory::remember`], complete or not, for the trace with this sequence number.
    fn take_back_newest(&mut self, sequence: u64) {
        if self.sequence_end() <= sequence {
            return;
        }
        let Some(newest) = self.held.pop_back() else {
            return;
        };
        self.ratings.pop_back();
        self.held_bytes -= held_bytes(&newest.words);
        let first = self.first_slot();
        #[allow(clippy::cast_possible_truncation)] // Below MOST_SLOTS.
        let slot = first + self.held.len() as u32;
        for &DocumentWord { term, .. } in &newest.words {
            self.terms.forget_newest(term, slot);
            rate::follow(&mut self.terms, term, &mut self.ratings, first);
        }
        if self.vectors.len() > self.held.len()
            && let Some(entry) = self.vectors.get(self.held.len())
        {
            let sequence = self.vectors.sequence().end - 1;
            self.sample.remove(Sample::hash(entry.components), sequence);
            self.vectors.pop_back();
        }
    }

    /// Undoes [`TraceMemory::forget_oldest`], complete or not, for the trace with this sequence number.
    fn restore_oldest(&mut self, sequence: u64, held: Arc<Document>, emptied: &mut Vec<Placed>) {
        if self.departed <= sequence {
            return;
        }
        self.departed = sequence;
        self.held_bytes += held_bytes(&held.words);
        self.held.push_front(Arc::clone(&held));
        self.ratings.push_front(NormBound::default());
        let first = self.first_slot();
        for &DocumentWord { term, .. } in &held.words {
            self.terms.restore_oldest(term, first);
            rate::follow(&mut self.terms, term, &mut self.ratings, first);
        }
        let rating = self.rating(&held);
        if let Some(oldest) = self.ratings.front_mut() {
            *oldest = rating;
        }
        if self.method == Method::Full && self.vectors.len() < self.held.len() {
            self.vectors.restore_front(emptied);
            if let Some(entry) = self.vectors.get(0) {
                self.sample
                    .insert(Sample::hash(entry.components), self.vectors.sequence().start);
            }
        }
    }
}
