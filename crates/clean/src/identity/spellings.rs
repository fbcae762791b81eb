//! The spellings of a name that are replaced.

use std::{ops::RangeInclusive, sync::OnceLock};

use unicode_normalization::UnicodeNormalization;

use crate::words::COMMON;

use super::{
    Identities, Pattern, Who,
    people::{PARTICLES, is_name, is_nobody},
};

/// The fewest letters of a name that is replaced wherever it stands.
const LEAST_LETTERS: usize = 3;
const MOST_LETTERS: usize = 64;
/// More people and machines are not learned.
const MOST_OWNERS: usize = 100_000;

impl Identities {
    /// Learns the name of an account. `before` and `after` are the text around it by which a common word is found.
    pub(super) fn add_user(&mut self, name: &str, before: &str, after: &str) {
        let name = trimmed(name);
        if is_name(name) {
            let mut forms = forms_of(name);
            forms.push(name.to_owned());
            self.add(Who::User, forms, before, after, false);
        }
    }

    /// Learns a login, an address or the name of a person, whichever it is.
    pub(super) fn add_who(&mut self, who: &str, before: &str, after: &str) {
        if who.contains('@') {
            self.add_author("", who);
        } else if who.contains(' ') {
            self.add_author(who, "");
        // Those of programs go on in capitals: `repositoryOwner`.
        } else if !who.starts_with(char::is_lowercase) || !who.contains(char::is_uppercase) {
            self.add_user(who, before, after);
        }
    }

    /// Learns the name of a person, and the local part of an address.
    pub(super) fn add_author(&mut self, name: &str, mail: &str) {
        let (local, domain) = mail.split_once('@').unwrap_or_default();
        let local = match local.split_once('+') {
            Some((_, name)) if domain == "users.noreply.github.com" => name,
            Some((name, _)) => name,
            None => local,
        };
        let is_bot = [name, mail].iter().any(|text| text.contains("[bot]"))
            || is_nobody(name)
            || !local.is_empty() && is_nobody(local);
        if is_bot {
            return;
        }
        let name = name.trim_matches(['\'', '’', '"', ' ']);
        let mut forms = forms_of(name);
        let own = [name, local].into_iter().filter(|name| is_name(name));
        forms.extend(own.map(str::to_owned));
        self.add(Who::User, forms, "", " <", false);
    }

    /// Adds names of somebody: each to be found by itself, or with the text around it, if it is a common word or `is_bare`.
    pub(super) fn add(&mut self, who: Who, mut names: Vec<String>, before: &str, after: &str, is_bare: bool) {
        // A session names the same people again and again.
        if !self.is_new((who, &names, before, after, is_bare)) {
            return;
        }
        let is_alone = |name: &str| !is_bare && is_telling(name);
        let has_context = !before.is_empty() || !after.is_empty();
        names.retain(|name| name.chars().count() <= MOST_LETTERS && (has_context || is_alone(name)));
        if names.is_empty() || self.owners.len() >= MOST_OWNERS {
            return;
        }
        let key = |name: &str| (who, name.to_lowercase().replace(['.', '_', '-'], " "));
        let known = names.iter().find_map(|name| self.names.get(&key(name)).copied());
        let owner = known.unwrap_or_else(|| {
            let number = &mut self.numbers[who as usize];
            *number += 1;
            self.owners.push((who, *number));
            self.owners.len() - 1
        });
        for name in names.into_iter().flat_map(spellings) {
            let name = name.as_str();
            self.names.insert(key(name), owner);
            let (before, after) = if is_alone(name) { ("", "") } else { (before, after) };
            let units = |text: &str| text.to_lowercase().encode_utf16().collect::<Vec<u16>>();
            let start = units(before).len();
            let pattern = Pattern {
                name: start..start + units(name).len(),
                units: units(&format!("{before}{name}{after}")),
                owner,
            };
            if self.known.insert((pattern.units.clone(), start)) {
                self.patterns.push(pattern);
                self.finder = OnceLock::new();
            }
        }
    }
}

/// Returns a name without the signs around it.
pub(super) fn trimmed(name: &str) -> &str {
    name.trim_matches(['.', '-', '_', ' '])
}

/// Returns the forms of a person's name: of `Jane Doe` also `janedoe`, `jdoe`, `doej`, `jane` and `doe`; empty for a single word.
pub(super) fn forms_of(name: &str) -> Vec<String> {
    let is_of_part = |c: char| c.is_alphanumeric() || matches!(c, '-' | '\'');
    let is_part = |part: &&str| part.chars().all(is_of_part) && !is_nobody(part);
    let parts = name.split([' ', ',', '.']).filter(|part| !part.is_empty());
    let parts: Vec<&str> = parts.collect();
    let ([first, .., last], 2..=5, true) = (&parts[..], parts.len(), parts.iter().all(is_part)) else {
        return Vec::new();
    };
    let initial: String = first.chars().take(1).collect();
    let joined = [" ", ".", "_", "-"].map(|sign| parts.join(sign));
    let pairs = [(*first, *last), (&initial, last), (last, &initial)];
    let short = pairs.map(|(start, end)| format!("{start}{end}"));
    let own = parts.iter().filter(|part| !PARTICLES.has(part.as_bytes()));
    let own = own.map(|part| (*part).to_owned());
    joined.into_iter().chain(short).chain(own).collect()
}

/// Returns a name as it is written, without its accents, and with them as letters of their own.
pub(super) fn spellings(name: String) -> Vec<String> {
    const ACCENTS: RangeInclusive<char> = '\u{300}'..='\u{36f}';
    const OWN: [(char, char); 4] = [('ø', 'o'), ('ł', 'l'), ('đ', 'd'), ('ı', 'i')];
    if name.is_ascii() {
        return vec![name];
    }
    let apart: String = name.to_lowercase().nfd().collect();
    let letters = apart.chars().filter(|letter| !ACCENTS.contains(letter));
    let own = |letter| OWN.iter().find(|(own, _)| *own == letter);
    let plain = letters.map(|letter| own(letter).map_or(letter, |(_, plain)| *plain));
    vec![plain.collect(), apart.clone(), name]
}

/// Returns whether a name is replaced wherever it stands: it has a space, or it is long enough and no common words.
fn is_telling(name: &str) -> bool {
    let name = name.to_lowercase();
    let digits = name.bytes().filter(u8::is_ascii_digit).count();
    let is_common = |part: &str| {
        let word = part.trim_end_matches(|c: char| c.is_ascii_digit());
        let is_short = part.is_ascii() && word.len() < LEAST_LETTERS;
        is_short || COMMON.has(word.as_bytes()) || COMMON.has(part.as_bytes()) || is_nobody(part)
    };
    let parts: Vec<&str> = name.split(['.', '_', '-', ' ']).collect();
    let is_long = !name.is_ascii() || name.len() >= LEAST_LETTERS;
    name.contains(' ')
        || is_long && (!parts.iter().all(|part| is_common(part)) || parts.len() > 1 && digits >= 3)
}
