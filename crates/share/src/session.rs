//! One session: read, cleaned, and in the format that it is shared in.

use std::collections::{BTreeMap, HashSet};

use knowledgepulse_clean::{Cleaner, Finding, Identities, PlaceToReview, places_in_json};
use knowledgepulse_formats::{
    FormatName,
    trace::{DEFAULT_CONFIDENCE, known_of},
};
use knowledgepulse_json::{Object, Value};

use crate::{
    Form, Log, Published, Session, SessionNames, Set, Settings,
    cleaned::clean_json_text,
    forms::{
        atif,
        facts::{RECORDED, SAMPLE, facts_of},
        messages, metadata_of, session_of, simple,
        unit::unit_of,
    },
    manifest::{Entry, ReviewPlace, stem_of},
    native::{
        DOCUMENT, Shape, for_python, is_piece, leave_out_documents, line_for_python, records_of,
        session_id_of,
    },
    set::{BEGINNING, beginning_of, names_of},
    shown::leave_out_repetitions,
};

/// The formats that `datasets` loads as they are.
const NATIVE: [FormatName; 5] = [
    FormatName::ClaudeCode,
    FormatName::Codex,
    FormatName::Pi,
    FormatName::Droid,
    FormatName::Hermes,
];

/// The most characters of an objective that the manifest compares with others.
const MOST_OBJECTIVE: usize = 600;

/// The most characters of each side in the sample of the card.
const MOST_SAMPLE: usize = 300;

/// How many bytes count as a token.
const BYTES_PER_TOKEN: u64 = 4;

/// A session that can be written.
pub(crate) struct Ready {
    /// Its line of the manifest, which has no rows yet.
    pub entry: Entry,
    /// The session, and then its sub-agents.
    pub documents: Vec<Document>,
    /// The sub-agents that are left out, each with the reason.
    pub left_out: Vec<(String, Refusal)>,
}

/// A clean log: a file, or a line of one.
pub(crate) struct Document {
    /// The name of its file, without its ending.
    pub stem: String,
    pub text: String,
    /// The value of the text, if it is a unit, which gets a score.
    pub unit: Option<Value>,
    /// The `session_id` that its row has; of a unit its `id`.
    pub session_id: Value,
    /// By what it is known again.
    pub names: Value,
    /// Whether it is in its own format: all that its file has.
    is_whole_file: bool,
}

/// Why a log is left out.
type Refusal = String;

/// A log that was read.
pub(crate) struct ReadLog<'l> {
    log: &'l Log<'l>,
    pub trace: Value,
    /// The records of its file, if it may be shared as it is.
    records: Option<Vec<FileRecord>>,
    shape: Shape,
    outcome: Option<(bool, f64)>,
}

/// A line of a file and its value; `None` of what is no object.
type FileRecord = Option<(String, Value)>;

/// What cleans a session, and what it has replaced so far.
pub(crate) struct Cleaning {
    cleaner: Cleaner,
    pub redactions: BTreeMap<String, u64>,
    review: Vec<ReviewPlace>,
    lines_left_out: u64,
}

/// Reads and cleans a session with its sub-agents.
///
/// # Errors
/// Why it is left out.
pub(crate) fn prepare(session: &Session, settings: &Settings, set: &Set) -> Result<Ready, Refusal> {
    let (mut names, mut identities) = (HashSet::new(), Identities::default());
    let how = (settings.form, settings.cleaner.replaces_identifiers());
    let mut read = |log| ReadLog::read(log, how, &mut names, &mut identities);
    let mut logs = vec![read(&session.log)?];
    let mut left_out = Vec::new();
    for log in &session.subagents {
        match read(log) {
            // Somebody has deleted it.
            Ok(read) if set.find(&SessionNames::of(&read.trace)) == Some(Published::Removed) => {}
            Ok(read) => logs.push(read),
            Err(reason) => left_out.push((log.name.clone(), reason)),
        }
    }
    let mut cleaning = Cleaning::new(settings.cleaner.clone(), identities);
    let mut about = Object::new();
    let mut documents = Vec::with_capacity(logs.len());
    let mut whole_files = HashSet::new();
    let (told, outcome) = (session.log.outcome, logs[0].outcome);
    for (at, read) in logs.into_iter().enumerate() {
        let name = &read.log.name;
        // A file that is shared whole has all its logs.
        if read.records.is_none() && whole_files.contains(name) {
            continue;
        }
        let places = cleaning.review.len();
        match cleaning.document(read, settings.form, documents.len()) {
            Ok((document, found)) => {
                if document.is_whole_file {
                    whole_files.insert(name);
                }
                documents.push(document);
                if at == 0 {
                    about = found;
                }
            }
            Err(reason) if at > 0 => {
                cleaning.review.truncate(places);
                left_out.push((name.clone(), reason));
            }
            Err(reason) => return Err(reason),
        }
    }
    let sample = about.remove(SAMPLE).unwrap_or_default();
    let bytes: usize = documents.iter().map(|document| document.text.len()).sum();
    about.insert("tokens", bytes as u64 / BYTES_PER_TOKEN);
    about.insert("reason", session.reason.as_str());
    about.insert("stands_for", session.stands_for);
    let (success, confidence) = outcome.unzip();
    about.insert("success", success);
    about.insert("confidence", confidence);
    let from = if told.is_some() { "user" } else { "log" };
    about.insert("outcome_from", outcome.map(|_| from));
    let redactions = cleaning.redactions.iter();
    let redactions = redactions.map(|(kind, count)| (kind.as_str().into(), (*count).into()));
    about.insert("redactions", redactions.collect::<Object>());
    about.insert("lines_left_out", cleaning.lines_left_out);
    let entry = Entry {
        rank: session.rank,
        rows: Vec::new(),
        about,
        sample: [0, 1].map(|at| {
            let text = sample.as_array().and_then(|texts| texts.get(at)?.as_str());
            text.unwrap_or_default().chars().take(MOST_SAMPLE).collect()
        }),
        redactions: cleaning.redactions,
        review: cleaning.review,
    };
    Ok(Ready {
        entry,
        documents,
        left_out,
    })
}

