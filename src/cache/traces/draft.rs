//! What a batch that may yet be taken back would add to a trace memory.

use std::time::Instant;

use super::{SimilarTrace, TraceEntry, TraceMemory, WordShare};
use crate::{
    cache::{
        Label, ModelIdentity,
        novelty::{SharedTraces, lock},
    },
    error::Result,
    novelty::words::Words,
};

/// The traces of a batch, with a copy of the memory to compare them with. How similar two traces are depends on all that is
/// remembered, so a draft beside the memory would not do. The copy shares the words and embeddings of the traces with the memory;
/// what it copies are the lists of the traces that contain each word, about 2.5 KB a trace.
#[derive(Debug, Default)]
pub struct TraceDraft {
    /// The memory with the batch in it; made when the first trace is compared.
    view: Option<TraceMemory>,
    added: Vec<Added>,
}

#[derive(Debug)]
struct Added {
    words: Words,
    vector: Option<Vec<f32>>,
    label: Option<Label>,
    model: Option<ModelIdentity>,
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
    /// Compares a trace with the memory and the traces of the batch before it, as [`TraceMemory::compare_and_explain`] does, then adds it to
    /// the batch if it is to be remembered.
    /// What others add to the memory meanwhile is not compared with.
    ///
    /// # Errors
    /// Those of [`TraceMemory::compare_and_explain`].
    pub fn compare_and_explain(
        &mut self,
        memory: &SharedTraces,
        entry: TraceEntry,
        explained: bool,
        remember: bool,
        now: Instant,
    ) -> Result<(Option<SimilarTrace>, Vec<WordShare>)> {
        let view = self.view.get_or_insert_with(|| lock(memory).clone());
        let found = view.compare_and_explain(entry, explained, remember, now)?;
        if remember {
            self.added.push(Added {
                words: entry.words.clone(),
                vector: entry.vector.map(<[f32]>::to_vec),
                label: entry.label.cloned(),
                model: entry.model.cloned(),
            });
        }
        Ok(found)
    }

    /// Adds the batch to the memory, where it counts as added now: all or nothing. The draft is empty then.
    ///
    /// # Errors
    /// Those of [`TraceMemory::add_batch`].
    pub fn commit(&mut self, memory: &SharedTraces, now: Instant) -> Result<()> {
        let Self { added, .. } = std::mem::take(self);
        let entries: Vec<_> = added.iter().map(Added::entry).collect();
        lock(memory).add_batch(&entries, now)
    }
}
