//! Where agents keep their files on each operating system, what of them is read, and what is not: the list of docs/formats.md.

use std::{
    collections::HashSet,
    env,
    path::{Path, PathBuf},
};

use glob::Pattern;

use crate::FormatName;

/// An agent or a platform.
#[derive(Debug)]
pub struct Source {
    /// The format of its files.
    pub format: FormatName,
    /// Its name.
    pub name: &'static str,
    /// Where its files are, if it keeps them in the user's folders.
    pub places: &'static [Place],
    /// What else is read, for docs/formats.md.
    pub also: &'static str,
    /// What is not read, for docs/formats.md.
    pub unread: &'static str,
}

/// A folder of the user, and a pattern of files in it: `*` stands for a part of a name, `**` for any folders.
#[derive(Debug, Clone, Copy)]
pub struct Place(pub Root, pub &'static str);

/// A folder of the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Root {
    /// The home folder.
    Home,
    /// `~/.local/share`, or the one that `XDG_DATA_HOME` names.
    Share,
    /// Where programs keep their data: `Application Support` on macOS, `AppData\Local` on Windows, otherwise `~/.local/share`.
    Data,
    /// Where programs keep settings: `Application Support` on macOS, `AppData\Roaming` on Windows, otherwise `~/.config`.
    Settings,
    /// The folder `User` of an editor like VS Code in the settings.
    Editor,
}

use Root::{Data, Editor, Home, Settings, Share};

/// The editors that are made from VS Code.
const EDITORS: [&str; 5] = ["Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf"];

const fn agent(
    format: FormatName,
    name: &'static str,
    places: &'static [Place],
    also: &'static str,
    unread: &'static str,
) -> Source {
    Source {
        format,
        name,
        places,
        also,
        unread,
    }
}

