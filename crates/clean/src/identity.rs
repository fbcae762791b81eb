//! Identities: the words that say who worked in a session, and on which machine. They are learned from the whole session, then
//! replaced everywhere in it by `user-1` and `host-1`, which are valid in a path, in JSON and in a shell.
//!
//! A rule knows a place that names somebody: a home directory, a prompt, an author, the answer to `whoami`. The list of
//! `rules/common-words.txt` keeps code whole: a name in it is replaced only within the text around it by which it was learned.

use std::{
    collections::{HashMap, HashSet},
    hash::{BuildHasher, Hash, RandomState},
    ops::Range,
    sync::{LazyLock, OnceLock},
};

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, AhoCorasickKind, MatchKind};
use knowledgepulse_json::{self as json, Value, parse_str};
use memchr::{memmem, memrchr_iter, memrchr2};
use regex::bytes::{Captures, Regex};

use crate::{
    columns::{self, Table, line_at},
    decoded::Decoded,
    keywords::ByKeyword,
    phrases,
    ranges::{Lazy, expression, find, lazy, skip, skip_back},
    review::{PEOPLE, plain},
    text::{LATIN, Text, is_word, letter},
    words::{NOBODY, Words},
};

/// Folders that stand for a disk, not for somebody.
static DISKS: Words = Words::of("identity.disks");
/// The first folders of paths whose next folder is often somebody's own.
static ROOTS: Words = Words::of("identity.roots");
/// Names of fields that hold a directory, a branch, or a machine.
static DIRECTORIES: Words = Words::of("identity.directories");
/// Names of fields of objects that describe a person or an account.
static PERSONAL: Words = Words::of("identity.personal");
/// What stands before `name` in the names of columns that hold people.
static OF_PEOPLE: Words = Words::new("full first last given family sur fore display real vor nach");
/// Names of columns beside one with people.
static BESIDE_PEOPLE: Words = Words::of("identity.beside_people");
/// Names of columns that hold accounts.
static LOGINS: Words = Words::new("authinfo owner username login user rolename usename currentuser");
static BRANCHES: Words = Words::new("gitbranch git_branch branch head_branch headbranch");
static HOSTS: Words = Words::new("hostname host_name host.name computername machine_name");
/// Names of fields that hold what a command printed.
static ANSWERS: Words = Words::new("content text output stdout result observation response message");
/// Owners of repositories that many people work with: they say nothing about who does.
static ORGANISATIONS: Words = Words::new(include_str!("../rules/organisations.txt"));
/// Domains in which everybody can have an address.
static PROVIDERS: Words = Words::of("identity.providers");
/// Given names of many countries, in small letters without accents; none that sources often have as a word.
static GIVEN: Words = Words::new(include_str!("../rules/given-names.txt"));
/// Labels of names that are no people's.
static THINGS: Words = Words::of("identity.things");
/// Words in small letters within the names of people.
static PARTICLES: Words = Words::new("af al bin da de del den der di do dos el la le ten ter van von y");
/// Domains of examples, whose addresses are nobody's.
const EXAMPLES: [&str; 4] = ["example.com", "example.net", "example.org", "test.com"];
static COMMON: Words = Words::new(include_str!("../rules/common-words.txt"));

/// The fewest letters of a name that is replaced wherever it stands.
const LEAST_LETTERS: usize = 3;
/// The fewest letters of a name that is replaced within `camelCase`.
const LEAST_IN_CAMEL_CASE: usize = 4;
const MOST_LETTERS: usize = 64;
/// How much of a text around a keyword its rule sees, in bytes.
const BEFORE: usize = 160;
const AFTER: usize = 300;
/// More commands do not wait for their answers.
const MOST_ASKED: usize = 8;
/// Longer texts are no commands that ask for a name.
const MOST_COMMAND: usize = 4096;
/// How much of a text before a name tells what it is, in bytes.
const BEFORE_NAME: usize = 24;
/// Of so many addresses in a line the names beside them are learned.
const MOST_MAILS: usize = 20;
/// More people and machines are not learned.
const MOST_OWNERS: usize = 100_000;
/// How much of the text around a common word it is found by, in bytes.
const CONTEXT_BEFORE: usize = 6;
const CONTEXT_AFTER: usize = 3;
/// Commands that print a name on a line, which a rule finds.
const ASKING: &str = "whoami|id -un|id -F|logname|hostname|uname -n|pwd|git config|git branch --show-current|--get LocalHostName|\
    --get ComputerName|echo $|echo %|printenv |env:|get-value account|user.name|get-url|origin.url|--show-toplevel|.login|\
    %an|%cn|/etc/hostname";
/// Ends of names of machines that have no address of their own.
const PRIVATE: [&str; 5] = [".local", ".lan", ".home", ".internal", ".corp"];
pub(crate) const PUBLIC_HOSTS: [&str; 3] = ["github.com", "gitlab.com", "bitbucket.org"];

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
    finder: OnceLock<Option<AhoCorasick>>,
}

/// A part of a text to be replaced.
pub(crate) struct Named<'n> {
    pub range: Range<usize>,
    /// The type: of a name `user`, `host`, or `filepath` within a path.
    pub kind: &'n str,
    /// What replaces a name: `user-1`. All other markers follow from the type.
    pub marker: Option<String>,
}

impl<'n> Named<'n> {
    pub(crate) fn of(range: Range<usize>, kind: &'n str) -> Self {
        let marker = None;
        Self { range, kind, marker }
    }
}

/// Returns the next part of a text that may have words with capitals behind one another: from the letter before the first one to where letters and
/// the signs within names end. The part before it ends at `end`, perhaps behind `from`: then it is the rest of that.
fn next_words(text: &[u8], from: usize, end: usize) -> Option<Range<usize>> {
    let of_word = |byte: u8| byte.is_ascii_alphabetic() || byte >= 0x80 || matches!(byte, b'\'' | b'-');
    let of_words = |byte: u8| of_word(byte) || matches!(byte, b' ' | b',' | b'.');
    let is_capital = |byte: &u8| byte.is_ascii_uppercase() || matches!(byte, 0xC3..=0xD4);
    let mut at = from;
    loop {
        let blank = find(text, at, |byte| byte == b' ')?;
        at = blank + 1;
        let word = blank - usize::from(text[..blank].ends_with(b","));
        let is_end = |byte: &u8| byte.is_ascii_lowercase() || *byte >= 0x80;
        if !text[from..word.max(from)].last().is_some_and(is_end) {
            continue;
        }
        // A word with a capital goes on, or a particle: `Anna von Berg`.
        let next = text.get(at..).unwrap_or_default();
        let length = next.iter().take_while(|byte| byte.is_ascii_lowercase()).count();
        if !next.first().is_some_and(is_capital) && !PARTICLES.has(&next[..length]) {
            continue;
        }
        let start = skip_back(text, from..word, of_word);
        if text[start..word].iter().any(is_capital) {
            return Some(start.saturating_sub(1).max(from)..skip(text, blank.max(end), of_words));
        }
    }
}

/// Returns how many bytes before the end of a text a match may begin.
type Anchor = fn(&[u8]) -> [Option<usize>; 2];

/// A place that names somebody.
struct Rule {
    /// Where before the keyword a match begins; `None` if anywhere.
    anchor: Option<Anchor>,
    expression: Lazy,
}

impl Rule {
    /// Finds a match with a keyword in it, and returns it with the part of the text that it is in. What the rule has read ends at `done`.
    fn find<'t>(
        &self,
        text: &'t [u8],
        keyword: Range<usize>,
        done: &mut usize,
    ) -> Option<(&'t [u8], Captures<'t>)> {
        if keyword.end <= *done {
            return None;
        }
        let window = &text[..text.len().min(keyword.end + AFTER)];
        let mut from = keyword.start.saturating_sub(BEFORE).max(*done);
        if let Some(anchor) = self.anchor {
            let mut starts = anchor(&text[from.min(keyword.start)..keyword.start])
                .into_iter()
                .flatten();
            // Tried there alone: otherwise, a text of many keywords would be read once for each.
            let found = starts.find_map(|length| {
                let line = &window[keyword.start - length..];
                Some((line, self.expression.captures(line)?))
            })?;
            *done = keyword.end;
            return Some(found);
        }
        *done = keyword.end;
        loop {
            let captures = self.expression.captures_at(window, from)?;
            let all = captures
                .get(0)
                .filter(|all| all.start() <= keyword.start)?
                .range();
            if all.end >= keyword.end {
                // What stands behind a value can be the next label.
                let values = captures.iter().skip(1).flatten().map(|group| group.end());
                *done = values.max().unwrap_or(all.end).max(keyword.end);
                return Some((window, captures));
            }
            from = all.end.max(from + 1);
        }
    }
}

/// The rules, each tried where one of its keywords stands.
static RULES: LazyLock<ByKeyword<Rule>> = LazyLock::new(|| {
    let lines = include_str!("../rules/identities.tsv").lines();
    let rules = lines.filter_map(|line| line.rsplit_once('\t'));
    let parts = include_str!("../rules/parts.tsv").lines();
    let parts: Vec<_> = parts.filter_map(|line| line.split_once('\t')).collect();
    let rule = |(keywords, pattern): (&'static str, &str)| {
        let anchored = pattern.strip_prefix("<LINE>").map(|rest| format!("^{rest}"));
        let whole = anchored.unwrap_or_else(|| pattern.to_owned());
        let expanded = parts
            .iter()
            .fold(whole, |pattern, (part, letters)| pattern.replace(part, letters));
        let rule = Rule {
            anchor: match pattern {
                _ if pattern.starts_with("<LINE>") => Some(lines_before),
                _ if pattern.starts_with("<HERE>") => Some(word_before),
                _ if pattern.starts_with("<AT>") => Some(|_| [Some(0), None]),
                _ if pattern.starts_with('^') => Some(login_before),
                _ => None,
            },
            expression: lazy(expanded),
        };
        (rule, keywords)
    };
    let rules = rules.filter(|(keywords, _)| !keywords.starts_with('#'));
    ByKeyword::of(rules.map(rule), '|')
});

