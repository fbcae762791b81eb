//! Places that name somebody: a home directory, a prompt, an author, the answer to `whoami`. `rules/identities.tsv` lists them.

use std::{hash::BuildHasher, ops::Range, sync::LazyLock};

use memchr::{memrchr_iter, memrchr2};
use regex::bytes::Captures;
use smallvec::SmallVec;

use super::{
    Identities, Who,
    people::{is_english, is_full_name, is_given, is_login, is_name, is_nobody, is_person},
    spellings::trimmed,
};
use crate::{
    keywords::{ByKeyword, Keyword, Keywords, Owner},
    ranges::Pattern,
    words::{COMMON, Words},
};

/// Folders that stand for a disk, not for somebody.
static DISKS: Words = Words::of("identity.disks");
/// The first folders of paths whose next folder is often somebody's own.
static ROOTS: Words = Words::of("identity.roots");
/// Domains in which everybody can have an address.
static PROVIDERS: Words = Words::of("identity.providers");
/// How much of a text around a keyword its rule sees, in bytes.
const BEFORE: usize = 160;
pub(super) const AFTER: usize = 300;
/// How much of the text around a common word it is found by, in bytes.
const CONTEXT_BEFORE: usize = 6;
const CONTEXT_AFTER: usize = 3;
pub(crate) const PUBLIC_HOSTS: [&str; 3] = ["github.com", "gitlab.com", "bitbucket.org"];

/// Returns how many bytes before the end of a text, which a keyword follows, a match may begin. The second text has the keyword, too, and two
/// bytes behind it.
pub(super) type Anchor = fn(&[u8], &[u8]) -> Starts;
type Starts = SmallVec<[usize; 2]>;

/// A place that names somebody.
pub(crate) struct Rule {
    /// Where before the keyword a match begins; `None` if anywhere.
    pub(super) anchor: Option<Anchor>,
    /// Whether it finds a name in what a command has printed.
    pub(super) is_of_answer: bool,
    pub(super) expression: Pattern,
}

impl Rule {
    /// Finds a match with a keyword in it, and returns where it is in a part of the text. What the rule has read ends at `done`.
    fn find<'t>(
        &self,
        text: &'t [u8],
        keyword: Range<usize>,
        done: &mut usize,
    ) -> Option<(&'t [u8], Range<usize>)> {
        if keyword.end <= *done {
            return None;
        }
        let window = &text[..text.len().min(keyword.end + AFTER)];
        let mut from = keyword.start.saturating_sub(BEFORE).max(*done);
        if let Some(anchor) = self.anchor {
            let text = &window[from.min(keyword.start)..window.len().min(keyword.end + 2)];
            let before = &text[..keyword.start.saturating_sub(from)];
            let mut starts = anchor(before, text).into_iter();
            // Tried there alone: otherwise, a text of many keywords would be read once for each.
            let found = starts.find_map(|length| {
                let line = &window[keyword.start - length..];
                Some((line, self.expression.find(line)?.range()))
            })?;
            *done = keyword.end;
            return Some(found);
        }
        *done = keyword.end;
        loop {
            let found = self.expression.find_at(window, from);
            let found = found.filter(|found| found.start() <= keyword.start)?.range();
            if found.end >= keyword.end {
                return Some((window, found));
            }
            from = found.end.max(from + 1);
        }
    }
}

/// How patterns begin of which it is known where their matches begin.
const ANCHORS: [(&str, Anchor); 7] = [
    ("<LINE>", lines_before),
    ("<HERE>", nothing_before),
    ("<AT>", label_before),
    ("<PROMPT>", prompts_before),
    ("<HOMES>", homes_before),
    ("<LABEL>", letters_before),
    ("^", login_before),
];

/// The parts that `rules/parts.tsv` lists, each with what it stands for.
static PARTS: LazyLock<Vec<(&str, &str)>> = LazyLock::new(|| {
    let lines = include_str!("../../rules/parts.tsv").lines();
    lines.filter_map(|line| line.split_once('\t')).collect()
});

/// Returns a pattern in which all parts are what they stand for.
pub(super) fn expanded(pattern: String) -> String {
    let parts = PARTS.iter();
    parts.fold(pattern, |pattern, (part, letters)| pattern.replace(part, letters))
}

