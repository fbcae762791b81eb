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
    /// Traces of this run; `None` while a trace is being scored.
    new: HashMap<Fingerprint, Option<f64>>,
    /// These in their order, at most `most`, which is as many as the memory keeps.
    order: VecDeque<Fingerprint>,
    most: usize,
}

impl KnownNovelties {
    pub(crate) fn of(memory: &RunMemory) -> Self {
        Self {
            held: Arc::new(memory.novelties()),
            new: HashMap::new(),
            order: VecDeque::new(),
            most: memory.most().max(1),
        }
    }

    pub(crate) fn find(&self, fingerprint: Fingerprint) -> Lookup {
        let held = self.held.get(&fingerprint).map(|novelty| Some(*novelty));
        match held.or_else(|| self.new.get(&fingerprint).copied()) {
            Some(Some(novelty)) => Lookup::Scored(novelty),
            Some(None) => Lookup::Waiting,
            None => Lookup::New,
        }
    }

    /// Notes a new trace that is being scored.
    pub(crate) fn begin(&mut self, fingerprint: Fingerprint) {
        self.new.insert(fingerprint, None);
        self.order.push_back(fingerprint);
        if self.order.len() > self.most
            && let Some(oldest) = self.order.pop_front()
        {
            self.new.remove(&oldest);
        }
    }

    /// Notes the novelty of a trace that was being scored; `None` if it has no score.
    pub(crate) fn finish(&mut self, fingerprint: Fingerprint, novelty: Option<f64>) {
        if novelty.is_none() {
            self.new.remove(&fingerprint);
            self.order.retain(|other| *other != fingerprint);
        } else if let Some(known) = self.new.get_mut(&fingerprint) {
            *known = novelty;
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
