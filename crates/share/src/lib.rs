//! Writes clean sessions into a folder that others load: `README.md`, the sessions, and `manifest.jsonl`.
//!
//! A session is read, cleaned and written by itself, so memory holds one for each core. `DESIGN.md` says how.

mod card;
mod cleaned;
mod forms;
mod free_names;
mod manifest;
mod native;
mod ordered;
mod out;
mod quality;
mod session;
mod set;
mod shown;
pub mod sources;

use std::{
    collections::{HashMap, HashSet},
    io,
};

use knowledgepulse_clean::Cleaner;
use knowledgepulse_error::named;
use knowledgepulse_formats::FormatName;
use knowledgepulse_json::{Value, parse_str};
use sha2::{Digest, Sha256};

pub use cleaned::{CleanText, clean_json_text, clean_plain_text};
pub use forms::turns::{Answer, Call, Said, Turn, turns_of};
pub use free_names::FreeNames;
pub use manifest::{Entry, Manifest, Place};
pub use ordered::in_order;
pub use out::{Files, Folder, FolderError, Zip};
pub use quality::{FOUND_FROM, Quality};
pub use set::{Published, Set};
pub use shown::{Shown, shown};

use manifest::number_of;
use session::Ready;
use set::{REMOVED, files_of};

/// The name of the manifest in the folder.
pub const MANIFEST: &str = "manifest.jsonl";
/// How sure an outcome is that the user told, unless they say that too.
pub const TOLD_CONFIDENCE: f64 = 0.9;
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
pub type Reading<'s, T> = Box<dyn Fn() -> io::Result<T> + Send + Sync + 's>;

/// A file of a session.
pub struct SessionFile<'s> {
    /// Its path, or another name that no other file has.
    pub name: String,
    /// Reads its text, decompressed.
    pub read: Reading<'s, String>,
}

/// A session that is shared.
pub struct Session<'s> {
    /// The path of the file that it is in, or another name.
    pub name: String,
    /// Where each session has a file: its file, and then those of its sub-agents. Without them it is shared by its trace.
    pub files: Vec<SessionFile<'s>>,
    /// Its line, where a file has several sessions.
    pub line: Option<u64>,
    /// Its format.
    pub format: FormatName,
    /// Reads its trace.
    pub trace: Reading<'s, Value>,
    /// Whether it succeeded and how sure that is, as the user told; `None` where only the trace tells.
    pub outcome: Option<(bool, f64)>,
    /// Its rank among the chosen, from 1.
    pub rank: u64,
    /// Why it was chosen.
    pub reason: String,
    /// How many sessions it stands for.
    pub stands_for: u64,
    /// The line of the set, counted from 0, that it is the longer self of.
    pub replaces: Option<usize>,
}

/// How sessions are shared.
pub struct Settings<'s> {
    /// The format.
    pub form: Form,
    /// Makes a cleaner for a session.
    pub cleaner: &'s (dyn Fn() -> Cleaner + Sync),
    /// Whether identifiers and the identities of each session are replaced.
    pub identifiers: bool,
    /// Scores the units.
    pub quality: &'s Quality<'s>,
    /// How the sessions were chosen, as a sentence without its full stop.
    pub chosen: String,
    /// The program and its version.
    pub program: String,
}

