//! Files that a run writes, which file a name means, and what ends a run early.

pub(crate) mod file_identity;
pub(crate) mod output;
pub mod stop;
pub(crate) mod waiting;
