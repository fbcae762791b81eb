//! One session: read, cleaned, and in the format that it is shared in.

use std::{borrow::Cow, collections::BTreeMap};

use knowledgepulse_clean::{Cleaner, Finding, Identities, places_in_json};
use knowledgepulse_formats::{
    FormatName,
    trace::{DEFAULT_CONFIDENCE, known_of},
};
use knowledgepulse_json::{Text, Value, object, parse_str};

use crate::{
    Form, Session, SessionFile, Settings,
    cleaned::{clean_json_text, clean_plain_text},
    forms::{atif, facts::facts_of, messages, simple, unit::unit_of},
    manifest::{Entry, Place},
    native::{DOCUMENT, for_python, is_loadable, is_piece, leave_out_documents, records_of, session_id_of},
};

/// The formats that `datasets` loads as they are.
const NATIVE: [FormatName; 5] = [
    FormatName::ClaudeCode,
    FormatName::Codex,
    FormatName::Pi,
    FormatName::Droid,
    FormatName::Hermes,
];

/// The most characters of an objective in the manifest.
const MOST_OBJECTIVE: usize = 200;

/// How many bytes count as a token.
const BYTES_PER_TOKEN: u64 = 4;

/// The most bytes of the name of a file.
const MOST_NAME: usize = 100;

/// A session that can be written.
pub(crate) struct Ready {
    /// The name of its file, without its ending.
    pub stem: String,
    /// Whether it is in its own format.
    pub is_native: bool,
    /// The names and clean texts of its files, the session first.
    pub documents: Vec<(String, String)>,
    /// Its line of the manifest, which does not name the files yet.
    pub entry: Entry,
}

/// Why a session is left out.
type Refusal = String;

struct Cleaning {
    cleaner: Cleaner,
    redactions: BTreeMap<String, u64>,
    review: Vec<Place>,
}

/// Reads and cleans a session.
///
/// # Errors
/// Why it is left out.
pub(crate) fn prepare(session: &Session, settings: &Settings) -> Result<Ready, Refusal> {
    let trace = (session.trace)().map_err(|error| format!("it cannot be read: {error}"))?;
    let outcome = session.outcome.or_else(|| outcome_of(&trace));
    if settings.form == Form::Knowledgepulse && outcome.is_none() {
        return Err("its outcome is not known".into());
    }
    let texts = texts_of(session)?;
    let identities = identities_of(session, &trace, &texts, settings.identifiers);
    let subagents = session.files.iter().skip(1);
    let subagents: Vec<_> = subagents
        .map(|file| stem_of(&file.name, &identities, settings))
        .collect();
    let mut cleaning = Cleaning {
        cleaner: (settings.cleaner)(),
        redactions: BTreeMap::new(),
        review: Vec::new(),
    };
    cleaning.cleaner.set_identities(identities);
    let mut entry = Entry {
        rank: session.rank,
        reason: session.reason.clone(),
        stands_for: session.stands_for,
        outcome,
        outcome_from: outcome.map(|_| if session.outcome.is_some() { "user" } else { "log" }),
        about: cleaning.about(&trace, session.format)?,
        ..Entry::default()
    };
    let stem = entry.stem();
    let native = match settings.form {
        Form::Native => cleaning.native(session, &texts)?,
        _ => None,
    };
    drop(texts);
    let is_native = native.is_some();
    let documents = match native {
        Some((documents, others)) => {
            entry.lines_left_out = others;
            let names = std::iter::once(stem.clone()).chain(subagents);
            names.zip(documents).collect()
        }
        None => vec![(stem.clone(), cleaning.written(trace, settings.form, outcome)?)],
    };
    entry.review = cleaning.review;
    if is_native
        && let (Some((_, document)), Value::Object(about)) = (documents.first(), &mut entry.about)
        && let Some(id) = session_id_of(document)
    {
        about.insert("session_id", id);
    }
    entry.redactions = cleaning.redactions;
    let bytes: usize = documents.iter().map(|(_, text)| text.len()).sum();
    entry.tokens = bytes as u64 / BYTES_PER_TOKEN;
    Ok(Ready {
        stem,
        is_native,
        documents,
        entry,
    })
}

