//! What an agent is registered with, and what its adapter does.

use std::{
    borrow::Cow,
    path::{Path, PathBuf},
    str::Split,
};

use knowledgepulse_json::{Value, parse_str};

use crate::{
    Wrong,
    event::Events,
    places,
    shapes::{is, is_known},
    values::{all_in_path, has_list},
    words::{row_where, rows_of, tags, words},
};

/// Returns whether a record is of a format.
type Recognises = fn(&Value) -> bool;

/// Decodes a record: says what it means.
type Decode = fn(&Value, &mut Events) -> Result<Decoded, Wrong>;

/// Says what a message of a run means.
type AddMessage = fn(&mut Events, &Value);

/// How records are decoded.
#[derive(Clone, Copy)]
enum Decoder {
    /// Each kind of record in a way of its own.
    OfRecords(Decode),
    /// As a header, as a run with a list of messages, or as one of these messages.
    OfMessages(AddMessage),
}

/// The format of an agent, a platform or a kind of rows: what its adapter does. [`crate::agents`] lists them.
pub struct Format {
    /// The name of the format.
    pub name: &'static str,
    /// What its records are.
    pub(crate) kind: Kind,
    /// Returns whether a record is of this agent that is not of the shape of its name.
    also: Recognises,
    /// The name of a file in which more records are of this agent than in any, and their shape.
    of_file: Option<(&'static str, &'static str)>,
    decoder: Decoder,
    /// Says what a run has beside its facts and its messages, at its end.
    end: fn(&mut Events, &Value),
    /// Says what other files beside the input of this path tell of its runs.
    beside: fn(&Path, &mut Events),
    /// Carries a record out as a change of the file's one value, where a file is a log of changes. Returns whether it is one.
    pub(crate) patch: fn(&mut Value, &Value) -> bool,
}

/// What the search for sessions and docs/formats.md know of a format.
#[derive(Debug)]
pub struct About {
    /// The names of the programs that write it.
    pub of: &'static str,
    /// Where they keep their files, if that is in the user's folders.
    pub folders: Vec<&'static str>,
    /// What else is read.
    pub also: &'static str,
    /// What is not read.
    pub unread: &'static str,
}

impl Format {
    pub(crate) const fn new(name: &'static str, kind: Kind, decode: Decode) -> Self {
        Self {
            name,
            kind,
            also: |_| false,
            of_file: None,
            decoder: Decoder::OfRecords(decode),
            end: |_, _| {},
            beside: |_, _| {},
            patch: |_, _| false,
        }
    }

    /// Returns the format of an agent that keeps sessions.
    pub(crate) const fn sessions(name: &'static str, decode: Decode) -> Self {
        Self::new(name, Kind::Sessions, decode)
    }

    /// Returns the format of an agent whose runs are lists of messages. The rows of `NAME-list` in `tables/words.tsv` say where a record has
    /// the list, and those of `NAME-facts` what is beside it, and those of `NAME-message` what each message says of itself. Where messages are records, `NAME-header` in `tables/shapes.tsv` is the shape of
    /// the first of a run, and `NAME-line` that of a message, if it is not that of the format.
    pub(crate) const fn of_messages(name: &'static str, add: AddMessage) -> Self {
        Self {
            decoder: Decoder::OfMessages(add),
            ..Self::sessions(name, |_, _| Ok(Decoded::Unknown))
        }
    }

    /// Says that its records are rows, each recognised by itself.
    pub(crate) const fn rows(self) -> Self {
        let kind = Kind::Rows;
        Self { kind, ..self }
    }

    /// Says what else there is to say of a run, once its messages are said.
    pub(crate) const fn end(self, end: fn(&mut Events, &Value)) -> Self {
        Self { end, ..self }
    }

    /// Says which records it recognises beside those of the shape of its name.
    pub(crate) const fn also(self, also: Recognises) -> Self {
        Self { also, ..self }
    }

    pub(crate) const fn of_file(self, name: &'static str, shape: &'static str) -> Self {
        let of_file = Some((name, shape));
        Self { of_file, ..self }
    }

    pub(crate) const fn beside(self, beside: fn(&Path, &mut Events)) -> Self {
        Self { beside, ..self }
    }

    pub(crate) const fn patch(self, patch: fn(&mut Value, &Value) -> bool) -> Self {
        Self { patch, ..self }
    }

    /// Says what files beside the input of this path tell of its runs: those that the rows of `NAME-beside` name, and others.
    pub(crate) fn tell_beside(&self, path: &Path, say: &mut Events) {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        for file in words(&format!("{}-beside", self.name)) {
            say.facts_in(Some(path.with_file_name(file.replace('*', &name))));
        }
        (self.beside)(path, say);
    }

    /// Returns whether a file of this path is of this format, by one of its first records.
    pub(crate) fn is_of(&self, record: &Value, path: Option<&Path>) -> bool {
        let is_of_file = |(name, shape)| path.is_some_and(|path| path.ends_with(name)) && is(record, shape);
        is(record, self.name) || (self.also)(record) || self.of_file.is_some_and(is_of_file)
    }

