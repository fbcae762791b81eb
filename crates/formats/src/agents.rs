//! The agents, each in a file of its own. An agent is added here, and in `tables/agents.tsv`, which says where it keeps its files.

mod aider;
mod amp;
mod antigravity;
mod atif;
mod autogen;
mod chat;
mod claude_code;
mod cline;
mod codebuddy;
mod codewhale;
mod codex;
mod continue_dev;
mod copilot_chat;
mod copilot_cli;
mod crush;
mod cursor;
mod droid;
mod forge;
mod gemini_cli;
mod google_adk;
mod goose;
mod gptme;
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
mod pydantic_ai;
mod qwen_code;
mod smolagents;
mod strands;
mod streams;
mod swe_agent;
mod tau2;
mod vibe;
mod zed;

use std::{fmt, path::Path};

use knowledgepulse_error::named;
use knowledgepulse_json::Value;

use crate::{
    agent::{Decoded, Format, Kind},
    records::is_trace,
};

/// Traces of this package.
static TRACE: Format = Format::new("trace", Kind::Traces, |_, _| Ok(Decoded::Unknown)).also(is_trace);

/// Declares the formats, the most used agents first. A file is of the first one that recognises its records.
macro_rules! agents {
    ($($format:ident = $agent:path,)*) => {
        named! {
            /// A format that can be read.
            #[derive(Default, Hash)]
            pub enum FormatName {
                $(
                    #[doc = concat!("The format of `", stringify!($agent), "`.")]
                    $format = $agent.name,
                )*
                /// Traces of this package, which stay as they are.
                #[default]
                Trace = TRACE.name,
            }
        }

        impl FormatName {
            /// Returns what it is registered with.
            #[must_use]
            pub fn format(self) -> &'static Format {
                match self {
                    Self::Trace => &TRACE,
                    $(Self::$format => &$agent,)*
                }
            }
        }
    };
}

agents! {
    ClaudeCode = claude_code::FORMAT,
    Codex = codex::FORMAT,
    Cursor = cursor::FORMAT,
    CopilotCli = copilot_cli::FORMAT,
    CopilotChat = copilot_chat::FORMAT,
    Opencode = opencode::FORMAT,
    Cline = cline::FORMAT,
    QwenCode = qwen_code::FORMAT,
    GeminiCli = gemini_cli::FORMAT,
    Goose = goose::FORMAT,
    Droid = droid::FORMAT,
    Hermes = hermes::FORMAT,
    Kimi = kimi::FORMAT,
    Grok = grok::FORMAT,
    Crush = crush::FORMAT,
    Kiro = kiro::FORMAT,
    Antigravity = antigravity::FORMAT,
    Continue = continue_dev::FORMAT,
    Zed = zed::FORMAT,
    Vibe = vibe::FORMAT,
    Codebuddy = codebuddy::FORMAT,
    Codewhale = codewhale::FORMAT,
    Forge = forge::FORMAT,
    Aider = aider::FORMAT,
    Gptme = gptme::FORMAT,
    Amp = amp::FORMAT,
    Letta = letta::FORMAT,
    Pi = pi::FORMAT,
    Openhands = openhands::FORMAT,
    SweAgent = swe_agent::FORMAT,
    Atif = atif::FORMAT,
    Inspect = inspect::FORMAT,
    PydanticAi = pydantic_ai::FORMAT,
    GoogleAdk = google_adk::FORMAT,
    Smolagents = smolagents::FORMAT,
    Strands = strands::FORMAT,
    Autogen = autogen::FORMAT,
    Tau2 = tau2::FORMAT,
    Otel = otel::FORMAT,
    Langsmith = platforms::LANGSMITH,
    Langfuse = platforms::LANGFUSE,
    Opik = platforms::OPIK,
    Phoenix = platforms::PHOENIX,
    Mlflow = platforms::MLFLOW,
    Weave = platforms::WEAVE,
    Braintrust = platforms::BRAINTRUST,
    Logfire = platforms::LOGFIRE,
    OpenaiAgents = platforms::OPENAI_AGENTS,
    Mastra = platforms::MASTRA,
    Streams = streams::FORMAT,
    Langchain = chat::LANGCHAIN,
    Sharegpt = chat::SHAREGPT,
    OpenaiChat = chat::OPENAI_CHAT,
}

impl FormatName {
    /// Returns the format of a record by its contents and the path of its input: a trace of this package, or else the first of
    /// [`FormatName::ALL`] that recognises it.
    #[must_use]
    pub fn of(record: &Value, path: Option<&Path>) -> Option<Self> {
        // Traces of this package say so in a field: no other format need be asked.
        let mut formats = [Self::Trace].iter().chain(Self::ALL).copied();
        formats.find(|format| format.format().is_of(record, path))
    }

    /// Returns whether its records are sessions of a program that writes code.
    #[must_use]
    pub fn is_of_sessions(self) -> bool {
        self.format().kind == Kind::Sessions
    }
}

impl fmt::Display for FormatName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use std::{env, fs, path::Path};

    use super::*;
    use crate::agent::not_read;

    const BEGIN: &str = "<!-- formats -->\n";
    const END: &str = "<!-- end of formats -->\n";

    /// Returns the list of docs/formats.md.
    fn list() -> String {
        let entry = |format: &Format| {
            let about = format.about();
            let folders = about.folders.iter().map(|place| format!("`{place}`"));
            let mut parts = vec![folders.collect::<Vec<_>>().join(", ")];
            match (&about.folders[..], about.also) {
                (_, "") => {}
                ([], also) => parts = vec![also.to_owned()],
                (_, also) => parts.push(format!("also {also}")),
            }
            if !about.unread.is_empty() {
                parts.push(format!("not {}", about.unread));
            }
            format!("- **{}** (`{}`): {}\n", about.of, format.name, parts.join("; "))
        };
        let unread = not_read().map(|(of, _)| of).collect::<Vec<_>>();
        FormatName::ALL
            .iter()
            .map(|format| entry(format.format()))
            .chain([format!("- **Counted, not read**: {}\n", unread.join(", "))])
            .collect()
    }

    #[test]
    fn docs_list_the_formats() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/formats.md");
        let page = fs::read_to_string(&path).unwrap();
        let (before, rest) = page.split_once(BEGIN).unwrap();
        let (found, after) = rest.split_once(END).unwrap();
        if env::var_os("KNOWLEDGEPULSE_WRITE_EXPECTED").is_some() {
            return fs::write(&path, [before, BEGIN, "\n", &list(), "\n", END, after].concat()).unwrap();
        }
        assert_eq!(found.trim(), list().trim());
    }
}