/// Learns the identities of a session from its name, its files and its trace; none unless `identifiers` are replaced.
pub(crate) fn identities_of(
    session: &Session,
    trace: &Value,
    texts: &[String],
    identifiers: bool,
) -> Identities {
    let mut identities = Identities::default();
    if identifiers {
        identities.learn_text(&session.name);
        for text in texts {
            let records = records_of(text, session.format, session.line).flatten();
            records.for_each(|(_, value)| identities.learn_json(&value));
        }
        identities.learn_json(trace);
        identities.finish();
    }
    identities
}

/// Returns how a session ended, if its trace tells that.
fn outcome_of(trace: &Value) -> Option<(bool, f64)> {
    let success = trace.at(&["metadata", "success"]).and_then(Value::as_bool);
    let success = success.filter(|_| known_of(trace).success)?;
    let confidence = trace.at(&["outcome", "confidence"]).and_then(Value::as_number);
    Some((success, confidence.unwrap_or(DEFAULT_CONFIDENCE)))
}

/// Reads the files of a session in its own format. Other formats are shared by their traces.
pub(crate) fn texts_of(session: &Session) -> Result<Vec<String>, Refusal> {
    let files = session.files.iter().filter(|_| NATIVE.contains(&session.format));
    let read = |file: &SessionFile| (file.read)().map_err(|error| format!("it cannot be read: {error}"));
    files.map(read).collect()
}

/// Returns a name for a file in the folder, without what is redacted and without its ending.
fn stem_of(name: &str, identities: &Identities, settings: &Settings) -> String {
    let name = name.rsplit(['/', '\\']).next().unwrap_or(name);
    let mut stem = name;
    while let Some((before, ending)) = stem.rsplit_once('.')
        && !before.is_empty()
        && ["jsonl", "json", "gz", "zst", "db", "md"].contains(&ending)
    {
        stem = before;
    }
    let stem = identities.clean_name(stem);
    let clean = clean_plain_text(&mut (settings.cleaner)(), &stem).text;
    let is_of_name = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.');
    let parts = clean
        .split(|letter| !is_of_name(letter))
        .map(|part| part.trim_matches('-'));
    let parts = parts.filter(|part| !part.is_empty());
    let mut name = parts.collect::<Vec<_>>().join("-");
    name.truncate(name.floor_char_boundary(MOST_NAME));
    let name = name.trim_matches(['-', '.']);
    let first = name.split('.').next().unwrap_or_default().to_lowercase();
    match name {
        "" => "session".into(),
        _ if is_device(&first) => format!("session-{name}"),
        _ => name.to_owned(),
    }
}

/// Returns whether Windows takes a name in small letters for a device, whatever its ending.
fn is_device(name: &str) -> bool {
    let numbered = ["com", "lpt"].iter().find_map(|device| name.strip_prefix(device));
    let is_number = |rest: &str| rest.chars().count() == 1 && rest.starts_with(|c: char| c.is_numeric());
    ["con", "prn", "aux", "nul", "conin$", "conout$"].contains(&name) || numbered.is_some_and(is_number)
}

impl Cleaning {
    /// Returns what the manifest says of a session.
    fn about(&mut self, trace: &Value, format: FormatName) -> Result<Value, Refusal> {
        let field = |path: &[&str]| trace.at(path).cloned().unwrap_or_default();
        let mut about = object([
            ("id", field(&["id"])),
            ("agent", format.name().into()),
            ("created_at", field(&["metadata", "created_at"])),
            ("objective", field(&["task", "objective"])),
        ]);
        if let Value::Object(about) = &mut about {
            about.extend(facts_of(trace));
        }
        let (mut about, _) = self.clean(&about)?;
        if let Value::Object(fields) = &mut about {
            let objective = fields.get("objective").and_then(Value::as_text);
            let objective = objective.map(Text::as_str).unwrap_or_default();
            let short: String = objective.chars().take(MOST_OBJECTIVE).collect();
            fields.insert("objective", short);
        }
        Ok(about)
    }

