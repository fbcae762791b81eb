//! What an entry of a memory is remembered by.

use std::{collections::HashMap, fmt, ops::Deref, sync::Arc};

/// The most bytes of UTF-8 in a [`Label`].
pub const MAX_LABEL_BYTES: usize = 1024;

/// The XXH3-128 of a trace's `id` and of the fields that the scorer reads, as [`Contents`](crate::contents::Contents) makes it:
/// two traces with the same one are the same to the scorer.
pub type Fingerprint = [u8; 16];

/// What an entry stands for, in the words of whoever added it: at most [`MAX_LABEL_BYTES`] long. That of a scored trace also
/// has its fingerprint and its novelty, from which the same trace can be given the same score again.
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

    /// The label of a trace that was scored with this novelty.
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

    /// The fingerprint of the trace, if it is the label of one.
    #[must_use]
    pub fn fingerprint(&self) -> Option<Fingerprint> {
        self.0.fingerprint
    }

    /// How the trace was scored, if it was.
    #[must_use]
    pub fn scored(&self) -> Option<Scored> {
        let (fingerprint, novelty) = self.0.fingerprint.zip(self.0.novelty)?;
        Some(Scored { fingerprint, novelty })
    }

    /// This label with the novelty that its trace was scored with; unchanged without a fingerprint.
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

/// How a trace was scored.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scored {
    /// The fingerprint of the trace.
    pub fingerprint: Fingerprint,
    /// Its novelty, 0 to 2. The other dimensions follow from the trace itself.
    pub novelty: f64,
}

/// The novelties of the traces with these labels, by their fingerprints. Of the same trace the last one counts.
pub fn novelties<'l>(labels: impl Iterator<Item = Option<&'l Label>>) -> HashMap<Fingerprint, f64> {
    let scored = labels.flatten().filter_map(Label::scored);
    scored
        .map(|scored| (scored.fingerprint, scored.novelty))
        .collect()
}
