//! Traces for programs: those in files and folders, or of this machine, read on all cores in the background and given in their order.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, channel, sync_channel},
    },
    thread,
    time::Duration,
};

use knowledgepulse_formats::{Known, reader::of_no_format, trace::known_of};
use knowledgepulse_json::Text;

pub use crate::read::{Inputs, Item, State};
use crate::{Failure, Messages, ReadTrace, Result, Seen, Stop, TraceInfo, read::read};

/// How many results may wait for the program.
const MOST_WAITING: usize = 64;

/// How long a program waits for the next results at most.
const PAUSE: Duration = Duration::from_millis(50);

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

/// The records that come. The reading ends when this is dropped.
pub struct Traces(Mutex<Receiver<Next>>);

/// A trace, or why a record or an input is none; or why nothing can be read.
type Next = Result<Item<TraceRead>>;

impl Traces {
    /// Begins to read.
    ///
    /// # Errors
    /// If there is no thread to read on.
    pub fn open(inputs: Inputs) -> Result<Self> {
        if cfg!(target_family = "wasm") {
            let (sender, results) = channel();
            send_all(inputs, |next| sender.send(next).is_ok());
            return Ok(Self(results.into()));
        }
        let (sender, results) = sync_channel(MOST_WAITING);
        let thread = thread::Builder::new().name("kp-score-traces".into());
        thread
            .spawn(move || send_all(inputs, |next| sender.send(next).is_ok()))
            .map_err(|error| Failure::file(format!("no thread to read on: {error}")))?;
        Ok(Self(results.into()))
    }

    /// Returns the next results, none if they take a while; `None` at the end.
    ///
    /// # Errors
    /// If there is nothing to read.
    pub fn next(&self) -> Result<Option<Vec<Item<TraceRead>>>> {
        let results = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let first = match results.recv_timeout(PAUSE) {
            Ok(next) => next?,
            Err(RecvTimeoutError::Timeout) => return Ok(Some(Vec::new())),
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
        };
        let more = results.try_iter().take(MOST_WAITING - 1);
        std::iter::once(Ok(first))
            .chain(more)
            .collect::<Result<_>>()
            .map(Some)
    }
}

/// Reads for a program, until `send` returns that nothing more is wanted.
fn send_all(inputs: Inputs, send: impl Fn(Next) -> bool) {
    let nobody = || Failure::interrupted("nobody reads on");
    let read = each(inputs, &mut |item| {
        send(Ok(item)).then_some(()).ok_or_else(nobody)
    });
    // Where nobody wants more, nobody hears of it.
    if let Err(failure) = read {
        send(Err(failure));
    }
}

/// Reads traces on all cores, and hands them on in their order, until `take` fails.
///
/// # Errors
/// Those of `take`, or if there is nothing to read.
pub(crate) fn each(mut inputs: Inputs, take: &mut dyn FnMut(Item<TraceRead>) -> Result<()>) -> Result<()> {
    let messages = Messages::silent();
    if inputs.sources.is_empty() {
        inputs.filter = inputs.filter.with_ignored()?;
    }
    let inputs = inputs.found(&[], &messages)?;
    let mut take = |items: Vec<Item<_>>, _: &mut Seen| items.into_iter().try_for_each(&mut *take);
    read(
        &inputs,
        Arc::new(prepared),
        &mut take,
        &messages,
        &Stop::default(),
    )
    .map(drop)
}

/// Writes a trace as JSON, on any core.
fn prepared(read: ReadTrace) -> std::result::Result<TraceRead, Text> {
    let is_object = read.value.as_object().is_some();
    let foreign = read
        .foreign
        .or_else(|| (!is_object).then(|| of_no_format(&read.value)));
    if let Some(foreign) = foreign {
        return Err(foreign.into());
    }
    Ok(TraceRead {
        known: known_of(&read.value),
        about: TraceInfo::of(&read.value, read.format),
        json: read.value.to_json(),
    })
}
