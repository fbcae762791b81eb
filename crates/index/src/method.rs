//! How two traces are compared.

/// A novelty method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// The embeddings of their first 512 tokens, as the SDK does.
    Prefix,
    /// Their words, which needs no model.
    Lexical,
    /// Their words, and the embeddings of their digests.
    Full,
}

impl Method {
    /// Returns what a memory, a file and a store call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Prefix => "prefix",
            Self::Lexical => "lexical",
            Self::Full => "full",
        }
    }

    /// Returns the method of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::of_traces(name).or((name == Self::Prefix.name()).then_some(Self::Prefix))
    }

    /// Returns the method of a trace memory with this name: any but [`Method::Prefix`], whose memory is of vectors.
    #[must_use]
    pub fn of_traces(name: &str) -> Option<Self> {
        [Self::Lexical, Self::Full]
            .into_iter()
            .find(|method| method.name() == name)
    }

    /// Returns whether traces are embedded to be compared.
    #[must_use]
    pub fn needs_embedder(self) -> bool {
        self != Self::Lexical
    }
}
