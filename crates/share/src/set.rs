//! What a folder has that was shared before, and how a session is known again.

use std::{
    collections::{BTreeSet, HashMap},
    fs, io,
    path::{Component, Path},
};

use knowledgepulse_formats::trace::{SESSION, known_of};
use knowledgepulse_json::{Value, object, parse_str};

use crate::{Form, Log, MANIFEST, Session, digest_of};

/// The sessions that were removed from a set, which are not added again.
pub(crate) const REMOVED: &str = "removed.jsonl";

/// The fields of a line by which a session is known again.
const NAMES: [&str; 4] = ["id", SESSION, "created_at", BEGINNING];

/// The field with a digest of the first words of a session.
pub(crate) const BEGINNING: &str = "beginning";

/// By what a session is known again: its trace, the log's name for it and its beginning, which stay when it goes on, or its time and first
/// words, which stay when it is resumed under another name.
#[derive(Debug, Clone)]
pub struct SessionNames {
    names: Vec<String>,
    steps: u64,
}

impl SessionNames {
    /// Returns those of the session of a trace.
    #[must_use]
    pub fn of(trace: &Value) -> Self {
        let steps = trace.get("steps").and_then(Value::as_array);
        let beginning = beginning_of(trace);
        let [id, session, time] = [
            &["id"][..],
            &["metadata", "imported", SESSION],
            &["metadata", "created_at"],
        ]
        .map(|path| trace.at(path));
        let names = [
            id,
            session,
            time.filter(|_| known_of(trace).time),
            beginning.as_ref(),
        ];
        Self::new(names, steps.map_or(0, |steps| steps.len() as u64))
    }

    fn of_line(line: &Value) -> Self {
        let steps = line.get("steps").map_or(0, count_of);
        Self::new(NAMES.map(|name| line.get(name)), steps)
    }

    fn new(fields: [Option<&Value>; 4], steps: u64) -> Self {
        let text = |field: Option<&Value>| field?.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let [id, session, time, words] = fields.map(text);
        let of_log = session.zip(time.clone().or(words.clone()));
        let beginnings = [of_log, time.zip(words)].into_iter().flatten();
        let beginnings = beginnings.map(|(name, began)| format!("{name}\n{began}"));
        let names = id.into_iter().chain(beginnings).collect();
        Self { names, steps }
    }
}

/// Returns a digest of the first words of a session, too short to tell what is redacted in them: a digit beside a time, else four.
pub(crate) fn beginning_of(trace: &Value) -> Option<Value> {
    let objective = trace.at(&["task", "objective"])?.as_text()?;
    let time = trace.at(&["metadata", "created_at"]);
    let time = time.filter(|_| known_of(trace).time).map(|_| 1);
    let session = trace.at(&["metadata", "imported", SESSION]).map(|_| 4);
    let digits = time.or(session)?;
    Some(digest_of(objective)[..digits].into())
}

/// A set that was shared: the lines of its manifest.
#[derive(Debug, Clone, Default)]
pub struct Set {
    lines: Vec<Value>,
    pub(crate) removed: Vec<Value>,
    /// The places of the lines, and after them those of the removed, by the names of the sessions.
    places: HashMap<String, usize>,
}

/// What a set says of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Published {
    /// It is on this line of the manifest, counted from 0.
    Here(usize),
    /// It was longer since: its line.
    Grown(usize),
    /// It was taken out.
    Removed,
}

fn text<'v>(value: &'v Value, name: &str) -> Option<&'v str> {
    value.get(name)?.as_str().filter(|text| !text.is_empty())
}

impl Set {
    /// Reads what a folder has; `None` if its manifest is somebody else's.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn read(folder: &Path) -> io::Result<Option<Self>> {
        let parsed = |text: &str| {
            let lines = text.lines().filter(|line| !line.trim().is_empty());
            lines.map(parse_str).collect::<Result<Vec<_>, _>>().ok()
        };
        let lines_of = |name: &str| match fs::read_to_string(folder.join(name)) {
            Ok(text) => Ok(parsed(&text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Some(Vec::new())),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(None),
            Err(error) => Err(error),
        };
        let (Some(lines), Some(removed)) = (lines_of(MANIFEST)?, lines_of(REMOVED)?) else {
            return Ok(None);
        };
        let is_entry = |line: &Value| {
            let names = ["rank", "redactions", "stands_for"];
            names.iter().all(|name| line.get(name).is_some())
                && files_of(line).next().is_some()
                && files_of(line).all(is_inside)
        };
        let mut places = HashMap::new();
        for (at, line) in lines.iter().chain(&removed).enumerate() {
            let names = SessionNames::of_line(line).names.into_iter();
            places.extend(names.map(|name| (name, at)));
        }
        Ok(lines.iter().all(is_entry).then_some(Self {
            lines,
            removed,
            places,
        }))
    }

