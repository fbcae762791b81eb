//! The commands, a module each.

pub(crate) mod clean;
pub(crate) mod completions;
pub(crate) mod formats;
pub(crate) mod report;
pub(crate) mod score;
pub(crate) mod select;
pub(crate) mod sessions;
pub(crate) mod share;
pub(crate) mod show;
