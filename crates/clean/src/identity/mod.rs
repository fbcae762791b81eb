//! Identities: the words that say who worked in a session, and on which machine. They are learned from the whole session, then
//! replaced everywhere in it by `user-1` and `host-1`, which are valid in a path, in JSON and in a shell.
//!
//! - What of a session teaches a name: its texts and fields here, [`rules`], [`answers`], [`addresses`], [`prose`], [`tables`].
//! - What a text is, a person or an account: [`people`].
//! - Which spellings of a name go: [`spellings`].
//! - Where they are replaced: [`replaced`].

mod addresses;
mod answers;
mod people;
mod prose;
mod replaced;
mod rules;
mod spellings;
mod tables;
#[cfg(test)]
mod tests;

use std::{
    collections::{HashMap, HashSet},
    hash::{BuildHasher, Hash, RandomState},
    ops::Range,
    sync::OnceLock,
};

use aho_corasick::AhoCorasick;
use knowledgepulse_json::{self as json, Value, parse_str};
use twox_hash::XxHash3_64;

use crate::{codes, keywords::Owner, text::Text, words::Words};

pub(crate) use replaced::Named;
pub(crate) use rules::{PUBLIC_HOSTS, RULES};
pub(crate) use tables::labels;

/// Names of fields that hold a directory, a branch, or a machine.
static DIRECTORIES: Words = Words::of("identity.directories");
static BRANCHES: Words = Words::new("gitbranch git_branch branch head_branch headbranch");
static HOSTS: Words = Words::new("hostname host_name host.name computername machine_name");
/// Names of fields that hold what a command printed.
static ANSWERS: Words = Words::new("content text output stdout result observation response message");
/// Ends of names of machines that have no address of their own.
const PRIVATE: [&str; 5] = [".local", ".lan", ".home", ".internal", ".corp"];

/// Texts of so many letters are kept for the cleaner, each with as many more as its tables take.
const MOST_KEPT: usize = 1024 * 1024;
const OF_TABLES: usize = 256;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Who {
    User,
    Host,
}

impl Who {
    fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Host => "host",
        }
    }
}

/// A text to be found, and the part of it that is a name.
#[derive(Debug, Clone)]
struct Pattern {
    /// In small letters.
    units: Vec<u16>,
    name: Range<usize>,
    /// The position of its owner.
    owner: usize,
}

/// The identities of a session.
#[derive(Debug, Clone, Default)]
pub struct Identities {
    patterns: Vec<Pattern>,
    /// The owner of each name, in small letters and without signs.
    names: HashMap<(Who, String), usize>,
    /// Each person and machine, with its number.
    owners: Vec<(Who, usize)>,
    /// How many people and machines there are.
    numbers: [usize; 2],
    /// The last commands whose output was not seen yet.
    asked: Vec<Vec<String>>,
    known: HashSet<(Vec<u16>, usize)>,
    /// The hashes of texts and folders that were learned from.
    texts: (RandomState, HashSet<u64>),
    /// Texts that are kept for the cleaner, by their hashes, and how much they take.
    pages: HashMap<u64, Text<'static>>,
    kept: usize,
    /// The hashes of matches of rules, and how far behind its beginning the last value of each ends.
    matches: HashMap<u64, usize>,
    /// The hashes of commands with lines laid beside them, and whether a rule has matched them.
    answers: HashMap<u64, bool>,
    finder: OnceLock<Option<AhoCorasick>>,
}

impl Identities {
    /// Learns from a text of the session.
    pub fn learn_text(&mut self, text: &str) {
        let page = Text::of(text);
        self.learn_page(text, &page);
        if let Some(view) = codes::view(&page) {
            let decoded = Text::new(&view.units);
            self.learn_page(&decoded.to_utf8(), &decoded);
        }
        self.kept += text.len() + OF_TABLES;
        if self.kept < MOST_KEPT {
            self.pages.insert(self.hash_of(text), page);
        }
        // What a tool has printed may be JSON.
        if let [b'{' | b'[', .., b'}' | b']'] = text.trim().as_bytes()
            && let Ok(value) = parse_str(text)
        {
            self.learn_json(&value);
        }
    }

    /// Learns from a text as it stands there.
    fn learn_page(&mut self, text: &str, page: &Text) {
        let bytes = text.as_bytes();
        match page.letters() == bytes {
            true => self.learn_at(bytes, page.keywords(Owner::Identity)),
            false => self.learn_bytes(bytes),
        };
        if page.has_any(b"@") {
            self.learn_rows(text);
        }
        self.learn_labelled(page);
        if page.has_any(b" ") {
            self.learn_names(text);
        }
    }

    /// Learns from a JSON value of the session: from its texts, and from fields that hold a directory, a branch, a machine or
    /// what a command printed.
    pub fn learn_json(&mut self, value: &Value) {
        // What is left to read, the next one last.
        let mut left: Vec<(Option<&json::Text>, &Value)> = vec![(None, value)];
        while let Some((name, value)) = left.pop() {
            match value {
                Value::String(text) => self.learn_field(name, text),
                Value::Array(elements) => left.extend(elements.iter().rev().map(|element| (name, element))),
                Value::Object(fields) => {
                    self.learn_object(fields);
                    left.extend(fields.iter().rev().map(|(name, value)| (Some(name), value)));
                    for name in fields.keys() {
                        self.learn_once(name);
                    }
                }
                _ => {}
            }
        }
    }

    /// Learns from the text of a field.
    fn learn_field(&mut self, name: Option<&json::Text>, text: &json::Text) {
        self.learn_once(text);
        let name = name.map(json::Text::as_bytes).unwrap_or_default();
        if DIRECTORIES.has(name) {
            // A session names its folder again and again.
            if self.is_new((name, text)) {
                self.add_directory(text, false);
            }
        } else if BRANCHES.has(name) {
            self.add_branch(text);
        } else if HOSTS.has(name) && (!text.contains('.') || PRIVATE.iter().any(|end| text.ends_with(end))) {
            // Others are hosts of addresses.
            self.add_host(text, "", "");
        } else if (ANSWERS.has(name) || name.ends_with(b"_output")) && !self.asked.is_empty() {
            self.take_answer(text);
        }
        self.note_commands(text);
    }

    /// Applies the rules to a text of a field, unless they were applied to it before: sessions repeat most of their texts.
    fn learn_once(&mut self, text: &str) {
        let hash = self.hash_of(text);
        if self.texts.1.insert(hash) {
            self.learn_text(text);
        }
    }

    /// Returns a text that was learned from, whose keywords are found already; `None` if it was not kept.
    pub(crate) fn take_page(&mut self, text: &str) -> Option<Text<'static>> {
        let page = self.pages.remove(&self.hash_of(text))?;
        let is_same =
            page.letters() == text.as_bytes() || text.encode_utf16().eq(page.units().iter().copied());
        is_same.then_some(page)
    }

    fn hash_of(&self, text: &str) -> u64 {
        XxHash3_64::oneshot_with_seed(self.texts.0.hash_one(()), text.as_bytes())
    }

    /// Returns whether something was not learned from before.
    fn is_new(&mut self, what: impl Hash) -> bool {
        let (hasher, known) = &mut self.texts;
        known.insert(hasher.hash_one(what))
    }

    /// Frees what is not needed for long: of those that clean at once, the texts that were read help.
    pub fn finish(&mut self) {
        self.pages = HashMap::new();
        self.texts.1 = HashSet::new();
        self.matches = HashMap::new();
        self.answers = HashMap::new();
    }
}
