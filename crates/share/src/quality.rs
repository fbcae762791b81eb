//! The scores of units, without which no registry finds them.

use std::sync::mpsc::{Receiver, channel};

use knowledgepulse_error::{Error, Result};
use knowledgepulse_index::memory::Memory;
use knowledgepulse_json::Value;
use knowledgepulse_score::{
    ScoreInput, Scorer,
    engine::{ComparedScore, Engine, Request},
    weights::Profiles,
};
use knowledgepulse_trace::reading::{self, Texts};

/// From this score on, the registry's client for programs finds a unit. Its server for agents asks for .75.
pub const FOUND_FROM: f64 = 0.8;

/// Scores units one after the other, each against the traces of a memory and the units before it.
pub struct Quality<'e> {
    engine: &'e Engine,
    scorer: Scorer,
}

impl<'e> Quality<'e> {
    /// Scores against the traces that `memory` has.
    #[must_use]
    pub fn beside(engine: &'e Engine, memory: Memory) -> Self {
        let scorer = Scorer {
            memory: Some(memory),
            profiles: Profiles::default(),
        };
        Self { engine, scorer }
    }

    /// Returns the score of a unit, 0 to 1.
    ///
    /// # Errors
    /// If it is no valid trace, or cannot be compared.
    pub fn of(&self, unit: &Value) -> Result<f64> {
        let trace = reading::read(Some(unit), Texts::Whole)?;
        let input = self.scorer.input_of(trace).with_words(false);
        let scored = begin(self.engine, &self.scorer, input, false).recv();
        let (breakdown, _) = scored.map_err(|_| Error::Internal("the score was lost".into()))??;
        Ok(breakdown.score)
    }
}

/// Has an engine score a trace, which its memory remembers. Returns what gets the score; `explains` if the words that a novelty rests on are
/// told.
pub fn begin(
    engine: &Engine,
    scorer: &Scorer,
    input: ScoreInput,
    explains: bool,
) -> Receiver<Result<ComparedScore>> {
    let request = Request {
        input,
        memory: scorer.memory.clone(),
        remember: true,
        explained: explains,
        call: None,
    };
    let (sender, receiver) = channel();
    // The receiver is gone only if the run has failed.
    engine.score(request, Box::new(move |scored| drop(sender.send(scored))));
    receiver
}
