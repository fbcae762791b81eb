//! `kp-score share`: a set of sessions, cleaned, in a folder that others load.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, IsTerminal},
    ops::ControlFlow,
    path::Path,
    sync::{Mutex, PoisonError},
};

use clap::Args;
use knowledgepulse_formats::{
    encoding::Decoder,
    input::compression::{Input, read_text},
};
use knowledgepulse_json::{Text, Value, parse_str};
use knowledgepulse_score::select::Chosen;
use knowledgepulse_share::{
    Entry, Folder, Form, Manifest, Session, Settings, ShareError, share, sources::Sources,
};

use super::clean::CleaningArgs;
use crate::{
    VERSION,
    args::{InputArgs, one_of},
    choose::{ChoiceArgs, Set, choose, kept::Kept},
    error::{Exit, Failure, Result},
    files::{file_identity::STDIN, output_file::StandardOutput, stop::Stop},
    find::sessions,
    host::Host,
    score::scored::Scored,
    show::{
        messages::Messages,
        printable::{counted, fitted, pad_end, printable},
        review::{NOT_DETECTED, told},
    },
};

/// How much of an objective is shown, in columns.
const OBJECTIVE_WIDTH: usize = 60;

/// Write a set of sessions, cleaned, into a folder that you may publish and others load
#[derive(Debug, Clone, Args)]
#[command(before_help = "Example: kp-score share 20 -o shared/           of the sessions on this machine")]
pub(crate) struct ShareArgs {
    #[command(flatten)]
    pub choice: ChoiceArgs,
    #[command(flatten)]
    pub input: InputArgs,
    #[command(flatten)]
    pub folder: FolderArgs,
    #[command(flatten)]
    pub cleaning: CleaningArgs,
}

/// What is written.
#[derive(Debug, Clone, Args)]
pub(crate) struct FolderArgs {
    /// The folder: a new one, or one that was shared before
    #[arg(short, long, value_name = "FOLDER")]
    pub out: String,

    /// native, messages, atif, or knowledgepulse (units)
    #[arg(long = "as", value_name = "FORM", default_value = "native", hide_possible_values = true,
        value_parser = one_of(Form::ALL.iter().map(|form| (form.name(), *form))))]
    pub form: Form,

    /// Write without asking
    #[arg(long)]
    pub yes: bool,

    /// Print every place that a person should look at
    #[arg(long)]
    pub review: bool,
}

/// Chooses a set, cleans it, shows it, asks, and writes it.
pub(crate) fn run(args: &ShareArgs, host: &dyn Host, messages: &Messages, stop: &Stop) -> Result<Exit> {
    let FolderArgs {
        out,
        form,
        yes,
        review,
    } = &args.folder;
    let reads_stdin = args.input.paths.iter().any(|path| path == STDIN);
    if !yes && (reads_stdin || !io::stdin().is_terminal() || !io::stderr().is_terminal()) {
        return Err(Failure::usage(
            "share asks before it writes; without a terminal it needs --yes",
        ));
    }
    let cleaner = args.cleaning.open()?;
    let mut folder = Folder::create(Path::new(out)).map_err(|error| Failure::file(error.to_string()))?;
    let read = [&args.choice.labels, &args.choice.known];
    let inputs = input_of(args, messages)?.open(&[], &read, messages)?;
    let set = choose(&inputs, &args.choice, false, host, messages, stop)?;
    if stop.is_interrupted() {
        return Err(Failure::interrupted("interrupted: nothing was shared"));
    }
    let files = Sources::of(&inputs.sources, text_of);
    let settings = Settings {
        form: *form,
        cleaner: &|| cleaner.clone(),
        identifiers: args.cleaning.identifiers,
        chosen: capitalised(&set.selection.explanation()),
        program: format!("kp-score {VERSION}"),
    };
    let exit = match &set.seen {
        seen if seen.unread > 0 => Exit::File,
        seen if seen.bad > 0 => Exit::BadLines,
        _ => Exit::Ok,
    };
    let Set {
        selection,
        scored,
        kept,
        ..
    } = set;
    let kept = Mutex::new(kept);
    let kept = &kept;
    let session_of = |(rank, chosen): (u64, &Chosen)| {
        let (Scored { place, about, .. }, index) = (&scored[chosen.index], chosen.index);
        Session {
            name: place.source.clone(),
            files: files.session_of(&place.source, about.format),
            line: Some(place.line),
            format: about.format,
            trace: Box::new(move || trace_at(kept, index)),
            success: about.success,
            rank,
            reason: chosen.reason.name().to_owned(),
            stands_for: chosen.stands_for.len() as u64,
        }
    };
    let sessions: Vec<Session> = (1..).zip(&selection.chosen).map(session_of).collect();
    let manifest = share(&sessions, &settings, &mut folder, &|_| !stop.is_interrupted()).map_err(
        |error| match error {
            ShareError::Interrupted => Failure::interrupted("interrupted: nothing was shared"),
            error => Failure::file(format!("{out}: {error}")),
        },
    )?;
    tell_left_out(&manifest, messages);
    if manifest.entries.is_empty() {
        return Err(Failure::file(format!(
            "there is nothing to share, so {out} was not written"
        )));
    }
    show(&manifest, *review)?;
    tell_review(&manifest, *review, messages);
    if !yes && !is_agreed(&manifest, out, messages)? {
        messages.note("nothing was written");
        return Ok(Exit::Ok);
    }
    if stop.is_interrupted() {
        return Err(Failure::interrupted("interrupted: nothing was shared"));
    }
    folder
        .finish()
        .map_err(|error| Failure::file(error.to_string()))?;
    messages.note(format!(
        "wrote {} to {out}; look at them, and fill in the licence in its README.md, before you publish it",
        counted(manifest.entries.len() as u64, "session")
    ));
    Ok(exit)
}

