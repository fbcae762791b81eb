//! What an agent is registered with, and what its adapter does.

use std::{borrow::Cow, path::Path};

use knowledgepulse_json::{Text, Value};

use crate::{Wrong, event::Events};

/// The format of an agent, a platform or a kind of rows. [`crate::agents`] lists them.
pub struct Format {
    /// The name of its format.
    pub name: &'static str,
    /// What its records are.
    pub kind: Kind,
    /// Reads them.
    pub adapter: &'static dyn Adapter,
}

impl Format {
    /// Returns what an agent is registered with.
    pub const fn new(name: &'static str, kind: Kind, adapter: &'static dyn Adapter) -> Self {
        Self { name, kind, adapter }
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
