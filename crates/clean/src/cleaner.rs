//! The cleaner: applies its user's rules and then one kind after another, replaces the identities of the session, and lists the findings.

use std::{
    collections::{HashMap, HashSet},
    mem,
    ops::Range,
};

use knowledgepulse_error::fault;
use knowledgepulse_json as json;
use memchr::memmem;
use regex::bytes::{Captures, Regex, RegexBuilder};

use crate::{
    codes,
    identity::{Identities, Named},
    kinds::{CleanOptions, KINDS},
    known::Known,
    seen::Seen,
    text::{MARKER, Text},
};

/// A secret or something personal, where it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The type, as in `[REDACTED:<type>]`.
    pub name: String,
    /// Where it begins in its text, in UTF-16 code units.
    pub start: usize,
    /// The path of child indexes to the text in a JSON value; empty for a text by itself.
    pub pointer: Vec<usize>,
    /// The same as a path: `.steps[3].input`.
    pub path: String,
    /// Its first letters, and how long it is: `ghp_… (40)`.
    pub excerpt: String,
}

/// Why a rule or an expression cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidExpression(pub String);

/// Something a person wants replaced.
#[derive(Clone)]
struct Rule {
    name: String,
    expression: Regex,
}

/// A cleaner that is set up once and cleans many texts.
#[derive(Clone)]
pub struct Cleaner {
    pub(crate) options: CleanOptions,
    rules: Vec<Rule>,
    allowed: HashSet<Vec<u8>>,
    allowed_expressions: Vec<Regex>,
    /// Of each type, the number of each text that was replaced in the session.
    numbers: HashMap<String, HashMap<Vec<u16>, usize>>,
    findings: Vec<Finding>,
    /// How many findings are of texts that were cleaned before the current one.
    earlier: usize,
    pub(crate) identities: Identities,
    known: Known,
    pub(crate) seen: Seen,
}

impl Cleaner {
    /// Creates a cleaner with the options.
    #[must_use]
    pub fn new(options: CleanOptions) -> Self {
        Self {
            options,
            rules: Vec::new(),
            allowed: HashSet::new(),
            allowed_expressions: Vec::new(),
            numbers: HashMap::new(),
            findings: Vec::new(),
            earlier: 0,
            identities: Identities::default(),
            known: Known::default(),
            seen: Seen::default(),
        }
    }

    /// Returns whether identifiers are replaced, and the identities of each session.
    #[must_use]
    pub fn replaces_identifiers(&self) -> bool {
        self.options.identifiers
    }

    /// Returns the types that the cleaner itself knows; of each, whether it is an identifier instead of a secret.
    #[must_use]
    pub fn types() -> Vec<(&'static str, bool)> {
        let mut types: Vec<_> = KINDS.iter().map(|kind| (kind.name, kind.is_identifier)).collect();
        types.extend(["user", "host"].map(|name| (name, true)));
        types.sort_unstable();
        types.dedup();
        types
    }

    /// Adds a rule: each match of the expression, or of the expression's first group, becomes `[REDACTED:<name>]`.
    ///
    /// # Errors
    /// If the expression is malformed, or names something else than ASCII.
    pub fn add_rule(&mut self, name: &str, expression: &str) -> std::result::Result<(), InvalidExpression> {
        self.rules.push(Rule {
            name: name.to_owned(),
            expression: compiled(expression)?,
        });
        self.seen.clear();
        Ok(())
    }

    /// Lets a value stay wherever it is found; also with quotes around it.
    pub fn allow(&mut self, value: &str) {
        self.allowed.insert(value.as_bytes().to_vec());
        self.seen.clear();
    }

    /// Lets values stay that match an expression from their first letter to their last.
    ///
    /// # Errors
    /// As [`Cleaner::add_rule`].
    pub fn allow_expression(&mut self, expression: &str) -> std::result::Result<(), InvalidExpression> {
        compiled(expression)?;
        self.allowed_expressions
            .push(compiled(&format!("^(?:{expression})$"))?);
        self.seen.clear();
        Ok(())
    }

