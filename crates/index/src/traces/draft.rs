//! The draft of a batch: its traces until it is committed or cancelled.

use std::{sync::MutexGuard, time::Instant};

use knowledgepulse_error::Result;
use knowledgepulse_trace::{label::Label, words::Words};

use super::{SimilarTrace, TraceEntry, TraceMemory, WordShare};
use crate::{shared::lock_as_is, traces::SharedTraces, vectors::ModelIdentity};

/// The traces that a batch has added so far. They are in the memory, in a transaction, because similarities depend on every remembered
/// trace. Other users of the memory roll the transaction back first; the batch then adds its traces again, as the newest ones.
#[derive(Debug, Default)]
pub struct TraceDraft {
    added: Vec<Added>,
    /// The number of its transaction.
    transaction: Option<u64>,
}

#[derive(Debug)]
struct Added {
    words: Words,
    vector: Option<Vec<f32>>,
    label: Option<Label>,
    model: Option<ModelIdentity>,
    at: Instant,
}

impl Added {
    fn entry(&self) -> TraceEntry<'_> {
        TraceEntry {
            words: &self.words,
            vector: self.vector.as_deref(),
            label: self.label.as_ref(),
            model: self.model.as_ref(),
        }
    }
}

impl TraceDraft {
    /// Compares a trace with the memory and the earlier traces of the batch, as [`TraceMemory::compare_and_explain`] does, then adds it if
    /// requested.
    ///
    /// # Errors
    /// The errors of [`TraceMemory::compare_and_explain`].
    pub fn compare_and_explain(
        &mut self,
        memory: &SharedTraces,
        entry: TraceEntry,
        explained: bool,
        remember: bool,
        now: Instant,
    ) -> Result<(Option<SimilarTrace>, Vec<WordShare>)> {
        let (mut memory, transaction) = self.open(memory)?;
        let found = memory.compare_and_explain(entry, explained, remember, now);
        // Without a number after a panic, the next call begins again.
        self.transaction = Some(transaction);
        if let (true, Ok((nearest, _))) = (remember, &found) {
            self.added.push(Added {
                words: entry.words.clone(),
                vector: entry.vector.map(<[f32]>::to_vec),
                label: entry.label_scored(nearest.as_ref()),
                model: entry.model.cloned(),
                at: now,
            });
        }
        found
    }

    /// Commits the draft, all traces or none, and leaves it empty.
    ///
    /// # Errors
    /// The errors of [`TraceMemory::add`].
    pub fn commit(&mut self, memory: &SharedTraces) -> Result<()> {
        if !self.added.is_empty() {
            self.open(memory)?.0.commit();
        }
        *self = Self::default();
        Ok(())
    }

    /// Rolls the draft back, and leaves it empty.
    pub fn roll_back(&mut self, memory: &SharedTraces) {
        let mut memory = lock_as_is(memory);
        if self
            .transaction
            .is_some_and(|number| memory.is_in_transaction(number))
        {
            memory.roll_back();
        }
        *self = Self::default();
    }

    /// The memory, in the transaction of this batch with its traces.
    fn open<'m>(&mut self, memory: &'m SharedTraces) -> Result<(MutexGuard<'m, TraceMemory>, u64)> {
        let mut memory = lock_as_is(memory);
        if let Some(number) = self.transaction.take()
            && memory.is_in_transaction(number)
        {
            return Ok((memory, number));
        }
        memory.roll_back();
        let number = memory.begin();
        let mut add = |added: &Added| memory.add(added.entry(), added.at);
        if let Err(error) = self.added.iter().try_for_each(&mut add) {
            memory.roll_back();
            return Err(error);
        }
        Ok((memory, number))
    }
}
