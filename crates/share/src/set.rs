//! What a folder has that was shared before, and how a session is known again.

use std::{
    cmp::Ordering,
    collections::{BTreeSet, HashMap, HashSet},
    fs, io,
    path::{Component, Path},
};

use knowledgepulse_formats::trace::{SESSION, known_of};
use knowledgepulse_json::{Value, object, parse_str};

use crate::{Files, Form, Log, MANIFEST, Session, digest_of, id_of};

/// The sessions that were removed from a set, which are not added again.
pub(crate) const REMOVED: &str = "removed.jsonl";

/// The fields of a line, or of a sub-agent in it, by which that is known again; after them its length.
const NAMES: [&str; 5] = ["id", SESSION, "created_at", BEGINNING, STEPS];
const STEPS: &str = "steps";

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

    /// Returns whether a row of a manifest is of the same session, or sub-agent.
    pub(crate) fn is_of(&self, row: &Value) -> bool {
        let names = Self::of_row(row).names;
        self.names.iter().any(|name| names.contains(name))
    }

    /// Returns those of a row of a manifest.
    pub(crate) fn of_row(line: &Value) -> Self {
        let [names @ .., steps] = NAMES.map(|name| line.get(name));
        Self::new(names, steps.map_or(0, count_of))
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
    /// By the names of sessions and sub-agents, the places of their lines, and after these those of the removed, and how many steps they have.
    places: HashMap<String, (usize, u64)>,
    /// What somebody has deleted from the folder, with the lines of sessions.
    gone: Vec<(Option<usize>, String)>,
}

/// What a set says of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Published {
    /// It is on this line of the manifest, counted from 0.
    Here(usize),
    /// It was shorter before.
    Earlier,
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
    /// Those of the file system; [`io::ErrorKind::InvalidData`] with the place of a line that is not JSON, as where git has left its marks.
    pub fn read(folder: &Path) -> io::Result<Option<Self>> {
        let lines_of = |name: &str| match fs::read(folder.join(name)) {
            Ok(text) => values_of(name, &String::from_utf8_lossy(&text)).collect(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        };
        let is_entry = |line: &Value| {
            let names = ["rank", "redactions", "stands_for"];
            names.iter().all(|name| line.get(name).is_some())
                && files_of(line).next().is_some()
                && files_of(line).all(is_inside)
        };
        let lines = lines_of(MANIFEST)?;
        let mut set = Self {
            removed: lines_of(REMOVED)?,
            ..Self::default()
        };
        if !lines.iter().all(is_entry) {
            return Ok(None);
        }
        set.lines = lines;
        set.find_places();
        Ok(Some(set))
    }

    fn find_places(&mut self) {
        let rows = self.lines.iter().chain(&self.removed).enumerate();
        let rows = rows.flat_map(|(at, line)| rows_of(line).map(move |row| (at, row)));
        let named = rows.flat_map(|(at, row)| {
            let SessionNames { names, steps } = SessionNames::of_row(row);
            names.into_iter().map(move |name| (name, (at, steps)))
        });
        self.places = named.collect();
    }

    /// Notes what somebody has deleted: sessions leave the set, and sub-agents their session.
    pub(crate) fn note_gone(&mut self, files: &dyn Files) -> io::Result<()> {
        let of_all = self.form().and_then(Form::file);
        let there = of_all.map_or(Ok(String::new()), |file| files.read(file))?;
        let rows = values_of(of_all.unwrap_or_default(), &there);
        let ids = rows.map(|row| Ok(id_of(&row?).map(str::to_owned)));
        let ids: HashSet<Option<String>> = ids.collect::<io::Result<_>>()?;
        let name_of = |row: &Value| match (of_all, id_of(row)) {
            (Some(file), Some(id)) if !ids.contains(&Some(id.to_owned())) => Some(format!("{file}:{id}")),
            (None, _) => text(row, "file")
                .filter(|file| !files.has(file))
                .map(str::to_owned),
            _ => None,
        };
        for (at, line) in self.lines.iter_mut().enumerate() {
            if let Some(name) = name_of(line) {
                self.gone.push((Some(at), name));
            } else if let Value::Object(line) = line
                && let Some(Value::Array(subagents)) = line.get_mut("subagents")
            {
                subagents.retain(|row| {
                    let name = name_of(row);
                    self.removed.extend(name.as_ref().map(|_| names_of(row)));
                    let is_there = name.is_none();
                    self.gone.extend(name.map(|name| (None, name)));
                    is_there
                });
            }
        }
        self.find_places();
        Ok(())
    }

    /// What somebody has deleted from the folder, by its file or row: the places of sessions, which leave the set, and `None` of a sub-agent.
    #[must_use]
    pub fn gone(&self) -> &[(Option<usize>, String)] {
        &self.gone
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
        let (at, steps) = *places.next()?;
        let is_gone = at >= self.lines.len() || self.gone.iter().any(|(gone, _)| *gone == Some(at));
        Some(match session.steps.cmp(&steps) {
            _ if is_gone => Published::Removed,
            Ordering::Less => Published::Earlier,
            Ordering::Equal => Published::Here(at),
            Ordering::Greater => Published::Grown(at),
        })
    }

    /// Returns whether it has not all of a session, or of a sub-agent.
    pub(crate) fn lacks(&self, session: &SessionNames) -> bool {
        matches!(self.find(session), None | Some(Published::Grown(_)))
    }

    /// Returns whether one of the sub-agents of a session is new, or has grown.
    #[must_use]
    pub fn lacks_one(&self, subagents: &[Log]) -> bool {
        let is_new = |trace| self.lacks(&SessionNames::of(&trace));
        subagents.iter().any(|log| (log.trace)().is_ok_and(is_new))
    }

    /// Returns the sessions that a set has not: with their ranks after those of the set, and with the line of which they are the longer self.
    #[must_use]
    pub fn new_among<'s>(&self, sessions: Vec<Session<'s>>) -> Vec<Session<'s>> {
        let mut last = self.last_rank();
        let place = |session: Session<'s>| {
            let trace = (session.log.trace)().unwrap_or_default();
            match self.find(&SessionNames::of(&trace)) {
                Some(Published::Earlier | Published::Removed) => None,
                Some(Published::Here(_)) if !self.lacks_one(&session.subagents) => None,
                Some(Published::Here(at) | Published::Grown(at)) => Some(Session {
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
        self.removed.push(names_of(&self.lines[at]));
    }
}

/// Returns the values of lines of JSON, or the place of one that is none.
fn values_of<'t>(file: &'t str, text: &'t str) -> impl Iterator<Item = io::Result<Value>> + 't {
    let lines = (1..).zip(text.lines());
    let lines = lines.filter(|(_, line)| !line.trim().is_empty());
    lines.map(move |(number, line): (usize, _)| {
        let problem = || {
            let way_out = "if git has left its marks there, keep the lines of both sides without them";
            io::Error::new(
                io::ErrorKind::InvalidData,
                format!("{file}:{number} is not JSON: {way_out}"),
            )
        };
        parse_str(line).map_err(|_| problem())
    })
}

/// Returns the names of a row of a manifest.
pub(crate) fn names_of(row: &Value) -> Value {
    object(NAMES.map(|name| (name, row.get(name).cloned().unwrap_or_default())))
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
