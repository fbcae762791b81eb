//! What a run that cleans tells at its end: what it replaced, what patterns do not find, and the places where a person should look.

use std::collections::BTreeMap;

use knowledgepulse_clean::{Cleaner, PlaceToReview};

use crate::show::{
    messages::Messages,
    printable::{counted, grouped},
};

/// What is not looked for.
pub(crate) const NOT_DETECTED: &str =
    "names of people whom a session only mentions, companies, street addresses, what pictures show";

/// So many places are named.
const MOST_NAMED: usize = 3;

/// What identifiers are called, those first that tell most.
const IDENTIFIERS: [(&str, &str, &str); 7] = [
    ("email", "e-mail address", "e-mail addresses"),
    ("phone", "telephone number", "telephone numbers"),
    ("ip", "IP address", "IP addresses"),
    ("user", "name", "names"),
    ("host", "machine", "machines"),
    ("filepath", "path", "paths"),
    ("document", "document", "documents"),
];

/// Tells what was replaced, by danger: `4 secrets, 1 e-mail address, 60 paths`. What a user's rules found follows by their names.
pub(crate) fn told(counts: &BTreeMap<String, u64>) -> String {
    let secrets = secrets_of(counts);
    let mut told: Vec<String> = (secrets > 0)
        .then(|| counted(secrets, "secret"))
        .into_iter()
        .collect();
    for (name, one, many) in IDENTIFIERS {
        let count = counts.get(name).copied().unwrap_or_default();
        if count > 0 {
            told.push(format!(
                "{} {}",
                grouped(count),
                if count == 1 { one } else { many }
            ));
        }
    }
    let is_other = |name: &&String| !is_secret(name) && IDENTIFIERS.iter().all(|(each, ..)| each != name);
    told.extend(
        counts
            .keys()
            .filter(is_other)
            .map(|name| format!("{} {name}", grouped(counts[name]))),
    );
    told.join(", ")
}

/// Returns whether a kind is of secrets.
fn is_secret(name: &str) -> bool {
    let mut types = Cleaner::types().into_iter();
    types.any(|(each, is_identifier)| each == name && !is_identifier)
}

/// Counts the secrets that were replaced.
pub(crate) fn secrets_of(counts: &BTreeMap<String, u64>) -> u64 {
    let secrets = counts.iter().filter(|(name, _)| is_secret(name));
    secrets.map(|(_, count)| count).sum()
}

/// Counts what was replaced of people and machines; paths tell little of them.
pub(crate) fn personal_of(counts: &BTreeMap<String, u64>) -> u64 {
    let personal = ["email", "phone", "ip", "user", "host"];
    personal.iter().filter_map(|name| counts.get(*name)).sum()
}

/// The places that look like what patterns do not find.
#[derive(Debug, Default)]
pub(crate) struct Review {
    count: u64,
    first: Vec<String>,
}

impl Review {
    /// Adds places of a part of a file that begins on a line.
    pub(crate) fn add(&mut self, file: &str, line: usize, places: &[PlaceToReview]) {
        self.count += places.len() as u64;
        for place in places {
            let line = if place.path.is_empty() {
                line + place.lines
            } else {
                line
            };
            let place = format!("{file}:{line}{}", place.path);
            if self.first.len() < MOST_NAMED && self.first.last() != Some(&place) {
                self.first.push(place);
            }
        }
    }

    /// Adds the places of another file.
    pub(crate) fn extend(&mut self, other: Self) {
        self.count += other.count;
        let room = MOST_NAMED - self.first.len();
        self.first.extend(other.first.into_iter().take(room));
    }

    /// Tells what was not looked for, and where to look.
    pub(crate) fn tell(&self, messages: &Messages) {
        let seen = match self.count {
            0 => String::new(),
            count => {
                let look = if count == 1 { "looks" } else { "look" };
                let is_whole = count == self.first.len() as u64;
                let more = if is_whole { "" } else { " …" };
                let (places, first) = (counted(count, "place"), self.first.join(" "));
                format!("; {places} {look} like them: {first}{more}")
            }
        };
        messages.note(format!("{NOT_DETECTED}: not detected{seen}"));
    }
}
