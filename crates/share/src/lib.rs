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
    collections::{BTreeSet, HashMap, HashSet},
    io,
};

use knowledgepulse_clean::Cleaner;
use knowledgepulse_error::{Error, Result, named};
use knowledgepulse_formats::FormatName;
use knowledgepulse_json::{Object, Value, parse_str};
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
use session::{Document, Ready};
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
    let gone = set.gone().iter().filter_map(|(at, _)| *at);
    let removed: BTreeSet<usize> = gone.chain(removed.iter().copied()).collect();
    removed.iter().for_each(|at| set.note_removed(*at));
    let mut writer = Writer {
        set: &set,
        settings,
        files,
        names: FreeNames::default(),
        rows: HashMap::new(),
        manifest: Manifest::default(),
    };
    let replaced = sessions.iter().filter_map(|session| session.replaces);
    let waiting = writer.keep(&removed, replaced.collect())?;
    let mut done = 0;
    let is_new = |document: &Document| set.lacks(&SessionNames::of_row(&document.names));
    let prepare = |session: &Session| match session.replaces {
        Some(at) if !waiting.contains(&at) => {
            let why = "it was edited in the folder, or words were struck out of it";
            Err(format!("{why}, so what it has grown to does not replace it"))
        }
        _ => session::prepare(session, settings, &set),
    };
    in_order(sessions, prepare, |session, ready| {
        if !go_on(done) {
            return Err(Error::Aborted);
        }
        done += 1;
        match ready {
            Ok(ready) if ready.documents.iter().any(is_new) => return writer.add(session, ready),
            // All of it was shared before.
            Ok(_) => {}
            Err(reason) => writer.manifest.left_out.push((session.log.name.clone(), reason)),
        }
        let waits = session.replaces.filter(|at| waiting.contains(at));
        waits.map_or(Ok(()), |at| writer.keep_line(at))
    })?;
    writer.finish(removed.is_empty())
}

