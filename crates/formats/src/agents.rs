//! The agents, each in a file of its own that begins with what it is registered with. An agent is added here and nowhere else.

mod aider;
mod amp;
mod antigravity;
mod atif;
mod chat;
mod claude_code;
mod cline;
mod codex;
mod continue_dev;
mod copilot_chat;
mod copilot_cli;
mod crush;
mod cursor;
mod droid;
mod gemini_cli;
mod goose;
mod grok;
mod hermes;
mod inspect;
mod kimi;
mod kiro;
mod letta;
mod opencode;
mod openhands;
mod otel;
mod pi;
mod platforms;
mod qwen_code;
mod swe_agent;
mod zed;

use std::fmt;

use knowledgepulse_error::named;

use crate::agent::Format;

/// Declares the formats, in the order in which they are asked whether a file is theirs.
macro_rules! agents {
    ($($(#[$doc:meta])* $format:ident = $agent:path,)*) => {
        named! {
            /// A format that can be read. The formats are in the order in which a record is recognised.
            #[derive(Default, Hash)]
            pub enum FormatName {
                /// Traces of this package, which need no reader.
                #[default]
                Trace = "trace",
                $($(#[$doc])* $format = $agent.name,)*
            }
        }

        impl FormatName {
            /// Returns how its records are read; `None` for traces.
            pub(crate) fn read_by(self) -> Option<&'static Format> {
                match self {
                    Self::Trace => None,
                    $(Self::$format => Some(&$agent),)*
                }
            }
        }
    };
}

agents! {
    /// The Agent Trajectory Interchange Format of Harbor.
    Atif = atif::FORMAT,
    /// SWE-agent and mini-SWE-agent.
    SweAgent = swe_agent::FORMAT,
    /// Sessions of Gemini CLI.
    GeminiCli = gemini_cli::FORMAT,
    /// Sessions of Qwen Code.
    QwenCode = qwen_code::FORMAT,
    /// Sessions of Pi, and of the Hub of Hugging Face.
    Pi = pi::FORMAT,
    /// Transcripts of Cursor's CLI, and composers of its IDE.
    Cursor = cursor::FORMAT,
    /// Sessions of GitHub Copilot CLI.
    CopilotCli = copilot_cli::FORMAT,
    /// Chat sessions of GitHub Copilot in VS Code.
    CopilotChat = copilot_chat::FORMAT,
    /// Sessions of opencode and its forks.
    Opencode = opencode::FORMAT,
    /// Sessions of Cline, Roo Code and Kilo Code.
    Cline = cline::FORMAT,
    /// Sessions of Goose.
    Goose = goose::FORMAT,
    /// Sessions of Droid.
    Droid = droid::FORMAT,
    /// Sessions of Hermes.
    Hermes = hermes::FORMAT,
    /// Sessions of Kimi Code and Kimi CLI.
    Kimi = kimi::FORMAT,
    /// Sessions of Grok Build, and updates of the Agent Client Protocol.
    Grok = grok::FORMAT,
    /// Sessions of Crush.
    Crush = crush::FORMAT,
    /// Sessions of Kiro CLI.
    Kiro = kiro::FORMAT,
    /// Transcripts of Antigravity.
    Antigravity = antigravity::FORMAT,
    /// Sessions of Continue.
    Continue = continue_dev::FORMAT,
    /// Threads of Zed.
    Zed = zed::FORMAT,
    /// Threads of Amp.
    Amp = amp::FORMAT,
    /// Transcripts of Letta Code.
    Letta = letta::FORMAT,
    /// Launches of Aider.
    Aider = aider::FORMAT,
    /// Runs of OpenHands.
    Openhands = openhands::FORMAT,
    /// Logs of Inspect.
    Inspect = inspect::FORMAT,
    /// Runs of LangSmith.
    Langsmith = platforms::LANGSMITH,
    /// Traces and observations of Langfuse.
    Langfuse = platforms::LANGFUSE,
    /// Spans of Phoenix.
    Phoenix = platforms::PHOENIX,
    /// Traces of MLflow.
    Mlflow = platforms::MLFLOW,
    /// Calls of Weave.
    Weave = platforms::WEAVE,
    /// Spans of Braintrust.
    Braintrust = platforms::BRAINTRUST,
    /// Rows of Logfire.
    Logfire = platforms::LOGFIRE,
    /// Messages of LangChain and states of LangGraph.
    Langchain = chat::LANGCHAIN,
    /// Conversations of data sets for fine-tuning.
    Sharegpt = chat::SHAREGPT,
    /// Conversations of chat APIs.
    OpenaiChat = chat::OPENAI_CHAT,
    /// Session files of Claude Code.
    ClaudeCode = claude_code::FORMAT,
    /// Rollouts of Codex.
    Codex = codex::FORMAT,
    /// Spans of OpenTelemetry.
    Otel = otel::FORMAT,
}

impl fmt::Display for FormatName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
