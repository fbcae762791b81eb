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

/// A folder of the user, and a pattern below it: `*` stands for a part of a name. A folder that it fits is read with all below it.
#[derive(Debug, Clone, Copy)]
pub struct Place(pub Root, pub &'static str);

/// A folder of the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Root {
    /// The home folder.
    Home,
    /// What the first of these variables names that is set; without one, this folder of the home folder.
    Moved(&'static [&'static str], &'static str),
    /// What this variable names. Nothing without it.
    Named(&'static str),
    /// `~/.local/share`, or the one that `XDG_DATA_HOME` names.
    Share,
    /// Where programs keep their data: `Application Support` on macOS, `AppData\Local` on Windows, otherwise `~/.local/share`.
    Data,
    /// Where programs keep settings: `Application Support` on macOS, `AppData\Roaming` on Windows, otherwise `~/.config`.
    Settings,
    /// The folder `User` of an editor like VS Code, in the settings or on the machine that it is connected with.
    Editor,
}

use Root::{Data, Editor, Home, Moved, Named, Settings, Share};

/// The editors that are made from VS Code.
const EDITORS: [&str; 5] = ["Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf"];

/// Their parts on a machine that they are connected with, in the home folder.
const SERVERS: [&str; 5] = [
    ".vscode-server",
    ".vscode-server-insiders",
    ".vscodium-server",
    ".cursor-server",
    ".windsurf-server",
];

const CLAUDE: Root = Moved(&["CLAUDE_CONFIG_DIR"], ".claude");
const CLINE: Root = Moved(&["CLINE_DATA_DIR"], ".cline/data");
const CODEX: Root = Moved(&["CODEX_HOME"], ".codex");
const CURSOR: Root = Moved(&["CURSOR_DATA_DIR", "CURSOR_CONFIG_DIR"], ".cursor");
const GEMINI: Root = Moved(&["GEMINI_CLI_HOME"], "");
const HERMES: Root = Moved(&["HERMES_HOME"], ".hermes");
const OPENCLAW: Root = Moved(&["OPENCLAW_STATE_DIR"], ".openclaw");
const OPENHANDS: Root = Moved(&["OPENHANDS_CONVERSATIONS_DIR"], ".openhands/conversations");
const PI: Root = Moved(&["PI_CODING_AGENT_DIR"], ".pi/agent");
const QWEN: Root = Moved(&["QWEN_RUNTIME_DIR", "QWEN_HOME"], ".qwen");

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
    agent(FormatName::ClaudeCode, "Claude Code, iFlow", &[Place(CLAUDE, "projects"), Place(Settings, "claude/projects"), Place(Home, ".iflow/projects")], "output of `stream-json`", "contexts of editors, abandoned branches"),
    agent(FormatName::Codex, "Codex", &[Place(CODEX, "sessions"), Place(CODEX, "archived_sessions")], "output of `codex exec --json`", "encrypted reasoning"),
    agent(FormatName::Cursor, "Cursor", &[Place(CURSOR, "projects/*/agent-transcripts"), Place(Settings, "Cursor/User/globalStorage/state.vscdb"), Place(Settings, "Cursor/User/workspaceStorage/*/state.vscdb")], "", "results in transcripts (it keeps none), chats of before composers"),
    agent(FormatName::CopilotCli, "GitHub Copilot CLI", &[Place(Moved(&["COPILOT_HOME"], ".copilot"), "session-state")], "", "messages of skills"),
    agent(FormatName::CopilotChat, "GitHub Copilot in VS Code", &[Place(Editor, "workspaceStorage/*/chatSessions"), Place(Editor, "globalStorage/emptyWindowChatSessions")], "", "edits of files"),
    agent(FormatName::Opencode, "opencode, Kilo, MiMoCode, ZCode", &[Place(Share, "opencode/*.db"), Place(Share, "opencode/storage/session"), Place(Named("OPENCODE_DB"), ""), Place(Share, "kilo/*.db"), Place(Named("KILO_DB"), ""), Place(Share, "mimocode/*.db"), Place(Home, ".zcode/cli/db/*.db")], "`opencode export`", "a file for each part, as before 2026"),
    agent(FormatName::Cline, "Cline, Roo Code, Kilo Code", &[Place(Editor, "globalStorage/*/tasks"), Place(CLINE, "sessions"), Place(CLINE, "tasks"), Place(Home, ".kilocode/cli/global/tasks")], "", "`ui_messages.json`, summaries"),
    agent(FormatName::QwenCode, "Qwen Code", &[Place(QWEN, "projects/*/chats")], "", "abandoned branches, notifications"),
    agent(FormatName::GeminiCli, "Gemini CLI", &[Place(GEMINI, ".gemini/tmp/*/chats")], "checkpoints of `/chat save`", "turns that were taken back"),
    agent(FormatName::Goose, "Goose", &[Place(Named("GOOSE_PATH_ROOT"), "data/sessions"), Place(Share, "goose/sessions"), Place(Settings, "Block/goose/data/sessions")], "`goose session export`", "messages that the user does not see"),
    agent(FormatName::Droid, "Droid", &[Place(Moved(&["FACTORY_HOME_OVERRIDE"], ""), ".factory/sessions")], "", "lists of tasks, summaries"),
    agent(FormatName::Hermes, "Hermes", &[Place(HERMES, "state.db"), Place(HERMES, "profiles/*/state.db")], "`hermes sessions export`", "rows that were taken back"),
    agent(FormatName::Kimi, "Kimi Code, Kimi CLI", &[Place(Moved(&["KIMI_CODE_HOME"], ".kimi-code"), "sessions"), Place(Moved(&["KIMI_SHARE_DIR"], ".kimi"), "sessions")], "", "`context.jsonl`"),
    agent(FormatName::Grok, "Grok Build", &[Place(Moved(&["GROK_HOME"], ".grok"), "sessions")], "`updates.jsonl`: the Agent Client Protocol", "synthetic messages"),
    agent(FormatName::Crush, "Crush", &[], "`PROJECT/.crush/crush.db`", "summaries"),
    agent(FormatName::Kiro, "Kiro CLI", &[Place(Moved(&["KIRO_HOME"], ".kiro"), "sessions"), Place(Data, "kiro-cli/data.sqlite3")], "", "sessions of the IDE, Amazon Q"),
    agent(FormatName::Antigravity, "Antigravity", &[Place(GEMINI, ".gemini/antigravity*/brain/*/.system_generated/logs")], "", "conversations in Protocol Buffers"),
    agent(FormatName::Continue, "Continue", &[Place(Moved(&["CONTINUE_GLOBAL_DIR"], ".continue"), "sessions")], "", "context items"),
    agent(FormatName::Zed, "Zed", &[Place(Data, "zed/threads/threads.db"), Place(Data, "Zed/threads/threads.db"), Place(Home, ".var/app/dev.zed.Zed/data/zed/threads/threads.db")], "", "text threads, contents of mentions"),
    agent(FormatName::Aider, "Aider", &[Place(Home, ".aider.chat.history.md")], "`PROJECT/.aider.chat.history.md`", "arguments and results of edits (it keeps none)"),
    agent(FormatName::Amp, "Amp", &[Place(Share, "amp/threads")], "exported threads", ""),
    agent(FormatName::Letta, "Letta Code", &[], "`transcript.jsonl`", "agent files (`.af`)"),
    agent(FormatName::Pi, "Pi, OpenClaw", &[Place(PI, "sessions"), Place(Named("PI_CODING_AGENT_SESSION_DIR"), ""), Place(OPENCLAW, "agents/*/sessions")], "Session Trace Simple Format", "abandoned branches"),
    agent(FormatName::Openhands, "OpenHands", &[Place(OPENHANDS, ""), Place(Named("OPENHANDS_PERSISTENCE_DIR"), "conversations")], "events of its server and SDK, `output.jsonl` of its evaluations", ""),
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
    /// Returns the folders on this machine; of a variable that names a database, the file.
    #[must_use]
    pub fn folders(self) -> Vec<PathBuf> {
        let Some(home) = env::home_dir() else {
            return Vec::new();
        };
        let path_in = |name: &&str| {
            env::var_os(name)
                .filter(|path| !path.is_empty())
                .map(PathBuf::from)
        };
        let named = |name| path_in(&name).filter(|path| path.is_absolute());
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
            Moved(names, folder) => {
                let moved = names.iter().find_map(path_in);
                vec![moved.map_or_else(|| home.join(folder), |path| with_home(&path, &home))]
            }
            Named(name) => path_in(&name)
                .map(|path| with_home(&path, &home))
                .into_iter()
                .collect(),
            Share => vec![share()],
            Data if mac => vec![support()],
            Data if windows => vec![named("LOCALAPPDATA").unwrap_or_else(|| home.join("AppData/Local"))],
            Data => vec![share()],
            Settings => vec![settings()],
            Editor => {
                let local = EDITORS.iter().map(|editor| settings().join(editor));
                let servers = SERVERS.iter().map(|server| home.join(server).join("data"));
                let portable = path_in(&"VSCODE_PORTABLE").map(|folder| folder.join("user-data"));
                let all = local.chain(servers).chain(portable);
                all.map(|folder| folder.join("User")).collect()
            }
        }
    }
}