impl<'l> ReadLog<'l> {
    /// Reads a log, and learns who and where worked in it. The text of a file that holds several logs is read for the first of them: `names`
    /// are those of the files that were read.
    pub(crate) fn read(
        log: &'l Log,
        (form, identifiers): (Form, bool),
        names: &mut HashSet<&'l str>,
        identities: &mut Identities,
    ) -> Result<Self, Refusal> {
        let failed = |error| format!("it cannot be read: {error}");
        let mut trace = (log.trace)().map_err(failed)?;
        // The time of reading tells nothing of the session.
        if !known_of(&trace).time
            && let Some(metadata) = metadata_of(&mut trace)
        {
            metadata.remove("created_at");
        }
        let outcome = log.outcome.or_else(|| outcome_of(&trace));
        if form == Form::Knowledgepulse && outcome.is_none() {
            return Err("its outcome is not known".into());
        }
        let is_needed = identifiers || form == Form::Native;
        let is_read = is_needed && NATIVE.contains(&log.format) && names.insert(&log.name);
        let text = log.text.as_ref().filter(|_| is_read);
        let text = text.map(|read| read()).transpose().map_err(failed)?;
        let mut shape = Shape::new(log.format);
        if identifiers {
            identities.learn_text(&log.name);
            // The file has all that its traces have.
            if !names.contains(log.name.as_str()) {
                identities.learn_json(&trace);
            }
        }
        let mut records = text.as_ref().filter(|_| form == Form::Native).map(|_| Vec::new());
        for record in text.iter().flat_map(|text| records_of(text)) {
            if let Some((_, value)) = &record {
                shape.see(value);
                if identifiers {
                    identities.learn_json(value);
                }
            }
            if let Some(records) = &mut records {
                records.push(record.map(|(line, value)| (line.to_owned(), value)));
            }
        }
        Ok(Self {
            log,
            trace,
            records,
            shape,
            outcome,
        })
    }
}

fn is_number(text: &str) -> bool {
    text.parse::<u32>().is_ok()
}

/// Returns whether a session succeeded and how sure that is, if its trace tells that.
#[must_use]
pub fn outcome_of(trace: &Value) -> Option<(bool, f64)> {
    let success = trace.at(&["metadata", "success"]).and_then(Value::as_bool);
    let success = success.filter(|_| known_of(trace).success)?;
    let confidence = trace.at(&["outcome", "confidence"]).and_then(Value::as_number);
    Some((success, confidence.unwrap_or(DEFAULT_CONFIDENCE)))
}

impl Cleaning {
    pub(crate) fn new(mut cleaner: Cleaner, identities: Identities) -> Self {
        cleaner.set_identities(identities);
        Self {
            cleaner,
            redactions: BTreeMap::new(),
            review: Vec::new(),
            lines_left_out: 0,
        }
    }

    /// Returns what the manifest says of a log.
    fn about(&mut self, read: &ReadLog) -> Result<Object, Refusal> {
        let field = |path: &[&str]| read.trace.at(path).cloned().unwrap_or_default();
        let about = [
            ("id", field(&["id"])),
            ("agent", read.log.format.name().into()),
            ("created_at", field(&["metadata", "created_at"])),
            ("objective", field(&["task", "objective"])),
        ];
        let about = about.into_iter().map(|(name, value)| (name.into(), value));
        let beginning = beginning_of(&read.trace).map(|digest| (BEGINNING.into(), digest));
        let about: Object = about.chain(beginning).chain(facts_of(&read.trace)).collect();
        let (about, _) = self.clean(&about.into())?;
        let mut about = about.as_object().cloned().unwrap_or_default();
        let objective = about.get("objective").and_then(Value::as_str).unwrap_or_default();
        let short: String = objective.chars().take(MOST_OBJECTIVE).collect();
        about.insert("objective", short);
        // The folder above all projects has the name of the user.
        let project = about.get("project").and_then(Value::as_str);
        if project.is_some_and(|name| name.strip_prefix("user-").is_some_and(is_number)) {
            about.insert("project", Value::Null);
        }
        Ok(about)
    }