/// Why nothing was shared.
#[derive(Debug, thiserror::Error)]
pub enum ShareError {
    /// The caller has ended it.
    #[error("interrupted")]
    Interrupted,
    /// A file cannot be written.
    #[error("cannot write {0}: {1}")]
    Write(String, #[source] io::Error),
    /// A unit cannot be scored.
    #[error("cannot score {0}: {1}")]
    Score(String, #[source] io::Error),
}

/// Adds sessions to a set in their order, and takes out those on the lines `removed`. `go_on` gets the number of sessions that are done,
/// and returns whether to go on.
///
/// # Errors
/// If a file cannot be written or the caller ends it. A session that cannot be read or shared is left out and counted.
pub fn share(
    mut set: Set,
    removed: &[usize],
    sessions: &[Session],
    settings: &Settings,
    files: &mut dyn Files,
    go_on: &dyn Fn(usize) -> bool,
) -> Result<Manifest, ShareError> {
    removed.iter().for_each(|at| set.note_removed(*at));
    let of_subagents = sessions.iter().flat_map(|session| session.files.iter().skip(1));
    let mut writer = Writer {
        settings,
        files,
        names: FreeNames::default(),
        written: HashMap::new(),
        of_subagents: of_subagents.map(|file| file.name.as_str()).collect(),
        lines: 0,
        manifest: Manifest::default(),
    };
    let replaced: HashSet<usize> = sessions.iter().filter_map(|session| session.replaces).collect();
    let edited = writer.keep(&set, removed, &replaced)?;
    let (mut waiting, mut done) = (Vec::new(), 0);
    let prepare = |session: &Session| match session.replaces {
        Some(at) if edited.contains(&at) => {
            Err("it was edited in the folder, so what it has grown to does not replace it".into())
        }
        _ => session::prepare(session, settings),
    };
    in_order(sessions, prepare, |session, ready| {
        if !go_on(done) {
            return Err(ShareError::Interrupted);
        }
        done += 1;
        let file = session.files.first().map_or("", |file| file.name.as_str());
        match ready {
            Ok(ready) if ready.is_native && writer.of_subagents.contains(file) => {
                waiting.push((session, ready));
            }
            Ok(ready) => writer.add(&set, session, ready)?,
            Err(reason) => writer.manifest.left_out.push((session.name.clone(), reason)),
        }
        Ok(())
    })?;
    // The session of a sub-agent that was chosen too may come later.
    for (session, ready) in waiting {
        writer.add(&set, session, ready)?;
    }
    writer.finish(&set)
}

struct Writer<'w, 's> {
    settings: &'w Settings<'w>,
    files: &'w mut dyn Files,
    names: FreeNames,
    /// By the name of a session's file, that of the file in the folder.
    written: HashMap<&'s str, String>,
    of_subagents: HashSet<&'s str>,
    lines: u64,
    manifest: Manifest,
}

impl<'s> Writer<'_, 's> {
    fn create(&mut self, name: &str) -> Result<(), ShareError> {
        self.files
            .create(name)
            .map_err(|error| ShareError::Write(name.to_owned(), error))
    }

    fn write(&mut self, name: &str, text: &str) -> Result<(), ShareError> {
        self.files
            .write(text.as_bytes())
            .map_err(|error| ShareError::Write(name.to_owned(), error))
    }

    fn put(&mut self, name: &str, text: &str) -> Result<(), ShareError> {
        self.create(name)?;
        self.write(name, text)
    }

    /// Keeps what the set has, but for the lines that are removed or replaced. Returns those that are not replaced, because somebody has
    /// edited their sessions.
    fn keep(
        &mut self,
        set: &Set,
        removed: &[usize],
        replaced: &HashSet<usize>,
    ) -> Result<HashSet<usize>, ShareError> {
        let mut edited = HashSet::new();
        let mut kept = set.lines().to_vec();
        if let Some(file) = self.settings.form.file() {
            self.create(file)?;
            self.copy(file, &mut kept, removed, replaced, &mut edited)?;
        } else {
            for &at in replaced {
                let Some(file) = files_of(&kept[at]).next() else {
                    continue;
                };
                let mut bytes = Vec::new();
                let read = self
                    .files
                    .open(file)
                    .and_then(|mut file| file.read_to_end(&mut bytes));
                // One that is gone is written anew.
                if read.is_ok() && !is_as_written(&kept[at], &bytes) {
                    edited.insert(at);
                }
            }
            let gone = removed.iter().chain(replaced.difference(&edited));
            gone.flat_map(|at| files_of(&kept[*at]))
                .for_each(|file| self.files.remove(file));
        }
        let is_kept = |at: &usize| !removed.contains(at) && (!replaced.contains(at) || edited.contains(at));
        let kept = kept.into_iter().enumerate().filter(|(at, _)| is_kept(at));
        self.manifest.kept = kept.map(|(_, line)| line).collect();
        Ok(edited)
    }

    /// Copies the lines of a file that stay, and numbers them anew in the manifest. Lines that the manifest does not name are somebody's.
    fn copy(
        &mut self,
        file: &str,
        kept: &mut [Value],
        removed: &[usize],
        replaced: &HashSet<usize>,
        edited: &mut HashSet<usize>,
    ) -> Result<(), ShareError> {
        let failed = |error| ShareError::Write(file.to_owned(), error);
        let mut reader = match self.files.open(file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            reader => reader.map_err(failed)?,
        };
        let number = |line: &Value| {
            line.get("line")
                .and_then(Value::as_number)
                .map(|number| number as u64)
        };
        let places: HashMap<u64, usize> = (0..)
            .zip(kept.iter())
            .filter_map(|(at, line)| Some((number(line)?, at)))
            .collect();
        let mut text = String::new();
        for old in 1.. {
            text.clear();
            if reader.read_line(&mut text).map_err(failed)? == 0 {
                break;
            }
            if let Some(at) = places.get(&old) {
                let is_replaced = replaced.contains(at);
                let is_edited = is_replaced && !is_as_written(&kept[*at], text.as_bytes());
                if is_edited {
                    edited.insert(*at);
                }
                if removed.contains(at) || (is_replaced && !is_edited) {
                    continue;
                }
                if let Value::Object(line) = &mut kept[*at] {
                    line.insert("line", number_of(self.lines + 1));
                }
            }
            self.write(file, &text)?;
            if !text.ends_with('\n') {
                self.write(file, "\n")?;
            }
            self.lines += 1;
        }
        Ok(())
    }

    fn add(&mut self, set: &Set, session: &'s Session, ready: Ready) -> Result<(), ShareError> {
        let Ready {
            stem,
            is_native,
            mut documents,
            mut entry,
        } = ready;
        let first = session.files.first().map(|file| file.name.as_str());
        // A file has one session, but for Hermes.
        let first = first.filter(|_| is_native && session.format != FormatName::Hermes);
        if let Some(written) = first.and_then(|first| self.written.get(first)) {
            entry.files = vec![written.clone()];
            entry.redactions.clear();
            entry.review.clear();
        } else if let Some(file) = self.settings.form.file() {
            entry.files = vec![file.to_owned()];
            for (_, text) in &mut documents {
                if self.settings.form == Form::Knowledgepulse {
                    entry.quality_score = self.score(&session.name, text)?;
                }
                entry.sha256 = digest_of(text.as_bytes());
                self.write(file, text)?;
                self.lines += 1;
            }
            entry.line = Some(self.lines);
            entry.review.iter_mut().for_each(|place| place.line = self.lines);
        } else {
            let is_atif = self.settings.form == Form::Atif;
            let ending = if is_atif { "json" } else { "jsonl" };
            let before = session.replaces.and_then(|at| files_of(&set.lines()[at]).next());
            let before = before.and_then(|file| file.strip_suffix(ending)?.strip_suffix('.'));
            let stem = before.map_or_else(
                || self.free_name(&format!("sessions/{stem}"), ending),
                str::to_owned,
            );
            for (at, (name, text)) in documents.iter().enumerate() {
                let file = match at {
                    0 => format!("{stem}.{ending}"),
                    _ => self.free_name(&format!("{stem}/subagents/{name}"), ending) + "." + ending,
                };
                self.put(&file, text)?;
                if at == 0 {
                    entry.sha256 = digest_of(text.as_bytes());
                }
                if is_native && let Some(original) = session.files.get(at) {
                    self.written.insert(&original.name, file.clone());
                }
                entry.files.push(file);
            }
        }
        self.manifest.entries.push(entry);
        Ok(())
    }

    /// Writes the score of a unit into its line, unless it brings one, and returns it.
    fn score(&self, name: &str, line: &mut String) -> Result<Option<f64>, ShareError> {
        let failed = |error| ShareError::Score(name.to_owned(), error);
        let mut unit = parse_str(line).map_err(|error| failed(io::Error::other(error)))?;
        let given = unit.at(&["metadata", "quality_score"]).and_then(Value::as_number);
        // The memory takes part in the scores of later units, so each unit is compared.
        let score = self.settings.quality.of(&unit).map_err(failed)?;
        let score = given.filter(|given| *given > 0.0).unwrap_or(score);
        if let Value::Object(unit) = &mut unit
            && let Some(Value::Object(metadata)) = unit.get_mut("metadata")
        {
            metadata.insert("quality_score", score);
        }
        *line = unit.to_json() + "\n";
        Ok(Some(score))
    }

    /// Returns a path that no other file has, without its ending.
    fn free_name(&mut self, stem: &str, ending: &str) -> String {
        loop {
            let name = self.names.take(|number| match number {
                1 => stem.to_owned(),
                _ => format!("{stem}-{number}"),
            });
            if !self.files.has(&format!("{name}.{ending}")) {
                return name;
            }
        }
    }

    fn finish(mut self, set: &Set) -> Result<Manifest, ShareError> {
        let failed = |error| ShareError::Write(CARD.to_owned(), error);
        let mut before = String::new();
        match self.files.open(CARD) {
            Ok(mut card) => card.read_to_string(&mut before).map(drop).map_err(failed)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
        self.manifest.entries.sort_by_key(|entry| entry.rank);
        let lines = self.manifest.lines();
        let card = card::card(&before, !set.lines().is_empty(), &lines, self.settings);
        let json = |lines: &[Value]| lines.iter().map(|line| line.to_json() + "\n").collect::<String>();
        if !set.removed().is_empty() {
            self.put(REMOVED, &json(set.removed()))?;
        }
        self.put(MANIFEST, &json(&lines))?;
        self.put(CARD, &card)?;
        Ok(self.manifest)
    }
}

/// Returns whether a session is as it was written, by the digest in its line of the manifest.
fn is_as_written(line: &Value, bytes: &[u8]) -> bool {
    line.get("sha256").and_then(Value::as_str) == Some(&digest_of(bytes))
}

fn digest_of(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