/// Returns a path whose first part may be `~`, as some programs take it from their variables.
fn with_home(path: &Path, home: &Path) -> PathBuf {
    path.strip_prefix("~")
        .map_or_else(|_| path.to_owned(), |rest| home.join(rest))
}

impl Source {
    /// Returns the folders and files of its sessions that are on this machine, none within another, in the order of its places.
    #[must_use]
    pub fn here(&self) -> Vec<PathBuf> {
        let places = self.places.iter();
        let found = places.flat_map(|Place(root, pattern)| {
            let folders = root.folders().into_iter();
            folders.flat_map(|folder| found(&folder, pattern))
        });
        // Some systems take names in capitals for the same.
        let mut seen: HashSet<PathBuf> = HashSet::new();
        found
            .filter(|path| seen.insert(path.canonicalize().unwrap_or_else(|_| path.clone())))
            .collect()
    }
}

/// Returns the files and folders in a folder that a pattern fits, by name.
fn found(folder: &Path, pattern: &str) -> Vec<PathBuf> {
    if pattern.is_empty() {
        return [folder.to_owned()]
            .into_iter()
            .filter(|path| path.exists())
            .collect();
    }
    let folder = Pattern::escape(&folder.to_string_lossy());
    let paths = glob::glob(&format!("{folder}/{pattern}")).into_iter().flatten();
    paths.filter_map(Result::ok).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const BEGIN: &str = "<!-- formats -->\n";
    const END: &str = "<!-- end of formats -->\n";

    /// Returns the name of a folder in docs/formats.md.
    fn name(root: Root) -> String {
        match root {
            Home => "~/".into(),
            Share => "~/.local/share/".into(),
            Data => "DATA/".into(),
            Settings => "SETTINGS/".into(),
            Editor => "EDITOR/".into(),
            Named(variable) => format!("${variable}/"),
            // As shells write it.
            Moved(variables, folder) => {
                let default = format!("~/{folder}").trim_end_matches('/').to_owned();
                let moved = |default, variable: &&str| format!("${{{variable}:-{default}}}");
                variables.iter().rev().fold(default, moved) + "/"
            }
        }
    }

    /// Returns the list of docs/formats.md.
    fn list() -> String {
        let entry = |source: &Source| {
            let places = source.places.iter().map(|Place(root, pattern)| {
                format!("`{}`", format!("{}{pattern}", name(*root)).trim_end_matches('/'))
            });
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
    fn found_has_the_files_and_folders_that_a_pattern_fits() {
        let home = tempfile::tempdir().unwrap();
        for path in [
            "a/b/c/one.jsonl",
            "a/b/two.jsonl",
            "a/three.json",
            "a/d/c/four.jsonl",
        ] {
            let path = home.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let found = |pattern: &str| {
            let paths = found(home.path(), pattern).into_iter();
            let below = paths.map(|path| {
                path.strip_prefix(home.path())
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .to_owned()
            });
            below.collect::<Vec<_>>()
        };
        assert_eq!(found("a/*/c"), ["a/b/c", "a/d/c"]);
        assert_eq!(found("*/t*.js*"), ["a/three.json"]);
        assert_eq!(found("a/b/two.jsonl"), ["a/b/two.jsonl"]);
        assert_eq!(found(""), [""]);
        assert_eq!(found("none/*"), [""; 0]);
    }

    #[test]
    fn with_home_reads_a_tilde_as_shells_do() {
        let home = Path::new("/home/ida");
        assert_eq!(with_home(Path::new("~/x"), home), home.join("x"));
        assert_eq!(with_home(Path::new("/a/~"), home), Path::new("/a/~"));
    }
}