/// Returns what is read: the sessions on this machine where no path is named.
fn input_of(args: &ShareArgs, messages: &Messages) -> Result<InputArgs> {
    let mut input = args.input.clone();
    if input.paths.is_empty() {
        input.paths = sessions(messages).0.sources;
    }
    if input.paths.is_empty() {
        return Err(Failure::file(
            "no agent has left sessions on this machine: name files or folders",
        ));
    }
    Ok(input)
}

/// Returns a text that begins with a capital.
fn capitalised(text: &str) -> String {
    let (first, rest) = text.split_at(text.chars().next().map_or(0, char::len_utf8));
    first.to_uppercase() + rest
}

fn trace_at(kept: &Mutex<Kept>, index: usize) -> io::Result<Value> {
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    let text = kept
        .get(index)
        .map_err(|failure| io::Error::other(failure.message))?;
    drop(kept);
    parse_str(&text).map_err(io::Error::other)
}

/// The most bytes of a session's file, decompressed: each core holds one in memory.
const MOST_TEXT: usize = 256 * 1024 * 1024;

/// Reads a file, decompressed, in UTF-8.
fn text_of(path: &Path) -> io::Result<String> {
    let (mut text, mut decoder) = (Vec::new(), Decoder::default());
    let mut problem = None;
    read_text(&mut Input::new(File::open(path)?), &mut |bytes| {
        match decoder.push(bytes) {
            Ok(more) => text.extend(more),
            Err(foreign) => problem = Some(format!("it is {}", foreign.what)),
        }
        if text.len() > MOST_TEXT {
            problem = Some(format!("it is longer than {} MB", MOST_TEXT / 1024 / 1024));
        }
        problem
            .is_none()
            .then_some(())
            .map_or(ControlFlow::Break(()), ControlFlow::Continue)
    })?;
    match problem.map_or_else(
        || decoder.finish().map_err(|foreign| foreign.what.to_owned()),
        Err,
    ) {
        Ok(rest) => text.extend(rest),
        Err(problem) => return Err(io::Error::other(problem)),
    }
    Ok(
        String::from_utf8(text)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
    )
}

/// Says how many sessions are left out, for each reason.
fn tell_left_out(manifest: &Manifest, messages: &Messages) {
    let mut reasons: HashMap<&str, u64> = HashMap::new();
    for (_, reason) in &manifest.left_out {
        *reasons.entry(reason).or_default() += 1;
    }
    for (reason, count) in reasons {
        let hint = if reason.contains("outcome") {
            "; --success or --labels says it"
        } else {
            ""
        };
        messages.note(format!("left out {}: {reason}{hint}", counted(count, "session")));
    }
}

/// Prints what would be shared, and what to look at.
fn show(manifest: &Manifest, review: bool) -> Result<()> {
    let text = |entry: &Entry, name: &str, units| {
        let text = entry.about.get(name).and_then(Value::as_text).cloned();
        printable(&text.unwrap_or_else(|| Text::from("")), units)
    };
    let mut lines = String::new();
    for entry in &manifest.entries {
        let redacted: u64 = entry.redactions.values().sum();
        let cells = [
            (entry.rank.to_string(), 4),
            (text(entry, "agent", 20), 12),
            (text(entry, "created_at", 200).chars().take(10).collect(), 10),
            (counted(redacted, "redaction"), 15),
        ];
        cells
            .iter()
            .for_each(|(cell, width)| lines += &(pad_end(cell, *width) + " "));
        lines += &fitted(&text(entry, "objective", 200), OBJECTIVE_WIDTH);
        lines.truncate(lines.trim_end().len());
        lines.push('\n');
    }
    if review {
        for (place, around) in manifest.review() {
            lines += &format!("{place}: {}\n", printable(&around.into(), 200));
        }
    }
    StandardOutput::print(lines.as_bytes())
}

/// Says what a person should look at.
fn tell_review(manifest: &Manifest, is_shown: bool, messages: &Messages) {
    let redactions = manifest.redactions();
    if !redactions.is_empty() {
        messages.note(format!("replaced {}", told(&redactions)));
    }
    let places = manifest.review().count() as u64;
    let hint = if is_shown { "" } else { ": --review prints them" };
    let places = match places {
        0 => String::new(),
        1 => format!("; 1 place looks like them{hint}"),
        _ => format!("; {} look like them{hint}", counted(places, "place")),
    };
    messages.note(format!("{NOT_DETECTED}: not detected{places}"));
}

/// Asks whether to write.
fn is_agreed(manifest: &Manifest, folder: &str, messages: &Messages) -> Result<bool> {
    let sessions = counted(manifest.entries.len() as u64, "session");
    messages.text(&format!("Write {sessions} to {folder}? [y/N] "));
    let mut answer = String::new();
    io::stdin()
        .read_line(&mut answer)
        .map_err(|error| Failure::read("the answer", &error))?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}