/// All agents and platforms, the most used agents first.
#[rustfmt::skip]
pub static SOURCES: &[Source] = &[
    agent(FormatName::ClaudeCode, "Claude Code, iFlow", &[Place(Home, ".claude/projects/**/*.jsonl"), Place(Home, ".iflow/projects/**/*.jsonl")], "output of `stream-json`", "contexts of editors, abandoned branches"),
    agent(FormatName::Codex, "Codex", &[Place(Home, ".codex/sessions/**/rollout-*.jsonl"), Place(Home, ".codex/archived_sessions/**/rollout-*.jsonl")], "output of `codex exec --json`", "encrypted reasoning"),
    agent(FormatName::Cursor, "Cursor", &[Place(Home, ".cursor/projects/*/agent-transcripts/**/*.jsonl"), Place(Settings, "Cursor/User/globalStorage/state.vscdb"), Place(Settings, "Cursor/User/workspaceStorage/*/state.vscdb")], "", "results in transcripts (it keeps none), chats of before composers"),
    agent(FormatName::CopilotCli, "GitHub Copilot CLI", &[Place(Home, ".copilot/session-state/*/events.jsonl")], "", "messages of skills"),
    agent(FormatName::CopilotChat, "GitHub Copilot in VS Code", &[Place(Editor, "workspaceStorage/*/chatSessions/*.json*"), Place(Editor, "globalStorage/emptyWindowChatSessions/*.json*")], "", "edits of files"),
    agent(FormatName::Opencode, "opencode, Kilo, MiMoCode, ZCode", &[Place(Share, "opencode/opencode.db"), Place(Share, "kilo/*.db"), Place(Share, "mimocode/*.db"), Place(Home, ".zcode/cli/db/*.db")], "`opencode export`", "a file for each part, as before 2026"),
    agent(FormatName::Cline, "Cline, Roo Code, Kilo Code", &[Place(Editor, "globalStorage/*/tasks/*/api_conversation_history.json"), Place(Home, ".cline/data/sessions/*/*.messages.json")], "", "`ui_messages.json`, summaries"),
    agent(FormatName::QwenCode, "Qwen Code", &[Place(Home, ".qwen/projects/*/chats/*.jsonl")], "", "abandoned branches, notifications"),
    agent(FormatName::GeminiCli, "Gemini CLI", &[Place(Home, ".gemini/tmp/*/chats/*")], "checkpoints of `/chat save`", "turns that were taken back"),
    agent(FormatName::Goose, "Goose", &[Place(Share, "goose/sessions/sessions.db"), Place(Share, "goose/sessions/*.jsonl"), Place(Settings, "Block/goose/data/sessions/sessions.db")], "`goose session export`", "messages that the user does not see"),
    agent(FormatName::Droid, "Droid", &[Place(Home, ".factory/sessions/**/*.jsonl")], "", "lists of tasks, summaries"),
    agent(FormatName::Hermes, "Hermes", &[Place(Home, ".hermes/state.db"), Place(Home, ".hermes/profiles/*/state.db")], "`hermes sessions export`", "rows that were taken back"),
    agent(FormatName::Kimi, "Kimi Code, Kimi CLI", &[Place(Home, ".kimi-code/sessions/*/*/agents/*/wire.jsonl"), Place(Home, ".kimi/sessions/*/*/wire.jsonl")], "", "`context.jsonl`"),
    agent(FormatName::Grok, "Grok Build", &[Place(Home, ".grok/sessions/*/*/chat_history.jsonl")], "`updates.jsonl`: the Agent Client Protocol", "synthetic messages"),
    agent(FormatName::Crush, "Crush", &[], "`PROJECT/.crush/crush.db`", "summaries"),
    agent(FormatName::Kiro, "Kiro CLI", &[Place(Home, ".kiro/sessions/cli/*.jsonl"), Place(Data, "kiro-cli/data.sqlite3")], "", "sessions of the IDE, Amazon Q"),
    agent(FormatName::Antigravity, "Antigravity", &[Place(Home, ".gemini/antigravity*/brain/*/.system_generated/logs/transcript.jsonl")], "", "conversations in Protocol Buffers"),
    agent(FormatName::Continue, "Continue", &[Place(Home, ".continue/sessions/*.json")], "", "context items"),
    agent(FormatName::Zed, "Zed", &[Place(Data, "zed/threads/threads.db"), Place(Data, "Zed/threads/threads.db")], "", "text threads, contents of mentions"),
    agent(FormatName::Aider, "Aider", &[Place(Home, ".aider.chat.history.md")], "`PROJECT/.aider.chat.history.md`", "arguments and results of edits (it keeps none)"),
    agent(FormatName::Amp, "Amp", &[Place(Share, "amp/threads/*.json")], "exported threads", ""),
    agent(FormatName::Letta, "Letta Code", &[], "`transcript.jsonl`", "agent files (`.af`)"),
    agent(FormatName::Pi, "Pi, OpenClaw", &[Place(Home, ".pi/agent/sessions/*/*.jsonl"), Place(Home, ".openclaw/agents/*/sessions/*.jsonl")], "Session Trace Simple Format", "abandoned branches"),
    agent(FormatName::Openhands, "OpenHands", &[Place(Home, ".openhands/conversations/**/events/*.json")], "events of its server and SDK, `output.jsonl` of its evaluations", ""),
    agent(FormatName::SweAgent, "SWE-agent, mini-SWE-agent", &[], "`.traj` files", ""),
    agent(FormatName::Atif, "Harbor", &[], "Agent Trajectory Interchange Format 1.0 to 1.8", ""),
    agent(FormatName::Inspect, "Inspect", &[], "logs in JSON and `.eval`", "archives of more than 256 MB"),
    agent(FormatName::OpenaiChat, "chat APIs", &[], "OpenAI (Chat Completions, Responses), Anthropic, Bedrock's Converse, Gemini, Vercel's AI SDK; rows of data sets with `messages`, `trajectory` or `history`, and the verdict in `resolved` or `target`; exports of Helicone", ""),
    agent(FormatName::Langchain, "LangChain", &[], "messages, states of LangGraph", ""),
    agent(FormatName::Sharegpt, "data sets", &[], "ShareGPT, LLaMA-Factory, Axolotl, Hermes, Agent Data Protocol", ""),
    agent(FormatName::Otel, "OpenTelemetry", &[], "spans and logs in OTLP JSON, with attributes of GenAI, OpenInference, Traceloop, Strands or the AI SDK", "binary OTLP"),
    agent(FormatName::Langsmith, "LangSmith", &[], "runs", ""),
    agent(FormatName::Langfuse, "Langfuse", &[], "traces and observations", ""),
    agent(FormatName::Phoenix, "Phoenix", &[], "spans", ""),
    agent(FormatName::Mlflow, "MLflow", &[], "traces in JSON", ""),
    agent(FormatName::Weave, "Weave", &[], "exported calls", "functions that are neither models nor tools"),
    agent(FormatName::Braintrust, "Braintrust", &[], "spans of logs and experiments", ""),
    agent(FormatName::Logfire, "Logfire", &[], "rows of `records`", ""),
    agent(FormatName::Trace, "KnowledgePulse", &[], "`ReasoningTrace`s, which stay unchanged", ""),
];

