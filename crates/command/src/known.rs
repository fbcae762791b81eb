//! Known traces, which need no new score: traces in the memory when it was loaded, and traces of this run.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use knowledgepulse_trace::label::Fingerprint;

use crate::run_memory::RunMemory;

/// The result of looking a trace up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Lookup {
    /// It was scored with this novelty.
    Scored(f64),
    /// It is being scored.
    Waiting,
    /// Nothing.
    New,
}

/// The novelties of known traces.
pub(crate) struct KnownNovelties {
    /// Those that the memory held when it was loaded.
    pub held: Arc<HashMap<Fingerprint, f64>>,
    /// Traces of this run, as many as the memory keeps; `None` while a trace is being scored.
    new: HashMap<Fingerprint, Option<f64>>,
    order: VecDeque<Fingerprint>,
    most: usize,
}

impl KnownNovelties {
    pub(crate) fn of(memory: &RunMemory) -> Self {
        Self {
            held: Arc::new(memory.novelties()),
            new: HashMap::new(),
            order: VecDeque::new(),
            most: memory.most(),
        }
    }

    pub(crate) fn find(&self, fingerprint: Fingerprint) -> Lookup {
        if let Some(&novelty) = self.held.get(&fingerprint) {
            return Lookup::Scored(novelty);
        }
        match self.new.get(&fingerprint) {
            Some(Some(novelty)) => Lookup::Scored(*novelty),
            Some(None) => Lookup::Waiting,
            None => Lookup::New,
        }
    }

    /// Notes a trace that is being scored.
    pub(crate) fn begin(&mut self, fingerprint: Fingerprint) {
        if self.new.insert(fingerprint, None).is_none() {
            self.order.push_back(fingerprint);
        }
        if self.order.len() > self.most
            && let Some(oldest) = self.order.pop_front()
        {
            self.new.remove(&oldest);
        }
    }

    /// Notes the novelty of a trace that was being scored; `None` if it has no score.
    pub(crate) fn finish(&mut self, fingerprint: Fingerprint, novelty: Option<f64>) {
        let Some(known) = self.new.get_mut(&fingerprint) else {
            return;
        };
        if novelty.is_some() {
            *known = novelty;
        } else {
            self.new.remove(&fingerprint);
            self.order.retain(|other| *other != fingerprint);
        }
    }
}

#[cfg(test)]
mod tests {
    use knowledgepulse_index::method::Method;

    use super::*;

    #[test]
    fn as_many_traces_are_known_as_the_memory_keeps() {
        let memory = RunMemory::new(Method::Lexical, Some(2));
        let mut known = KnownNovelties::of(&memory);
        let [a, b, c] = [[1; 16], [2; 16], [3; 16]];
        known.begin(a);
        assert_eq!(known.find(a), Lookup::Waiting);
        known.finish(a, Some(0.25));
        assert_eq!(known.find(a), Lookup::Scored(0.25));
        known.begin(b);
        known.finish(b, None);
        assert_eq!(known.find(b), Lookup::New);
        known.begin(b);
        known.begin(c);
        assert_eq!((known.find(a), known.find(c)), (Lookup::New, Lookup::Waiting));
    }
}
