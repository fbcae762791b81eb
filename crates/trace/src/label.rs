//! The label of an entry in a memory.

use std::sync::Arc;

/// The most bytes of UTF-8 in a [`Label`].
pub const MAX_LABEL_BYTES: usize = 1024;

/// The caller's name of an entry, of at most [`MAX_LABEL_BYTES`]: the `id` of a trace. Clones share it.
pub type Label = Arc<str>;