/// Finds the keywords of all rules.
static KEYWORDS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    let builder = &mut AhoCorasickBuilder::new();
    let automaton = builder.kind(Some(AhoCorasickKind::DFA));
    automaton.build(RULES.keywords()).ok()
});

impl Identities {
    /// Learns from a text of the session.
    pub fn learn_text(&mut self, text: &str) {
        let page = Text::of(text);
        self.learn_page(text, &page);
        if let Some(decoded) = Decoded::of(&page) {
            self.learn_page(
                &String::from_utf16_lossy(&decoded.units),
                &Text::new(&decoded.units),
            );
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
        self.learn_bytes(text.as_bytes());
        if text.contains('@') {
            self.learn_rows(text);
        }
        self.learn_labelled(page);
        if text.contains(' ') {
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
        if text.len() <= MOST_COMMAND {
            let commands = commands_of(text);
            // A call is often told twice, as its text and as its input.
            if commands.iter().any(|command| asks(command)) && !self.asked.contains(&commands) {
                self.asked
                    .drain(..(self.asked.len() + 1).saturating_sub(MOST_ASKED));
                self.asked.push(commands);
            }
        }
    }

    /// Applies the rules to a text of a field, unless they were applied to it before: sessions repeat most of their texts.
    fn learn_once(&mut self, text: &str) {
        if self.is_new(text) {
            self.learn_text(text);
        }
    }

    /// Returns whether something was not learned from before.
    fn is_new(&mut self, what: impl Hash) -> bool {
        let (hasher, known) = &mut self.texts;
        known.insert(hasher.hash_one(what))
    }

    /// Frees what only learning needs.
    pub fn finish(&mut self) {
        self.texts.1 = HashSet::new();
    }

    /// Applies the rules. Returns whether one has matched.
    fn learn_bytes(&mut self, text: &[u8]) -> bool {
        let mut has_match = false;
        let mut done = Vec::new();
        let keywords = KEYWORDS.iter();
        for keyword in keywords.flat_map(|keywords| keywords.find_overlapping_iter(text)) {
            done.resize(RULES.rows.len(), 0);
            for (at, rule) in RULES.of_keyword(keyword.pattern().as_usize()) {
                if let Some((part, captures)) = rule.find(text, keyword.range(), &mut done[at]) {
                    self.learn_match(rule, part, &captures);
                    has_match = true;
                }
            }
        }
        has_match
    }

    /// Takes a text for what one of the last commands has printed, if it looks so.
    fn take_answer(&mut self, text: &str) {
        let text = text.rsplit_once("Output:\n").map_or(text, |(_, output)| output);
        let is_printed = |line: &&str| !line.is_empty() && !line.starts_with(['[', '{', '<', '$']);
        let lines: Vec<&str> = text.lines().map(str::trim).filter(is_printed).take(200).collect();
        let mut learned = None;
        for (at, commands) in self.asked.clone().iter().enumerate() {
            // As in a terminal.
            let typed = |(command, line)| format!("$ {command}\n{line}\n");
            for typed in answers_of(commands, &lines).into_iter().map(typed) {
                learned = self.learn_bytes(typed.as_bytes()).then_some(at).or(learned);
            }
            if learned.is_some() {
                break;
            }
        }
        learned.map(|at| self.asked.remove(at));
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
            match name {
                "user" | "group" => self.add_user(value, &before, &after),
                // A command that sets a name prints nothing.
                "who" if !group("rest").contains("user.") => self.add_who(value, &before, &after),
                "gecos" if value.contains(' ') => self.add_author(value, &format!("{}@", group("user"))),
                "org" if !is_nobody(value) => {
                    self.add(Who::User, &[value], &before, "", true);
                    self.add_author(value, "");
                }
                // Where any word may stand.
                "login" if is_login(value) => self.add_user(value, "", ""),
                "given" if GIVEN.has(value.as_bytes()) => self.add_author(value, ""),
                "bare" if !COMMON.has(value.as_bytes()) && is_name(trimmed(value)) => {
                    self.add(Who::User, &[trimmed(value)], &before, "", true);
                }
                "host" => self.add_host(value, &before, &after),
                "home" | "dir" => self.add_directory(value, name == "home"),
                "name" => self.add_author(value, &group("mail")),
                "mail" => {
                    self.add_author(group("name").trim(), value);
                    self.add_domain(value.split_once('@').unwrap_or_default().1);
                }
                "person" => {
                    // HL7 and DICOM separate the parts of a name by `^`; GEDCOM has slashes around the last one.
                    let parts = value.split(['^', '/', ' ']).filter(|part| !part.is_empty());
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
    fn add_directory(&mut self, path: &str, is_home: bool) {
        let path = path.trim();
        let folders: Vec<&str> = path
            .split(['/', '\\'])
            .filter(|folder| !folder.is_empty())
            .collect();
        let is_root = path.starts_with(['/', '\\']) || path.as_bytes().get(1) == Some(&b':');
        let has =
            |words: &Words, at: usize| folders.get(at).is_some_and(|folder| words.has(folder.as_bytes()));
        let of_homes = (0..folders.len().min(4))
            .find(|at| ["home", "users", "homes"].contains(&&*folders[*at].to_lowercase()));
        let own = match of_homes {
            Some(at) => at + 1,
            None if is_home => folders.len().saturating_sub(1),
            None if has(&ROOTS, 0) => (1..folders.len()).find(|at| !has(&DISKS, *at)).unwrap_or(0),
            None => 0,
        };
        if !is_root || own == 0 {
            return;
        }
        let Some(name) = folders.get(own) else { return };
        if name.contains(' ') {
            return self.add_author(name, "");
        }
        let Some(before) = path.find(name).map(|at| &path[..at]) else {
            return;
        };
        self.add_user(name, before, "");
        self.add_user(name, &before.replace(['/', '\\', ':'], "-"), "");
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
    fn add_branch(&mut self, branch: &str) {
        if let ["users" | "user", name, _, ..] | [name, _, ..] = branch.split('/').collect::<Vec<_>>()[..] {
            self.add_user(name, "", "");
        }
    }

    /// Learns the name of the company whose domain it is.
    fn add_domain(&mut self, domain: &str) {
        const SECOND: [&str; 8] = ["ac", "co", "com", "edu", "gov", "net", "onmicrosoft", "org"];
        let mut labels = domain.trim_matches(['.', ' ']).rsplit('.').skip(1);
        let second = labels.next().unwrap_or_default();
        let label = if SECOND.contains(&second) {
            labels.next().unwrap_or_default()
        } else {
            second
        };
        if is_name(label) && !PROVIDERS.has(label.as_bytes()) {
            self.add(Who::Host, &[label], "", "", false);
        }
    }

    fn add_host(&mut self, host: &str, before: &str, after: &str) {
        let host = host.trim_end_matches(['.', '-']);
        let first = host.split('.').next().unwrap_or_default();
        let is_host = host.contains(|c: char| c.is_ascii_alphabetic()) && host.bytes().all(is_of_host);
        let is_public = PUBLIC_HOSTS.iter().any(|public| host.ends_with(public));
        if is_host && !is_public && !is_nobody(first) {
            self.add(Who::Host, &[host, first], before, after, false);
        }
    }

    /// Learns the name of an account. `before` and `after` are the text around it by which a common word is found.
    fn add_user(&mut self, name: &str, before: &str, after: &str) {
        let name = trimmed(name);
        if is_name(name) {
            let forms = forms_of(name);
            let forms: Vec<&str> = forms.iter().map(String::as_str).chain([name]).collect();
            self.add(Who::User, &forms, before, after, false);
        }
    }

    /// Learns a login, an address or the name of a person, whichever it is.
    fn add_who(&mut self, who: &str, before: &str, after: &str) {
        if who.contains('@') {
            self.add_author("", who);
        } else if who.contains(' ') {
            self.add_author(who, "");
        } else {
            self.add_user(who, before, after);
        }
    }

    /// Learns who an object describes: its short texts are read as the JSON that they are, which the rules know.
    fn learn_object(&mut self, fields: &json::Object) {
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
        let full = || {
            fields
                .values()
                .filter_map(Value::as_str)
                .find(|text| is_full_name(text))
        };
        if (name.contains(' ') || has_account && !is_english(name)) && is_person(name) {
            self.add_author(name, "");
        } else if full().is_some_and(|full| belongs(full, name)) {
            self.add_user(name, "", "");
        }
    }

    /// Learns the names of people beside an address: in a cell of its row, before it in brackets, or on a line of its own above it.
    fn learn_rows(&mut self, text: &str) {
        static MAIL: LazyLock<Regex> = LazyLock::new(|| {
            expression(
                r"[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){0,4}\.[A-Za-z]{2,12}",
            )
        });
        let mut above = [""; 3];
        for line in text.split(['\n', '\r']).filter(|line| !line.trim().is_empty()) {
            for found in MAIL.find_iter(line.as_bytes()).take(MOST_MAILS) {
                let mail = &line[found.range()];
                let (local, domain) = mail.split_once('@').unwrap_or_default();
                // Of a URL, what stands before the host is no address.
                let is_of_url = line[..found.start()].ends_with(['/', ':']) && !line.contains("mailto:");
                if !is_nobody(local) && !is_of_url {
                    self.add_domain(domain);
                    self.add_local(local, domain);
                }
                let is_sign = |c: char| ",|\t;".contains(c);
                let is_around = |c: char| " \t\"'`<([{>)]}|,;*".contains(c);
                let before = line[..found.start()].trim_end_matches(is_around);
                let cells = line[before.len()..found.start()].contains(is_sign);
                let mut names = before.rsplit(is_sign).map(|cell| cell.trim_matches(is_around));
                let last = names.next().unwrap_or_default();
                let pair = format!("{} {last}", names.next().unwrap_or_default());
                // The words with capitals at the end of a sentence.
                let words = last
                    .rsplit([' ', '"', '\'', '[', '('])
                    .take(4)
                    .take_while(|word| is_person(word) && !matches!(*word, "AM" | "PM"));
                let length = words.map(|word| word.len() + 1).sum::<usize>();
                let name = &last[(last.len() + 1).saturating_sub(length).min(last.len())..];
                let is_signed = line[..found.start()].ends_with('<');
                if cells && is_person(last) && !last.contains(' ') && is_person(&pair) {
                    self.add_author(&pair, mail);
                } else if name.contains(' ') && (cells && name == last || is_signed) {
                    self.add_author(name, mail);
                }
                let behind = line[found.end()..].split(is_sign).nth(1).unwrap_or_default();
                let above = above.into_iter().filter(|name| name.contains(' '));
                for name in [name, behind.trim_matches(is_around)].into_iter().chain(above) {
                    if is_person(name) && belongs(name, local) {
                        self.add_author(name, mail);
                    }
                }
                // A login alone.
                let word = last.rsplit(' ').next().unwrap_or_default();
                let is_alone = || {
                    line.trim_start_matches([' ', '-', '*'])
                        .starts_with(&format!("{word} <"))
                };
                if is_signed && is_name(word) && (belongs(word, local) || is_alone()) {
                    self.add_author(word, mail);
                }
            }
            above.rotate_left(1);
            above[2] = line.trim();
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

    /// Learns full names: a given name and a word that is not common, wherever they stand. Two words of which none is a known name or looks like
    /// English are a name if they stand alone, behind a label, in quotes, in brackets or in a cell; each by itself is then left as it is.
    fn learn_names(&mut self, text: &str) {
        static NAME: LazyLock<Regex> = LazyLock::new(|| {
            const WORD: &str =
                r"(?:Ma?c|[DO](?:'|’))?[A-Z\xc3-\xd4][a-z\x80-\xff]+(?:-[A-Z][a-z\x80-\xff]+)?";
            let particles = PARTICLES.iter().collect::<Vec<_>>().join("|");
            expression(&format!(
                r#"(?:^|[^A-Za-z0-9_/.@#$\\\x80-\xff-])({WORD}(?: (?:(?:{particles}|[A-Z]\.) )*{WORD}){{1,2}}|{WORD}, {WORD})"#
            ))
        });
        let bytes = text.as_bytes();
        let mut from = 0;
        let mut words_end = 0;
        while let Some(part) = next_words(bytes, from, words_end) {
            words_end = part.end;
            let found = NAME.captures_at(&bytes[..part.end], part.start);
            let Some(range) = found.and_then(|found| Some(found.get(1)?.range())) else {
                from = part.end;
                continue;
            };
            from = range.end;
            let (before, behind) = (
                &bytes[range.start.saturating_sub(BEFORE_NAME)..range.start],
                &bytes[range.end..],
            );
            let Some(found) = text.get(range).filter(|_| {
                !behind
                    .first()
                    .is_some_and(|next| is_word(*next) || b"/@".contains(next))
            }) else {
                continue;
            };
            let is_alone = is_alone(before, behind);
            let is_given = |name: &str| GIVEN.has(spellings(name.to_owned())[0].as_bytes());
            let is_own = |name: &str, is_free: bool| {
                is_full_name(name)
                    && name.split(' ').skip(1).all(|word| {
                        PARTICLES.has(word.as_bytes())
                            || !phrases::WORDS.has(word.as_bytes()) && (is_free || !is_english(word))
                    })
            };
            let begins = |name: &str| is_given(name.split([' ', '-']).next().unwrap_or_default());
            if let Some((last, first)) = found.split_once(", ") {
                if (is_alone && before.ends_with(b"\"") || before.ends_with(b"] "))
                    && is_given(first)
                    && is_own(&format!("{first} {last}"), true)
                {
                    self.add_author(&format!("{first} {last}"), "");
                }
                continue;
            }
            // Also without a word of the sentence before it or behind it.
            let parts = [
                Some(found),
                found.split_once(' ').map(|part| part.1),
                found.rsplit_once(' ').map(|part| part.0),
            ];
            if let Some(name) = parts
                .into_iter()
                .flatten()
                .find(|name| begins(name) && is_own(name, is_alone))
            {
                self.add_author(name, &format!("{}@", login_beside(behind)));
            } else if is_alone
                && is_own(found, false)
                && !found
                    .split(' ')
                    .any(|word| is_english(word) || has_small(bytes, word))
            {
                let forms = forms_of(found);
                let whole = &forms[..forms.len().saturating_sub(2)];
                self.add(
                    Who::User,
                    &whole.iter().map(String::as_str).collect::<Vec<_>>(),
                    "",
                    "",
                    false,
                );
            }
        }
    }

    /// Learns the names in the columns of tables that are named like people, accounts or machines.
    fn learn_labelled(&mut self, page: &Text) {
        static LABEL: LazyLock<Regex> = LazyLock::new(|| {
            let words: Vec<_> = PEOPLE.iter().chain(LOGINS.iter()).collect();
            let words = words.join("|");
            expression(&format!(
                r#"(?i)(?:^|[|,;\t\n"(\xFF]|  )(?:[ "*`-]|''')*(?:[a-z]{{0,12}}[ _-]?name|{words})(?:[ "`]|''')*(?:[|,;\t\r\n")\xFF]|  |$)|\b(?-i:USER|USERNAME|OWNER|AUTHINFO|HOSTNAME) "#
            ))
        });
        // One letter for each that is shown, so the cells of a column stand below each other.
        let (units, letters) = (page.units(), page.letters());
        let mut from = 0;
        while let Some(found) = LABEL.find_at(letters, from) {
            from = found.end();
            let line = line_at(letters, from - 1);
            if line.len() > columns::MOST_LETTERS {
                from = line.end;
            } else if let Some(table) = Table::below(letters, line, &is_of_people) {
                from = table.end.max(from);
                self.learn_table(units, &table);
            }
        }
    }

    /// Learns the people in the columns of a table.
    fn learn_table(&mut self, units: &[u16], table: &Table) {
        const LEAST_PEOPLE: usize = 3;
        static FIRST: Words = Words::new("firstname givenname forename prenom vorname nombre nome imie");
        static LAST: Words = Words::new("lastname surname familyname nom nachname apellido cognome nazwisko");
        let text_of = |cell: &Range<usize>| String::from_utf16_lossy(&units[cell.clone()]);
        let headings = table.headings.iter().map(|at| plain(text_of(at).as_bytes()));
        let headings: Vec<_> = headings.collect();
        let column = |names: &Words| headings.iter().position(|heading| names.has(heading));
        let pair = column(&FIRST).zip(column(&LAST));
        for (row, (first, last)) in table.rows.iter().zip(pair.into_iter().cycle()) {
            self.add_author(&format!("{} {}", text_of(&row[first]), text_of(&row[last])), "");
        }
        // A column that is called `name` alone has people if there are several, or if another column tells.
        let is_told = table.rows.len() >= LEAST_PEOPLE || column(&BESIDE_PEOPLE).is_some();
        for (at, heading) in headings.iter().enumerate() {
            let cells: Vec<String> = table.rows.iter().map(|row| text_of(&row[at])).collect();
            if LOGINS.has(heading) {
                cells
                    .iter()
                    .for_each(|cell| self.add_user(cell.trim_start_matches('>'), "", ""));
            } else if HOSTS.has(heading) {
                cells.iter().for_each(|cell| self.add_host(cell, "", ""));
            }
            let are_full = || cells.iter().all(|cell| cell.is_empty() || is_full_name(cell));
            let has_people = !BESIDE_PEOPLE.has(heading)
                && !HOSTS.has(heading)
                && (heading != b"name" || is_told && are_full());
            for name in cells.into_iter().filter(|cell| has_people && is_person(cell)) {
                self.add_author(&name, "");
            }
        }
    }

    /// Learns the name of a person, and the local part of an address.
    fn add_author(&mut self, name: &str, mail: &str) {
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
        forms.extend(
            [name, local]
                .into_iter()
                .filter(|name| is_name(name))
                .map(str::to_owned),
        );
        let forms: Vec<&str> = forms.iter().map(String::as_str).collect();
        self.add(Who::User, &forms, "", " <", false);
    }

    /// Adds names of somebody: each to be found by itself, or with the text around it, if it is a common word or `is_bare`.
    fn add(&mut self, who: Who, names: &[&str], before: &str, after: &str, is_bare: bool) {
        let is_alone = |name: &str| !is_bare && is_telling(name);
        let is_wanted = |name: &&&str| {
            let length = name.chars().count();
            length <= MOST_LETTERS && (is_alone(name) || !before.is_empty() || !after.is_empty())
        };
        let names: Vec<&str> = names.iter().filter(is_wanted).copied().collect();
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
        for name in names
            .into_iter()
            .map(str::to_owned)
            .flat_map(spellings)
            .collect::<Vec<_>>()
        {
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

    fn finder(&self) -> Option<&AhoCorasick> {
        let built = self.finder.get_or_init(|| {
            let letters = |pattern: &Pattern| pattern.units.iter().copied().map(letter).collect::<Vec<u8>>();
            (!self.patterns.is_empty())
                .then(|| {
                    AhoCorasickBuilder::new()
                        .ascii_case_insensitive(true)
                        .build(self.patterns.iter().map(letters))
                })
                .and_then(Result::ok)
        });
        built.as_ref()
    }

    /// Returns whether a text may have a name in it, by its letters.
    pub(crate) fn may_be_in(&self, letters: &[u8]) -> bool {
        self.finder().is_some_and(|finder| finder.is_match(letters))
    }

    /// Returns the names in a text, in order.
    pub(crate) fn find(&self, text: &Text) -> Vec<Named<'static>> {
        let Some(finder) = self.finder() else {
            return Vec::new();
        };
        let mut found: Vec<(Range<usize>, usize)> = Vec::new();
        for each in finder.find_overlapping_iter(text.letters()) {
            let pattern = &self.patterns[each.pattern().as_usize()];
            let whole = each.start()..each.end();
            let mut range = whole.start + pattern.name.start..whole.start + pattern.name.end;
            if same_letters(&text.units()[whole.clone()], &pattern.units)
                && stands_alone(text, &range)
                && !is_in_marker(text.letters(), range.start)
            {
                if self.owners[pattern.owner].0 == Who::User {
                    range.end += last_name_behind(text.letters(), &range);
                }
                found.push((range, pattern.owner));
            }
        }
        found.sort_by_key(|(range, _)| (range.start, std::cmp::Reverse(range.end)));
        let mut end = 0;
        found.retain(|(range, _)| {
            let is_free = range.start >= end;
            end = if is_free { range.end } else { end };
            is_free
        });
        let named = |(range, owner): (Range<usize>, usize)| {
            let (who, number) = self.owners[owner];
            let name = who.name();
            let before = range.start.checked_sub(1).map(|at| text.letters()[at]);
            let is_in_path = who == Who::User && matches!(before, Some(b'/' | b'\\'));
            Named {
                range,
                kind: if is_in_path { "filepath" } else { name },
                marker: Some(format!("{name}-{number}")),
            }
        };
        found.into_iter().map(named).collect()
    }

    /// Returns a name of a file without the names that were learned.
    #[must_use]
    pub fn clean_name(&self, name: &str) -> String {
        let mut text = Text::of(name);
        let named = self.find(&text);
        let markers: Vec<_> = named.iter().filter_map(|named| named.marker.clone()).collect();
        text.replace(named.into_iter().map(|named| named.range).collect(), &markers);
        text.to_utf8()
    }
}

/// Returns a name without the signs around it.
fn trimmed(name: &str) -> &str {
    name.trim_matches(['.', '-', '_', ' '])
}

/// Returns whether a name is one of everybody, or a marker: `user-1`.
fn is_nobody(name: &str) -> bool {
    let number = ["user-", "host-"]
        .iter()
        .find_map(|marker| name.strip_prefix(marker));
    number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
        || NOBODY.has(name.as_bytes())
        || ORGANISATIONS.has(name.as_bytes())
        || name
            .split(['-', '_', '.'])
            .all(|part| NOBODY.has(part.as_bytes()))
}

fn is_of_host(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_')
}

/// Returns how long the last line of a text is, and how long it is behind an escaped line break.
fn lines_before(text: &[u8]) -> [Option<usize>; 2] {
    let line = memrchr2(b'\n', b'\r', text).map(|at| text.len() - at - 1);
    let mut slashes = memrchr_iter(b'\\', text);
    let escaped = slashes.find(|at| matches!(text.get(at + 1), Some(b'n' | b'r')));
    let escaped = escaped.map(|at| text.len() - at - 2);
    [line.or((text.len() < BEFORE).then_some(text.len())), escaped]
}

/// Returns 0 if no word ends a text.
fn word_before(text: &[u8]) -> [Option<usize>; 2] {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"_./$".contains(byte);
    [(!text.last().is_some_and(is_part)).then_some(0), None]
}

/// Returns how long the word is that ends a text and may be a login: behind an escape, a colour, or what is no part of a word.
fn login_before(text: &[u8]) -> [Option<usize>; 2] {
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
    [length.checked_sub(inner).filter(|length| *length > 0), None]
}

/// Returns whether a text looks like the name of a person: one to four words with capitals, or of letters that have none.
fn is_person(text: &str) -> bool {
    let is_of_name = |c: char| c.is_alphabetic() || matches!(c, '\'' | '’' | '-' | '.');
    let is_word = |word: &str| {
        word.chars().all(is_of_name)
            && !word.starts_with(char::is_lowercase)
            && word.chars().any(char::is_alphabetic)
            // `McLeod`, and not `WriteFile`.
            && !word.as_bytes().windows(2).skip(2).any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase())
    };
    let words: Vec<&str> = text.split(' ').collect();
    let is_common = |word: &&str| is_nobody(word) || COMMON.has(word.as_bytes());
    text.chars().count() >= 2
        && words.len() <= 4
        && words.iter().all(|word| is_word(word))
        && !words.iter().all(is_common)
}

/// Returns the name of a field or a column in small letters and without signs, and without `name` at its end; `None` if it is `name`.
fn own_name(name: &[u8]) -> Option<Vec<u8>> {
    let name = plain(name);
    let own = name.strip_suffix(b"name").unwrap_or(&name);
    (!own.is_empty()).then(|| own.to_vec())
}

/// Returns whether a column has people, or tells that the one beside it has.
fn is_of_people(heading: &[u8]) -> bool {
    let of_people = |own: Vec<u8>| PEOPLE.has(&own) || OF_PEOPLE.has(&own) || BESIDE_PEOPLE.has(&own);
    LOGINS.has(&plain(heading)) || HOSTS.has(&plain(heading)) || own_name(heading).is_none_or(of_people)
}

/// Returns the login in brackets behind a name: `Jane Doe (@jdoe)`.
fn login_beside(behind: &[u8]) -> &str {
    let inner = behind
        .strip_prefix(b" (")
        .and_then(|rest| rest.split(|byte| *byte == b')').next());
    let login = inner
        .and_then(|inner| std::str::from_utf8(inner).ok())
        .unwrap_or_default();
    match login.strip_prefix('@') {
        Some(login) => login,
        None if login.contains('.') => "",
        None => login,
    }
}

/// Returns whether a name between two texts stands alone, and its label is none of things.
fn is_alone(before: &[u8], behind: &[u8]) -> bool {
    static BEHIND: LazyLock<Regex> = LazyLock::new(|| expression(r#"^(?:["'`)|\t,;<\r\n\\]|  | [<(|]|$)"#));
    let last = before.trim_ascii_end().last();
    // Who speaks, behind the time.
    let speaks = behind.starts_with(b": ") && last.is_some_and(u8::is_ascii_digit);
    if speaks && !before.ends_with(b"\n") {
        return true;
    }
    let opens = last.is_some_and(|sign| b"\"'`(|,;>=:]".contains(sign))
        || before.ends_with(b"  ")
        || before.ends_with(b"\t");
    let mut label = before.split(|byte| !byte.is_ascii_alphanumeric());
    opens
        && BEHIND.is_match(behind)
        && !label
            .rfind(|word| !word.is_empty())
            .is_some_and(|word| THINGS.has(word))
}

/// Returns whether a word is a common one, also in the plural, or ends as words of English do.
fn is_english(word: &str) -> bool {
    static SUFFIX: LazyLock<Regex> = LazyLock::new(|| {
        expression(concat!(
            r"^.{3,}(?:[ts]ions?|ments?|ness|it(?:y|ies)|ings?|[ai]bles?|ful|less|[ae]nces?|isms?|ships?|ware|ally|ics?|[eo]rs|ives?|i[sz]ed?|ate[ds]?|ages?",
            r"|ures?|als?|ous|ed)$"
        ))
    });
    let word = word.to_lowercase();
    let is_listed = |word: &str| COMMON.has(word.as_bytes()) || phrases::WORDS.has(word.as_bytes());
    is_listed(&word) || word.strip_suffix('s').is_some_and(is_listed) || SUFFIX.is_match(word.as_bytes())
}

/// Returns whether a word looks like a login: it has a digit or a sign, is or begins with a given name, or begins with two consonants that begin
/// no word, as an initial and a last name do.
fn is_login(word: &str) -> bool {
    static ONSETS: Words = Words::new(
        "bl br ch cl cr dr dw fl fr gh gl gn gr kl kn kr ph pl pr ps rh sc sh sk sl sm sn sp sq st sv sw sy th tr ts tw ty vl wh wr xy",
    );
    /// Shorter given names begin words too.
    const LEAST_GIVEN: usize = 4;
    let is_consonant = |letter: &u8| letter.is_ascii_lowercase() && !b"aeiouy".contains(letter);
    let onset = word.as_bytes().get(..2).unwrap_or_default();
    !is_english(word)
        && (word.bytes().any(|byte| byte.is_ascii_digit() || byte == b'.')
            || (LEAST_GIVEN.min(word.len())..=word.len()).any(|length| GIVEN.has(&word.as_bytes()[..length]))
            || onset.iter().all(is_consonant) && !ONSETS.has(onset))
}

/// Returns whether a text has a word in small letters, between blanks or before a sign that ends a part of a sentence.
fn has_small(text: &[u8], word: &str) -> bool {
    let small = word.to_lowercase();
    let mut places = memmem::find_iter(text, small.as_bytes());
    places.any(|at| {
        let behind = text.get(at + small.len());
        text[..at].last().is_none_or(u8::is_ascii_whitespace)
            && behind.is_none_or(|next| b" \n.,;:!?)".contains(next))
    })
}

/// Returns whether a text is the name of a person whatever stands beside it: two or three words, none of which is common.
fn is_full_name(text: &str) -> bool {
    let is_initial = |word: &str| matches!(word.as_bytes(), [b'A'..=b'Z', b'.']);
    let words = text
        .split(' ')
        .filter(|word| !PARTICLES.has(word.as_bytes()) && !is_initial(word));
    let words: Vec<&str> = words.collect();
    let is_own = |word: &&str| {
        word.chars().any(char::is_lowercase)
            && is_person(word)
            && !is_nobody(word)
            && !COMMON.has(word.as_bytes())
    };
    matches!(words.len(), 2 | 3) && words.iter().all(is_own)
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

/// Returns whether a word may be the name of an account.
fn is_name(name: &str) -> bool {
    let is_of_name = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '~');
    name.chars().count() >= 2
        && name.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && name.chars().all(is_of_name)
        && !is_nobody(name)
}

/// Returns the forms of a person's name: of `Jane Doe` also `janedoe`, `jdoe`, `jane` and `doe`; empty for a single word.
fn forms_of(name: &str) -> Vec<String> {
    let parts = name.split([' ', ',', '.']).filter(|part| !part.is_empty());
    let parts: Vec<&str> = parts.collect();
    let is_part = |part: &&str| {
        part.chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '-' | '\''))
    };
    match parts[..] {
        [first, .., last]
            if parts.len() <= 5 && parts.iter().all(is_part) && !parts.iter().any(|part| is_nobody(part)) =>
        {
            let initial: String = first.chars().take(1).collect();
            let joined = [" ", ".", "_", "-"].map(|sign| parts.join(sign));
            let short = [first, last].map(str::to_owned);
            let forms = [format!("{first}{last}"), format!("{initial}{last}")];
            joined.into_iter().chain(forms).chain(short).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns a name as it is written, without its accents, and with them as letters of their own.
fn spellings(name: String) -> Vec<String> {
    /// An accent, and letters without it and with it.
    const ACCENTS: [(&str, &str, &str); 10] = [
        ("\u{300}", "aeiou", "àèìòù"),
        ("\u{301}", "aeiouycnsz", "áéíóúýćńśź"),
        ("\u{302}", "aeiou", "âêîôû"),
        ("\u{303}", "ano", "ãñõ"),
        ("\u{308}", "aeiou", "äëïöü"),
        ("\u{30a}", "au", "åů"),
        ("\u{30c}", "cdenrstz", "čďěňřšťž"),
        ("\u{327}", "cs", "çş"),
        ("\u{328}", "ae", "ąę"),
        ("", "oldig", "øłđığ"),
    ];
    let spelt = |with_accents: bool| {
        let letters = name.to_lowercase();
        let letters = letters.chars().map(|letter| {
            let found = ACCENTS.iter().find_map(|(accent, plain, accented)| {
                let plain = plain
                    .chars()
                    .zip(accented.chars())
                    .find(|(_, accented)| *accented == letter);
                plain.map(|(plain, _)| (plain, *accent))
            });
            let (plain, accent) = found.unwrap_or((letter, ""));
            format!("{plain}{}", if with_accents { accent } else { "" })
        });
        letters.collect::<String>()
    };
    if name.is_ascii() {
        return vec![name];
    }
    let escaped = name.encode_utf16().map(|unit| match char::from_u32(unit.into()) {
        Some(letter) if letter.is_ascii() => letter.to_string(),
        _ => format!("\\u{unit:04x}"),
    });
    vec![spelt(false), spelt(true), escaped.collect(), name]
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
        || is_long && (!parts.iter().all(|part| is_common(part)) || parts.len() > 1 && digits >= 4)
}

/// Returns whether a command, or one of several, prints a name on a line.
fn asks(commands: &str) -> bool {
    // Leftmost, because several bytes at once are searched so.
    static ASKS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
        let builder = &mut AhoCorasickBuilder::new();
        let leftmost = builder.match_kind(MatchKind::LeftmostFirst);
        leftmost.build(ASKING.split('|')).ok()
    });
    ASKS.as_ref().is_some_and(|asks| asks.is_match(commands))
}

/// Returns the commands of a text one by one, if one of them prints a name. Those of a text of JSON are fields of their own.
fn commands_of(text: &str) -> Vec<String> {
    if text.trim_start().starts_with('{') || !asks(text) {
        return Vec::new();
    }
    let commands = text.split(['\n', ';']).flat_map(|line| line.split("&&"));
    let commands = commands.map(|command| command.trim_matches(['$', '%', '>', '!', ' ', '`']).to_owned());
    commands
        .filter(|command| !command.is_empty() && !command.starts_with("cd "))
        .collect()
}

/// Lays commands that ask for a name beside the lines that were printed: the first ones beside the first lines, or the last one beside the
/// last line. A command between them may print any number of lines.
fn answers_of<'l>(commands: &'l [String], lines: &[&'l str]) -> Vec<(&'l str, &'l str)> {
    let first = commands.iter().take_while(|command| asks(command)).count();
    let last = commands[first..].last().filter(|command| asks(command));
    if lines.len() < first + usize::from(last.is_some()) {
        return Vec::new();
    }
    let pairs = commands
        .iter()
        .zip(lines)
        .take(first)
        .chain(last.zip(lines.last()));
    pairs.map(|(command, line)| (command.as_str(), *line)).collect()
}

/// Returns whether units are those of a pattern, in any case. Letters beyond ASCII have not been compared yet.
fn same_letters(units: &[u16], pattern: &[u16]) -> bool {
    let is_same = |(unit, small): (&u16, &u16)| {
        let c = char::from_u32(u32::from(*unit)).map(|c| c.to_lowercase().next().unwrap_or(c));
        *unit < 0x80 || unit == small || c.map(u32::from) == Some(u32::from(*small))
    };
    units.iter().zip(pattern).all(is_same)
}

/// Returns whether a name stands between what is no part of it: anything but letters and digits, escape sequences, a change of case in
/// `camelCase`.
fn stands_alone(text: &Text, range: &Range<usize>) -> bool {
    const MOST_ESCAPE: usize = 16;
    // The escape of a line break, a colour, and an encoded sign.
    static ESCAPE: LazyLock<Regex> = LazyLock::new(|| expression(r"(?:\\[nrt]|\[[\d;]*m|%.[0-9A-Fa-f])$"));
    let letters = text.letters();
    let name = &letters[range.clone()];
    let (Some(first), Some(last)) = (name.first(), name.last()) else {
        return false;
    };
    let is_part = |at: usize, of: u8| {
        let c = char::from_u32(u32::from(text.units()[at])).unwrap_or(' ');
        // Han, kana and Hangul have no spaces between words.
        let is_spaceless = matches!(u32::from(c), 0x3040..=0x30ff | 0x3400..=0x9fff | 0xac00..=0xd7af);
        let is_letter = letters[at].is_ascii_alphanumeric() || letters[at] == LATIN;
        is_letter || !of.is_ascii() && of != LATIN && c.is_alphanumeric() && !is_spaceless
    };
    let is_long = name.len() >= LEAST_IN_CAMEL_CASE;
    let before = range.start.checked_sub(1).is_none_or(|at| {
        let changes = is_long && letters[at].is_ascii_lowercase() && first.is_ascii_uppercase();
        let escape = &letters[range.start.saturating_sub(MOST_ESCAPE)..range.start];
        !is_part(at, *first) || changes || ESCAPE.is_match(escape)
    });
    let after = letters.get(range.end).is_none_or(|next| {
        !is_part(range.end, *last) || is_long && next.is_ascii_uppercase() && last.is_ascii_lowercase()
    });
    before && after
}

/// Returns how many letters the last name has that follows a given name in a login, with the sign between them: 11 of `jane-armadale`.
fn last_name_behind(letters: &[u8], given: &Range<usize>) -> usize {
    static LAST: LazyLock<Regex> =
        LazyLock::new(|| expression(r"^[_-]([A-Za-z\x80-\xff]{4,24})(?:[^A-Za-z0-9\x80-\xff_-]|$)"));
    let before = &letters[..given.start];
    let is_part = before.ends_with(b"-") || before.ends_with(b"_");
    if is_part || !GIVEN.has(&letters[given.clone()].to_ascii_lowercase()) {
        return 0;
    }
    let last = LAST
        .captures(&letters[given.end..])
        .and_then(|found| found.get(1));
    last.filter(|last| !is_english(&String::from_utf8_lossy(last.as_bytes())))
        .map_or(0, |last| last.end())
}

/// Returns whether a place is within a marker such as `[REDACTED:email]`.
fn is_in_marker(letters: &[u8], at: usize) -> bool {
    static MARKER: LazyLock<Regex> = LazyLock::new(|| expression(r"\[REDACTED:[^\[\]]*$"));
    MARKER.is_match(&letters[at.saturating_sub(40)..at])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CleanOptions, Cleaner};
    use knowledgepulse_json::parse;

    const STRICT: CleanOptions = CleanOptions {
        identifiers: true,
        strict: true,
    };

    /// Cleans a JSON value as a session by itself.
    fn cleaned(session: &str) -> String {
        let value = parse(session.as_bytes()).unwrap();
        Cleaner::new(STRICT).clean_trace(&value).unwrap().to_json()
    }

    /// Cleans texts as one session.
    fn cleaned_text(learned: &str, text: &str) -> String {
        let mut identities = Identities::default();
        identities.learn_text(learned);
        let mut cleaner = Cleaner::new(STRICT);
        cleaner.set_identities(identities);
        let units: Vec<u16> = text.encode_utf16().collect();
        let clean = cleaner.clean_text(&units).unwrap_or(units);
        String::from_utf16(&clean).unwrap()
    }

    #[test]
    fn the_expressions_of_all_rules_are_well_formed() {
        assert!(RULES.rows.iter().all(|rule| rule.expression.captures_len() > 1));
    }

    #[test]
    fn learn_text_finds_people_in_columns_behind_labels_and_below_greetings() {
        for text in [
            "| Kunde | Ort |\n|---|---|\n| Svenja Brockhaus | Kiel |",
            "id,contact,city\n7,Svenja Brockhaus,Kiel\n",
            " id |    full_name     | active\n----+------------------+------\n  1 | Svenja Brockhaus | t",
            "emp_no,first_name,last_name\n10,Svenja,Brockhaus\n",
            "INSERT INTO patients (id, `surname`, forename) VALUES\n(91, 'Brockhaus', 'Svenja');",
            "| Name | Role |\n|---|---|\n| Svenja Brockhaus | CTO |",
            "Customer: Svenja Brockhaus\nOrder: 12",
            "Bill to:\nSvenja Brockhaus\n12 High Street",
            "Mit freundlichen Grüßen,\nSvenja Brockhaus",
            r#"{"contact":{"name":"Svenja Brockhaus","phone":"1"}}"#,
            "Uppdragsledare: Svenja Brockhaus\n",
            "approved-by = 'Svenja K. Brockhaus'",
            "I spoke with Svenja Brockhaus from finance.",
            "Svenja Brockhaus: Good morning",
            "[10:01] Brockhaus, Svenja (Extern)",
            "<td>Svenja van der Brockhaus</td>",
            "7,\"Brockhaus, Svenja\",x",
            "alt=\"Dr. Svenja Brockhaus\"",
            "to svenja.brockhaus@corp.example",
        ] {
            let clean = cleaned_text(text, &format!("{text}\nask Brockhaus"));
            assert!(
                clean.contains("user-1") && !clean.contains("Brockhaus"),
                "{clean}"
            );
        }
        for text in [
            "| Name | Use |\n|---|---|\n| Visual Studio | CTO |\n| read_file | reads |",
            "| Name | Version |\n|---|---|\n| Visual Studio | 2022 |",
            "Client: Redis\nname,value\nalpha,1",
            "use loom::{Poison, RwLock}; f(Brockhaus, Svenja)",
            "title: \"Brockhaus Svenjason\"",
        ] {
            assert_eq!(cleaned_text(text, text), text);
        }
    }

    #[test]
    fn a_name_is_found_without_its_accents_and_with_them_as_letters_of_their_own() {
        let learned = "author: Jose\u{301} Iba\u{301}n\u{303}ez <x@y.zz>\nAuthor: José Ibáñez <x@y.zz>";
        for text in ["José Ibáñez", "Jose Ibanez", "Iba\u{301}n\u{303}ez", "IBÁÑEZ"] {
            assert_eq!(cleaned_text(learned, text), "user-1", "{text}");
        }
    }

    #[test]
    fn learn_text_finds_the_name_in_each_place_that_names_somebody() {
        for place in [
            "/home/jdoe/project",
            "see /Users/jdoe/x",
            r"C:\Users\jdoe\project",
            r"c:\\Users\\jdoe\\project",
            r"\/home\/jdoe\/project",
            "/mnt/c/Users/jdoe/x",
            "/export/home/jdoe/x",
            "file:///home/jdoe/x",
            "%2FUsers%2Fjdoe%2Fx",
            "ls ~/.claude/projects/-Users-jdoe-project/1.jsonl",
            "projects/C--Users-jdoe-project",
            "/mnt/efs/jdoe/.ssh/config",
            "cat /nfs/team/jdoe/.bashrc",
            "jdoe@laptop7:~$ ls",
            "(base) jdoe@laptop7:/srv$ ls",
            "[jdoe@laptop7 project]$ ls",
            "jdoe@Johns-MacBook-Pro project % ls",
            "jdoe@laptop7 ~/project> ls",
            "\u{1b}[01;32mjdoe@laptop7\u{1b}[00m:\u{1b}[01;34m~/x\u{1b}[00m$ ls",
            "ssh -i key jdoe@build7.corp.example",
            "scp x jdoe@build7:/srv",
            "ask @jdoe:matrix.example",
            "user = \"jdoe\"",
            "<User>jdoe</User>",
            "level=info user=jdoe status=200",
            "Svenja Brockhaus (@jdoe)",
            "Session 5 of user jdoe.",
            "Triggered by jdoe via push",
            "//nas/h on /m type cifs (rw,username=jdoe,uid=1000)",
            "100.64.0.7    pixel7          jdoe@ android -",
            "Telegram: @jdoe",
            "10.0.0.9 - jdoe [28/Nov/2026:08:01:12 +0100] \"GET /\"",
            "$ groups\njdoe adm sudo",
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPabcdefgh jdoe@laptop7",
            "uid=1000(jdoe) gid=1000(jdoe) groups=1000(jdoe),27(sudo)",
            "-rw-r--r--  1 jdoe staff  120 Jan  1 10:00 a.txt",
            "-rw-r--r-- jdoe/users 12 2026-09-30 a",
            r#"{"login":"jdoe","id":1}"#,
            r#"{\"username\": \"jdoe\"}"#,
            "  Logged in to github.com account jdoe (keyring)",
            "Hi jdoe! You've successfully authenticated, but",
            "$ npm whoami\njdoe\n",
            "$ gh api user --jq .login\njdoe",
            "Username: jdoe\nRegistry: x",
            r#""Arn": "arn:aws:iam::210987654321:user/jdoe""#,
            "author:\tjdoe\nlabels:\t",
            "/src/ @jdoe\n",
            "https://git.example/jdoe/parser/pull/3",
            "To github.com\nTo https://git.example/jdoe/parser.git\n",
            "jdoe    4242  0.0  0.1  12345  6789 pts/0    Ss   10:01   0:00 -bash",
            "jdoe     4242       1  0 09:12 pts/0    00:00:00 -bash",
            "jdoe  pts/0   2026-11-28 09:12 (x)",
            "jdoe:x:1001:1001:J D,,,:/srv/x:/bin/zsh",
            "Nov 28 10:01:22 build7 sshd[812]: Accepted publickey for jdoe from 1",
            "$ lsof\nCOMMAND   PID    USER   FD   TYPE\nnode    81234 jdoe   21u  IPv4\n",
            "JOBID PARTITION     NAME     USER ST\n  812       gpu    train  jdoe  R\n",
            "jdoe opened this issue 3 days ago",
            "Merge pull request #3 from jdoe/fix",
            "docker push ghcr.io/jdoe/app:1",
            "You have mail in /var/mail/jdoe",
            "sudo useradd -m -s /bin/bash jdoe",
            "jdoe ALL=(ALL) NOPASSWD: ALL",
            "28.11.26, 09:12 - Jane Jdoe: hi",
            "Jane Jdoe  9:12 AM\nhello",
            "__author__ = \"Jane Jdoe\"",
            "Dear Ms. Jdoe,\n",
            "contact:\n  name: Jane Jdoe\n",
            "Hi, my name is Jane Jdoe and",
            "CN=Jane Jdoe,OU=Staff,DC=corp",
            "Nov 28 09:12:01 ws7 CRON[812]: (jdoe) CMD (x)",
            "$ git log --format=\"%h %an\"\n1a2b3c4 Jane Jdoe\n",
            "[sudo] password for jdoe: ",
            "User Name        SID\n================ ====\nws-1\\jdoe S-1-5-21-123456789-123456789-1001\n",
            "Author:        WS7-PC\\jdoe\n",
            "/home/CORP/jdoe/x",
            "file://localhost/Users/jdoe/x",
            "Macs-MBP:proj jdoe$ ls",
            "*.ts @jdoe @corp/core\n",
            "https://x-my.sharepoint.com/personal/jdoe/Documents",
            "https://www.linkedin.com/in/jdoe/",
            "https://people.example.edu/~jdoe/",
            "https://social.example/@jdoe",
            "<id>jdoe</id><name>x</name>",
            "debug1: Authenticating to build9:22 as 'jdoe'",
            "debug1: Offering public key: jdoe@build9 ED25519",
            "curl -v -u jdoe https://x.example",
            "{\"user\":\"jdoe\"}",
            "{\"name\": \"@jdoe/shop\"}",
            "https://pypi.org/user/jdoe/",
            "# owner: jdoe\n# group: staff",
            "Disk quotas for user jdoe (uid 1001):",
            "Change 42 on 2026/11/28 by jdoe@ws7 *pending*",
            "vscode-remote://ssh-remote%2Bjdoe%40nas2/x",
            "C:\\Documents and Settings\\jdoe\\x",
            "\\Device\\HarddiskVolume3\\Users\\jdoe\\x",
            "//nas1/home/jdoe/x",
            " Schema | Name |  Owner\n--------+------+-------\n public | t    | jdoe",
            "$ vercel whoami\nVercel CLI 39.0\njdoe\n",
            "sudo chown -R jdoe:staff /srv",
            "docker login -u jdoe --password-stdin",
            "GITHUB_ACTOR=jdoe\n",
            "Co-authored-by: x <88123+jdoe@users.noreply.github.com>",
            r"\\fs01\profiles$\jdoe\x",
            "jdoe <jdoe@corp.example>",
            "Uid: ( 1000/    jdoe)   Gid: ( 1000/ docker)",
            ".rw-r--r-- 1.2k jdoe 30 Sep 10:00 a",
            "-rw-r--r-- 1 root jdoe 1 Sep 30 10:00 a",
            "drwxr-xr-x@ 5 jdoe  staff   160 Jan  1 10:00 src",
            "SHELL=/bin/bash\nUSER=jdoe\nLANG=C",
            "export LOGNAME=jdoe",
            "HOME=/data/team/jdoe\n",
            "USERNAME=jdoe\r\n",
            "commit 1a2b\nAuthor: Jane Doe <jdoe@corp.example>\nDate: x",
            "Author: jdoe <12345+jdoe@users.noreply.github.com>",
            r"x\nAuthor: J D <jdoe@corp.example>\n",
            "Signed-off-by: Jane Doe <jdoe@corp.example>",
            "author Jane Doe <jdoe@corp.example> 1690000000 +0200",
            "user.name=Jane Doe\nuser.email=jdoe@corp.example",
            "git config user.email \"jdoe@corp.example\"",
            "[user]\n\tname = Jane Doe\n\temail = jdoe@corp.example\n",
            "origin\tgit@github.com:jdoe/parser.git (fetch)",
            "origin  https://gitlab.example/jdoe/parser (push)",
            "[remote \"origin\"]\n\turl = https://github.com/jdoe/parser.git",
            "git remote add origin git@github.com:jdoe/parser.git",
            "On branch jdoe/fix-parser",
            "git checkout -b jdoe/fix-parser",
            "Working directory: /data/jdoe/parser",
            "Primary working directory: /mnt/efs/jdoe/parser",
            "<cwd>/scratch/jdoe/parser</cwd>",
            "cd /mnt/efs/jdoe/parser && ls",
            r#"{"cmd":"ls","workdir":"/data/jdoe/parser"}"#,
            "$ whoami\njdoe\n",
            "bash-5.2# id -un\njdoe",
            "❯ whoami\njdoe\n",
            "wheel:x:10:jdoe\n",
            "10:14 <jdoe> hi",
            "Username for 'https://git.corp.example': jdoe\n",
            "| jdoe@localhost | jdoe@% |",
            "C:\\>whoami\nCORP\\jdoe\n",
            "- Jane Doe ([@jdoe](https://github.com/jdoe))",
            "db1 ansible_host=10.0.0.7 ansible_user=jdoe\n",
            "os.environ[\"KAGGLE_USERNAME\"] = \"jdoe\"",
            "unable to access 'https://jdoe:***@github.com/acme/parser.git/'",
            "home-manager.users.jdoe = {",
            "ERROR: Permission to acme/parser.git denied to jdoe.",
            "LABEL maintainer=\"jdoe\"",
            "jdoe@sw-1> show version",
            " * @author jdoe\n",
            "user:        jdoe\ndate: x",
        ] {
            let found = cleaned_text(place, "ask jdoe, JDOE or jdoe_2 (jdoe's) [jdoe]");
            assert!(
                found == "ask user-1, user-1 or user-1_2 (user-1's) [user-1]",
                "{place}: {found}"
            );
        }
    }

    #[test]
    fn learn_text_finds_the_name_of_a_person_beside_an_address_or_a_word_for_names() {
        for place in [
            "Malin Bergqvist,malin@corp.example",
            "authors = [\"Malin Bergqvist <mb@corp.example>\"]",
            "author Malin Bergqvist\nauthor-mail <x@corp.example>",
            "1,Malin,Bergqvist,mb@corp.example",
            "| Malin Bergqvist | mb@corp.example |",
            "write to Malin Bergqvist (malin.b@corp.example)",
            "Thanks,\nMalin Bergqvist\nHead of Data\nbergqvist@corp.example",
            r#"{"displayName":"Malin Bergqvist"}"#,
            r#"{"name":"Malin Bergqvist","id":7,"email":"x@corp.example"}"#,
            "[{\"mail\":\"mb7@corp.example\",\"url\":\"x\",\"name\":\"Malin Bergqvist\"}]",
            "Full Name                    Malin Bergqvist\n",
            "   214\tMalin Bergqvist\n",
            "3fa9c1e - Malin Bergqvist, 3 days ago : x",
            "author = 'Malin Bergqvist',",
            "Copyright (c) 2025 Malin Bergqvist.",
            "/Volumes/Malin Bergqvist/a.zip",
            "Reported by Malin Bergqvist on Monday",
            "<dc:creator>Malin Bergqvist</dc:creator>",
            "Artist                          : Malin Bergqvist",
            "Authority=Developer ID Application: Malin Bergqvist (AB12CD34EF)",
            "\"created_by\":{\"name\":\"Malin Bergqvist\"}",
            "\"assignee\":{\"gid\":\"1\",\"name\":\"Malin Bergqvist\"}",
            "[28/11/2026, 10:01:22] Malin Bergqvist: hej",
            "[10:01] Malin Bergqvist\nhej",
            "authors = [\n  {name = \"Malin Bergqvist\"},\n]",
            "Thanks to Malin Bergqvist for x",
            "$ git log --pretty=format:\"%h %an %ar\"\n1a2b3c4 Malin Bergqvist 2 days ago",
            "mb:x:1001:1001:Malin Bergqvist,,,:/srv/x:/bin/zsh",
        ] {
            let found = cleaned_text(place, "ask Malin or Bergqvist");
            assert_eq!(found, "ask user-1 or user-1", "{place}");
        }
    }

    #[test]
    fn learn_text_finds_names_beside_their_labels_in_any_notation() {
        for place in [
            "a:2:{s:9:\"firstname\";s:5:\"Malin\";s:8:\"lastname\";s:9:\"Bergqvist\";}",
            "[\"first_name\"]=>\n  string(5) \"Malin\"\n  [\"last_name\"]=>\n  string(9) \"Bergqvist\"",
            "    [first_name] => Malin\n    [last_name] => Bergqvist\n",
            r#"{"firstname": {"value": "Malin"}, "lastname": {"value": "Bergqvist"}}"#,
            r#"[{"name": "firstName", "value": "Malin"}, {"name": "lastName", "value": "Bergqvist"}]"#,
            "name=\"first_name\"\r\n\r\nMalin\r\n--x\r\nname=\"last_name\"\r\n\r\nBergqvist\r\n",
            "<family value=\"Bergqvist\"/><given value=\"Malin\"/>",
            "{ID:7 FirstName:Malin LastName:Bergqvist Active:true}",
            "fill('input[name=\"firstName\"]', 'Malin'); fill('input[name=\"lastName\"]', 'Bergqvist')",
            "<tr><th>Given name</th><th>Family name</th></tr><tr><td>Malin</td><td>Bergqvist</td></tr>",
            "|givenName|familyName|city|\n|Malin|Bergqvist|Lund|",
            "PID|1||7^^^H1||Bergqvist^Malin^^^Frau||",
            "1 NAME Malin /Bergqvist/",
            "[Malin Bergqvist](https://github.com/mb7)",
            "- **Malin Bergqvist** – Product Owner",
            "00:04:12 Malin Bergqvist: hej",
        ] {
            let found = cleaned_text(place, "ask Malin or Bergqvist");
            assert!(
                !found.contains("Malin") && !found.contains("Bergqvist"),
                "{place}: {found}"
            );
        }
    }

    #[test]
    fn learn_text_finds_a_company_by_its_domain_and_its_name() {
        for (learned, text, expected) in [
            (
                "to malin@bergbygg.se",
                "intra.bergbygg.se/wiki",
                "intra.host-1.se/wiki",
            ),
            (
                "   Primary Dns Suffix  . . . : corp.bergbygg.se",
                "bergbygg",
                "host-1",
            ),
            (
                "\"tenantDefaultDomain\": \"bergbygg.onmicrosoft.com\"",
                "bergbygg",
                "host-1",
            ),
            (
                "\"tenantDisplayName\": \"Bergq Bygg AB\"",
                "Bergq Bygg AB",
                "user-1",
            ),
            (r"C:\Users\x\Dropbox (Bergq Bygg)\a", "Bergq Bygg", "user-1"),
            ("x@gmail.com bob@lists.python.org", "gmail python", "gmail python"),
        ] {
            assert_eq!(cleaned_text(learned, text), expected, "{learned}");
        }
    }

    #[test]
    fn learn_text_finds_the_machine() {
        for place in [
            "jdoe@krypton7:~$ ls",
            "[jdoe@krypton7 x]$ ls",
            "Linux krypton7 5.15.0-91-generic #101 SMP",
            "Darwin krypton7.local 23.1.0 Darwin Kernel",
            "   Static hostname: krypton7",
            "HOSTNAME=krypton7\n",
            "$ hostname\nkrypton7\n",
            "root@krypton7:/app# ls",
            "Host Name:                 krypton7\n",
            "   Host Name . . . . . . . . : krypton7",
            "127.0.1.1 krypton7\n",
            "Nov 28 10:01:22 krypton7 kernel[1]: x",
            "$ cat /etc/hostname\nkrypton7\n",
            "Last login: Sat Nov 28 10:01:22 from krypton7",
            "client-hostname \"krypton7\";",
        ] {
            assert_eq!(cleaned_text(place, "on krypton7."), "on host-1.", "{place}");
        }
    }

    #[test]
    fn learn_json_takes_what_fields_and_answers_say() {
        for session in [
            r#"[{"cwd":"/mnt/efs/jdoe/parser"},"jdoe"]"#,
            r#"[{"cwd":"/data/jdoe"},"jdoe"]"#,
            r#"[{"cwd":"C:\\Users\\Ann Jdoe\\x"},"jdoe"]"#,
            r#"[{"cwd":"D:\\Users\\jdoe\\parser"},"jdoe"]"#,
            r#"[{"gitBranch":"jdoe/parser"},"jdoe"]"#,
            r#"[{"input":{"command":"whoami"}},{"content":"jdoe"},"jdoe"]"#,
            r#"[{"input":{"command":"cd x && whoami && hostname"}},{"id":"x1","content":[{"text":"jdoe\nbuild7"}]},"jdoe"]"#,
            r#"[{"arguments":"{\"command\":[\"bash\",\"-lc\",\"whoami; ls\"]}"},{"output":"{\"output\":\"jdoe\\na.txt\\n\",\"metadata\":{}}"},"jdoe"]"#,
            r#"[{"cmd":"ls && whoami"},{"stdout":"a\nb\njdoe\n"},"jdoe"]"#,
            r#"[{"cmd":"whoami"},{"content":"Chunk ID: 1\nOutput:\njdoe\n"},"jdoe"]"#,
            r#"[{"cmd":"whoami"},{"cmd":"hostname"},{"content":"jdoe"},{"content":"build7"},"jdoe"]"#,
            r#"[{"cmd":"git config user.email"},{"content":"jdoe@corp.example"},"jdoe"]"#,
            r#"[{"/home/jdoe/a.txt":1},"jdoe"]"#,
        ] {
            let found = cleaned(session);
            assert!(
                found.ends_with(r#""user-1"]"#) && !found.contains("jdoe"),
                "{session}: {found}"
            );
        }
    }

    #[test]
    fn names_are_replaced_in_all_texts_and_names_of_a_session() {
        let session = r#"{"cwd":"/Users/jane.doe/parser","title":"Jane.Doe's parser","files":{"/srv/jane.doe/x.rs":1},
            "log":"Author: Jane Doe <jane@corp.example>\n","who":"Jane DOE, jane_doe, janedoe, jdoe, DOE, JaneHelper, myJane\\njane",
            "slug":"-srv-jane-doe-parser","ansi":"\u001b[32mjane\u001b[0m","zh":"用jane的","path":"a%2Fjane%2Fb"}"#;
        assert_eq!(
            cleaned(session),
            concat!(
                r#"{"cwd":"/Users/user-1/parser","title":"user-1's parser","files":{"/srv/user-1/x.rs":1},"#,
                r#""log":"Author: user-1 <[REDACTED:email-1]>\n","#,
                r#""who":"user-1, user-1, user-1, user-1, user-1, user-1Helper, myuser-1\\nuser-1","#,
                r#""slug":"-srv-user-1-parser","ansi":"\u001b[32muser-1\u001b[0m","zh":"用user-1的","#,
                r#""path":"a%2Fuser-1%2Fb"}"#
            )
        );
    }

    #[test]
    fn paths_keep_their_shape() {
        for (text, expected) in [
            (
                "/Users/maja/code/shop/src/a.py:77:5",
                "/Users/user-1/code/shop/src/a.py:77:5",
            ),
            (r"C:\Users\Maja L\x", r"C:\Users\user-1\x"),
            (r"C:\\Users\\Maja L\\x", r"C:\\Users\\user-1\\x"),
            (
                r"d:\users\maja\a.ts(3,1) D:/Users/maja/b.ts",
                r"d:\users\user-1\a.ts(3,1) D:/Users/user-1/b.ts",
            ),
            (r"\\wsl$\Ubuntu\home\maja\x", r"\\wsl$\Ubuntu\home\user-1\x"),
            (r"C:\Users\MAJALI~1\AppData", r"C:\Users\user-1\AppData"),
            (
                "file:///C:/Users/maja/a.html %2FUsers%2Fmaja%2Fx",
                "file:///C:/Users/user-1/a.html %2FUsers%2Fuser-1%2Fx",
            ),
            ("\"/home/parsley\" parsley", "\"/home/user-1\" parsley"),
            ("/home/max/a.rs max(1)", "/home/user-1/a.rs max(1)"),
            ("/home/李明/x.txt", "/home/user-1/x.txt"),
            (
                "/opt/maja2/x /home/node/x '/home/settings'",
                "/opt/maja2/x /home/node/x '/home/settings'",
            ),
        ] {
            let clean = cleaned_text(text, text);
            assert_eq!(clean, expected);
            assert_eq!(cleaned_text(&clean, &clean), expected);
        }
    }

    #[test]
    fn words_that_contain_a_name_stay() {
        assert_eq!(
            cleaned_text("whoami: /home/dana/x", "Danar, bandana, dana1x, [REDACTED:dana]"),
            "Danar, bandana, dana1x, [REDACTED:dana]"
        );
    }

    #[test]
    fn common_words_are_replaced_only_where_their_surroundings_tell_the_name() {
        for (learned, text, expected) in [
            (
                "cwd: /data/max/x",
                "max(1, 2) in /data/max/x.py",
                "max(1, 2) in /data/user-1/x.py",
            ),
            (
                "cwd: /data/max/x",
                "projects/-data-max-x",
                "projects/-data-user-1-x",
            ),
            (
                "main@krypton7:~$ ",
                "fn main() on main@krypton7",
                "fn main() on user-1@host-1",
            ),
            (
                "Author: Max Young <max@corp.example>",
                "max(young) by Max Young",
                "max(young) by user-1",
            ),
            ("jd@krypton7:~$ ", "jd.json jd@krypton7", "jd.json user-1@host-1"),
            (
                "origin\tgit@github.com:payments/api2.git (fetch)",
                "payments github.com/payments/api2",
                "payments github.com/user-1/api2",
            ),
        ] {
            assert_eq!(cleaned_text(learned, text), expected, "{learned}");
        }
    }

    #[test]
    fn nobody_is_learned_from_accounts_and_folders_of_everybody() {
        for text in [
            "/home/ubuntu/app /home/node /Users/runner /home/user/x /root/x",
            "root@localhost:~# ubuntu@ubuntu:~$",
            "cwd: /app/src\ncwd: /workspace/parser\ncwd: /testbed\ncwd: /work/parser",
            "cwd: /data/datasets/x\ncwd: /mnt/data",
            "uid=0(root) gid=0(root)",
            "-rw-r--r-- 1 root root 12 Jan 1 a",
            "Author: dependabot[bot] <49699333+dependabot[bot]@users.noreply.github.com>",
            "Author: Claude <noreply@anthropic.com>",
            "Author: Devin AI <158243242+devin-ai-integration[bot]@users.noreply.github.com>",
            "Linux Mint 21.3 is based on\nhostname: gateway7\nLinux kernel 5.10.1 has",
            "Author: github-actions <github-actions@github.com>",
            "origin\thttps://github.com/django/django.git (fetch)",
            "On branch feature/parser\nOn branch main",
            "git config user.name \"Test User\" && git config user.email test@example.com",
            "$ whoami\nroot\n$ hostname\nlocalhost\n",
            "USER=app\nHOME=/root\n",
            "git@github.com:/x git@github.com:acme/x",
            "https://example.com/home/settings2 navigate('/api/users/list2')",
            "origin\thttps://github.com/pallets/flask.git (fetch)",
            "uid=65532(nonroot) /home/daytona/x user-1@host-1:~$ /home/user-1/x",
            "git user.name not configured; all user role entries; Claude continues",
            " * @param name the User continues",
            "os.WriteFile, \"test@test.com\"",
        ] {
            let mut identities = Identities::default();
            identities.learn_text(text);
            assert!(identities.patterns.is_empty(), "{text}: {:?}", identities.names);
        }
    }

    #[test]
    fn names_beyond_ascii_are_replaced_in_any_case() {
        assert_eq!(
            cleaned_text(
                "Author: José Núñez <jn@corp.example>\n",
                "JOSÉ, josé, Joséphine, NÚÑEZ"
            ),
            "user-1, user-1, Joséphine, user-1"
        );
        assert_eq!(cleaned_text("/home/иван/x", "Иван и Иванов"), "user-1 и Иванов");
        assert_eq!(cleaned_text("/home/田中/x", "用田中的"), "用user-1的");
    }

    #[test]
    fn the_last_name_behind_a_given_name_goes_with_it() {
        assert_eq!(
            cleaned_text(
                "whoami: /home/jane/x",
                "jane-armadale/shop, jane_armadale's, jane-server/x, jane-2 x-jane-armadale jane.jsonl"
            ),
            "user-1/shop, user-1's, user-1-server/x, user-1-2 x-user-1-armadale user-1.jsonl"
        );
    }

    #[test]
    fn a_clean_session_has_no_identities_left() {
        let session = r#"["jdoe@krypton7:~$ whoami","Author: Jane Doe <jdoe@corp.example>","/home/jdoe/x"]"#;
        let once = cleaned(session);
        assert_eq!(cleaned(&once), once);
    }

    #[test]
    fn the_levels_that_keep_identifiers_keep_names() {
        let private = CleanOptions {
            identifiers: false,
            ..STRICT
        };
        let value = parse(br#"["jdoe@krypton7:~$ ls"]"#).unwrap();
        let clean = Cleaner::new(private).clean_trace(&value).unwrap();
        assert_eq!(clean, value);
        let plain = CleanOptions {
            strict: false,
            ..STRICT
        };
        assert_eq!(Cleaner::new(plain).clean_trace(&value).unwrap(), value);
    }
}
