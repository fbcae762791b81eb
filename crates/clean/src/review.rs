//! Places to look at: what patterns cannot tell, street addresses and people's names, with the signs by which a person finds them.

use std::ops::Range;

use knowledgepulse_json::{Object, Value};

use crate::{
    ranges::Pattern,
    trace::{Key, MOST_LEVELS, path_of},
    words::Words,
};

/// Names of fields that hold a person or a company, without signs and without `name` at their end.
pub(crate) static PEOPLE: Words = Words::of("review.people");
/// Names of fields that hold where somebody is, as [`PEOPLE`].
static ADDRESSES: Words = Words::of("review.addresses");
/// Names of fields that hold a name, if an address stands beside them.
static NAMES: Words = Words::of("review.names");
/// Longer texts of fields are no names.
const MOST_NAME: usize = 200;

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
    /// The words themselves, without what was replaced beside them.
    pub words: String,
}

/// Returns the places to look at in a text.
pub fn places_in_text(text: &str) -> impl Iterator<Item = PlaceToReview> + '_ {
    let length = |letters: &mut dyn Iterator<Item = char>| letters.map(char::len_utf8).sum::<usize>();
    let (mut lines, mut counted) = (0, 0);
    places(text).map(move |place| {
        // Without Unicode, an expression may end within a character.
        let words = &text[place.start..text.ceil_char_boundary(place.end)];
        let place = place.start;
        lines += text[counted..place].matches('\n').count();
        counted = place;
        let before = length(&mut text[..place].chars().rev().take(MOST_AROUND));
        let after = length(&mut text[place..].chars().take(2 * MOST_AROUND));
        PlaceToReview {
            path: String::new(),
            lines,
            text: text[place - before..place + after].to_owned(),
            words: words
                .split("[REDACTED:")
                .next()
                .unwrap_or_default()
                .trim()
                .to_owned(),
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
    let mut child = |key: Key<'v>, value: &'v Value, is_place: bool| {
        path.push(key);
        if is_place {
            found.push(PlaceToReview {
                path: path_of(path),
                lines: 0,
                text: value.as_str().unwrap_or_default().to_owned(),
                words: value.as_str().unwrap_or_default().to_owned(),
            });
        } else if path.len() <= MOST_LEVELS {
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
                child((at, None), element, false);
            }
        }
        Value::Object(fields) => {
            let is_beside_address = has_address(fields);
            for (at, (name, value)) in fields.iter().enumerate() {
                let is_place = names_somebody(name.as_bytes(), value, is_beside_address);
                child((at, Some(name)), value, is_place);
            }
        }
        _ => {}
    }
}

/// Returns whether an e-mail address or a telephone number was replaced in a field of an object.
fn has_address(fields: &Object) -> bool {
    let mut texts = fields.values().filter_map(Value::as_str);
    texts.any(|text| text.starts_with("[REDACTED:email-") || text.starts_with("[REDACTED:phone-"))
}

/// Returns whether a field holds a name or an address that nothing has replaced, by its own name.
fn names_somebody(name: &[u8], value: &Value, is_beside_address: bool) -> bool {
    let is_told = |text: &&str| {
        let mut letters = text.chars();
        letters.any(|c| c.is_uppercase() || c.is_alphabetic() && !c.is_ascii())
    };
    let text = value.as_str().filter(|text| text.len() <= MOST_NAME);
    let Some(text) = text.filter(is_told) else {
        return false;
    };
    let name = plain(name);
    let own = name.strip_suffix(b"name").unwrap_or(&name);
    let is_contact = PEOPLE.has(own) || ADDRESSES.has(own) || is_beside_address && NAMES.has(&name);
    is_contact && !text.contains("REDACTED:") && !text.contains("://") && !text.contains('<')
}

/// Returns a name in small letters and without signs.
pub(crate) fn plain(name: &[u8]) -> Vec<u8> {
    let letters = name.iter().filter(|byte| byte.is_ascii_alphanumeric());
    letters.map(u8::to_ascii_lowercase).collect()
}

/// Returns where, in bytes, something looks like a street address, or like a greeting or a signature with a name, in order.
fn places(text: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    // A name is in capitals; an abbreviation ends before something else than a letter.
    static EXPRESSION: Pattern = Pattern::new(concat!(
        r"\b\d{1,5}[A-Za-z]? (?:[NSEW]\.? )?(?:[A-Z][a-z'.]{2,20} ){1,3}(?:Street|St|Avenue|Ave|Road|Rd|Boulevard|Blvd|Lane|Ln|Drive",
        r"|Dr|Court|Ct|Square|Sq|Terrace|Parkway|Pkwy|Highway|Hwy)\b",
        r"|\b[A-Z][A-Za-z\x80-\xff-]{2,30}(?:stra\xc3\x9fe|strasse|str\.|weg|gasse|platz|allee) \d{1,4}\b",
        r"|\b(?:rue|avenue|place|quai|via|viale|piazza|calle|plaza) (?:d[eiu] |de la |d'|della? |del )?[A-Z][A-Za-z\x80-\xff-]{2,30},? \d{1,4}\b",
        r"|\b\d{1,4},? (?:bis )?(?:rue|avenue|boulevard|quai) (?:d[eu] |de la |d'|des )?[A-Z\xc3][A-Za-z\x80-\xff-]{2,30}",
        r"|\bP\.? ?O\.? Box \d+",
        r"|\b[A-Z][a-z\x80-\xff]{1,20} [A-Z][a-z\x80-\xff]{1,20}[ ,:(<|-]{1,4}\[REDACTED:(?:email|phone)-\d",
        r"|\|[ ]{0,20}(?i:customer|client|contact|company|full name|firstname|lastname|kunde|firma|nom|nombre|nome|address|adresse)[ ]{0,20}\|",
        r"|\b(?:Estimad[oa]|Gentile|Car[oa]|Prezad[oa]|Ol\xc3\xa1|Geachte|Beste|Hej|K\xc3\xa4ra|Szanown[ya]|Drog[ia]|Ch\xc3\xa8re|Cher) [A-Z][a-z\x80-\xff]{1,20}(?: [A-Z][a-z\x80-\xff]{1,20})?,",
        r"|(?:\b|\\n)(?:Cordialement|Saludos|Atentamente|Atenciosamente|Cordiali saluti|Met vriendelijke groet|Mvh|Pozdrawiam),?(?:\s|\\n){1,3}[A-Z][a-z\x80-\xff]{2,20}",
        r"|[\xe3-\xed][\x80-\xbf]{2}(?:\xe6\xa7\x98|\xe3\x81\x95\xe3\x82\x93|\xeb\x8b\x98|\xe5\x85\x88\xe7\x94\x9f|\xe5\xa5\xb3\xe5\xa3\xab)",
        r"|\b(?:Dear|Hi|Hello|Hallo|Bonjour|Lieber?|Sehr geehrter?) (?:Mr|Mrs|Ms|Dr|Prof|Herr|Frau|M|Mme)\b\.? [A-Z][a-z\x80-\xff]{1,20}",
        r"|(?:\b|\\n)(?:Regards|Best|Cheers|Sincerely|Thanks|Gr\xc3\xbc\xc3\x9fe),(?:\s|\\n){1,3}[A-Z][a-z\x80-\xff]{2,20}(?: [A-Z][a-z\x80-\xff]{2,20})?(?:\s|\\n|[.\x22]|$)",
    ));
    // Words that belong together are apart, but in a table and in scripts without blanks.
    let is_apart = |byte: u8| byte.is_ascii_whitespace() || matches!(byte, b'|' | b'\\' | 0x0B | 0xE3..);
    let text = if text.bytes().any(is_apart) { text } else { "" };
    EXPRESSION.find_iter(text.as_bytes()).map(|found| found.range())
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
            "Estimada Maria Lopez, gracias",
            "Cordialement,\nJeanne",
            "田中様",
            "| Customer | Order |",
            "Nina Berg <[REDACTED:email-1]>",
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

    #[test]
    fn places_in_json_finds_fields_of_people_and_names_beside_addresses() {
        let value = knowledgepulse_json::parse_str(
            r#"{"customer_name":"Acme AB","rows":[{"name":"Nina","mail":"[REDACTED:email-1]"},{"name":"Read","id":"7"}],"address":"0x7f"}"#,
        );
        let found = places_in_json(&value.unwrap());
        let paths: Vec<&str> = found.iter().map(|place| place.path.as_str()).collect();
        assert_eq!(paths, [".customer_name", ".rows[0].name"]);
    }
}
