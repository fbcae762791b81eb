//! Writes clean sessions into a folder that others load: `README.md`, the sessions, and `manifest.jsonl`.
//!
//! A session is read, cleaned and written by itself, so memory holds one for each core. `DESIGN.md` says how.

mod card;
mod cleaned;
mod danger;
mod forms;
mod free_names;
pub mod logs;
mod manifest;
mod native;
mod objectives;
mod ordered;
mod out;
mod quality;
mod session;
mod set;
mod shown;

use std::{
    collections::{HashMap, HashSet},
    io,
};

use knowledgepulse_clean::Cleaner;
use knowledgepulse_error::{Error, Result, named};
use knowledgepulse_formats::FormatName;
use knowledgepulse_json::{Value, parse_str};
use sha2::{Digest, Sha256};

pub use cleaned::{CleanText, clean_json_text, clean_plain_text};
pub use danger::{by_danger, is_personal, is_secret};
pub use forms::{
    metadata_of,
    turns::{Answer, Call, Said, Turn, turns_of},
    with_some,
};
pub use free_names::FreeNames;
pub use manifest::{Entry, Manifest, ReviewPlace};
pub use objectives::{USUAL_ROOM, told_apart};
pub use ordered::in_order;
pub use out::{Files, Folder, Zip};
pub use quality::{FOUND_FROM, Quality, begin};
pub use session::outcome_of;
pub use set::{Published, SessionNames, Set};
pub use shown::{Shown, shown};

use card::{COLUMNS, SAMPLE, between, quoted};
use native::line_for_python;
use out::{cannot_write, refused};
use session::Ready;
use set::{REMOVED, files_of, rows_of};

/// The name of the manifest in the folder.
pub const MANIFEST: &str = "manifest.jsonl";
/// How sure an outcome is that the user told, unless they say that too.
pub const TOLD_CONFIDENCE: f64 = 0.9;
/// The kind of redaction of words that a person struck out.
pub const STRUCK: &str = "struck";
/// The name of the dataset card in the folder.
pub const CARD: &str = "README.md";

named! {
    /// The format that sessions are shared in.
    #[derive(Default)]
    pub enum Form {
        /// Each session in its own format where `datasets` loads that, otherwise in the Session Trace Simple Format.
        #[default]
        Native = "native",
        /// One file of OpenAI's messages with tools, a line for each session.
        Messages = "messages",
        /// The Agent Trajectory Interchange Format, a file for each session.
        Atif = "atif",
        /// One file of units that a registry of KnowledgePulse accepts.
        Knowledgepulse = "knowledgepulse",
    }
}

impl Form {
    /// Returns the file that holds all sessions; `None` where each has a file of its own.
    fn file(self) -> Option<&'static str> {
        match self {
            Self::Native | Self::Atif => None,
            Self::Messages => Some("messages.jsonl"),
            Self::Knowledgepulse => Some("units.jsonl"),
        }
    }
}

/// Reads a part of a session when it is needed.
pub type Lazy<'s, T> = Box<dyn Fn() -> io::Result<T> + Send + Sync + 's>;

/// What an agent has left of a session, or of a sub-agent of one.
pub struct Log<'s> {
    /// The path of the file that it is in, or another name.
    pub name: String,
    /// Reads its file, decompressed; `None` where the file has other runs too, or is a database: it is shared by its trace then.
    pub text: Option<Lazy<'s, String>>,
    /// Its format.
    pub format: FormatName,
    /// Reads its trace.
    pub trace: Lazy<'s, Value>,
    /// Whether it succeeded and how sure that is, as the user told; `None` where only the trace tells.
    pub outcome: Option<(bool, f64)>,
}

impl<'s> Log<'s> {
    /// Returns the log of a trace that has no file.
    pub fn of_trace(name: String, format: FormatName, trace: Lazy<'s, Value>) -> Self {
        Self {
            name,
            text: None,
            format,
            trace,
            outcome: None,
        }
    }
}

/// A session that is shared.
pub struct Session<'s> {
    /// Its own log.
    pub log: Log<'s>,
    /// Those of its sub-agents, which come with it.
    pub subagents: Vec<Log<'s>>,
    /// Its rank among the chosen, from 1.
    pub rank: u64,
    /// Why it was chosen.
    pub reason: String,
    /// How many sessions it stands for.
    pub stands_for: u64,
    /// The line of the set, counted from 0, that it is the longer self of.
    pub replaces: Option<usize>,
}

impl<'s> Session<'s> {
    /// Returns the session of a log, which is new and has no sub-agents.
    pub fn new(log: Log<'s>, rank: u64, reason: &str) -> Self {
        Self {
            log,
            subagents: Vec::new(),
            rank,
            reason: reason.to_owned(),
            stands_for: 0,
            replaces: None,
        }
    }
}