    /// Begins a session, whose markers are numbered from 1. Its identities stay at the level that keeps identifiers.
    pub fn set_identities(&mut self, identities: Identities) {
        self.identities = identities;
        self.numbers.clear();
        self.known = Known::default();
        self.seen.clear();
    }

    /// Cleans a text that is a session by itself. Returns the clean text, or `None` if there is nothing to replace.
    pub fn clean_single_text(&mut self, text: &[u16]) -> Option<Vec<u16>> {
        if self.options.strict && self.options.identifiers {
            let mut identities = Identities::default();
            identities.learn_text(&String::from_utf16_lossy(text));
            self.set_identities(identities);
        }
        self.clean_text(text)
    }

    /// Cleans a text. Returns the clean text, or `None` if there is nothing to replace.
    pub fn clean_text(&mut self, text: &[u16]) -> Option<Vec<u16>> {
        let mut text = Text::new(text);
        self.clean(&mut text);
        text.into_changed()
    }

    fn clean(&mut self, text: &mut Text) {
        fault::point("clean");
        self.earlier = self.findings.len();
        for rule in mem::take(&mut self.rules) {
            let matches = rule.expression.captures_iter(text.letters());
            let range = |found: Captures| found.get(1).or(found.get(0)).map(|part| part.range());
            let found = matches.filter_map(range).filter(|range| !range.is_empty());
            let found = found.map(|range| Named::of(range, &rule.name)).collect();
            self.replace(text, found, "");
            self.rules.push(rule);
        }
        let options = self.options;
        for kind in KINDS.iter().filter(|kind| kind.is_wanted(options)) {
            let found = kind.find(text);
            if !found.is_empty() {
                let found = found.into_iter().map(|range| Named::of(range, kind.name));
                self.replace(text, found.collect(), kind.before);
            }
        }
        if options.strict {
            self.replace_decoded(text);
            let known = self.known.find(text);
            self.replace(text, known, "");
        }
        if self.options.identifiers {
            let named = self.identities.find(text);
            self.replace(text, named, "");
        }
    }

    /// Cleans a text as a part of JSON, or remembers what became of it. Returns the clean text, or `None` if there is nothing to replace.
    pub(crate) fn clean_part(&mut self, text: &json::Text) -> Option<json::Text> {
        let key = self.seen.key(text);
        if let Some(outcome) = self.seen.get(key) {
            self.earlier = self.findings.len();
            let (clean, findings) = &**outcome.as_ref()?;
            self.findings.extend_from_slice(findings);
            return Some(clean.clone());
        }
        let page = self.identities.take_page(text);
        let mut searched = page.unwrap_or_else(|| Text::of(text));
        self.clean(&mut searched);
        let clean: Option<json::Text> = searched.changed().map(Into::into);
        let outcome = clean.clone().map(|clean| {
            let findings = self.findings[self.earlier..].to_vec();
            Box::new((clean, findings))
        });
        self.seen.insert(key, outcome);
        clean
    }

    /// Returns the findings since the last call.
    pub fn take_findings(&mut self) -> Vec<Finding> {
        mem::take(&mut self.findings)
    }

    /// Replaces what the kinds find in the parts of a text that have codes, once these are decoded.
    fn replace_decoded(&mut self, text: &mut Text) {
        const MOST_BEFORE: usize = 64;
        let Some(view) = codes::view(text) else { return };
        let decoded = Text::new(&view.units);
        let mut found: Vec<Named> = Vec::new();
        for kind in KINDS.iter().filter(|kind| kind.is_wanted(self.options)) {
            let ranges = kind.find(&decoded).into_iter();
            let ranges = ranges.filter_map(|range| view.original(&range, MOST_BEFORE));
            let is_new =
                |range: &Range<usize>| memmem::find(&text.letters()[range.clone()], MARKER).is_none();
            let ranges = ranges.filter(|range| !range.is_empty() && is_new(range));
            found.extend(ranges.map(|range| Named::of(range, kind.name)));
        }
        let names = self.options.identifiers.then(|| self.identities.find(&decoded));
        found.extend(names.into_iter().flatten().filter_map(|named| {
            let range = view.original(&named.range, 1)?;
            Some(Named { range, ..named })
        }));
        Named::keep_apart(&mut found);
        self.replace(text, found, "");
    }

