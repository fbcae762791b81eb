//! Replaces secrets and personal data in texts by `[REDACTED:<type>]`, as the SDK's `cleanPii` does, to the character.
//!
//! The SDK applies fourteen regular expressions, one after another, each to the result of the one before ([`kinds`]). Some of
//! them backtrack: on 80,000 characters without an `@` the one for e-mail addresses takes seconds. Here an expression is run
//! by an automaton, or is a loop that never goes back, so time grows linearly with the text, whatever that is.
//!
//! Texts are JavaScript's: UTF-16 code units, which may be lone surrogates ([`text`]).

mod commands;
mod keys;
mod kinds;
mod names;
mod numbers;
mod paths;
mod ranges;
mod text;
mod values;

pub use names::{is_secret, is_secret_name};

use std::ops::Deref;

use kinds::{KINDS, Kind};
use knowledgepulse_error::{Call, Error, Result, fault};
use text::Text;

/// What is to be found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Whether identifiers (e-mail addresses, telephone numbers, IP addresses, home directories) are replaced as well as
    /// secrets. They are, except at the SDK's level `private`.
    pub identifiers: bool,
    /// Whether what the SDK does not know is found too.
    pub strict: bool,
}

impl Options {
    fn wants(self, kind: &Kind) -> bool {
        (self.identifiers || !kind.is_identifier) && (self.strict || !kind.is_strict)
    }
}

/// How often each type was found, in the order in which the types were first found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Redactions(Vec<Redaction>);

/// How often a type was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redaction {
    /// The type, as in `[REDACTED:<type>]`.
    pub name: &'static str,
    /// How often.
    pub count: usize,
}

impl Redactions {
    fn add(&mut self, name: &'static str, count: usize) {
        match self.0.iter_mut().find(|redaction| redaction.name == name) {
            Some(redaction) => redaction.count += count,
            None => self.0.push(Redaction { name, count }),
        }
    }

    /// The types and counts.
    #[must_use]
    pub fn as_slice(&self) -> &[Redaction] {
        &self.0
    }
}

/// Cleans a text. Returns the clean text, or `None` if there is nothing to replace in it, and what was replaced.
#[must_use]
pub fn clean_pii(text: &[u16], options: Options) -> (Option<Vec<u16>>, Redactions) {
    let mut redactions = Redactions::default();
    // Nobody has the call, so nobody cancels it.
    let cleaned = clean(text, options, &mut redactions, &Call::default());
    (cleaned, redactions)
}

/// Texts of which some were changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct CleanedTexts {
    /// The texts in which something was replaced, each with its index.
    pub changed: Vec<(usize, Vec<u16>)>,
    /// What was replaced in all of them.
    pub redactions: Redactions,
}

/// Cleans many texts.
///
/// # Errors
/// [`Error::Aborted`] if the call was cancelled.
pub fn clean_all(
    texts: &[impl Deref<Target = [u16]>],
    options: Options,
    call: &Call,
) -> Result<CleanedTexts> {
    let mut cleaned = CleanedTexts::default();
    for (index, text) in texts.iter().enumerate() {
        if let Some(text) = clean(text, options, &mut cleaned.redactions, call) {
            cleaned.changed.push((index, text));
        }
        if call.is_cancelled() {
            return Err(Error::Aborted);
        }
    }
    if call.complete() {
        Ok(cleaned)
    } else {
        Err(Error::Aborted)
    }
}

/// Applies one kind after another, until the call is cancelled.
fn clean(text: &[u16], options: Options, redactions: &mut Redactions, call: &Call) -> Option<Vec<u16>> {
    fault::point("clean");
    let mut text = Text::new(text);
    for kind in KINDS.iter().filter(|kind| options.wants(kind)) {
        if call.is_cancelled() {
            break;
        }
        if !text.has_all(kind.needs) {
            continue;
        }
        let found = (kind.find)(text.letters());
        if found.is_empty() {
            continue;
        }
        redactions.add(kind.name, found.len());
        text.replace(&found, kind.before, kind.name);
    }
    text.into_changed()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) const SDK: Options = Options {
        identifiers: true,
        strict: false,
    };

    fn units(text: &str) -> Vec<u16> {
        text.encode_utf16().collect()
    }

    pub(crate) fn cleaned(text: &str, options: Options) -> String {
        clean_pii(&units(text), options)
            .0
            .map_or_else(|| text.to_owned(), |units| String::from_utf16(&units).unwrap())
    }

    #[test]
    fn every_kind_compiles() {
        for kind in KINDS {
            assert!((kind.find)(b"").is_empty());
        }
    }

    #[test]
    fn lone_surrogates_stay() {
        let mut text = vec![0xD800];
        text.extend("a@b.cc".encode_utf16());
        text.push(0xDC00);
        let mut expected = vec![0xD800];
        expected.extend("[REDACTED:email]".encode_utf16());
        expected.push(0xDC00);
        assert_eq!(clean_pii(&text, SDK).0, Some(expected));
        assert_eq!(clean_pii(&[0xDFFF, 0xD800], SDK).0, None);
    }

    #[test]
    fn identifiers_stay_where_they_are_not_wanted() {
        let text = "a@b.cc +4912345678 1.2.3.4 /home/bob C:\\Users\\bob password=secret";
        let private = Options {
            identifiers: false,
            ..SDK
        };
        assert_eq!(
            cleaned(text, private),
            "a@b.cc +4912345678 1.2.3.4 /home/bob C:\\Users\\bob password=[REDACTED:password]"
        );
        assert_eq!(
            cleaned(text, SDK),
            "[REDACTED:email] [REDACTED:phone] [REDACTED:ip] [REDACTED:filepath] [REDACTED:filepath] password=[REDACTED:password]"
        );
    }

    #[test]
    fn counts_are_added_up_by_type_in_the_order_of_the_kinds() {
        let text = "/home/bob a@b.cc kp_0123456789abcdef +4912345678 xoxb-1";
        let (_, redactions) = clean_pii(&units(text), SDK);
        let named: Vec<_> = redactions
            .as_slice()
            .iter()
            .map(|each| (each.name, each.count))
            .collect();
        assert_eq!(
            named,
            [("api_key", 2), ("email", 1), ("phone", 1), ("filepath", 1)]
        );
    }

    #[test]
    fn many_texts_are_those_that_changed() {
        let texts = ["plain", "a@b.cc", "", "c@d.ee"].map(units);
        let cleaned = clean_all(&texts, SDK, &Call::default()).unwrap();
        let indexes: Vec<_> = cleaned.changed.iter().map(|(index, _)| *index).collect();
        assert_eq!(indexes, [1, 3]);
        assert_eq!(cleaned.redactions.as_slice()[0].count, 2);
    }

    #[test]
    fn a_cancelled_call_has_no_result() {
        let call = Call::default();
        call.cancel();
        let texts = [units("a@b.cc")];
        assert!(matches!(clean_all(&texts, SDK, &call), Err(Error::Aborted)));
        assert!(matches!(clean_all(&texts[..0], SDK, &call), Err(Error::Aborted)));
    }
}