/// How sessions are shared.
pub struct Settings<'s> {
    /// The format.
    pub form: Form,
    /// The cleaner, of which each session has a copy.
    pub cleaner: &'s Cleaner,
    /// Scores the units.
    pub quality: &'s Quality<'s>,
    /// How the sessions were chosen, as a sentence without its full stop.
    pub chosen: String,
    /// The program and its version.
    pub program: String,
}

/// Adds sessions to a set in their order, and takes out those on the lines `removed`. `go_on` gets the number of sessions that are done,
/// and returns whether to go on.
///
/// # Errors
/// [`Error::Io`] if a file cannot be written, [`Error::Aborted`] if the caller ends it, [`Error::Other`] if a unit cannot be scored. A session
/// that cannot be read or shared is left out and counted.
pub fn share(
    mut set: Set,
    removed: &[usize],
    sessions: &[Session],
    settings: &Settings,
    files: &mut dyn Files,
    go_on: &dyn Fn(usize) -> bool,
) -> Result<Manifest> {
    removed.iter().for_each(|at| set.note_removed(*at));
    let mut writer = Writer {
        settings,
        files,
        names: FreeNames::default(),
        manifest: Manifest::default(),
    };
    let replaced: HashSet<usize> = sessions.iter().filter_map(|session| session.replaces).collect();
    let edited = writer.keep(&set, removed, &replaced)?;
    let mut done = 0;
    let prepare = |session: &Session| match session.replaces {
        Some(at) if edited.contains(&at) => {
            let why = "it was edited in the folder, or words were struck out of it";
            Err(format!("{why}, so what it has grown to does not replace it"))
        }
        _ => session::prepare(session, settings),
    };
    in_order(sessions, prepare, |session, ready| {
        if !go_on(done) {
            return Err(Error::Aborted);
        }
        done += 1;
        match ready {
            Ok(ready) => writer.add(&set, session, ready)?,
            Err(reason) => writer.manifest.left_out.push((session.log.name.clone(), reason)),
        }
        Ok(())
    })?;
    writer.finish(&set, removed)
}

struct Writer<'w> {
    settings: &'w Settings<'w>,
    files: &'w mut dyn Files,
    names: FreeNames,
    manifest: Manifest,
}