/// The rules, each tried where one of its keywords stands.
pub(crate) static RULES: LazyLock<ByKeyword<Rule>> = LazyLock::new(|| {
    let lines = include_str!("../../rules/identities.tsv").lines();
    let rules = lines.filter_map(|line| line.rsplit_once('\t'));
    let rule = |(keywords, pattern): (&'static str, &str)| {
        let anchors = ANCHORS.iter().find(|(begins, ..)| pattern.starts_with(begins));
        let anchored = match anchors {
            Some(("<LINE>", _)) => pattern.replacen("<LINE>", "^", 1),
            Some(("<PROMPT>" | "<HOMES>", _)) => format!("^{pattern}"),
            _ => pattern.to_owned(),
        };
        let rule = Rule {
            anchor: anchors.map(|(_, anchor)| *anchor),
            is_of_answer: pattern.starts_with("<PROMPT>"),
            expression: Pattern::of(expanded(anchored)),
        };
        (rule, keywords)
    };
    let rules = rules.filter(|(keywords, _)| !keywords.starts_with('#'));
    ByKeyword::of(rules.map(rule), '|')
});
impl Identities {
    /// Applies the rules to bytes. Returns whether one has matched.
    pub(super) fn learn_bytes(&mut self, text: &[u8]) -> bool {
        let found = Keywords::of(text, &text.to_ascii_lowercase());
        self.learn_at(text, found.of_owner(Owner::Identity))
    }

    /// Applies the rules at their keywords. Returns whether one has matched.
    pub(super) fn learn_at(&mut self, text: &[u8], keywords: &[Keyword]) -> bool {
        let mut has_match = false;
        let mut done = vec![0; RULES.rows.len()];
        for Keyword { range, number } in keywords {
            for (at, rule) in RULES.of_keyword(*number) {
                let Some((part, found)) = rule.find(text, range.clone(), &mut done[at]) else {
                    continue;
                };
                has_match = true;
                // A session has the same prompts and paths again and again.
                let start = found.start.saturating_sub(CONTEXT_BEFORE);
                let end = part.len().min(found.end + CONTEXT_AFTER);
                let key = self
                    .texts
                    .0
                    .hash_one((at, &part[start..end], found.start - start));
                let values = self.matches.get(&key).copied().unwrap_or_else(|| {
                    let Some(groups) = rule.expression.captures_at(part, found.start) else {
                        return found.len();
                    };
                    self.learn_match(rule, part, &groups);
                    let ends = groups.iter().skip(1).flatten().map(|group| group.end());
                    let values = ends.max().map_or(found.len(), |end| end - found.start);
                    self.matches.insert(key, values);
                    values
                });
                // What stands behind a value can be the next label.
                if rule.anchor.is_none() {
                    done[at] = range.end.max(found.start + values);
                }
            }
        }
        has_match
    }

