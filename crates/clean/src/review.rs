//! Places to look at: what patterns cannot tell, street addresses and people's names, with the signs by which a person finds them.

use std::sync::LazyLock;

use regex::bytes::Regex;

use crate::ranges::expression;

/// Returns the places in a text that look like a street address, or like a greeting or a signature with a name, in order. They are
/// positions in bytes. The text may be JSON.
pub fn places_to_review(text: &str) -> impl Iterator<Item = usize> + '_ {
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
    fn places_to_review_finds_addresses_greetings_and_signatures() {
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
            assert_eq!(places_to_review(text).count(), 1, "{text}");
        }
    }

    #[test]
    fn places_to_review_passes_over_code_and_prose() {
        for text in [
            "5 Tests passed in 3 St",
            "let street = 12; // Street",
            "3 New Files Created",
            "Best, we should go on",
            "Dear all, hello world",
            "HTTP 200 OK Drive",
            "2 Python Processes Running on Port 8080",
        ] {
            assert_eq!(places_to_review(text).count(), 0, "{text}");
        }
    }
}
