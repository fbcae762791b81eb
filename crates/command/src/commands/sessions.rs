//! `kp-score` alone: what is here, the best first, and what to type next.

use std::{env, path::Path};

use clap::Args;
use knowledgepulse_formats::places::{Place, SOURCES};

use super::score::{ResultArgs, ScoreArgs, ScoringArgs, score};
use crate::{
    args::InputArgs,
    error::{Exit, Result},
    files::stop::Stop,
    host::Host,
    read::Inputs,
    show::{messages::Messages, rows::Format},
};

/// What is looked at.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct SessionsArgs {
    /// Files and folders; without any, the sessions of agents on this machine
    #[arg(value_name = "PATH")]
    pub paths: Vec<String>,

    /// Show all traces, not only the ten best
    #[arg(long)]
    pub all: bool,

    /// table, json, jsonl or csv [default: table]
    #[arg(long, value_enum, hide_possible_values = true)]
    pub format: Option<Format>,
}

/// Scores what the paths name, or the sessions of this machine.
pub(crate) fn run(args: SessionsArgs, host: &dyn Host, messages: &Messages, stop: &Stop) -> Result<Exit> {
    let input = InputArgs {
        paths: args.paths,
        ..InputArgs::default()
    };
    let (inputs, places) = if input.paths.is_empty() {
        sessions()
    } else {
        (input.open(&[], &[], messages)?, input.paths.clone())
    };
    if inputs.sources.is_empty() {
        messages.warning(
            "no agent has left sessions on this machine: name files or folders; kp-score formats lists where agents keep them",
        );
        return Ok(Exit::Ok);
    }
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
    if scored > 0 && matches!(exit, Exit::Ok | Exit::BadLines) {
        let places: Vec<_> = places.iter().map(|place| quoted(place)).collect();
        messages.note(format!("next: kp-score share 20 {} -o shared", places.join(" ")));
    }
    Ok(exit)
}

/// Returns the sessions on this machine, and the folders and files that they are in.
pub(crate) fn sessions() -> (Inputs, Vec<String>) {
    let mut inputs = Inputs::default();
    let mut places = Vec::new();
    for source in SOURCES {
        let files = source.files();
        let names = files.iter().filter_map(|file| Some(file.to_str()?.to_owned()));
        inputs.sources.extend(names);
        for Place(root, pattern) in source.places {
            // The folder before the first part that stands for several names.
            let parts = pattern.split('/').take_while(|part| !part.contains('*'));
            let beginning: Vec<_> = parts.collect();
            for folder in root.folders() {
                let place = folder.join(beginning.join("/"));
                if files.iter().any(|file| file.starts_with(&place)) {
                    places.extend(place.to_str().map(str::to_owned));
                }
            }
        }
    }
    places.dedup();
    (inputs, places)
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
