//! Names beside an e-mail address or an account: in a row, in a line, or in an object.

use std::sync::LazyLock;

use knowledgepulse_json::{Object, Value};
use regex::bytes::Regex;

use super::{
    Identities,
    people::{is_full_name, is_nobody, is_person},
    rules::{AFTER, expanded},
};
use crate::{
    phrases,
    ranges::{Pattern, expression},
    words::{COMMON, Words},
};

/// Names of fields of objects that describe a person or an account.
static PERSONAL: Words = Words::of("identity.personal");
/// Domains of examples, whose addresses are nobody's.
const EXAMPLES: [&str; 4] = ["example.com", "example.net", "example.org", "test.com"];
/// Of so many addresses in a line the names beside them are learned.
const MOST_MAILS: usize = 20;

impl Identities {
    /// Learns who an object describes: its short texts are read as the JSON that they are, which the rules know.
    pub(super) fn learn_object(&mut self, fields: &Object) {
        if !fields.keys().any(|name| PERSONAL.has(name.as_bytes())) {
            return;
        }
        let texts = fields
            .iter()
            .filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)));
        let texts = texts.filter(|(_, text)| text.len() <= AFTER && !text.contains('\n'));
        let lines: String = texts
            .map(|(name, text)| format!("\"{name}\": \"{text}\",\n"))
            .collect();
        self.learn_bytes(lines.as_bytes());
        let name = fields.get("name").and_then(Value::as_str).unwrap_or_default();
        if name.contains(' ') && is_person(name) {
            self.add_author(name, "");
        }
    }

    /// Learns the names of people beside an address: before it in brackets or in a cell, or what it is made of in a cell of its line.
    pub(super) fn learn_rows(&mut self, text: &str) {
        static MAIL: Pattern = Pattern::new(
            r"[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){0,4}\.[A-Za-z]{2,12}",
        );
        // The name before an address, perhaps as a cell.
        static NAME: LazyLock<Regex> = LazyLock::new(|| {
            expression(&expanded(
                r#"(^|[,|\t;])?["'`* ]*(<WORD>(?: (?:[a-z]{1,3} ){0,2}<WORD>){0,3})["'`*\])} ]*([,|\t;])?["'`*(<\[{ ]*$"#.to_owned(),
            ))
        });
        for line in text.lines().filter(|line| line.contains('@')) {
            for found in MAIL.find_iter(line.as_bytes()).take(MOST_MAILS) {
                let mail = &line[found.range()];
                let (local, domain) = mail.split_once('@').unwrap_or_default();
                // Of a URL, what stands before the host is no address.
                let before = &line[..found.start()];
                let is_of_url = before.ends_with(['/', ':']) && !line.contains("mailto:");
                if !is_nobody(local) && !is_of_url {
                    self.add_domain(domain);
                    self.add_local(local, domain);
                }
                let own = NAME.captures(before.as_bytes());
                let name = own
                    .as_ref()
                    .map_or("", |own| &line[own.get(2).map_or(0..0, |name| name.range())]);
                let is_cell = own.is_some_and(|own| own.get(1).is_some() && own.get(3).is_some());
                if name.contains(' ')
                    && (is_cell || before.ends_with('<'))
                    && (is_person(name) || is_full_name(name))
                {
                    self.add_author(name, mail);
                }
                let cells = line.split([',', '|', '\t', ';', '<', '(']);
                let cells = cells.map(|cell| cell.trim_matches([' ', '"', '\'', '`', '*', ')']));
                for name in cells.chain([name]) {
                    if belongs(name, local) && is_person(name) {
                        self.add_author(name, mail);
                    }
                }
            }
        }
    }

    /// Learns the account that an address is made of, and the words of a name in it.
    fn add_local(&mut self, local: &str, domain: &str) {
        const LEAST_LETTERS: usize = 4;
        let local = local
            .split('+')
            .next()
            .unwrap_or_default()
            .replace(['_', '-'], ".");
        let is_own = |part: &str| !phrases::WORDS.has(part.as_bytes()) && !COMMON.has(part.as_bytes());
        if local.len() >= LEAST_LETTERS && local.split('.').all(is_own) && !EXAMPLES.contains(&domain) {
            self.add_user(&local, "", "");
        }
    }
}

/// Returns whether the local part of an address is made of a name: of a word of it, or of its beginning.
fn belongs(name: &str, local: &str) -> bool {
    let local: String = local
        .to_lowercase()
        .chars()
        .filter(|c| c.is_alphabetic())
        .collect();
    let mut words = name.split([' ', '-', '.', '\'']).map(str::to_lowercase);
    words.any(|word| word.chars().count() >= 3 && local.contains(&word.chars().take(4).collect::<String>()))
}
