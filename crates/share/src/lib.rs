//! Writes clean sessions into a folder that others load.

pub mod splice;