    /// The lines of its manifest.
    #[must_use]
    pub fn lines(&self) -> &[Value] {
        &self.lines
    }

    /// Returns the form that its sessions are in; `None` if it has none.
    #[must_use]
    pub fn form(&self) -> Option<Form> {
        let file = text(self.lines.first()?, "file")?;
        let of_all = Form::ALL.iter().find(|form| form.file() == Some(file));
        let of_each = if file.ends_with(".json") {
            Form::Atif
        } else {
            Form::Native
        };
        Some(of_all.copied().unwrap_or(of_each))
    }

    /// Returns the files that have its sessions, by their names.
    #[must_use]
    pub fn files(&self) -> BTreeSet<&str> {
        self.lines.iter().flat_map(files_of).collect()
    }

    /// Returns what it says of a session.
    #[must_use]
    pub fn find(&self, session: &SessionNames) -> Option<Published> {
        let mut places = session.names.iter().filter_map(|name| self.places.get(name));
        let at = *places.next()?;
        Some(match self.lines.get(at) {
            None => Published::Removed,
            Some(line) if session.steps > SessionNames::of_line(line).steps => Published::Grown(at),
            Some(_) => Published::Here(at),
        })
    }

    /// Returns the sessions that a set has not: with their ranks after those of the set, and with the line of which they are the longer self.
    #[must_use]
    pub fn new_among<'s>(&self, sessions: Vec<Session<'s>>) -> Vec<Session<'s>> {
        let mut last = self.last_rank();
        let place = |session: Session<'s>| {
            let trace = (session.log.trace)().unwrap_or_default();
            match self.find(&SessionNames::of(&trace)) {
                Some(Published::Here(_) | Published::Removed) => None,
                Some(Published::Grown(at)) => Some(Session {
                    subagents: session.subagents,
                    ..self.grown(at, session.log)
                }),
                None => {
                    last += 1;
                    let rank = last;
                    Some(Session { rank, ..session })
                }
            }
        };
        sessions.into_iter().filter_map(place).collect()
    }

    /// Returns the longer self of the session on a line, with the outcome that the user told of it, unless they tell another.
    #[must_use]
    pub fn grown<'s>(&self, at: usize, mut log: Log<'s>) -> Session<'s> {
        let line = &self.lines[at];
        let told = || {
            let confidence = line.get("confidence")?.as_number()?;
            let success = line.get("success")?.as_bool()?;
            (text(line, "outcome_from") == Some("user")).then_some((success, confidence))
        };
        log.outcome = log.outcome.or_else(told);
        Session {
            stands_for: line.get("stands_for").map_or(0, count_of),
            replaces: Some(at),
            ..Session::new(log, rank_of(line), text(line, "reason").unwrap_or_default())
        }
    }

    /// Returns the rank of the session that was chosen last.
    #[must_use]
    pub fn last_rank(&self) -> u64 {
        self.lines.iter().map(rank_of).max().unwrap_or_default()
    }

    /// Returns the place of the line with an `id`, a name of the log, or a file, which may be that of a sub-agent.
    #[must_use]
    pub fn place_of(&self, name: &str) -> Option<usize> {
        let fields = ["id", SESSION, "session_id", "file"];
        let has = |row: &Value| fields.iter().any(|field| text(row, field) == Some(name));
        let is_named = |line: &Value| rows_of(line).any(has);
        let mut found = (0..self.lines.len()).filter(|at| is_named(&self.lines[*at]));
        let first = found.next();
        first.filter(|_| found.next().is_none())
    }

    /// Notes that the session on a line was taken out.
    pub(crate) fn note_removed(&mut self, at: usize) {
        let names = NAMES.map(|name| (name, self.lines[at].get(name).cloned().unwrap_or_default()));
        self.removed.push(object(names));
    }
}

/// Returns the number of times that a value says; 0 if it is no number.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // A count.
pub(crate) fn count_of(value: &Value) -> u64 {
    value.as_number().unwrap_or_default() as u64
}

pub(crate) fn rank_of(line: &Value) -> u64 {
    line.get("rank").map_or(0, count_of)
}

/// Returns the rows of a line of a manifest: the session, and then its sub-agents.
pub(crate) fn rows_of(line: &Value) -> impl Iterator<Item = &Value> {
    let subagents = line.get("subagents").and_then(Value::as_array);
    std::iter::once(line).chain(subagents.unwrap_or_default())
}

/// Returns the files of the rows of a line.
pub(crate) fn files_of(line: &Value) -> impl Iterator<Item = &str> {
    rows_of(line).filter_map(|row| text(row, "file"))
}

/// Returns whether the name of a file leads nowhere but into its folder, on any platform.
pub(crate) fn is_inside(name: &str) -> bool {
    let is_below = |part: Component| matches!(part, Component::Normal(_));
    Path::new(name).components().all(is_below) && !name.split('\\').any(|part| part == "..")
}
