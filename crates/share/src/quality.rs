//! The scores of units, without which no registry finds them.

use std::{io, sync::mpsc::channel};

use knowledgepulse_index::memory::Memory;
use knowledgepulse_json::Value;
use knowledgepulse_score::{
    Scorer,
    engine::{Engine, Request},
    weights::Profiles,
};
use knowledgepulse_trace::json::{self, Texts};

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
    pub fn of(&self, unit: &Value) -> io::Result<f64> {
        let trace = json::read(unit, Texts::Whole).map_err(io::Error::other)?;
        let request = Request {
            input: self.scorer.input_of(trace).with_words(false),
            memory: self.scorer.memory.clone(),
            remember: true,
            explained: false,
            call: None,
        };
        let (sender, receiver) = channel();
        self.engine
            .score(request, Box::new(move |scored| drop(sender.send(scored))));
        let scored = receiver.recv().map_err(io::Error::other)?;
        scored
            .map(|(breakdown, _)| breakdown.score)
            .map_err(io::Error::other)
    }
}