struct Writer<'w> {
    set: &'w Set,
    settings: &'w Settings<'w>,
    files: &'w mut dyn Files,
    names: FreeNames,
    /// The rows of lines that wait for their longer selves, by their ids, in the form that has all rows in a file.
    rows: HashMap<String, String>,
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

    /// Keeps what the set has, but for the lines that are removed, and for those that wait for their longer selves, which are to replace them.
    /// Returns these: not those whose sessions somebody has edited, or struck words out of.
    fn keep(&mut self, removed: &BTreeSet<usize>, mut waiting: HashSet<usize>) -> Result<HashSet<usize>> {
        let (set, of_all) = (self.set, self.settings.form.file());
        let text = of_all.map_or(Ok(String::new()), |file| self.text_of(file))?;
        // Where all rows stay, none is parsed.
        let is_asked = !waiting.is_empty() || !removed.is_empty();
        let parsed = |row| is_asked.then(|| parse_str(row).ok()).flatten();
        let id_in = |row| Some(id_of(&parsed(row)?)?.to_owned());
        let rows: Vec<_> = text.split_inclusive('\n').map(|row| (id_in(row), row)).collect();
        let by_id = rows.iter().filter_map(|(id, row)| Some((id.as_deref()?, *row)));
        let by_id: HashMap<&str, &str> = by_id.collect();
        for at in waiting.clone() {
            // The words are not known here, and would come back.
            let mut is_edited = set.lines()[at].at(&["redactions", STRUCK]).is_some();
            for row in rows_of(&set.lines()[at]) {
                let file = row.get("file").and_then(Value::as_str);
                let there = match of_all {
                    Some(_) => id_of(row).map_or("", |id| by_id.get(id).unwrap_or(&"")).into(),
                    None => file.map_or(Ok(String::new()), |file| self.text_of(file))?,
                };
                is_edited |= row.get("sha256").and_then(Value::as_str) != Some(&digest_of(&there));
            }
            if is_edited {
                waiting.remove(&at);
            }
        }
        let ids = |at: &usize| rows_of(&set.lines()[*at]).filter_map(id_of);
        let gone: HashSet<&str> = removed.iter().flat_map(ids).collect();
        let apart: HashSet<&str> = waiting.iter().flat_map(ids).collect();
        if let Some(file) = of_all {
            self.write(file, "")?;
            for (id, row) in rows {
                match id {
                    Some(id) if gone.contains(&*id) => {}
                    Some(id) if apart.contains(&*id) => drop(self.rows.insert(id, row.to_owned())),
                    // Rows that the manifest does not name are somebody's.
                    _ => self.write(file, &[row.trim_end_matches('\n'), "\n"].concat())?,
                }
            }
        }
        removed
            .iter()
            .for_each(|at| self.drop_rows(rows_of(&set.lines()[*at])));
        let kept = set.lines().iter().enumerate();
        let kept = kept.filter(|(at, _)| !removed.contains(at) && !waiting.contains(at));
        self.manifest.kept = kept.map(|(_, line)| line.clone()).collect();
        Ok(waiting)
    }

    /// Keeps a line that has waited for its longer self.
    fn keep_line(&mut self, at: usize) -> Result<()> {
        let line = &self.set.lines()[at];
        rows_of(line).try_for_each(|row| self.keep_row(row))?;
        self.manifest.kept.push(line.clone());
        Ok(())
    }

    /// Keeps a row that has waited. One that has a file of its own is still there.
    fn keep_row(&mut self, row: &Value) -> Result<()> {
        let text = id_of(row).and_then(|id| self.rows.remove(id));
        let file = self.settings.form.file().zip(text);
        file.map_or(Ok(()), |(file, text)| self.write(file, &text))
    }

    /// Removes the files of rows that have files of their own.
    fn drop_rows<'r>(&mut self, rows: impl Iterator<Item = &'r Value>) {
        if self.settings.form.file().is_none() {
            rows.filter_map(|row| row.get("file")?.as_str())
                .for_each(|file| self.files.remove(file));
        }
    }

    /// Writes a session, and then its sub-agents.
    fn add(&mut self, session: &Session, ready: Ready) -> Result<()> {
        let (mut entry, form) = (ready.entry, self.settings.form);
        self.manifest.left_out.extend(ready.left_out);
        let ending = if form == Form::Atif { "json" } else { "jsonl" };
        let before = session.replaces.map(|at| &self.set.lines()[at]);
        let file = before.and_then(|line| files_of(line).next());
        let file = file.and_then(|file| file.strip_suffix(ending)?.strip_suffix('.'));
        let mut of_session = file.map(str::to_owned);
        // A sub-agent that was published stays, though its log is gone.
        let names = |value: &Value| SessionNames::of_row(value);
        let names: Vec<_> = ready
            .documents
            .iter()
            .map(|document| names(&document.names))
            .collect();
        let has = |row: &&Value| names.iter().any(|names| names.is_of(row));
        let (replaced, left): (Vec<_>, Vec<_>) = before.into_iter().flat_map(rows_of).partition(has);
        self.drop_rows(replaced.into_iter());
        for document in ready.documents {
            let (stem, mut text, mut quality_score) = (document.stem, document.text, None);
            if let Some(mut unit) = document.unit {
                quality_score = Some(self.score(&session.log.name, &mut unit)?);
                text = line_for_python(&unit);
            }
            let is_subagent = !entry.rows.is_empty();
            let file = if let Some(file) = form.file() {
                self.write(file, &text)?;
                file.to_owned()
            } else {
                let stem = match &of_session {
                    Some(stem) if !is_subagent => stem.clone(),
                    Some(of) => self.free_name(&format!("{of}/subagents/{stem}"), ending),
                    None => self.free_name(&format!("sessions/{stem}"), ending),
                };
                let file = format!("{stem}.{ending}");
                of_session.get_or_insert(stem);
                self.write(&file, &text)?;
                file
            };
            let row = with_some([
                ("file", Some(file.into())),
                ("sha256", Some(digest_of(&text).into())),
                ("session_id", Some(document.session_id)),
                ("quality_score", quality_score.map(Value::from)),
            ]);
            let names = document.names.as_object().filter(|_| is_subagent);
            let row = row.as_object().into_iter().chain(names).flatten();
            let row = row.map(|(name, value)| (name.clone(), value.clone()));
            entry.rows.push(row.collect::<Object>().into());
        }
        for row in left {
            self.keep_row(row)?;
            entry.rows.push(row.clone());
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

    fn finish(mut self, is_growing: bool) -> Result<Manifest> {
        let set = self.set;
        let before = self.text_of(CARD)?;
        let has_returns = before.contains("\r\n");
        let before = before.replace("\r\n", "\n");
        self.manifest.entries.sort_by_key(|entry| entry.rank);
        let lines = self.manifest.lines();
        let was_shared = !set.lines().is_empty();
        // The sample may be of a session that goes.
        let sample = between(&before, SAMPLE, COLUMNS).filter(|_| is_growing);
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