    /// Replaces the parts of a text that are not allowed to stay.
    fn replace(&mut self, text: &mut Text, mut found: Vec<Named>, before: &str) {
        found.retain(|found| !self.is_allowed(&text.letters()[found.range.clone()]));
        if found.is_empty() {
            return;
        }
        let mut markers = Vec::with_capacity(found.len());
        for Named { range, kind, marker } in &found {
            let units = &text.units()[range.clone()];
            self.record(kind, text.original(range.start), units);
            let marker = marker.clone().unwrap_or_else(|| self.marker(kind, units));
            self.remember(kind, units, &marker);
            markers.push(format!("{before}{marker}"));
        }
        let ranges = found.into_iter().map(|found| found.range).collect();
        text.replace(ranges, &markers);
    }

    fn record(&mut self, name: &str, start: usize, units: &[u16]) {
        self.findings.push(Finding {
            name: name.to_owned(),
            start,
            pointer: Vec::new(),
            path: String::new(),
            excerpt: excerpt_of(units),
        });
    }

    /// Replaces a value that is a secret as a whole; `None` if it is allowed to stay.
    pub(crate) fn replace_value(&mut self, value: &str, name: &str) -> Option<String> {
        if self.is_allowed(value.as_bytes()) {
            return None;
        }
        self.earlier = self.findings.len();
        let units: Vec<u16> = value.encode_utf16().collect();
        self.record(name, 0, &units);
        let marker = self.marker(name, &units);
        self.remember(name, &units, &marker);
        Some(marker)
    }

    /// Remembers a secret, so that it is replaced wherever it stands from then on.
    fn remember(&mut self, name: &str, units: &[u16], marker: &str) {
        if self.options.strict
            && matches!(name, "password" | "api_key")
            && self.known.add(without_quotes(units), marker)
        {
            self.seen.clear();
        }
    }

    /// Says of the findings of the text that was cleaned last where they are.
    pub(crate) fn place(&mut self, pointer: &[usize], path: &str) {
        for finding in &mut self.findings[self.earlier..] {
            finding.pointer = pointer.to_vec();
            path.clone_into(&mut finding.path);
        }
    }

    /// Returns `[REDACTED:email-1]`; without `strict`, as in the SDK, `[REDACTED:email]`.
    fn marker(&mut self, name: &str, units: &[u16]) -> String {
        if !self.options.strict {
            return format!("[REDACTED:{name}]");
        }
        let numbers = self.numbers.entry(name.to_owned()).or_default();
        let next = numbers.len() + 1;
        let number = *numbers.entry(without_quotes(units).to_vec()).or_insert(next);
        format!("[REDACTED:{name}-{number}]")
    }

    fn is_allowed(&self, letters: &[u8]) -> bool {
        let value = without_quotes(letters);
        self.allowed.contains(value)
            || self
                .allowed_expressions
                .iter()
                .any(|expression| expression.is_match(value))
    }
}

/// Compiles an expression over the letters of a text, which stand for ASCII alone.
fn compiled(expression: &str) -> std::result::Result<Regex, InvalidExpression> {
    if !expression.is_ascii() {
        let problem = "it has letters beyond ASCII; write . for each of them";
        return Err(InvalidExpression(problem.into()));
    }
    RegexBuilder::new(expression)
        .unicode(false)
        .build()
        .map_err(|error| {
            let lines = error.to_string();
            InvalidExpression(lines.lines().last().unwrap_or_default().to_owned())
        })
}

