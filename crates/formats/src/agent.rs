//! What an agent is registered with, and what its adapter does.

use std::path::{Path, PathBuf};

use knowledgepulse_json::Value;

use crate::{
    Wrong,
    event::Events,
    named::{Named, by_folders},
    places,
};

/// The format of an agent, a platform or a kind of rows, and all that it is registered with. [`crate::agents`] lists them.
pub struct Format {
    /// The name of the format.
    pub name: &'static str,
    /// The names of the programs that write it.
    pub of: &'static str,
    /// Where they keep their files, if that is in the user's folders.
    pub folders: &'static [&'static str],
    /// What else is read, for docs/formats.md.
    pub also: &'static str,
    /// What is not read, for docs/formats.md.
    pub unread: &'static str,
    /// What its records are.
    pub(crate) kind: Kind,
    /// Returns whether a file is of this agent, by one of its first records and its path.
    pub(crate) recognises: fn(&Value, Option<&Path>) -> bool,
    /// Says what a record means. It keeps no state: `session` puts the events of a run together. An error is for a record of a known kind
    /// that is wrong.
    pub(crate) decode: fn(&Value, &mut Events) -> Result<Decoded, Wrong>,
    /// Where a record has further runs, which are decoded by themselves.
    pub(crate) inner: Option<Inner>,
    /// Says what files beside the input of this path tell of its runs.
    pub(crate) beside: fn(&Path, &mut Events),
    /// Carries a record out as a change of the file's one value, where a file is a log of changes. Returns whether it is one.
    pub(crate) patch: fn(&mut Value, &Value) -> bool,
    /// Says whose runs a file holds, by its path.
    pub(crate) named: fn(&Path) -> Named,
}

impl Format {
    pub(crate) const fn new(
        name: &'static str,
        of: &'static str,
        kind: Kind,
        recognises: fn(&Value, Option<&Path>) -> bool,
        decode: fn(&Value, &mut Events) -> Result<Decoded, Wrong>,
    ) -> Self {
        Self {
            name,
            of,
            folders: &[],
            also: "",
            unread: "",
            kind,
            recognises,
            decode,
            inner: None,
            beside: |_, _| {},
            patch: |_, _| false,
            named: by_folders,
        }
    }

    /// Returns the format of an agent that keeps sessions.
    pub(crate) const fn sessions(
        name: &'static str,
        of: &'static str,
        recognises: fn(&Value, Option<&Path>) -> bool,
        decode: fn(&Value, &mut Events) -> Result<Decoded, Wrong>,
    ) -> Self {
        Self::new(name, of, Kind::Sessions, recognises, decode)
    }

    pub(crate) const fn at(self, folders: &'static [&'static str]) -> Self {
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

    pub(crate) const fn inner(self, inner: Inner) -> Self {
        let inner = Some(inner);
        Self { inner, ..self }
    }

    pub(crate) const fn beside(self, beside: fn(&Path, &mut Events)) -> Self {
        Self { beside, ..self }
    }

    pub(crate) const fn patch(self, patch: fn(&mut Value, &Value) -> bool) -> Self {
        Self { patch, ..self }
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

/// Where a record has further runs.
#[derive(Clone, Copy)]
pub struct Inner {
    /// The field with their list.
    pub list: &'static str,
    /// Whether they are sub-agents of the run that the record is.
    pub are_sub_agents: bool,
    /// A field that each of them gets, and the field of the record with its value.
    pub given: Option<(&'static str, &'static str)>,
}
