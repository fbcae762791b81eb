//! Readers of the formats that agents write, which return traces.
//!
//! Bytes become records ([`records`]). A session's records are decoded into events by the adapter of their agent (`adapters`), and its
//! events become one conversation (`session`). Records of data sets and spans are read by the module of their format ([`reader`]).
//! What was said becomes the steps of a trace by shared rules ([`trace`]). `DESIGN.md` says how to add an agent.

mod adapters;
#[cfg(test)]
#[path = "tests/agents.rs"]
mod agents;
mod archive;
mod contexts;
pub mod date;
pub mod encoding;
mod event;
pub mod input;
mod langchain;
mod messages;
mod open_traces;
mod parts;
mod pictures;
mod pieces;
pub mod places;
mod prelude;
pub mod reader;
#[cfg(test)]
#[path = "tests/recordings.rs"]
mod recordings;
pub mod records;
#[cfg(test)]
#[path = "tests/records.rs"]
mod records_found;
mod session;
mod sharegpt;
pub mod sources;
mod spans;
#[cfg(test)]
#[path = "tests/spans.rs"]
mod spans_joined;
pub mod split;
mod table;
mod tagged;
pub mod trace;
#[cfg(test)]
#[path = "tests/trials.rs"]
mod trials;
mod values;

use std::fmt;

use knowledgepulse_error::named;
use knowledgepulse_json::{Text, Value, object};

/// A value of more bytes is not read.
pub const DEFAULT_LIMIT: u64 = 64 * 1024 * 1024;

named! {
    /// A format that can be read. The formats are in the order in which a record is recognised.
    #[derive(Default, Hash)]
    pub enum FormatName {
        /// Traces of this package, which need no reader.
        #[default]
        Trace = "trace",
        /// The Agent Trajectory Interchange Format of Harbor.
        Atif = "atif",
        /// SWE-agent and mini-SWE-agent.
        SweAgent = "swe-agent",
        /// Sessions of Gemini CLI.
        GeminiCli = "gemini-cli",
        /// Sessions of Qwen Code.
        QwenCode = "qwen-code",
        /// Sessions of Pi, and of the Hub of Hugging Face.
        Pi = "pi",
        /// Transcripts of Cursor's CLI, and composers of its IDE.
        Cursor = "cursor",
        /// Sessions of GitHub Copilot CLI.
        CopilotCli = "copilot-cli",
        /// Chat sessions of GitHub Copilot in VS Code.
        CopilotChat = "copilot-chat",
        /// Sessions of opencode and its forks.
        Opencode = "opencode",
        /// Sessions of Cline, Roo Code and Kilo Code.
        Cline = "cline",
        /// Sessions of Goose.
        Goose = "goose",
        /// Sessions of Droid.
        Droid = "droid",
        /// Sessions of Hermes.
        Hermes = "hermes",
        /// Sessions of Kimi Code and Kimi CLI.
        Kimi = "kimi",
        /// Sessions of Grok Build, and updates of the Agent Client Protocol.
        Grok = "grok",
        /// Sessions of Crush.
        Crush = "crush",
        /// Sessions of Kiro CLI.
        Kiro = "kiro",
        /// Transcripts of Antigravity.
        Antigravity = "antigravity",
        /// Sessions of Continue.
        Continue = "continue",
        /// Threads of Zed.
        Zed = "zed",
        /// Threads of Amp.
        Amp = "amp",
        /// Transcripts of Letta Code.
        Letta = "letta",
        /// Launches of Aider.
        Aider = "aider",
        /// Runs of OpenHands.
        Openhands = "openhands",
        /// Logs of Inspect.
        Inspect = "inspect",
        /// Runs of LangSmith.
        Langsmith = "langsmith",
        /// Traces and observations of Langfuse.
        Langfuse = "langfuse",
        /// Spans of Phoenix.
        Phoenix = "phoenix",
        /// Traces of MLflow.
        Mlflow = "mlflow",
        /// Calls of Weave.
        Weave = "weave",
        /// Spans of Braintrust.
        Braintrust = "braintrust",
        /// Rows of Logfire.
        Logfire = "logfire",
        /// Messages of LangChain and states of LangGraph.
        Langchain = "langchain",
        /// Conversations of data sets for fine-tuning.
        Sharegpt = "sharegpt",
        /// Conversations of chat APIs.
        OpenaiChat = "openai-chat",
        /// Session files of Claude Code.
        ClaudeCode = "claude-code",
        /// Rollouts of Codex.
        Codex = "codex",
        /// Spans of OpenTelemetry.
        Otel = "otel",
    }
}

impl fmt::Display for FormatName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// The caller's settings for the traces; they take precedence over the format's values.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Given {
    /// Whether the agents succeeded.
    pub success: Option<bool>,
    /// How sure the agents are of their results, 0 to 1.
    pub confidence: Option<f64>,
    /// `metadata.task_domain`
    pub domain: Option<String>,
}

/// Which parts of a trace's outcome are known, from the format or the caller. The others have defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// Whether the success is known.
    pub success: bool,
    /// Whether the confidence is known.
    pub confidence: bool,
}

impl Known {
    /// Returns the object of JavaScript.
    #[must_use]
    pub fn into_value(self) -> Value {
        object([
            ("success", self.success.into()),
            ("confidence", self.confidence.into()),
        ])
    }
}

/// A JSON value, and where it is from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry<'a> {
    /// The value.
    pub value: &'a Value,
    /// Where it is from.
    pub place: Place,
}

/// Where a value or a trace is in the input.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Place {
    /// The line on which it begins, from 1.
    pub line: Option<u64>,
    /// The position in the array that it is an element of, from 0.
    pub index: Option<u64>,
    /// Its size in the input, in bytes.
    pub size: u64,
}

/// The problem of a record, in words.
#[derive(Debug, Clone, PartialEq)]
pub struct Wrong(Text);

impl Wrong {
    /// Something that is not of its format.
    pub fn new(reason: impl Into<Text>) -> Self {
        Self(reason.into())
    }

    /// Returns the same with the place in the record.
    #[must_use]
    pub(crate) fn within(self, place: impl Into<Text>) -> Self {
        Self(values::joined([place.into(), self.0], ": "))
    }

    /// Returns the problem, in words.
    #[must_use]
    pub fn reason(self) -> Text {
        self.0
    }
}

/// A run whose records have been read, or the problem of a part of a record.
pub(crate) enum Found {
    Run(Box<session::Session>),
    Wrong(Wrong),
}

impl Found {
    /// Builds the trace, on any core.
    ///
    /// # Errors
    /// The problem of a part of a record.
    pub(crate) fn build(self) -> Result<trace::TraceBuilder, Wrong> {
        match self {
            Self::Run(session) => Ok(session.finish()),
            Self::Wrong(wrong) => Err(wrong),
        }
    }
}