impl Writer<'_> {
    fn write(&mut self, name: &str, text: &str) -> Result<()> {
        let written = self.files.append(name, text.as_bytes());
        written.map_err(cannot_write(&self.files.path(name)))
    }

    /// Returns a file that was there before; an empty text if it is gone.
    fn text_of(&self, name: &str) -> Result<String> {
        self.files
            .read(name)
            .map_err(cannot_write(&self.files.path(name)))
    }

    /// Keeps what the set has, but for the lines that are removed or replaced. Returns those that are not replaced, because somebody has
    /// edited their sessions or struck words out of them.
    fn keep(&mut self, set: &Set, removed: &[usize], replaced: &HashSet<usize>) -> Result<HashSet<usize>> {
        let of_all = self.settings.form.file();
        let text = of_all.map_or(Ok(String::new()), |file| self.text_of(file))?;
        // Where all rows stay, none is parsed.
        let is_asked = !replaced.is_empty() || !removed.is_empty();
        let parsed = |row| is_asked.then(|| parse_str(row).ok()).flatten();
        let id_in = |row| Some(id_of(&parsed(row)?)?.to_owned());
        let rows: Vec<_> = text.split_inclusive('\n').map(|row| (id_in(row), row)).collect();
        let by_id = rows.iter().filter_map(|(id, row)| Some((id.as_deref()?, *row)));
        let by_id: HashMap<&str, &str> = by_id.collect();
        let mut edited = HashSet::new();
        for at in replaced {
            // The words are not known here, and would come back.
            if set.lines()[*at].at(&["redactions", STRUCK]).is_some() {
                edited.insert(*at);
            }
            for row in rows_of(&set.lines()[*at]) {
                let file = row.get("file").and_then(Value::as_str);
                let there = match of_all {
                    Some(_) => id_of(row).map_or("", |id| by_id.get(id).unwrap_or(&"")).into(),
                    None => file.map_or(Ok(String::new()), |file| self.text_of(file))?,
                };
                // One that is gone is written anew.
                if !there.is_empty() && row.get("sha256").and_then(Value::as_str) != Some(&digest_of(&there))
                {
                    edited.insert(*at);
                }
            }
        }
        let gone: HashSet<usize> = replaced.difference(&edited).chain(removed).copied().collect();
        let lines = gone.iter().map(|at| &set.lines()[*at]);
        if let Some(file) = of_all {
            let gone: HashSet<&str> = lines.flat_map(rows_of).filter_map(id_of).collect();
            self.write(file, "")?;
            // Rows that the manifest does not name are somebody's.
            let kept = |id: &Option<String>| id.as_deref().is_none_or(|id| !gone.contains(id));
            for (_, row) in rows.iter().filter(|(id, _)| kept(id)) {
                self.write(file, row)?;
                self.write(file, if row.ends_with('\n') { "" } else { "\n" })?;
            }
        } else {
            lines.flat_map(files_of).for_each(|file| self.files.remove(file));
        }
        let kept = set.lines().iter().enumerate();
        let kept = kept.filter(|(at, _)| !gone.contains(at));
        self.manifest.kept = kept.map(|(_, line)| line.clone()).collect();
        Ok(edited)
    }

    /// Writes a session, and then its sub-agents.
    fn add(&mut self, set: &Set, session: &Session, ready: Ready) -> Result<()> {
        let (mut entry, form) = (ready.entry, self.settings.form);
        self.manifest.left_out.extend(ready.left_out);
        let ending = if form == Form::Atif { "json" } else { "jsonl" };
        let before = session.replaces.and_then(|at| files_of(&set.lines()[at]).next());
        let before = before.and_then(|file| file.strip_suffix(ending)?.strip_suffix('.'));
        let mut of_session = before.map(str::to_owned);
        for document in ready.documents {
            let (stem, mut text, mut quality_score) = (document.stem, document.text, None);
            if let Some(mut unit) = document.unit {
                quality_score = Some(self.score(&session.log.name, &mut unit)?);
                text = line_for_python(&unit);
            }
            let file = if let Some(file) = form.file() {
                self.write(file, &text)?;
                file.to_owned()
            } else {
                let stem = match &of_session {
                    Some(stem) if entry.rows.is_empty() => stem.clone(),
                    Some(of) => self.free_name(&format!("{of}/subagents/{stem}"), ending),
                    None => self.free_name(&format!("sessions/{stem}"), ending),
                };
                let file = format!("{stem}.{ending}");
                of_session.get_or_insert(stem);
                self.write(&file, &text)?;
                file
            };
            entry.rows.push(with_some([
                ("file", Some(file.into())),
                ("sha256", Some(digest_of(&text).into())),
                ("session_id", Some(document.session_id)),
                ("quality_score", quality_score.map(Value::from)),
            ]));
        }
        self.manifest.entries.push(entry);
        Ok(())
    }

    /// Writes the score of a unit into it, unless it brings one, and returns it.
    fn score(&self, name: &str, unit: &mut Value) -> Result<f64> {
        let given = unit.at(&["metadata", "quality_score"]).and_then(Value::as_number);
        // The memory takes part in the scores of later units, so each unit is compared.
        let score = self.settings.quality.of(unit);
        let score = score.map_err(|error| refused(format!("cannot score {name}: {error}")))?;
        let score = given.filter(|given| *given > 0.0).unwrap_or(score);
        if let Some(metadata) = metadata_of(unit) {
            metadata.insert("quality_score", score);
        }
        Ok(score)
    }

    /// Returns a path that no other file has, without its ending.
    fn free_name(&mut self, stem: &str, ending: &str) -> String {
        let numbered = |number| match number {
            1 => stem.to_owned(),
            _ => format!("{stem}-{number}"),
        };
        let files = &self.files;
        self.names
            .take(numbered, |name| files.has(&format!("{name}.{ending}")))
    }

    fn finish(mut self, set: &Set, removed: &[usize]) -> Result<Manifest> {
        let before = self.text_of(CARD)?;
        let has_returns = before.contains("\r\n");
        let before = before.replace("\r\n", "\n");
        self.manifest.entries.sort_by_key(|entry| entry.rank);
        let lines = self.manifest.lines();
        let was_shared = !set.lines().is_empty();
        // The sample may be of a session that goes.
        let sample = between(&before, SAMPLE, COLUMNS).filter(|_| removed.is_empty());
        let sample = sample
            .map(str::to_owned)
            .or_else(|| self.manifest.sample().map(quoted));
        let card = card::card(&before, was_shared, &lines, sample.as_deref(), self.settings);
        let json = |lines: &[Value]| lines.iter().map(|line| line.to_json() + "\n").collect::<String>();
        if !set.removed.is_empty() {
            self.write(REMOVED, &json(&set.removed))?;
        }
        self.write(MANIFEST, &json(&lines))?;
        let card = if has_returns {
            card.replace('\n', "\r\n")
        } else {
            card
        };
        self.write(CARD, &card)?;
        Ok(self.manifest)
    }
}

/// Returns the id of a row, in the manifest or in the file with all sessions, where units have no `session_id`.
fn id_of(row: &Value) -> Option<&str> {
    row.get("session_id").or(row.get("id"))?.as_str()
}

/// Returns the SHA-256 of a text in hexadecimal.
fn digest_of(text: impl AsRef<[u8]>) -> String {
    Sha256::digest(text)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
