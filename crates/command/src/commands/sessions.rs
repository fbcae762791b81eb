//! `kp-score` alone: what is here, the best first, and what to type next.

use std::{env, path::Path};

use clap::Args;

use super::score::{ResultArgs, ScoreArgs, ScoringArgs, score};
use crate::{
    args::InputArgs,
    error::{Exit, Result},
    files::stop::Stop,
    filter::Filter,
    host::Host,
    show::{messages::Messages, rows::Format},
};

/// What is looked at.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct SessionsArgs {
    /// Files, folders, - for standard input [default: the sessions on this machine]
    #[arg(value_name = "PATH")]
    pub paths: Vec<String>,

    /// Show all traces, not only the ten best
    #[arg(long)]
    pub all: bool,

    /// table, json, jsonl or csv [default: table]
    #[arg(long, value_enum, hide_possible_values = true)]
    pub format: Option<Format>,

    #[command(flatten)]
    pub filter: Filter,
}

/// Scores what the paths name, or the sessions of this machine.
pub(crate) fn run(args: SessionsArgs, host: &dyn Host, messages: &Messages, stop: &Stop) -> Result<Exit> {
    let input = InputArgs {
        paths: args.paths,
        filter: args.filter,
        ..InputArgs::default()
    };
    let inputs = input.open(&[], &[], messages)?;
    let mut next = vec!["kp-score share 20".to_owned()];
    next.extend(input.paths.iter().map(|path| quoted(path)));
    let args = ScoreArgs {
        input,
        results: ResultArgs {
            format: args.format,
            all: args.all,
            ..ResultArgs::default()
        },
        scoring: ScoringArgs::default(),
    };
    let (exit, scored) = score(&inputs, &args, host, messages, stop)?;
    if scored > 0 && exit != Exit::Interrupted {
        messages.note(format!("next: {} -o shared", next.join(" ")));
    }
    Ok(exit)
}

/// Returns the command that shares what a page decides about these paths, as a shell takes them.
pub(crate) fn next_command(paths: &[String], out: &str) -> String {
    let mut words = vec!["kp-score share --decisions decisions.jsonl".to_owned()];
    words.extend(paths.iter().map(|path| quoted(path)));
    words.extend(["-o".to_owned(), quoted(out)]);
    words.join(" ")
}

/// Returns a path as a shell takes it for one word.
fn quoted(path: &str) -> String {
    let home = env::home_dir().filter(|_| !cfg!(windows));
    let below = home.and_then(|home| Path::new(path).strip_prefix(home).ok()?.to_str());
    if let Some(below) = below.filter(|below| !below.is_empty()) {
        return format!("~/{}", quoted_word(below));
    }
    quoted_word(path)
}

fn quoted_word(path: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-~+:@%,=\\".contains(&byte);
    if !path.is_empty() && path.bytes().all(is_plain) {
        return path.to_owned();
    }
    format!("'{}'", path.replace('\'', "'\\''"))
}
