//! The figures of a run for its report.
