//! What people and programs see: tables, rows, figures, messages.

pub mod breakdown;
pub mod messages;
pub(crate) mod printable;
pub(crate) mod results;
pub(crate) mod review;
pub mod rows;
pub(crate) mod table;
