//! Traces for programs: those in files and folders, or of this machine, read on all cores in the background and given in their order.

use std::sync::{
    Arc, Mutex, PoisonError,
    mpsc::{Receiver, RecvTimeoutError},
};

use knowledgepulse_formats::{FormatName, Known, reader::of_no_format, trace::known_of};
use knowledgepulse_json::{Text, Value};

pub use crate::read::{Inputs, Item, State};
use crate::{
    Messages, Result, Seen, Stop, TraceInfo,
    read::{Next, PAUSE, read, started},
};

/// A trace that was read.
#[derive(Debug, Clone)]
pub struct TraceRead {
    /// Which parts of its outcome are known.
    pub known: Known,
    /// What is told of it.
    pub about: TraceInfo,
    /// The trace in JSON.
    pub json: String,
}

/// The records that come, in batches. The reading ends when this is dropped.
pub struct Traces(Mutex<Receiver<Next<TraceRead>>>);

impl Traces {
    /// Begins to read.
    ///
    /// # Errors
    /// If there is no thread to read on.
    pub fn open(inputs: Inputs) -> Result<Self> {
        let batches = started(|| inputs.of_program(), Arc::new(prepared), Messages::silent())?;
        Ok(Self(batches.into()))
    }

    /// Returns the next results, none if they take a while; `None` at the end.
    ///
    /// # Errors
    /// If there is nothing to read.
    pub fn next(&self) -> Result<Option<Vec<Item<TraceRead>>>> {
        let batches = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match batches.recv_timeout(PAUSE) {
            Ok(next) => next.map(Some),
            Err(RecvTimeoutError::Timeout) => Ok(Some(Vec::new())),
            Err(RecvTimeoutError::Disconnected) => Ok(None),
        }
    }
}

impl Inputs {
    /// Finds the files that a program reads: of this machine without those that the user's file `ignore` names.
    fn of_program(mut self) -> Result<Self> {
        if self.sources.is_empty() {
            self.filter = self.filter.with_ignored()?;
        }
        self.found(&[], &Messages::silent())
    }
}

/// Reads traces on all cores, and hands them on in their order, until `take` fails.
///
/// # Errors
/// Those of `take`, or if there is nothing to read.
pub(crate) fn each(inputs: Inputs, take: &mut dyn FnMut(Item<TraceRead>) -> Result<()>) -> Result<()> {
    let mut take = |items: Vec<Item<_>>, _: &mut Seen| items.into_iter().try_for_each(&mut *take);
    let (prepare, messages) = (Arc::new(prepared), Messages::silent());
    read(
        &inputs.of_program()?,
        prepare,
        &mut take,
        &messages,
        &Stop::default(),
    )
    .map(drop)
}

/// Writes a trace as JSON, on any core.
fn prepared(format: Option<FormatName>, value: Value) -> std::result::Result<TraceRead, Text> {
    let Some(format) = format.filter(|_| value.as_object().is_some()) else {
        return Err(of_no_format(&value).into());
    };
    Ok(TraceRead {
        known: known_of(&value),
        about: TraceInfo::of(&value, format),
        json: value.to_json(),
    })
}
