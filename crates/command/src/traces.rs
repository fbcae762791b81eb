//! Traces for programs: those in files and folders, or of this machine, read on all cores in the background and given in their order.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, channel, sync_channel},
    },
    thread,
};

use knowledgepulse_formats::{FormatName, Known, reader::of_no_format, trace::known_of};
use knowledgepulse_json::{Text, Value};

pub use crate::read::{Inputs, Item, State};
use crate::{
    Failure, Messages, Result, Seen, Stop, TraceInfo,
    read::{MOST_WAITING_BATCHES, PAUSE, Reader, go_on, read},
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
pub struct Traces(Mutex<Receiver<Next>>);

/// Traces, and why records or inputs are none; or why nothing can be read.
type Next = Result<Vec<Item<TraceRead>>>;

impl Traces {
    /// Begins to read.
    ///
    /// # Errors
    /// If there is no thread to read on.
    pub fn open(inputs: Inputs) -> Result<Self> {
        if cfg!(target_family = "wasm") {
            let (sender, batches) = channel();
            send_all(inputs, |next| sender.send(next).is_ok());
            return Ok(Self(batches.into()));
        }
        let (sender, batches) = sync_channel(MOST_WAITING_BATCHES);
        let thread = thread::Builder::new().name("kp-score-traces".into());
        thread
            .spawn(move || send_all(inputs, |next| sender.send(next).is_ok()))
            .map_err(|error| Failure::file(format!("no thread to read on: {error}")))?;
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

/// Reads for a program, until `send` returns that nothing more is wanted.
fn send_all(inputs: Inputs, send: impl Fn(Next) -> bool) {
    match inputs.of_program() {
        Ok(inputs) => {
            let reader = Reader::new(inputs, Arc::new(prepared), Messages::silent());
            reader.run(&mut |items| go_on(send(Ok(items))));
        }
        Err(failure) => drop(send(Err(failure))),
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
