//! What all stages share: limits, places, problems and the caller's settings.

use knowledgepulse_json::{Text, Value, object};

/// A value of more bytes is not read.
pub const DEFAULT_LIMIT: u64 = 64 * 1024 * 1024;

/// The caller's settings for the traces; they take precedence over the format's values.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Given {
    /// Whether the agents succeeded.
    pub success: Option<bool>,
    /// How sure the agents are of their results, 0 to 1.
    pub confidence: Option<f64>,
}

/// Which parts of a trace are known, from the format or the caller. The others have defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// Whether the success is known.
    pub success: bool,
    /// Whether the confidence is known.
    pub confidence: bool,
    /// Whether it is known when the trace began. Otherwise it has the time of its reading.
    pub time: bool,
}

impl Known {
    /// Returns the object of JavaScript, which names the time only where it is not known.
    #[must_use]
    pub fn into_value(self) -> Value {
        let time = (!self.time).then_some(("time", false.into()));
        let outcome = [
            ("success", self.success.into()),
            ("confidence", self.confidence.into()),
        ];
        object(outcome.into_iter().chain(time))
    }
}

/// Where a value or a trace is in the input.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Place {
    /// The line on which it begins, from 1; `None` where the input is no text.
    pub line: Option<u64>,
    /// The position in the array that it is an element of, from 0.
    pub index: Option<u64>,
    /// Its size in the input, in bytes.
    pub size: u64,
}

/// The problem of a record, in words.
pub type Wrong = Text;

/// One value of an input, or why it could not be read.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Where it is.
    pub place: Place,
    /// The value, or the problem.
    pub content: Result<Value, String>,
}

/// Returns the problem of a value that is longer than so many bytes.
pub(crate) fn too_long(limit: u64) -> String {
    #[allow(clippy::cast_precision_loss)] // For a message.
    let megabytes = limit as f64 / 1024.0 / 1024.0;
    format!("longer than {} MB", knowledgepulse_json::number(megabytes))
}