    /// Returns a clean value, and what was redacted in it.
    fn clean(&mut self, value: &Value) -> Result<(Value, Vec<Finding>), Refusal> {
        let clean = self.cleaner.clean_json(value);
        let found = self.cleaner.take_findings();
        Ok((clean.map_err(|error| error.to_string())?, found))
    }

    fn count(&mut self, kind: String) {
        *self.redactions.entry(kind).or_default() += 1;
    }

    /// Returns the clean texts of a session's own files, and how many of its lines are left out: those that are no JSON objects, and pieces
    /// of messages that follow whole. `None` if `datasets` does not load it.
    ///
    /// # Errors
    /// If a record is nested too deeply to be cleaned.
    fn native(&mut self, session: &Session, texts: &[String]) -> Result<Option<(Vec<String>, u64)>, Refusal> {
        let (mut documents, mut others) = (Vec::new(), 0);
        for (at, text) in texts.iter().enumerate() {
            let line = session.line.filter(|_| at == 0);
            let records = || records_of(text, session.format, line);
            if at == 0 && !is_loadable(session.format, records().flatten().map(|(_, value)| value)) {
                return Ok(None);
            }
            let mut document = String::with_capacity(text.len());
            let mut line = 0;
            for record in records() {
                let Some((text, mut value)) = record.filter(|(_, value)| !is_piece(value)) else {
                    others += 1;
                    continue;
                };
                let mut text = Cow::Borrowed(text);
                let count = leave_out_documents(&mut value, false);
                if count > 0 {
                    text = Cow::Owned(value.to_json() + "\n");
                    *self.redactions.entry(DOCUMENT.into()).or_default() += count;
                }
                let clean =
                    clean_json_text(&mut self.cleaner, &text, &value).map_err(|error| error.to_string())?;
                line += 1;
                let to_look_at = |place| Place {
                    file: at,
                    line,
                    place,
                };
                self.review.extend(clean.review.into_iter().map(to_look_at));
                for (_, finding) in clean.found {
                    self.count(finding.name);
                }
                document.push_str(&for_python(&clean.text));
            }
            documents.push(document);
        }
        Ok((!documents.is_empty()).then_some((documents, others)))
    }

    /// Returns a trace in the format that it is shared in.
    fn written(
        &mut self,
        mut trace: Value,
        form: Form,
        outcome: Option<(bool, f64)>,
    ) -> Result<String, Refusal> {
        if let Value::Object(trace) = &mut trace {
            trace.remove("knowledge_graph_delta");
        }
        let (trace, found) = self.clean(&trace)?;
        found.into_iter().for_each(|finding| self.count(finding.name));
        let text = match (form, outcome) {
            (Form::Native, _) => simple::write(&trace),
            (Form::Messages, _) => messages::write(&trace, outcome),
            (Form::Atif, _) => atif::write(&trace),
            (Form::Knowledgepulse, Some(outcome)) => unit_of(&trace, outcome)?.to_json() + "\n",
            (Form::Knowledgepulse, None) => return Err("its outcome is not known".into()),
        };
        let text = for_python(&text).into_owned();
        let values: Vec<Value> = match parse_str(&text) {
            Ok(value) => vec![value],
            Err(_) => text.lines().filter_map(|line| parse_str(line).ok()).collect(),
        };
        for (line, value) in (1..).zip(&values) {
            let places = places_in_json(value).into_iter();
            self.review
                .extend(places.map(|place| Place { file: 0, line, place }));
        }
        Ok(text)
    }
}
