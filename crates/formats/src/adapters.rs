//! The adapters of agents, each in a file of its own. `runs` reads files by them.

mod aider;
mod amp;
mod antigravity;
mod atif;
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
pub mod inspect;
mod kimi;
mod kiro;
mod letta;
mod opencode;
mod openhands;
mod pi;
mod qwen_code;
mod swe_agent;
mod zed;

use std::{borrow::Cow, path::Path};

use knowledgepulse_json::{Text, Value};

use crate::{FormatName, Wrong, event::Events};

/// The adapters, in the order in which they are asked whether a file is theirs.
pub static ADAPTERS: &[&dyn Adapter] = &[
    &atif::Atif,
    &swe_agent::SweAgent,
    &gemini_cli::GeminiCli,
    &qwen_code::QwenCode,
    &pi::Pi,
    &claude_code::ClaudeCode,
    &codex::Codex,
    &aider::Aider,
    &amp::Amp,
    &antigravity::Antigravity,
    &cline::Cline,
    &continue_dev::ContinueDev,
    &copilot_chat::CopilotChat,
    &copilot_cli::CopilotCli,
    &crush::Crush,
    &cursor::Cursor,
    &droid::Droid,
    &goose::Goose,
    &grok::Grok,
    &hermes::Hermes,
    &kimi::Kimi,
    &kiro::Kiro,
    &inspect::Inspect,
    &letta::Letta,
    &opencode::Opencode,
    &openhands::Openhands,
    &zed::Zed,
];

/// What became of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decoded {
    /// It begins a run, and ends the one before it.
    Begins,
    /// It goes on with its run.
    GoesOn,
    /// It is a whole run.
    Whole,
    /// The adapter does not know records of this kind, which are counted.
    Unknown,
}

/// Decodes the records of an agent. It keeps no state: `session` puts the events of a run together.
pub trait Adapter: Sync {
    /// Returns the format of its files.
    fn format(&self) -> FormatName;

    /// Returns whether a file is of this agent, by its first records, one at least, and its path.
    fn recognises(&self, first: &[&Value], path: Option<&Path>) -> bool;

    /// Returns whether it is a program that writes code and keeps sessions. A session in which nothing was said is no problem.
    fn keeps_sessions(&self) -> bool {
        true
    }

    /// Returns the runs within a record, which are decoded by themselves.
    fn inner<'v>(&self, _record: &'v Value) -> Vec<Inner<'v>> {
        Vec::new()
    }

    /// Returns the files that have runs of the sub-agents of a record, as the record names them.
    fn files_of<'v>(&self, _record: &'v Value) -> Vec<&'v Text> {
        Vec::new()
    }

    /// Says what files beside the input of this path tell of its run.
    fn beside(&self, _path: &Path, _say: &mut Events) {}

    /// Carries a record out as a change of the file's one value, where a file is a log of changes. Returns whether it is one.
    fn patch(&self, _whole: &mut Value, _record: &Value) -> bool {
        false
    }

    /// Says what a record means.
    ///
    /// # Errors
    /// If a record of a kind that is known is wrong.
    fn decode(&self, record: &Value, say: &mut Events) -> Result<Decoded, Wrong>;
}

/// A run within a record.
pub struct Inner<'v> {
    /// Its record.
    pub value: Cow<'v, Value>,
    /// Its name in the outer record.
    pub name: Text,
    /// Its position in a list of such runs; `None` for a sub-agent of the outer run.
    pub index: Option<u64>,
}

/// Returns the adapter of a format; `None` for formats that are read otherwise.
#[must_use]
pub fn adapter_of(format: FormatName) -> Option<&'static dyn Adapter> {
    ADAPTERS
        .iter()
        .copied()
        .find(|adapter| adapter.format() == format)
}
