//! Traces for programs: those in files and folders, or of this machine, read on all cores in the background and given in their order.

use std::sync::{Mutex, PoisonError};

use knowledgepulse_formats::{FormatName, Known, reader::of_no_format, trace::known_of};
use knowledgepulse_json::{Text, Value};

pub use crate::read::{Inputs, Item, State};
use crate::{Messages, Result, TraceInfo, read::Reading};

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

/// Traces that a program takes in batches. The reading ends when this is dropped.
pub struct Traces(Mutex<(Inputs, Option<Reading>)>);

impl Traces {
    /// Returns the traces of these inputs, which are read from the first batch on.
    #[must_use]
    pub fn new(inputs: Inputs) -> Self {
        Self(Mutex::new((inputs, None)))
    }

    /// Returns the next results, none if they take a while; `None` at the end.
    ///
    /// # Errors
    /// If there is nothing to read, or no thread to read on.
    pub fn next(&self) -> Result<Option<Vec<Item<TraceRead>>>> {
        let (inputs, reading) = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let reading = match reading {
            Some(begun) => begun,
            None => reading.insert(begun(inputs.clone())?),
        };
        Ok(reading.next(&prepared))
    }
}

/// Reads traces on all cores, and hands them on in their order, until `take` fails.
///
/// # Errors
/// Those of `take`, or if there is nothing to read.
pub(crate) fn each(inputs: Inputs, take: &mut dyn FnMut(Item<TraceRead>) -> Result<()>) -> Result<()> {
    let mut reading = begun(inputs)?;
    while let Some(items) = reading.next(&prepared) {
        items.into_iter().try_for_each(&mut *take)?;
    }
    Ok(())
}

fn begun(inputs: Inputs) -> Result<Reading> {
    let messages = Messages::silent();
    Reading::begin(inputs.found(&[], &messages)?, messages)
}

/// Writes a trace as JSON, on any core.
fn prepared(
    format: Option<FormatName>,
    about: TraceInfo,
    value: Value,
) -> std::result::Result<TraceRead, Text> {
    if format.is_none() || value.as_object().is_none() {
        return Err(of_no_format(&value).into());
    }
    Ok(TraceRead {
        known: known_of(&value),
        about,
        json: value.to_json(),
    })
}
