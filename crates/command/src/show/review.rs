//! What a run that cleans tells at its end: what patterns do not find, and the places where a person should look.

use knowledgepulse_clean::PlaceToReview;

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
                format!("; {places} {look} like addresses or signatures: {first}{more}")
            }
        };
        messages.note(format!("names of people, street addresses: not detected{seen}"));
    }
}
