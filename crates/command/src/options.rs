//! The command line: what it may say, what it means, and what of it makes no sense.

/// What goes to standard output for each trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A table for people.
    Table,
    /// One JSON object with all results and the summary.
    Json,
    /// A JSON object on a line for each trace.
    JsonLines,
    /// Comma-separated values with a header.
    Csv,
}

/// How many traces are the best.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Top {
    /// A number of traces, at least 1.
    Count(u64),
    /// A percentage of all traces, above 0 and up to 100; at least one trace.
    Percent(f64),
}

/// What is done with a trace that the memory holds with the same id and contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KnownTraces {
    /// It is left out.
    #[default]
    Skip,
    /// It gets the novelty of its earlier score.
    Score,
    /// It is compared again.
    Again,
}

/// How personal data and secrets are replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cleaning {
    /// The SDK's level: `aggregated`, `federated` or `private`.
    pub level: &'static str,
    /// Whether kinds are replaced that the SDK does not know.
    pub strict: bool,
}
