//! Places to look at: what patterns cannot tell, street addresses and people's names, with the signs by which a person finds them.

use std::sync::LazyLock;

use knowledgepulse_json::Value;
use regex::bytes::Regex;

use crate::{
    ranges::expression,
    trace::{Key, MOST_LEVELS, path_of},
};

/// The most characters on each side of a place that are shown with it.
const MOST_AROUND: usize = 40;

/// A place that a person should look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceToReview {
    /// Where its text is in a JSON value: `.steps[3].input`; empty in a text by itself.
    pub path: String,
    /// How many lines of its text are before it.
    pub lines: usize,
    /// The text around it.
    pub text: String,
}

/// Returns the places to look at in a text.
pub fn places_in_text(text: &str) -> impl Iterator<Item = PlaceToReview> + '_ {
    let length = |letters: &mut dyn Iterator<Item = char>| letters.map(char::len_utf8).sum::<usize>();
    let (mut lines, mut counted) = (0, 0);
    places(text).map(move |place| {
        lines += text[counted..place].matches('\n').count();
        counted = place;
        let before = length(&mut text[..place].chars().rev().take(MOST_AROUND));
        let after = length(&mut text[place..].chars().take(2 * MOST_AROUND));
        PlaceToReview {
            path: String::new(),
            lines,
            text: text[place - before..place + after].to_owned(),
        }
    })
}

/// Returns the places to look at in the strings of a JSON value, down to 256 levels.
#[must_use]
pub fn places_in_json(value: &Value) -> Vec<PlaceToReview> {
    let mut found = Vec::new();
    walk(value, &mut Vec::new(), &mut found);
    found
}

fn walk<'v>(value: &'v Value, path: &mut Vec<Key<'v>>, found: &mut Vec<PlaceToReview>) {
    let mut child = |key: Key<'v>, value: &'v Value| {
        path.push(key);
        if path.len() <= MOST_LEVELS {
            walk(value, path, found);
        }
        path.pop();
    };
    match value {
        Value::String(text) => found.extend(places_in_text(text).map(|place| PlaceToReview {
            path: path_of(path),
            ..place
        })),
        Value::Array(elements) => {
            for (at, element) in elements.iter().enumerate() {
                child((at, None), element);
            }
        }
        Value::Object(fields) => {
            for (at, (name, value)) in fields.iter().enumerate() {
                child((at, Some(name)), value);
            }
        }
        _ => {}
    }
}

/// Returns the positions in bytes of what looks like a street address, or like a greeting or a signature with a name, in order.
fn places(text: &str) -> impl Iterator<Item = usize> + '_ {
    static EXPRESSION: LazyLock<Regex> = LazyLock::new(|| {
        // A name is in capitals; an abbreviation ends before something else than a letter.
        expression(concat!(
            r"\b\d{1,5}[A-Za-z]? (?:[NSEW]\.? )?(?:[A-Z][a-z'.]{2,20} ){1,3}(?:Street|St|Avenue|Ave|Road|Rd|Boulevard|Blvd|Lane|Ln|Drive",
            r"|Dr|Court|Ct|Square|Sq|Terrace|Parkway|Pkwy|Highway|Hwy)\b",
            r"|\b[A-Z][A-Za-z\x80-\xff-]{2,30}(?:stra\xc3\x9fe|strasse|str\.|weg|gasse|platz|allee) \d{1,4}\b",
            r"|\b(?:rue|avenue|place|quai|via|viale|piazza|calle|plaza) (?:d[eiu] |de la |d'|della? |del )?[A-Z][A-Za-z\x80-\xff-]{2,30},? \d{1,4}\b",
            r"|\b\d{1,4},? (?:bis )?(?:rue|avenue|boulevard|quai) (?:d[eu] |de la |d'|des )?[A-Z\xc3][A-Za-z\x80-\xff-]{2,30}",
            r"|\bP\.? ?O\.? Box \d+",
            r"|\b(?:Dear|Hi|Hello|Hallo|Bonjour|Lieber?|Sehr geehrter?) (?:Mr|Mrs|Ms|Dr|Prof|Herr|Frau|M|Mme)\b\.? [A-Z][a-z\x80-\xff]{1,20}",
            r"|(?:\b|\\n)(?:Regards|Best|Cheers|Sincerely|Thanks|Gr\xc3\xbc\xc3\x9fe),(?:\s|\\n){1,3}[A-Z][a-z\x80-\xff]{2,20}(?: [A-Z][a-z\x80-\xff]{2,20})?(?:\s|\\n|[.\x22]|$)",
        ))
    });
    EXPRESSION.find_iter(text.as_bytes()).map(|found| found.start())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_finds_addresses_greetings_and_signatures() {
        for text in [
            "ship to 221B Baker Street, London",
            "1600 Pennsylvania Ave NW",
            "wohnt in der Lindenstraße 12",
            "Hauptstr. 5, Berlin",
            "12 rue de Rivoli, Paris",
            "via Garibaldi 7",
            "PO Box 123",
            "Dear Mr. Jones, thank you",
            r"done.\nRegards,\nAlice Jones\n",
            "Best,\nAlice",
        ] {
            assert_eq!(places(text).count(), 1, "{text}");
        }
    }

    #[test]
    fn places_passes_over_code_and_prose() {
        for text in [
            "5 Tests passed in 3 St",
            "let street = 12; // Street",
            "3 New Files Created",
            "Best, we should go on",
            "Dear all, hello world",
            "HTTP 200 OK Drive",
            "2 Python Processes Running on Port 8080",
        ] {
            assert_eq!(places(text).count(), 0, "{text}");
        }
    }
}