    /// Returns a clean value, and what was redacted in it.
    fn clean(&mut self, value: &Value) -> Result<(Value, Vec<Finding>), Refusal> {
        let clean = self.cleaner.clean_json(value);
        let found = self.cleaner.take_findings();
        Ok((clean.map_err(|error| error.to_string())?, found))
    }

    /// Returns a clean trace, and counts what was redacted in what was said, not in what is known of the session.
    pub(crate) fn said(&mut self, trace: &Value) -> Result<Value, Refusal> {
        let (trace, found) = self.clean(trace)?;
        let is_said = |finding: &Finding| !finding.path.starts_with(".metadata");
        self.count(found.into_iter().filter(is_said));
        Ok(trace)
    }

    fn note_places(&mut self, row: usize, line: u64, places: Vec<PlaceToReview>) {
        let places = places.into_iter();
        self.review
            .extend(places.map(|place| ReviewPlace { row, line, place }));
    }

    fn count(&mut self, found: impl IntoIterator<Item = Finding>) {
        for finding in found {
            *self.redactions.entry(finding.name).or_default() += 1;
        }
    }

    /// Returns a log as it is shared, and what the manifest says of it.
    fn document(&mut self, read: ReadLog, form: Form, row: usize) -> Result<(Document, Object), Refusal> {
        let mut about = self.about(&read)?;
        let native = read.records.filter(|_| read.shape.is_loadable());
        let is_whole_file = native.is_some();
        let is_recorded = about.get("tools") == Some(&RECORDED.into());
        let has_tools = match form {
            Form::Messages => true,
            Form::Atif => is_recorded,
            Form::Native => is_recorded && is_whole_file,
            Form::Knowledgepulse => false,
        };
        if !has_tools {
            about.insert("tools", Value::Null);
        }
        let mut unit = None;
        let (text, session_id) = if let Some(records) = native {
            let text = self.native(records, row)?;
            let session_id = session_id_of(&text).unwrap_or_default();
            (text, session_id)
        } else {
            let (mut lines, session_id) = self.written(read.trace, form, read.outcome, row)?;
            let text = lines.iter().map(line_for_python).collect();
            unit = lines.pop().filter(|_| form == Form::Knowledgepulse);
            (text, session_id)
        };
        let document = Document {
            stem: stem_of(&about),
            text,
            unit,
            session_id,
            names: names_of(&about.clone().into()),
            is_whole_file,
        };
        Ok((document, about))
    }

    /// Returns the clean text of a file. Lines that are no JSON objects, and pieces of messages that follow whole, are left out.
    ///
    /// # Errors
    /// If a record is nested too deeply to be cleaned.
    fn native(&mut self, records: Vec<FileRecord>, row: usize) -> Result<String, Refusal> {
        let mut document = String::with_capacity(records.iter().flatten().map(|(text, _)| text.len()).sum());
        let mut line = 0;
        for record in records {
            let Some((mut text, mut value)) = record.filter(|(_, value)| !is_piece(value)) else {
                self.lines_left_out += 1;
                continue;
            };
            let count = leave_out_documents(&mut value);
            if count > 0 {
                text = value.to_json() + "\n";
                *self.redactions.entry(DOCUMENT.into()).or_default() += count;
            }
            let clean =
                clean_json_text(&mut self.cleaner, &text, &value).map_err(|error| error.to_string())?;
            line += 1;
            self.note_places(row, line, clean.review);
            self.count(clean.found.into_iter().map(|(_, finding)| finding));
            document.push_str(&for_python(&clean.text));
        }
        Ok(document)
    }

    /// Returns the lines of a trace in the format that it is shared in, and the `session_id` of its row.
    fn written(
        &mut self,
        mut trace: Value,
        form: Form,
        outcome: Option<(bool, f64)>,
        row: usize,
    ) -> Result<(Vec<Value>, Value), Refusal> {
        if let Value::Object(trace) = &mut trace {
            trace.remove("knowledge_graph_delta");
        }
        if form != Form::Knowledgepulse {
            leave_out_repetitions(&mut trace);
        }
        let trace = self.said(&trace)?;
        let lines = match (form, outcome) {
            (Form::Native, _) => simple::entries_of(&trace, outcome),
            (Form::Messages, _) => vec![messages::row_of(&trace, outcome)],
            (Form::Atif, _) => vec![atif::trajectory_of(&trace)],
            (Form::Knowledgepulse, Some(outcome)) => vec![unit_of(&trace, outcome)?],
            (Form::Knowledgepulse, None) => return Err("its outcome is not known".into()),
        };
        for (line, value) in (1..).zip(&lines) {
            self.note_places(row, line, places_in_json(value));
        }
        let session_id = match form {
            Form::Knowledgepulse => trace.get("id").cloned().unwrap_or_default(),
            _ => session_of(&trace).into(),
        };
        Ok((lines, session_id))
    }
}
