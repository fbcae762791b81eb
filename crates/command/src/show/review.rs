//! What a run that cleans tells at its end: what it replaced, what patterns do not find, and the places where a person should look.

use std::collections::BTreeMap;

use knowledgepulse_clean::PlaceToReview;
use knowledgepulse_share::by_danger;

use crate::{Messages, counted, grouped};

/// What is not looked for.
const NOT_DETECTED: &str =
    "names of people whom a session only mentions, companies, most street addresses, what pictures show";

/// So many places are named.
const MOST_NAMED: usize = 3;

/// Tells what was replaced, by danger: `4 secrets, 1 e-mail address, 60 paths`.
pub(crate) fn told(counts: &BTreeMap<String, u64>) -> String {
    let told = by_danger(counts).into_iter();
    let told = told.map(|(count, name)| format!("{} {name}", grouped(count)));
    told.collect::<Vec<_>>().join(", ")
}

/// Returns the places of a part of a file that begins on a line.
pub(crate) fn places_of<'p>(
    file: &'p str,
    line: usize,
    places: &'p [PlaceToReview],
) -> impl Iterator<Item = String> + 'p {
    places.iter().map(move |place| {
        let before = if place.path.is_empty() { place.lines } else { 0 };
        format!("{file}:{}{}", line + before, place.path)
    })
}

/// Tells what was not looked for, and where to look: the first of these places, each once.
pub(crate) fn tell_first(places: &[String], messages: &Messages) {
    let mut first: Vec<&str> = places.iter().map(String::as_str).collect();
    first.dedup();
    first.truncate(MOST_NAMED);
    let more = if first.len() == places.len() { "" } else { " …" };
    let hint = format!(": {}{more}", first.join(" "));
    tell_places(places.len() as u64, &hint, messages);
}

/// Tells what was not looked for, and how many places look like that; `hint` says more of them.
pub(crate) fn tell_places(count: u64, hint: &str, messages: &Messages) {
    let places = match count {
        0 => String::new(),
        1 => format!("; 1 place looks like them{hint}"),
        _ => format!("; {} look like them{hint}", counted(count, "place")),
    };
    messages.note(format!("{NOT_DETECTED}: not detected{places}"));
}
