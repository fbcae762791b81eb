//! What an agent is registered with, and what its adapter does.

use std::{
    borrow::Cow,
    path::{Path, PathBuf},
};

use knowledgepulse_json::{Text, Value};

use crate::{
    Wrong,
    event::Events,
    named::{Named, by_folders},
    places::{self, Folder},
};

/// The format of an agent, a platform or a kind of rows, and all that it is registered with. [`crate::agents`] lists them.
pub struct Format {
    /// The name of the format.
    pub name: &'static str,
    /// The names of the programs that write it.
    pub of: &'static str,
    /// Where they keep their files, if that is in the user's folders.
    pub folders: &'static [Folder],
    /// What else is read, for docs/formats.md.
    pub also: &'static str,
    /// What is not read, for docs/formats.md.
    pub unread: &'static str,
    /// What its records are.
    pub(crate) kind: Kind,
    /// Reads them.
    pub(crate) adapter: &'static dyn Adapter,
    /// Says whose runs a file holds, by its path.
    pub(crate) named: fn(&Path) -> Named,
}

impl Format {
    pub(crate) const fn new(
        name: &'static str,
        of: &'static str,
        kind: Kind,
        adapter: &'static dyn Adapter,
    ) -> Self {
        Self {
            name,
            of,
            folders: &[],
            also: "",
            unread: "",
            kind,
            adapter,
            named: by_folders,
        }
    }

    pub(crate) const fn at(self, folders: &'static [Folder]) -> Self {
        Self { folders, ..self }
    }

    pub(crate) const fn also(self, also: &'static str) -> Self {
        Self { also, ..self }
    }

    pub(crate) const fn without(self, unread: &'static str) -> Self {
        Self { unread, ..self }
    }

    pub(crate) const fn named(self, named: fn(&Path) -> Named) -> Self {
        Self { named, ..self }
    }

    /// Returns the folders and files of its sessions that are on this machine, none within another, in the order of its folders.
    #[must_use]
    pub fn here(&self) -> Vec<PathBuf> {
        places::here(self.folders)
    }
}

/// What became of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decoded {
    /// It begins a run, and ends the one before it.
    Begins,
    /// It goes on with its run.
    GoesOn,
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

/// Decodes the records of an agent. It keeps no state: `session` puts the events of a run together.
pub trait Adapter: Send + Sync {
    /// Returns whether a file is of this agent, by one of its first records and its path.
    fn recognises(&self, record: &Value, path: Option<&Path>) -> bool;

    /// Returns the runs within a record, which are decoded by themselves.
    fn inner<'v>(&self, _record: &'v Value) -> Vec<Inner<'v>> {
        Vec::new()
    }

    /// Says what files beside the input of this path tell of its runs.
    fn beside(&self, _path: &Path, _say: &mut Events) {}

    /// Carries a record out as a change of the file's one value, where a file is a log of changes. Returns whether it is one.
    fn patch(&self, _whole: &mut Value, _record: &Value) -> bool {
        false
    }

    /// Says what a record means.
    ///
    /// # Errors
    /// If a record of a kind that is known is wrong.
    fn decode(&self, record: &Value, say: &mut Events) -> Result<Decoded, Wrong>;
}

/// An adapter that recognises and decodes records by these functions.
pub struct Plain(
    pub fn(&Value, Option<&Path>) -> bool,
    pub fn(&Value, &mut Events) -> Result<Decoded, Wrong>,
);

impl Adapter for Plain {
    fn recognises(&self, record: &Value, path: Option<&Path>) -> bool {
        self.0(record, path)
    }

    fn decode(&self, record: &Value, say: &mut Events) -> Result<Decoded, Wrong> {
        self.1(record, say)
    }
}

/// A run within a record.
pub struct Inner<'v> {
    /// Its record.
    pub value: Cow<'v, Value>,
    /// Its name in the outer record.
    pub name: Text,
    /// Its position in a list of such runs; `None` for a sub-agent of the outer run.
    pub index: Option<u64>,
}
