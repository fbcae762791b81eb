//! A trace that was scored.

use knowledgepulse_formats::FormatName;
use knowledgepulse_json::Text;
use knowledgepulse_score::Breakdown;

/// Where a record is.
#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    /// The name of the file, or `stdin`.
    pub source: String,
    /// The line on which it begins, from 1.
    pub line: u64,
    /// The position in the array that it is an element of, from 0.
    pub index: Option<u64>,
}

impl std::fmt::Display for Place {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}:{}", self.source, self.line)?;
        self.index.map_or(Ok(()), |index| write!(formatter, "[{index}]"))
    }
}

/// What results tell of a trace beside its score.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceInfo {
    /// The format that it was converted from, or [`FormatName::Trace`].
    pub format: FormatName,
    /// The agent: the format in which it was recorded at first.
    pub agent: Text,
    /// When it began, in ISO 8601; `None` if that is not known.
    pub when: Option<String>,
    /// How many steps it has.
    pub steps: u64,
    /// Whether it succeeded; `None` if that is not known.
    pub success: Option<bool>,
    /// Whether its confidence is known.
    pub has_confidence: bool,
    /// Its `id`, if that is a string.
    pub id: Option<Text>,
    /// The beginning of its objective.
    pub objective: Text,
    /// Its `task_domain`, or `default`.
    pub domain: Text,
}

/// A trace that was scored.
#[derive(Debug, Clone, PartialEq)]
pub struct Scored {
    /// Where it is.
    pub place: Place,
    /// What is told of it.
    pub about: TraceInfo,
    /// Its score, and the numbers from which it was computed.
    pub breakdown: Breakdown,
}

#[cfg(test)]
pub(crate) mod tests;