impl Root {
    /// Returns the folders on this machine.
    #[must_use]
    pub fn folders(self) -> Vec<PathBuf> {
        let Some(home) = env::home_dir() else {
            return Vec::new();
        };
        let named = |name| {
            env::var_os(name)
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
        };
        let (mac, windows) = (cfg!(target_os = "macos"), cfg!(windows));
        let support = || home.join("Library/Application Support");
        let share = || named("XDG_DATA_HOME").unwrap_or_else(|| home.join(".local/share"));
        let settings = || match (mac, windows) {
            (true, _) => support(),
            (_, true) => named("APPDATA").unwrap_or_else(|| home.join("AppData/Roaming")),
            _ => named("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config")),
        };
        match self {
            Home => vec![home],
            Share => vec![share()],
            Data if mac => vec![support()],
            Data if windows => vec![named("LOCALAPPDATA").unwrap_or_else(|| home.join("AppData/Local"))],
            Data => vec![share()],
            Settings => vec![settings()],
            Editor => EDITORS
                .iter()
                .map(|editor| settings().join(editor).join("User"))
                .collect(),
        }
    }
}

impl Source {
    /// Returns its files on this machine, in the order of their paths.
    #[must_use]
    pub fn files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        for Place(root, pattern) in self.places {
            for folder in root.folders() {
                files.extend(found(&folder, pattern));
            }
        }
        files.sort();
        // Some systems take names in capitals for the same.
        let mut seen = HashSet::new();
        files.retain(|file| seen.insert(file.canonicalize().unwrap_or_else(|_| file.clone())));
        files
    }
}

/// Returns the files in a folder that a pattern fits. Links to folders are not followed below it by `**`.
fn found(folder: &Path, pattern: &str) -> impl Iterator<Item = PathBuf> {
    let folder = Pattern::escape(&folder.to_string_lossy());
    let paths = glob::glob(&format!("{folder}/{pattern}")).into_iter().flatten();
    paths.filter_map(Result::ok).filter(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const BEGIN: &str = "<!-- formats -->\n";
    const END: &str = "<!-- end of formats -->\n";

    /// Returns the name of a folder in docs/formats.md.
    fn name(root: Root) -> &'static str {
        match root {
            Home => "~/",
            Share => "~/.local/share/",
            Data => "DATA/",
            Settings => "SETTINGS/",
            Editor => "EDITOR/",
        }
    }

    /// Returns the list of docs/formats.md.
    fn list() -> String {
        let entry = |source: &Source| {
            let places = source
                .places
                .iter()
                .map(|Place(root, pattern)| format!("`{}{pattern}`", name(*root)));
            let mut parts = vec![places.collect::<Vec<_>>().join(", ")];
            match (source.places, source.also) {
                (_, "") => {}
                ([], also) => parts = vec![also.to_owned()],
                (_, also) => parts.push(format!("also {also}")),
            }
            if !source.unread.is_empty() {
                parts.push(format!("not {}", source.unread));
            }
            let (agent, format) = (source.name, source.format);
            format!("- **{agent}** (`{format}`): {}\n", parts.join("; "))
        };
        SOURCES.iter().map(entry).collect()
    }

    #[test]
    fn docs_list_the_sources() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/formats.md");
        let page = fs::read_to_string(&path).unwrap();
        let (before, rest) = page.split_once(BEGIN).unwrap();
        let (found, after) = rest.split_once(END).unwrap();
        if env::var_os("KNOWLEDGEPULSE_WRITE_EXPECTED").is_some() {
            return fs::write(&path, [before, BEGIN, "\n", &list(), "\n", END, after].concat()).unwrap();
        }
        assert_eq!(found.trim(), list().trim());
    }

    #[test]
    fn every_format_has_a_source() {
        let without: Vec<_> = FormatName::ALL
            .iter()
            .copied()
            .filter(|format| SOURCES.iter().all(|source| source.format != *format))
            .collect();
        assert!(without.is_empty(), "{without:?}");
    }

    #[test]
    fn found_has_the_files_that_a_pattern_fits() {
        let home = tempfile::tempdir().unwrap();
        for path in [
            "a/b/c/one.jsonl",
            "a/b/two.jsonl",
            "a/three.json",
            "a/b/c/.hid/four.jsonl",
        ] {
            let path = home.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let found = |pattern: &str| {
            let names = found(home.path(), pattern)
                .map(|file| file.file_name().unwrap().to_string_lossy().into_owned());
            names.collect::<Vec<_>>()
        };
        assert_eq!(found("a/**/*.jsonl"), ["four.jsonl", "one.jsonl", "two.jsonl"]);
        assert_eq!(found("a/*/*.jsonl"), ["two.jsonl"]);
        assert_eq!(found("*/t*.js*"), ["three.json"]);
        assert_eq!(found("a/b/two.jsonl"), ["two.jsonl"]);
        assert_eq!(found("none/**/*"), [""; 0]);
    }
}