    /// Returns the list of messages of a record that is a run: the longest at the first place where the format keeps one. A text that has
    /// what the row of the place says may be such a list in JSON.
    pub(crate) fn list_in<'r>(&self, record: &'r Value) -> Option<Cow<'r, [Value]>> {
        let is_run = is(record, self.name);
        let is_list = |list: &Cow<[Value]>| is_run || list.first().is_some_and(|first| is(first, self.name));
        let list_at = |value: &'r Value, mark: &str| match value {
            Value::Array(list) => Some(Cow::Borrowed(&list[..])),
            Value::String(text) if !mark.is_empty() && text.contains(mark) => {
                Some(Cow::Owned(parse_str(text).ok()?.as_array()?.to_vec()))
            }
            _ => None,
        };
        tags(&format!("{}-list", self.name))
            .iter()
            .find_map(|[path, mark]| {
                let lists = all_in_path(record, path).into_iter();
                let lists = lists.filter_map(|value| list_at(value, mark)).filter(is_list);
                lists.max_by_key(|list| list.len())
            })
    }

    /// Returns where a record has further runs, which are decoded by themselves: the field with their list, and what a row `inner` has beside it.
    pub(crate) fn inner(&self) -> Option<Vec<&'static str>> {
        row_where("inner", |of| of == self.name).map(|[_, inner]| inner.split(' ').collect())
    }

    /// Says what a record means. It keeps no state: `session` puts the events of a run together.
    ///
    /// # Errors
    /// If a record of a known kind is wrong.
    pub(crate) fn decode(&self, record: &Value, say: &mut Events) -> Result<Decoded, Wrong> {
        let add = match self.decoder {
            Decoder::OfRecords(decode) => return decode(record, say),
            Decoder::OfMessages(add) => add,
        };
        let list = self.list_in(record);
        if list.is_none() && self.inner().is_some_and(|inner| has_list(record, inner[0])) {
            return Ok(Decoded::Whole);
        }
        let messages = rows_of(self.name);
        if list.is_none() && !is(record, &format!("{}-header", self.name)) {
            let line = format!("{}-line", self.name);
            let line = if is_known(&line) { &line } else { self.name };
            if !is(record, line) {
                return Ok(Decoded::Unknown);
            }
            say.begin_message(messages, record);
            add(say, record);
            return Ok(Decoded::GoesOn);
        }
        say.begin_run(&format!("{}-facts", self.name), record);
        for each in list.iter().flat_map(|list| &**list) {
            say.begin_message(messages, each);
            add(say, each);
        }
        (self.end)(say, record);
        Ok(list.map_or(Decoded::Begins, |_| Decoded::Whole))
    }

    /// Returns its row in `tables/agents.tsv`.
    #[must_use]
    pub fn about(&self) -> About {
        let own = rows().find_map(|mut row| (row.next() == Some(self.name)).then_some(row));
        let mut cells = own.into_iter().flatten();
        let mut next = || cells.next().unwrap_or_default();
        About {
            of: next(),
            folders: next().split(' ').filter(|folder| !folder.is_empty()).collect(),
            also: next(),
            unread: next(),
        }
    }

    /// Returns the folders and files of its sessions that are on this machine, none within another, in the order of its folders.
    #[must_use]
    pub fn here(&self) -> Vec<PathBuf> {
        places::here(&self.about().folders)
    }
}

/// Returns the rows of `tables/agents.tsv`.
fn rows() -> impl Iterator<Item = Split<'static, char>> {
    let table = include_str!("../tables/agents.tsv");
    table.lines().map(|row| row.split('\t'))
}

/// Returns the agents whose sessions are looked for and not read, each with its places.
pub(crate) fn not_read() -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    let agents = rows().filter_map(|mut row| (row.next() == Some("-")).then_some(row));
    agents.filter_map(|mut row| Some((row.next()?, row.next()?.split(' ').collect())))
}

/// Returns the agents that have left sessions on this machine which are not read, each with how many files these are: `Junie (12), Warp (1)`.
#[must_use]
pub fn not_read_here() -> Option<String> {
    // Antigravity keeps in text, elsewhere, what was said in most of them.
    let is_text = |file: &PathBuf| {
        let text = file.parent().zip(file.file_stem());
        let text = text.map(|(folder, name)| folder.with_file_name("brain").join(name));
        text.is_some_and(|text| text.join(".system_generated/logs").is_dir())
    };
    let count = |places: &[&str]| places::here(places).iter().filter(|file| !is_text(file)).count();
    let agents = not_read()
        .map(|(of, places)| (of, count(&places)))
        .filter(|(_, files)| *files > 0);
    let agents: Vec<_> = agents.map(|(of, files)| format!("{of} ({files})")).collect();
    (!agents.is_empty()).then(|| agents.join(", "))
}

/// What became of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decoded {
    /// It begins a run, and ends the one before it.
    Begins,
    /// It goes on with its run.
    GoesOn,
    /// The same, in a list that is no run.
    Joins,
    /// It is a whole run.
    Whole,
    /// The adapter does not know records of this kind, which are counted.
    Unknown,
}

/// What the records of a format are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Sessions of a program that writes code, or parts of them. A file is of one agent.
    Sessions,
    /// Rows: conversations, or the messages of one. Each is recognised by itself.
    Rows,
    /// Spans of traces, which may be mixed.
    Spans,
    /// Traces of this package, which stay as they are.
    Traces,
}
