//! What a run that cleans tells at its end: what patterns do not find, and the places where a person should look.

use knowledgepulse_clean::places_to_review;
use knowledgepulse_json::Value;
use knowledgepulse_share::lines_to_review;

use crate::show::{messages::Messages, printable::counted};

/// So many places are named.
const MOST_NAMED: usize = 3;

/// The places that look like what patterns do not find.
#[derive(Debug, Default)]
pub(crate) struct Review {
    count: u64,
    first: Vec<String>,
}

impl Review {
    /// Adds the places in a clean text that begins on a line of a file.
    pub(crate) fn add_text(&mut self, file: &str, first_line: usize, text: &str) {
        for (line, _) in lines_to_review(text) {
            self.count += 1;
            if self.first.len() < MOST_NAMED {
                let place = format!("{file}:{}", first_line as u64 + line - 1);
                if self.first.last() != Some(&place) {
                    self.first.push(place);
                }
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
                format!("; {places} {look} like addresses or signatures: {first}{more}")
            }
        };
        messages.note(format!("names of people, street addresses: not detected{seen}"));
    }
}

/// Returns how many places in the texts of a clean trace look like what patterns do not find.
pub(crate) fn count_of(trace: &Value) -> u64 {
    match trace {
        Value::String(text) => places_to_review(text).count() as u64,
        Value::Array(elements) => elements.iter().map(count_of).sum(),
        Value::Object(fields) => fields.values().map(count_of).sum(),
        _ => 0,
    }
}
