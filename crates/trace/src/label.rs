//! The label of an entry in a memory.

use std::{collections::HashMap, fmt, ops::Deref, sync::Arc};

/// The most bytes of UTF-8 in a [`Label`].
pub const MAX_LABEL_BYTES: usize = 1024;

/// The XXH3-128 of a trace's `id` and the fields that the scorer reads, by [`Contents`](crate::contents::Contents). Traces with equal
/// fingerprints are equal to the scorer.
pub type Fingerprint = [u8; 16];

/// The caller's name of an entry, of at most [`MAX_LABEL_BYTES`]. The label of a scored trace also has its fingerprint and novelty, so
/// that the same trace can get the same score again.
#[derive(Debug, Clone, PartialEq)]
pub struct Label(Arc<Inner>);

#[derive(Debug, PartialEq)]
struct Inner {
    text: Box<str>,
    fingerprint: Option<Fingerprint>,
    novelty: Option<f64>,
}

impl Label {
    /// The label of a trace.
    #[must_use]
    pub fn of_trace(text: &str, fingerprint: Fingerprint) -> Self {
        Self::new(text, Some(fingerprint), None)
    }

    /// Returns the label of a trace that was scored with this novelty.
    #[must_use]
    pub fn of_scored(text: &str, Scored { fingerprint, novelty }: Scored) -> Self {
        Self::new(text, Some(fingerprint), Some(novelty))
    }

    fn new(text: &str, fingerprint: Option<Fingerprint>, novelty: Option<f64>) -> Self {
        let text = text.into();
        Self(Arc::new(Inner {
            text,
            fingerprint,
            novelty,
        }))
    }

    /// Returns the fingerprint, if this is the label of a trace.
    #[must_use]
    pub fn fingerprint(&self) -> Option<Fingerprint> {
        self.0.fingerprint
    }

    /// Returns the fingerprint and novelty of a scored trace.
    #[must_use]
    pub fn scored(&self) -> Option<Scored> {
        let (fingerprint, novelty) = self.0.fingerprint.zip(self.0.novelty)?;
        Some(Scored { fingerprint, novelty })
    }

    /// Returns this label with the novelty of its trace; unchanged without a fingerprint.
    #[must_use]
    pub fn with_novelty(&self, novelty: f64) -> Self {
        match self.0.fingerprint {
            Some(fingerprint) => Self::of_scored(self, Scored { fingerprint, novelty }),
            None => self.clone(),
        }
    }
}

impl Deref for Label {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0.text
    }
}

impl fmt::Display for Label {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self)
    }
}

impl From<&str> for Label {
    fn from(text: &str) -> Self {
        Self::new(text, None, None)
    }
}

impl From<String> for Label {
    fn from(text: String) -> Self {
        Self::from(&*text)
    }
}

/// The fingerprint and novelty of a scored trace.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scored {
    /// The fingerprint of the trace.
    pub fingerprint: Fingerprint,
    /// Its novelty, 0 to 2. The other dimensions follow from the trace itself.
    pub novelty: f64,
}

/// Returns the novelties of labelled traces by fingerprint; the last one of equal traces.
pub fn novelties<'l>(labels: impl Iterator<Item = Option<&'l Label>>) -> HashMap<Fingerprint, f64> {
    let scored = labels.flatten().filter_map(Label::scored);
    scored
        .map(|scored| (scored.fingerprint, scored.novelty))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_keeps_text_fingerprint_and_novelty() {
        let fingerprint = [7; 16];
        let (plain, of_trace) = (Label::from("a"), Label::of_trace("b", fingerprint));
        let (scored, again) = (of_trace.with_novelty(0.5), of_trace.with_novelty(0.25));
        let labels = [&plain, &of_trace, &scored];
        assert_eq!(labels.map(ToString::to_string), ["a", "b", "b"]);
        assert_eq!(
            labels.map(Label::fingerprint),
            [None, Some(fingerprint), Some(fingerprint)]
        );
        let novelty = 0.5;
        assert_eq!(
            labels.map(Label::scored),
            [None, None, Some(Scored { fingerprint, novelty })]
        );
        assert_eq!(plain.with_novelty(novelty), plain);
        let all = [None, Some(&plain), Some(&scored), Some(&again), Some(&of_trace)];
        assert_eq!(novelties(all.into_iter()), HashMap::from([(fingerprint, 0.25)]));
    }
}
