//! `kp-score`: reads traces from files, scores them, and writes results, sets of traces and a report.

pub mod breakdown;
pub mod domains;
pub mod messages;
pub mod near_duplicate;
pub mod options;
pub mod printable;
pub mod report;
pub mod rows;
pub mod scored;
pub mod statistics;
pub mod summary;
pub mod text;
mod values;
