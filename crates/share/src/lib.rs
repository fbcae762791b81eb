//! Writes clean sessions into a folder that others load: `README.md`, the sessions, and `manifest.jsonl`.
//!
//! A session is read, cleaned and written by itself, so memory holds one for each core. `DESIGN.md` says how.

mod card;
mod cleaned;
mod conversation;
mod folder;
mod formats;
mod free_names;
mod manifest;
mod native;
mod ordered;
mod session;
pub mod sources;
mod unit;
mod zip;

use std::{
    collections::{HashMap, HashSet},
    io,
};

use knowledgepulse_clean::Cleaner;
use knowledgepulse_error::named;
use knowledgepulse_formats::FormatName;
use knowledgepulse_json::Value;

pub use cleaned::{CleanText, clean_json_text, clean_plain_text};
pub use folder::{Folder, FolderError};
pub use free_names::FreeNames;
pub use manifest::{Entry, Manifest, Place};
pub use ordered::in_order;
pub use zip::Zip;

use session::Ready;

/// The name of the manifest in the folder.
pub const MANIFEST: &str = "manifest.jsonl";
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
    /// Whether it succeeded, by labels or the caller; `None` where only the trace tells.
    pub success: Option<bool>,
    /// Its rank among the chosen, from 1.
    pub rank: u64,
    /// Why it was chosen.
    pub reason: String,
    /// How many sessions it stands for.
    pub stands_for: u64,
}

/// How sessions are shared.
pub struct Settings<'s> {
    /// The format.
    pub form: Form,
    /// Makes a cleaner for a session.
    pub cleaner: &'s (dyn Fn() -> Cleaner + Sync),
    /// Whether identifiers and the identities of each session are replaced.
    pub identifiers: bool,
    /// How the sessions were chosen, as a sentence without its full stop.
    pub chosen: String,
    /// The program and its version.
    pub program: String,
}

/// Takes the files of a shared folder, one after the other.
pub trait Files {
    /// Begins a file of this name, with `/` between folders.
    ///
    /// # Errors
    /// Those of the file system.
    fn create(&mut self, name: &str) -> io::Result<()>;

    /// Appends to the file that was begun last.
    ///
    /// # Errors
    /// Those of the file system.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;
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
}

/// Shares sessions in their order. `go_on` gets the number of sessions that are done, and returns whether to go on.
///
/// # Errors
/// If a file cannot be written or the caller ends it. A session that cannot be read or shared is left out and counted.
pub fn share(
    sessions: &[Session],
    settings: &Settings,
    files: &mut dyn Files,
    go_on: &dyn Fn(usize) -> bool,
) -> Result<Manifest, ShareError> {
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
    if let Some(file) = settings.form.file() {
        writer.create(file)?;
    }
    let (mut waiting, mut done) = (Vec::new(), 0);
    let prepare = |session| session::prepare(session, settings);
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
            Ok(ready) => writer.add(session, ready)?,
            Err(reason) => writer.manifest.left_out.push((session.name.clone(), reason)),
        }
        Ok(())
    })?;
    // The session of a sub-agent that was chosen too may come later.
    for (session, ready) in waiting {
        writer.add(session, ready)?;
    }
    writer.finish()
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

    fn add(&mut self, session: &'s Session, ready: Ready) -> Result<(), ShareError> {
        let Ready {
            stem,
            is_native,
            documents,
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
            for (_, text) in &documents {
                self.write(file, text)?;
                self.lines += 1;
            }
            entry.line = Some(self.lines);
            entry.review.iter_mut().for_each(|place| place.line = self.lines);
        } else {
            let is_atif = self.settings.form == Form::Atif;
            let ending = if is_atif { "json" } else { "jsonl" };
            let stem = self.free_name("sessions/", &stem, ending);
            for (at, (name, text)) in documents.iter().enumerate() {
                let file = match at {
                    0 => format!("sessions/{stem}.{ending}"),
                    _ => {
                        let folder = format!("sessions/{stem}/subagents/");
                        format!("{folder}{}.{ending}", self.free_name(&folder, name, ending))
                    }
                };
                self.put(&file, text)?;
                if is_native && let Some(original) = session.files.get(at) {
                    self.written.insert(&original.name, file.clone());
                }
                entry.files.push(file);
            }
        }
        self.manifest.entries.push(entry);
        Ok(())
    }

    /// Returns a name that no other file in a folder has, without its ending.
    fn free_name(&mut self, folder: &str, stem: &str, ending: &str) -> String {
        let start = format!("{folder}{stem}");
        let path = self.names.take(|number| match number {
            1 => format!("{start}.{ending}"),
            _ => format!("{start}-{number}.{ending}"),
        });
        path[folder.len()..path.len() - ending.len() - 1].to_owned()
    }

    fn finish(mut self) -> Result<Manifest, ShareError> {
        self.manifest.entries.sort_by_key(|entry| entry.rank);
        let lines = self.manifest.to_json_lines();
        let card = card::card(&self.manifest, self.settings);
        self.put(MANIFEST, &lines)?;
        self.put(CARD, &card)?;
        Ok(self.manifest)
    }
}
