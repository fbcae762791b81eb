//! The manifest of a shared folder: a line for each session.

use std::collections::BTreeMap;

use knowledgepulse_clean::{PlaceToReview, places_in_text};
use knowledgepulse_json::{Object, Text, Value, object};

use crate::{
    Form,
    objectives::{USUAL_ROOM, told_apart},
    set::rank_of,
};

/// A place that a person should look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewPlace {
    /// The position of its row among those of its session.
    pub row: usize,
    /// The line of the session, from 1.
    pub line: u64,
    /// Its field in the line, and the clean text around it. The manifest has the field alone: what a person removes from a session
    /// must not stay in the manifest.
    pub place: PlaceToReview,
}

/// What the name of a file has: bytes of a date, words, bytes of each, and letters of an id.
const DATE: usize = 10;
const MOST_WORDS: usize = 6;
const MOST_WORD: usize = 20;
const SHORT_ID: usize = 8;
/// The most characters of an objective in a line.
const SHOWN_OBJECTIVE: usize = 200;

/// What is shared of a session, and why.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Entry {
    /// Its rank among the chosen, from 1.
    pub rank: u64,
    /// The session, and then its sub-agents: the file of each, the SHA-256 of the file, or of the line in the one that has all sessions, the
    /// `session_id` that the row has for those who load it, and the score of a unit.
    pub rows: Vec<Value>,
    /// The fields of its line that are known before it is written: its clean `id`, the beginning of its `objective`, which the manifest has
    /// only without a place to review, facts such as its number of `steps`, why it was chosen, and its outcome.
    pub about: Object,
    /// The first clean words of the user and of the agent, for the card.
    pub sample: [String; 2],
    /// How often each kind was redacted, in its sub-agents too.
    pub redactions: BTreeMap<String, u64>,
    /// The places to review.
    pub review: Vec<ReviewPlace>,
}

/// What a folder shares.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Manifest {
    /// The sessions that are new, or longer than before, by rank.
    pub entries: Vec<Entry>,
    /// The lines of the sessions that were shared before and stay.
    pub kept: Vec<Value>,
    /// The sessions that are left out, by the names of their files, each with the reason.
    pub left_out: Vec<(String, String)>,
}

/// Returns a text of what the manifest says of a session; an empty one if it says nothing.
fn text<'o>(about: &'o Object, name: &str) -> &'o str {
    about.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the beginning of an objective; nothing if there is a place to review in it.
fn objective_of(about: &Object) -> &str {
    let objective = text(about, "objective");
    let is_clean = places_in_text(objective).next().is_none();
    if is_clean { objective } else { "" }
}

/// Returns a name for a file, without an ending: when the session began, the first words of its objective, and the beginning of its id.
pub(crate) fn stem_of(about: &Object) -> String {
    let date = text(about, "created_at").get(..DATE).unwrap_or("session");
    let objective = objective_of(about).to_lowercase();
    // Without markers of what was redacted.
    let plain = objective.split('[');
    let plain = plain.map(|part| part.split_once(']').map_or(part, |(_, after)| after));
    let plain = plain.collect::<Vec<_>>().join(" ");
    let words = plain.split(|letter: char| !letter.is_alphanumeric());
    let words = words.filter(|word| !word.is_empty()).take(MOST_WORDS);
    let words = words.map(|word| &word[..word.floor_char_boundary(MOST_WORD)]);
    let id = text(about, "id").trim_start_matches("kp:trace:");
    let id = id.chars().filter(char::is_ascii_alphanumeric).take(SHORT_ID);
    let id = Some(id.collect::<String>()).filter(|id| !id.is_empty());
    let parts = [date].into_iter().chain(words).chain(id.as_deref());
    parts.collect::<Vec<_>>().join("-")
}

impl Entry {
    /// Returns the file of a place, and where it is in that: the line, or the `session_id` of the row in the file that has all sessions.
    fn row_of(&self, place: &ReviewPlace) -> (&str, (&'static str, Value)) {
        let row = self.rows.get(place.row);
        let file = row.and_then(|row| row.get("file")?.as_str()).unwrap_or_default();
        let is_of_all = Form::ALL.iter().any(|form| form.file() == Some(file));
        let id = row.and_then(|row| row.get("session_id").cloned());
        let id = id.filter(|_| is_of_all).map(|id| ("session_id", id));
        (file, id.unwrap_or_else(|| ("line", place.line.into())))
    }

    /// Returns the line of the manifest, with the objective as it stands there.
    fn to_value(&self, objective: Text) -> Value {
        let mut fields = Object::new();
        fields.insert("rank", self.rank);
        let mut rows = self.rows.iter().cloned();
        if let Some(Value::Object(row)) = rows.next() {
            fields.extend(row);
        }
        fields.insert("subagents", rows.collect::<Value>());
        fields.extend(self.about.clone());
        fields.insert(
            "objective",
            objective.chars().take(SHOWN_OBJECTIVE).collect::<Text>(),
        );
        let review = self.review.iter().map(|place| {
            let (file, row) = self.row_of(place);
            let field = place.place.path.as_str().into();
            object([("file", file.into()), row, ("field", field)])
        });
        fields.insert("review", review.collect::<Value>());
        fields.into()
    }
}

impl Manifest {
    /// Returns the lines of all sessions of the folder, by rank.
    #[must_use]
    pub fn lines(&self) -> Vec<Value> {
        let objectives = self.entries.iter().map(|entry| objective_of(&entry.about));
        let objectives = told_apart(&objectives.collect::<Vec<_>>(), USUAL_ROOM);
        let entries = self.entries.iter().zip(objectives);
        let entries = entries.map(|(entry, objective)| entry.to_value(objective));
        let mut lines: Vec<_> = self.kept.iter().cloned().chain(entries).collect();
        lines.sort_by_key(rank_of);
        lines
    }

    /// Returns the words of the first new session in which nobody has to look at anything.
    pub(crate) fn sample(&self) -> Option<&[String; 2]> {
        let is_clear = |text: &String| !text.is_empty() && places_in_text(text).next().is_none();
        let mut clear = self.entries.iter().filter(|entry| entry.review.is_empty());
        clear
            .find(|entry| entry.sample.iter().all(is_clear))
            .map(|entry| &entry.sample)
    }

    /// Returns how often each kind was redacted in the sessions that are new.
    #[must_use]
    pub fn redactions(&self) -> BTreeMap<String, u64> {
        let mut all = BTreeMap::new();
        for (kind, count) in self.entries.iter().flat_map(|entry| &entry.redactions) {
            *all.entry(kind.clone()).or_default() += count;
        }
        all
    }

    /// Returns the places to review: each with its file, line or row, and field, and the text around it.
    pub fn review(&self) -> impl Iterator<Item = (String, &str)> {
        self.entries.iter().flat_map(|entry| {
            entry.review.iter().map(|place| {
                let (file, (_, row)) = entry.row_of(place);
                let PlaceToReview { path, text, .. } = &place.place;
                let row = row.to_json();
                (format!("{file}:{} {path}", row.trim_matches('"')), text.as_str())
            })
        })
    }
}