    /// Learns from the groups of a match of a rule in a text.
    fn learn_match(&mut self, rule: &Rule, text: &[u8], found: &Captures) {
        let whole = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace('\u{fffd}', "");
        let group = |name| {
            let part = found.name(name).map(|part| part.as_bytes());
            String::from_utf8_lossy(part.unwrap_or_default()).into_owned()
        };
        for (name, part) in rule.expression.capture_names().zip(found.iter()) {
            let (Some(name), Some(part)) = (name, part) else {
                continue;
            };
            let value = String::from_utf8_lossy(part.as_bytes());
            let value = value.trim();
            // A common word is found again by the text around it.
            let before = whole(&text[part.start().saturating_sub(CONTEXT_BEFORE)..part.start()]);
            let after = whole(&text[part.end()..text.len().min(part.end() + CONTEXT_AFTER)]);
            // A number behind it may be replaced before it is.
            let after = after.trim_end_matches(|c: char| c.is_ascii_digit());
            match name {
                "user" | "group" => self.add_user(value, &before, after),
                // A command that sets a name prints nothing.
                "who" if !group("rest").contains("user.") => self.add_who(value, &before, after),
                "gecos" if value.contains(' ') => self.add_author(value, &format!("{}@", group("user"))),
                "org" if !is_nobody(value) => {
                    self.add(Who::User, vec![value.to_owned()], &before, "", true);
                    self.add_author(value, "");
                }
                // Where any word may stand, words of English are none.
                "account" if !is_english(trimmed(value)) => self.add_user(value, "", ""),
                "login" if is_login(value) => self.add_user(value, "", ""),
                "given" if is_given(value) => self.add_author(value, ""),
                "bare" if !COMMON.has(value.as_bytes()) && is_name(trimmed(value)) => {
                    self.add(Who::User, vec![trimmed(value).to_owned()], &before, "", true);
                }
                "host" | "box" if name == "host" || !is_english(value) => {
                    self.add_host(value, &before, after)
                }
                "home" | "dir" => self.add_directory(value, name == "home"),
                "name" => self.add_author(value, &group("mail")),
                "mail" => {
                    self.add_author(group("name").trim(), value);
                    self.add_domain(value.split_once('@').unwrap_or_default().1);
                }
                "person" => {
                    // HL7 and DICOM separate the parts of a name by `^`, X12 by `*`, vCards by `;`; GEDCOM has slashes around the last one.
                    let parts = value
                        .split(['^', '*', ';', '/', ' '])
                        .filter(|part| !part.is_empty());
                    let person = parts.collect::<Vec<_>>().join(" ");
                    if is_person(&person) {
                        self.add_author(&person, "");
                    }
                }
                "full" if is_full_name(value) => self.add_author(value, &format!("{}@", group("own"))),
                "domain" => self.add_domain(value),
                "remote" => self.add_remote(value),
                "branch" => self.add_branch(value),
                _ => {}
            }
        }
    }

    /// Learns who a directory belongs to. That of a home is its last folder.
    pub(super) fn add_directory(&mut self, path: &str, is_home: bool) {
        let path = path.trim();
        // A home may have no folder below it.
        self.learn_bytes(format!("{path}/").as_bytes());
        let folders = path.split(['/', '\\']).filter(|folder| !folder.is_empty());
        let mut folders = folders.collect::<Vec<_>>().into_iter();
        let own = match folders.next() {
            _ if is_home => folders.next_back(),
            Some(root) if ROOTS.has(root.as_bytes()) => folders.find(|folder| !DISKS.has(folder.as_bytes())),
            _ => None,
        };
        let Some((before, name)) = own.and_then(|name| Some((&path[..path.find(name)?], name))) else {
            return;
        };
        if before.starts_with(['/', '\\']) || before.as_bytes().get(1) == Some(&b':') {
            self.add_who(name, before, "");
            self.add_user(name, &before.replace(['/', '\\', ':'], "-"), "");
        }
    }

    /// Learns the owner of a repository. One that is called like its repository is a project.
    fn add_remote(&mut self, url: &str) {
        let url = url.trim_end_matches('/').trim_end_matches(".git");
        let mut parts = url.rsplit(['/', ':']);
        let (Some(repository), Some(owner)) = (parts.next(), parts.next()) else {
            return;
        };
        let has_host = parts.any(|part| part.contains(['.', '@']));
        let is_project = repository.to_lowercase().starts_with(&owner.to_lowercase());
        if has_host && !is_project {
            self.add_user(owner, "", &format!("/{repository}"));
        }
    }

    /// Learns the first part of a branch's name: `alice/fix-parser`.
    pub(super) fn add_branch(&mut self, branch: &str) {
        if let ["users" | "user", name, _, ..] | [name, _, ..] = branch.split('/').collect::<Vec<_>>()[..] {
            self.add_user(name, "", "");
        }
    }

    /// Learns the name of the company whose domain it is.
    pub(super) fn add_domain(&mut self, domain: &str) {
        const SECOND: [&str; 8] = ["ac", "co", "com", "edu", "gov", "net", "onmicrosoft", "org"];
        let mut labels = domain.trim_matches(['.', ' ']).rsplit('.').skip(1);
        let second = labels.next().unwrap_or_default();
        let label = if SECOND.contains(&second) {
            labels.next().unwrap_or_default()
        } else {
            second
        };
        if is_name(label) && !PROVIDERS.has(label.as_bytes()) {
            self.add(Who::Host, vec![label.to_owned()], "", "", false);
        }
    }

