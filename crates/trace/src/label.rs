//! The label of an entry in a memory.

use std::{fmt, ops::Deref, sync::Arc};

/// The most bytes of UTF-8 in a [`Label`].
pub const MAX_LABEL_BYTES: usize = 1024;

/// The caller's name of an entry, of at most [`MAX_LABEL_BYTES`]: the `id` of a trace. Clones share it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label(Arc<str>);

impl Deref for Label {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Label {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self)
    }
}

impl From<&str> for Label {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<String> for Label {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}
