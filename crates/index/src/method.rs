//! How two traces are compared.

use knowledgepulse_error::named;

named! {
    /// A novelty method, with its name in a memory, a file and a store.
    #[derive(Default)]
    pub enum Method {
        /// The embeddings of their first 512 tokens, as the SDK does.
        Prefix = "prefix",
        /// Their words, which needs no model.
        #[default]
        Lexical = "lexical",
        /// Their words, and the embeddings of their digests.
        Full = "full",
    }
}

impl Method {
    /// Returns the method of a trace memory with this name: any but [`Method::Prefix`], whose memory is of vectors.
    #[must_use]
    pub fn of_traces(name: &str) -> Option<Self> {
        Self::from_name(name).filter(|method| *method != Self::Prefix)
    }

    /// Returns whether traces are embedded to be compared.
    #[must_use]
    pub fn needs_embedder(self) -> bool {
        self != Self::Lexical
    }
}
