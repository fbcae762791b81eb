//! A remembered trace, without its embedding.

use knowledgepulse_trace::{label::Label, words::TermWeight};

use crate::moment::Moment;

/// A remembered trace.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) label: Option<Label>,
    pub(crate) added: Moment,
    /// In the order of the words' hashes.
    pub(crate) words: Box<[DocumentWord]>,
    /// √(Σ c²) over the words.
    pub(crate) root: f32,
}

impl Document {
    pub(crate) fn new(label: Option<Label>, added: Moment, words: Box<[DocumentWord]>) -> Self {
        let squares = words
            .iter()
            .map(|&DocumentWord { count, .. }| count.single().powi(2));
        let root = squares.sum::<f32>().sqrt();
        Self {
            label,
            added,
            words,
            root,
        }
    }

    /// Returns its bytes, with the overhead of the allocator and of an `Arc`.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.words) + size_of::<Self>() + 4 * size_of::<usize>()
    }
}

/// A word of a remembered trace: its place among the words of the memory, and c(t). Packed, because there are hundreds in a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C, packed(2))]
pub(crate) struct DocumentWord {
    pub(crate) term: u32,
    pub(crate) count: TermWeight,
}