    pub(super) fn add_host(&mut self, host: &str, before: &str, after: &str) {
        let host = host.trim_end_matches(['.', '-']);
        let first = host.split('.').next().unwrap_or_default();
        let is_host = host.contains(|c: char| c.is_ascii_alphabetic())
            && host
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte));
        let is_public = PUBLIC_HOSTS.iter().any(|public| host.ends_with(public));
        if is_host && !is_public && !is_nobody(first) {
            self.add(
                Who::Host,
                vec![host.to_owned(), first.to_owned()],
                before,
                after,
                false,
            );
        }
    }
}

/// Returns how long the last line of a text is, and how long it is behind an escaped line break.
fn lines_before(text: &[u8], _: &[u8]) -> Starts {
    let line = memrchr2(b'\n', b'\r', text).map(|at| text.len() - at - 1);
    let mut slashes = memrchr_iter(b'\\', text);
    let escaped = slashes.find(|at| matches!(text.get(at + 1), Some(b'n' | b'r')));
    let escaped = escaped.map(|at| text.len() - at - 2);
    let line = line.or((text.len() < BEFORE).then_some(text.len()));
    line.into_iter().chain(escaped).collect()
}

/// Returns how far before the end of a text its prompts begin.
fn prompts_before(text: &[u8], _: &[u8]) -> Starts {
    let begins = |at: &usize| {
        matches!(
            text[*at..],
            [b'$' | b'%' | b'#' | b'>', b' ', ..] | [0xE2, ..] | [b'A'..=b'Z', b':', b'\\', ..]
        )
    };
    let starts = (0..text.len()).filter(begins);
    starts.map(|at| text.len() - at).collect()
}

/// Returns how far before the end of a text the path of homes begins whose last folder a keyword ends.
fn homes_before(before: &[u8], text: &[u8]) -> Starts {
    static PATH: LazyLock<Pattern> = LazyLock::new(|| Pattern::of(expanded(r"<HOMES>(?s:.{0,2})$".into())));
    let path = PATH.find(text).map(|path| path.start());
    path.and_then(|start| before.len().checked_sub(start))
        .into_iter()
        .collect()
}

/// Returns how many letters end a text: those of the label that a keyword stands in.
fn letters_before(text: &[u8], _: &[u8]) -> Starts {
    const MOST: usize = 18;
    let is_letter = |byte: &&u8| byte.is_ascii_alphabetic() || **byte >= 0x80;
    let letters = text.iter().rev().take(MOST).take_while(is_letter).count();
    std::iter::once(letters).collect()
}

/// Returns 0 if no word ends a text.
fn nothing_before(text: &[u8], _: &[u8]) -> Starts {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"_./$".contains(byte);
    let is_free = !text.last().is_some_and(is_part);
    label_before(text, text).into_iter().filter(|_| is_free).collect()
}

/// Returns 0 unless a text ends with a choice: `kind ? "user" : "robot"`.
fn label_before(text: &[u8], _: &[u8]) -> Starts {
    let is_choice = matches!(text, [.., b'?', b' ', b'"' | b'\'' | b'`']);
    (!is_choice).then_some(0).into_iter().collect()
}

/// Returns how long the word is that ends a text and may be a login: behind an escape, a colour, or what is no part of a word.
fn login_before(text: &[u8], _: &[u8]) -> Starts {
    const MOST: usize = 40;
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte >= 0x80 || b"._-".contains(byte);
    let length = text
        .iter()
        .rev()
        .take(MOST)
        .take_while(|byte| is_part(byte))
        .count();
    let (before, word) = text.split_at(text.len() - length);
    let digits = word.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let inner = match before.last() {
        // The rest of a colour's code.
        Some(b'[' | b';') if word.get(digits) == Some(&b'm') => digits + 1,
        Some(b'\\') => 1,
        Some(b'@' | b'/' | b':' | b'+') => length,
        _ => 0,
    };
    let length = length.checked_sub(inner).filter(|length| *length > 0);
    length.into_iter().collect()
}