/// Returns a value without the quotes or the white space around it.
fn without_quotes<T: Copy + Into<u32>>(value: &[T]) -> &[T] {
    let is_around = |letter: &T| matches!((*letter).into(), 0x20 | 0x22 | 0x27 | 0x60);
    let start = value.iter().take_while(|letter| is_around(letter)).count();
    let end = value.iter().rev().take_while(|letter| is_around(letter)).count();
    value.get(start..value.len() - end).unwrap_or_default()
}

/// Shows of a value a fifth of its letters, and no more than four.
fn excerpt_of(units: &[u16]) -> String {
    let value = without_quotes(units);
    let shown = (value.len() / 5).min(4);
    let letters = String::from_utf16_lossy(&value[..shown]);
    let shown: String = letters
        .chars()
        .map(|letter| if letter.is_ascii_graphic() { letter } else { '?' })
        .collect();
    format!("{shown}… ({})", value.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::SDK;
    use knowledgepulse_json::Value;

    fn strict() -> Cleaner {
        Cleaner::new(CleanOptions { strict: true, ..SDK })
    }

    fn cleaned(cleaner: &mut Cleaner, text: &str) -> String {
        let units: Vec<u16> = text.encode_utf16().collect();
        let clean = cleaner.clean_text(&units);
        clean.map_or_else(|| text.to_owned(), |units| String::from_utf16(&units).unwrap())
    }

    #[test]
    fn a_rule_replaces_its_first_group_or_all_of_its_match() {
        let mut cleaner = strict();
        cleaner.add_rule("employee", r"EMP-\d{4}").unwrap();
        cleaner.add_rule("case", r"case (\w+)").unwrap();
        assert_eq!(
            cleaned(&mut cleaner, "EMP-1234 has case blue7"),
            "[REDACTED:employee-1] has case [REDACTED:case-1]"
        );
        assert!(cleaner.add_rule("x", "(").is_err());
        assert!(cleaner.add_rule("x", "ü").is_err());
    }

    #[test]
    fn allowed_values_stay_as_they_are() {
        let mut cleaner = strict();
        cleaner.allow("bob@example.com");
        cleaner.allow_expression(r".*@example\.org").unwrap();
        let text = r#"bob@example.com carl@example.org password = "bob@example.com""#;
        assert_eq!(cleaned(&mut cleaner, text), text);
        assert_eq!(cleaned(&mut cleaner, "x.bob@example.com"), "[REDACTED:email-1]");
        assert_eq!(cleaned(&mut cleaner, "carl@example.orgx"), "[REDACTED:email-2]");
    }

    #[test]
    fn types_says_which_types_are_identifiers() {
        let types = Cleaner::types();
        assert!(types.is_sorted());
        assert!(types.contains(&("email", true)) && types.contains(&("password", false)));
    }

    #[test]
    fn a_text_has_the_same_number_wherever_it_stands_in_a_session() {
        let mut cleaner = strict();
        assert_eq!(
            cleaned(&mut cleaner, "a@b.cc c@d.ee a@b.cc 10.0.0.7"),
            "[REDACTED:email-1] [REDACTED:email-2] [REDACTED:email-1] [REDACTED:ip-1]"
        );
        assert_eq!(cleaned(&mut cleaner, "c@d.ee"), "[REDACTED:email-2]");
        cleaner.set_identities(Identities::default());
        assert_eq!(cleaned(&mut cleaner, "c@d.ee"), "[REDACTED:email-1]");
    }

    #[test]
    fn a_secret_that_was_replaced_is_replaced_from_then_on_also_in_base64() {
        let mut cleaner = strict();
        let text = "use Falcon44castle or RmFsY29uNDRjYXN0bGU=, not Falcon44castles";
        assert_eq!(cleaned(&mut cleaner, text), text);
        cleaned(&mut cleaner, "password=Falcon44castle");
        assert_eq!(
            cleaned(&mut cleaner, text),
            "use [REDACTED:password-1] or [REDACTED:password-1]=, not Falcon44castles"
        );
        cleaner.set_identities(Identities::default());
        assert_eq!(cleaned(&mut cleaner, text), text);
    }

    #[test]
    fn findings_have_places_in_the_original_text_and_masked_excerpts() {
        let mut cleaner = strict();
        cleaned(&mut cleaner, "mail a@b.cc, password=hunter22hunter22 10.0.0.7");
        let found: Vec<_> = cleaner
            .take_findings()
            .into_iter()
            .map(|finding| (finding.name, finding.start, finding.excerpt))
            .collect();
        let finding = |name: &str, start, excerpt: &str| (name.to_owned(), start, excerpt.to_owned());
        assert_eq!(
            found,
            [
                finding("password", 22, "hun… (16)"),
                finding("email", 5, "a… (6)"),
                finding("ip", 39, "1… (8)"),
            ]
        );
        assert!(cleaner.take_findings().is_empty());
    }

    #[test]
    fn a_text_that_stands_twice_is_found_twice_and_searched_once() {
        let mut cleaner = strict();
        let texts = vec![Value::String("mail bob@example.com".into()); 3];
        let clean = cleaner.clean_json(&Value::Array(texts)).unwrap();
        let [first, rest @ ..] = clean.as_array().unwrap() else {
            panic!()
        };
        assert!(first.as_str().unwrap().contains("[REDACTED:email") && rest.iter().all(|text| text == first));
        let found = cleaner.take_findings();
        let paths: Vec<_> = found.iter().map(|finding| finding.path.as_str()).collect();
        assert_eq!(paths, ["[0]", "[1]", "[2]"]);
        // Another session has other identities.
        let mut identities = Identities::default();
        identities.learn_text("/home/zorblax/acme");
        let name = Value::Array(vec!["zorblax".into(), "zorblax".into()]);
        assert_eq!(cleaner.clean_json(&name).unwrap(), name);
        cleaner.set_identities(identities);
        assert_ne!(cleaner.clean_json(&name).unwrap(), name);
    }

    #[test]
    fn json_is_cleaned_by_names_and_its_findings_have_paths() {
        let mut cleaner = strict();
        let value = knowledgepulse_json::parse_str(
            r#"{"id":"a@b.cc","list":[{"token":"hunter22"}],"note":"mail bob@example.com about the build","uuid":"00000000-1234-5678-9012-000000000000"}"#,
        )
        .unwrap();
        let clean = cleaner.clean_json(&value).unwrap();
        assert_eq!(
            clean.to_json(),
            r#"{"id":"[REDACTED:email-1]","list":[{"token":"[REDACTED:password-1]"}],"note":"mail [REDACTED:email-2] about the build","uuid":"00000000-1234-5678-9012-000000000000"}"#
        );
        let found = cleaner.take_findings();
        let places: Vec<_> = found
            .iter()
            .map(|finding| (finding.path.as_str(), finding.pointer.as_slice()))
            .collect();
        let expected = [(".id", &[0][..]), (".list[0].token", &[1, 0, 0]), (".note", &[2])];
        assert_eq!(places, expected);
    }

    #[test]
    fn clean_json_keeps_the_id_of_a_trace_and_of_each_trace_in_a_list() {
        let clean = |text: &str| {
            let value = knowledgepulse_json::parse_str(text).unwrap();
            strict().clean_json(&value).unwrap().to_json()
        };
        let trace = r#"{"@type":"ReasoningTrace","id":"run-415-555-0142"}"#;
        let traces = format!("[{trace},{trace}]");
        assert_eq!(clean(trace), trace);
        assert_eq!(clean(&traces), traces);
        assert_eq!(clean(r#"[{"id":"a@b.cc"}]"#), r#"[{"id":"[REDACTED:email-1]"}]"#);
        assert_eq!(clean("[]"), "[]");
    }
}
