//! `kp-score show`: a session as a conversation, clean.

use std::{
    env,
    io::{self, IsTerminal, Write},
    path::Path,
    process::{Command, Stdio},
};

use clap::Args;
use console::Style;
use knowledgepulse_formats::FormatName;
use knowledgepulse_json::{Object, Text, Value, parse_str};
use knowledgepulse_share::{Shown, Turn, logs::WholeFiles, shown, turns_of};

use super::clean::CleaningArgs;
use crate::{
    Exit, Failure, Filter, Inputs, Item, Messages, Output, Result, State, TraceInfo, TraceRead, counted,
    listed::listed, printable, tell_places, told, traces::each,
};

/// The beginning of what patterns have replaced, which ends with a bracket.
const MARKER: &str = "[REDACTED:";

const NAME: Style = Style::new().bold();
const REPLACED: Style = Style::new().yellow().reverse();

/// Print a session as a conversation, without secrets and identities
#[derive(Debug, Clone, Args)]
#[command(before_help = "Example: kp-score show 3                      of the last list")]
pub(crate) struct ShowArgs {
    /// Its number in the last list of kp-score, its id, or its file
    #[arg(value_name = "N|ID|FILE")]
    session: String,

    #[command(flatten)]
    cleaning: CleaningArgs,
}

/// Prints the session, or those of the file, that the arguments name.
pub(crate) fn run(args: &ShowArgs, messages: &Messages) -> Result<Exit> {
    let (mut paths, mut id) = (Vec::new(), Some(args.session.clone()));
    if let Ok(number) = args.session.parse() {
        for session in listed(&[number])? {
            (paths, id) = (session.files, Some(session.id));
        }
    } else if Path::new(&args.session).exists() {
        (paths, id) = (vec![args.session.clone()], None);
    }
    let files = WholeFiles::of(&paths);
    let cleaner = args.cleaning.open()?;
    let mut text = String::new();
    let mut take = |Item { place, state, .. }: Item<TraceRead>| {
        let read = match state {
            State::Read(read) => read,
            State::Unread(reason) if id.is_none() => {
                return Err(Failure::file(format!("cannot read {}: {reason}", place.source)));
            }
            State::Wrong(reason) if id.is_none() => {
                messages.warning(format!("{place}: {reason}"));
                return Ok(());
            }
            _ => return Ok(()),
        };
        let names = [&read.about.id, &read.about.run.session];
        let is_it = |id: &String| names.into_iter().flatten().any(|name| name.as_str() == id);
        if !id.as_ref().is_none_or(is_it) {
            return Ok(());
        }
        let trace = Box::new(move || parse_str(&read.json).map_err(io::Error::other));
        let log = files.log(&place.source, read.about.format, trace);
        let shown =
            shown(&log, Some(&cleaner)).map_err(|reason| Failure::file(format!("{}: {reason}", log.name)))?;
        let between = if text.is_empty() { "" } else { "\n" };
        text += &format!("{between}{}", conversation(&shown, read.about.format));
        Ok(())
    };
    each(Inputs::new(paths, Filter::default()), &mut take)?;
    if text.is_empty() {
        let problem = format!("there is no session {}: kp-score lists them", args.session);
        return Err(Failure::file(problem));
    }
    if !paged(&text) {
        Output::print(&text)?;
    }
    tell_places(0, "", messages);
    Ok(Exit::Ok)
}

/// Returns a session for people.
fn conversation(shown: &Shown, format: FormatName) -> String {
    let about = TraceInfo::of(&shown.trace, format);
    let date = about.when.as_deref().and_then(|when| when.get(..10));
    let known = [Some(about.agent.as_str()), about.project.as_deref(), date];
    let known = known.into_iter().flatten().map(str::to_owned);
    let known = known.chain(about.facts_in_words());
    let known: Vec<_> = known.map(|text| printable(&text.into(), usize::MAX)).collect();
    let replaced = match told(&shown.redactions) {
        told if told.is_empty() => "nothing replaced".into(),
        told => format!("replaced {told}"),
    };
    let places = counted(shown.review.len() as u64, "place");
    let mut text = format!("{}\n{replaced}; {places} to look at\n", known.join(" · "));
    let mut add = |name: &str, said: &Text| {
        if !said.is_empty() {
            let lines = said.as_str().lines();
            let lines = lines.map(|line| format!("  {}", printable(&line.into(), usize::MAX)));
            let lines: String = lines.map(|line| format!("{}\n", line.trim_end())).collect();
            text += &format!("\n{}\n{}", NAME.apply_to(name), highlighted(&lines));
        }
    };
    for turn in turns_of(&shown.trace) {
        let mut results = Vec::new();
        match turn {
            Turn::User(said) => add("user", &said),
            Turn::Result(answer) => results.push(answer),
            Turn::Agent(said) => {
                add("thought", &said.reasoning);
                add("agent", &said.text);
                for call in said.calls {
                    add(&printable(&call.tool, 200), &inputs_of(&call.input).into());
                    results.extend(call.result);
                }
            }
        }
        for answer in results {
            add(if answer.failed { "failed" } else { "result" }, &answer.text);
        }
    }
    text
}

/// Returns the arguments of a call, each from a line of its own on; `()` where it has none, so that it is shown, too.
fn inputs_of(input: &Object) -> String {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_json(), str::to_owned);
    let inputs = input
        .iter()
        .map(|(name, given)| format!("{}: {}", name.as_str(), text(given)));
    match input.is_empty() {
        true => "()".into(),
        false => inputs.collect::<Vec<_>>().join("\n"),
    }
}

/// Returns a text in which what was replaced stands out.
fn highlighted(text: &str) -> String {
    let mut parts = text.split(MARKER);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |out, part| match part.split_once(']') {
        Some((name, rest)) => out + &format!("{}{rest}", REPLACED.apply_to(format!("{MARKER}{name}]"))),
        None => out + MARKER + part,
    })
}

/// Shows a text in the user's pager, if standard output is a terminal. Returns whether there is one.
fn paged(text: &str) -> bool {
    if !io::stdout().is_terminal() || cfg!(target_family = "wasm") {
        return false;
    }
    let pager = env::var("PAGER").unwrap_or_default();
    let usual = if cfg!(windows) { "more" } else { "less -FRX" };
    let mut words = if pager.trim().is_empty() { usual } else { &pager }.split_whitespace();
    let Some(program) = words.next() else { return false };
    let started = Command::new(program).args(words).stdin(Stdio::piped()).spawn();
    let Ok(mut pager) = started else { return false };
    if let Some(mut input) = pager.stdin.take() {
        // Who leaves the pager does not read to the end.
        drop(input.write_all(text.as_bytes()));
    }
    pager.wait().is_ok()
}
