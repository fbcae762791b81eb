//! Names beside an e-mail address or an account: in a row, in a line, in the lines above it, or in an object.

use std::{cell::LazyCell, sync::LazyLock};

use knowledgepulse_json::{Object, Value};
use memchr::{memchr2, memrchr2};
use regex::bytes::Regex;

use super::{
    Identities,
    people::{PARTICLES, is_english, is_name, is_nobody, is_person},
    rules::AFTER,
};
use crate::{
    phrases,
    ranges::{expression, find_letter},
    words::{COMMON, Words},
};

/// Names of fields of objects that describe a person or an account.
static PERSONAL: Words = Words::of("identity.personal");
/// Domains of examples, whose addresses are nobody's.
const EXAMPLES: [&str; 4] = ["example.com", "example.net", "example.org", "test.com"];
/// Of so many addresses in a line the names beside them are learned.
const MOST_MAILS: usize = 20;
/// So many lines above an address can have its owner's name.
const MOST_ABOVE: usize = 3;

impl Identities {
    /// Learns who an object describes: its short texts are read as the JSON that they are, which the rules know.
    pub(super) fn learn_object(&mut self, fields: &Object) {
        if !fields.keys().any(|name| PERSONAL.has(name.as_bytes())) {
            return;
        }
        let mut lines = String::new();
        for (name, value) in fields {
            if let Some(text) = value
                .as_str()
                .filter(|text| text.len() <= AFTER && !text.contains('\n'))
            {
                lines += &format!("\"{}\": \"{text}\",\n", name.as_str());
            }
        }
        self.learn_bytes(lines.as_bytes());
        let name = fields.get("name").and_then(Value::as_str).unwrap_or_default();
        let has_account = ["username", "login", "email"]
            .iter()
            .any(|account| fields.contains(account));
        if (name.contains(' ') || has_account && !is_english(name)) && is_person(name) {
            self.add_author(name, "");
        }
    }

    /// Learns the names of people beside an address: in a cell of its row, before it in brackets, or on a line of its own above it.
    pub(super) fn learn_rows(&mut self, text: &str) {
        static MAIL: LazyLock<Regex> = LazyLock::new(|| {
            expression(
                r"[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){0,4}\.[A-Za-z]{2,12}",
            )
        });
        let bytes = text.as_bytes();
        let mut from = 0;
        while let Some(at) = find_letter(bytes, from, b'@') {
            let start = memrchr2(b'\n', b'\r', &bytes[..at]).map_or(0, |end| end + 1);
            from = memchr2(b'\n', b'\r', &bytes[at..]).map_or(text.len(), |length| at + length);
            let line = &text[start..from];
            let above: LazyCell<Vec<&str>, _> = LazyCell::new(|| {
                let above = text[..start].rsplit(['\n', '\r']).map(str::trim);
                above.filter(|line| !line.is_empty()).take(MOST_ABOVE).collect()
            });
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
                let is_sign = |c: char| ",|\t;".contains(c);
                let is_around = |c: char| " \t\"'`<([{>)]}|,;*".contains(c);
                let row = before.trim_end_matches(is_around);
                let is_cell = before[row.len()..].contains(is_sign);
                let is_signed = before.ends_with('<');
                let mut cells = row.rsplit(is_sign).map(|cell| cell.trim_matches(is_around));
                let last = cells.next().unwrap_or_default();
                let pair = format!("{} {last}", cells.next().unwrap_or_default());
                // The words with capitals at the end of a sentence.
                let words = last
                    .rsplit([' ', ':', '"', '\'', '[', '('])
                    .take(5)
                    .take_while(|word| {
                        PARTICLES.has(word.as_bytes()) || is_person(word) && !matches!(*word, "AM" | "PM")
                    });
                let length = words.map(|word| word.len() + 1).sum::<usize>();
                let name = &last[(last.len() + 1).saturating_sub(length).min(last.len())..];
                let name = name.find(char::is_uppercase).map_or(name, |at| &name[at..]);
                let behind = line[found.end()..].split(is_sign).nth(1).unwrap_or_default();
                let is_own = name.contains(' ') && (is_cell && name == last || is_signed);
                if is_own || is_person(name) && belongs(name, local) {
                    self.add_author(name, mail);
                } else if is_cell && is_person(last) && is_person(&pair) {
                    self.add_author(&pair, mail);
                }
                let above = above.iter().rev().copied().filter(|name| name.contains(' '));
                for name in above.chain([behind.trim_matches(is_around)]) {
                    if is_person(name) && belongs(name, local) {
                        self.add_author(name, mail);
                    }
                }
                // A login alone.
                let word = last.rsplit([' ', '"', '\'']).next().unwrap_or_default();
                let before = row.trim_start_matches([' ', '-', '*']).strip_suffix(word);
                let is_alone =
                    before.is_some_and(|before| before.is_empty() || before.ends_with(['"', '\'']));
                if is_signed && is_name(word) && (belongs(word, local) || is_alone) {
                    self.add_author(word, mail);
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
