//! Reads the inputs of all commands: bytes, records, and traces, which each command prepares on all cores as it needs them.

use std::{
    mem,
    ops::ControlFlow,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, channel, sync_channel},
    },
    thread,
    time::Duration,
};

use knowledgepulse_error::guarded;
use knowledgepulse_formats::{
    FormatName, Given,
    encoding::Foreign,
    reader::{Content, Run, Settings, TraceReader},
    records::Records,
    run::{self, Group, Ids},
    trace::warning_of,
};
use knowledgepulse_json::{Text, Value};
use rayon::prelude::*;

use crate::{
    Exit, Failure, Filter, Messages, Place, Result, STDIN, Stop, files::metadata_of, files::read_chunks,
    files::total_size, filter::LeftOut, filter::Verdict, name_of, reason_of,
};

/// So many bytes of input are handed on at once, if those are so many records for each core, and at most so many bytes, or a record.
const BATCH_SIZE: u64 = 512 * 1024;
const RECORDS_PER_CORE: usize = 4;
const MOST_OF_BATCH: u64 = 8 * 1024 * 1024;

/// How many batches of records may wait.
const MOST_WAITING_BATCHES: usize = 4;

/// How often a run that waits for input looks whether it is interrupted.
pub(crate) const PAUSE: Duration = Duration::from_millis(50);

/// The inputs, and how to read them.
#[derive(Debug, Clone, Default)]
pub struct Inputs {
    /// Files and folders, or `-` for standard input; none for the sessions of agents on this machine.
    pub sources: Vec<String>,
    /// Their format; `None` where each record is recognised.
    pub format: Option<FormatName>,
    /// The given outcome and domain of traces of other formats.
    pub given: Given,
    /// Which sessions are read.
    pub filter: Filter,
    /// How many files were left out by it.
    pub(crate) left_out: LeftOut,
}

impl Inputs {
    /// Returns these, of which the wanted sessions are read, each record in the format in which it is recognised.
    pub fn new(sources: Vec<String>, filter: Filter) -> Self {
        Self {
            sources,
            filter,
            ..Self::default()
        }
    }
}

/// A record on its way: where it is, and what became of it.
#[derive(Debug)]
pub struct Item<P> {
    /// Where it is.
    pub place: Place,
    /// What may be wrong with its trace.
    warning: Option<Text>,
    /// What became of it.
    pub state: State<P>,
}

/// What became of a record.
#[derive(Debug)]
pub enum State<P> {
    /// A trace, as it is prepared for whoever reads.
    Read(P),
    /// It is not of a conversation, for this reason.
    Skipped(Text),
    /// The filter leaves it out.
    LeftOut(Verdict),
    /// It is wrong, for this reason.
    Wrong(Text),
    /// Its input could not be read to its end, for this reason.
    Unread(String),
}

/// Prepares a trace, and the format that it was converted from, on any core. A value of no known format may be a trace.
///
/// # Errors
/// Why it is no trace.
pub(crate) type Prepare<P> = dyn Fn(Option<FormatName>, Value) -> std::result::Result<P, Text> + Send + Sync;

/// Takes records in the order of the input: traces, and what is wrong or unread.
pub(crate) type Take<'t, P> = dyn FnMut(Vec<Item<P>>, &mut Seen) -> Result<()> + 't;

/// What was read beside the traces.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Records that are wrong.
    pub bad: u64,
    /// Records that are not of a conversation, such as spans of other programs.
    pub without_conversation: u64,
    /// Inputs that could not be read to their ends.
    pub unread: u64,
    /// What the filter left out.
    pub(crate) left_out: LeftOut,
    /// The words that count what the file `ignore` names.
    pub ignored: Option<String>,
}

/// So many bad lines are told, unless all are asked for.
const MOST_TOLD: u64 = 20;

impl Seen {
    /// Counts a record that makes no trace, and names it if it is one of the first.
    pub(crate) fn add_bad(&mut self, place: &Place, reason: &Text, messages: &Messages) {
        self.bad += 1;
        if messages.is_verbose() || self.bad <= MOST_TOLD {
            messages.note(format!("{place}: {reason}"));
        }
    }

    /// Returns the exit code of a run that went on.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            seen if seen.unread > 0 => Exit::File,
            seen if seen.bad > 0 => Exit::BadLines,
            _ => Exit::Ok,
        }
    }

    /// Says why no trace was read, where no line was wrong.
    pub(crate) fn why_nothing(&self) -> String {
        match self.left_out.ignored + self.left_out.others {
            0 => "there is no trace in the input; kp-score formats lists what is read".into(),
            _ => "no session is left by --since, --agent, --project, --min-turns, --exclude and the file ignore".into(),
        }
    }

    /// Says why the run has not seen all of its input; `None` if it has.
    pub(crate) fn why_incomplete(&self, stop: &Stop) -> Option<&'static str> {
        if stop.is_interrupted() {
            return Some("interrupted: the rest was not read");
        }
        (self.unread > 0).then_some("not all of the input could be read")
    }
}

/// Reads everything, until the run is ended, and hands it to `take`.
///
/// # Errors
/// Those of `take`.
pub(crate) fn read<P: Send + 'static>(
    inputs: &Inputs,
    prepare: Arc<Prepare<P>>,
    take: &mut Take<P>,
    messages: &Messages,
    stop: &Stop,
) -> Result<Seen> {
    let all = inputs.clone();
    let batches = started(|| Ok(all), prepare, messages.clone())?;
    messages.start_progress(total_size(&inputs.sources));
    let mut seen = Seen {
        left_out: inputs.left_out,
        ..Seen::default()
    };
    while !stop.is_set() {
        match batches.recv_timeout(PAUSE) {
            // Interrupted, the input may end in the middle of a trace.
            Ok(_) if stop.is_set() => break,
            Ok(items) => take_all(items?, take, &mut seen, messages)?,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    messages.stop_progress();
    if seen.bad > MOST_TOLD && !messages.is_verbose() {
        messages.note("further bad lines are only counted; --verbose names them all");
    }
    seen.ignored = inputs.filter.ignored_words(&seen.left_out);
    Ok(seen)
}

/// Records, or why nothing can be read.
pub(crate) type Next<P> = Result<Vec<Item<P>>>;

/// Begins to read what `inputs` finds, on a thread, until the receiver is gone. WebAssembly has no threads, so there all is read now.
///
/// # Errors
/// If there is no thread to read on.
pub(crate) fn started<P: Send + 'static>(
    inputs: impl FnOnce() -> Result<Inputs> + Send + 'static,
    prepare: Arc<Prepare<P>>,
    messages: Messages,
) -> Result<Receiver<Next<P>>> {
    let send_all = |send: &dyn Fn(Next<P>) -> bool| match inputs() {
        Ok(inputs) => Reader::new(inputs, prepare, messages).run(&mut |items| go_on(send(Ok(items)))),
        Err(failure) => drop(send(Err(failure))),
    };
    if cfg!(target_family = "wasm") {
        let (sender, batches) = channel();
        send_all(&|next| sender.send(next).is_ok());
        return Ok(batches);
    }
    let (sender, batches) = sync_channel(MOST_WAITING_BATCHES);
    let thread = thread::Builder::new().name("kp-score-reading".into());
    thread
        .spawn(move || send_all(&|next| sender.send(next).is_ok()))
        .map_err(|error| Failure::file(format!("no thread to read on: {error}")))?;
    Ok(batches)
}

/// Counts and tells what records came to, and hands them on.
fn take_all<P>(items: Vec<Item<P>>, take: &mut Take<P>, seen: &mut Seen, messages: &Messages) -> Result<()> {
    for item in &items {
        let place = &item.place;
        if let Some(warning) = &item.warning {
            messages.warning(format!("{place}: {warning}"));
        }
        match &item.state {
            State::Read(_) => {}
            State::Skipped(reason) => {
                seen.without_conversation += 1;
                if messages.is_verbose() {
                    messages.note(format!("{place}: {reason}"));
                }
            }
            State::LeftOut(verdict) => seen.left_out.add(*verdict),
            State::Wrong(reason) => seen.add_bad(place, reason, messages),
            State::Unread(reason) => {
                seen.unread += 1;
                messages.failure(format!("cannot read {}: {reason}", place.source));
            }
        }
    }
    take(items, seen)
}

/// Returns what tells that an input could not be read to its end.
fn unread<P>(source: &str, reason: String) -> Item<P> {
    Item {
        place: place_of(source, None, None),
        warning: None,
        state: State::Unread(reason),
    }
}

pub(crate) fn go_on(is_wanted: bool) -> ControlFlow<()> {
    match is_wanted {
        true => ControlFlow::Continue(()),
        false => ControlFlow::Break(()),
    }
}

/// Takes records, and returns whether more are wanted.
type OnBatch<'t, P> = dyn FnMut(Vec<Item<P>>) -> ControlFlow<()> + 't;

/// What was read and waits to be prepared.
enum Waiting {
    /// Records, each with its source.
    Records(Vec<(Run, String)>),
    /// An input that could not be read to its end, and why.
    Unread(String, String),
}

/// Takes what waits, and returns whether more is wanted.
type OnWaiting<'s> = dyn FnMut(Waiting) -> ControlFlow<()> + 's;

/// Reads inputs, and prepares their records on all cores.
struct Reader<P> {
    inputs: Inputs,
    messages: Messages,
    prepare: Arc<Prepare<P>>,
    /// The ids of the sessions so far.
    ids: Mutex<Ids>,
}

impl<P: Send + 'static> Reader<P> {
    fn new(inputs: Inputs, prepare: Arc<Prepare<P>>, messages: Messages) -> Self {
        Self {
            inputs,
            messages,
            prepare,
            ids: Mutex::default(),
        }
    }

    /// Reads everything, until `take` has enough, on a thread of its own, so that the next records are read while some are prepared. After a panic,
    /// which is a bug, the input counts as not read.
    fn run(&self, take: &mut OnBatch<P>) {
        const INPUT: &str = "the input";
        let read_all = |send: &mut OnWaiting| {
            if let Err(panic) = guarded(|| Ok(self.read_all(&mut *send))) {
                let _ = send(Waiting::Unread(INPUT.into(), panic.to_string()));
            }
        };
        let mut pass_on = |waiting| {
            let items = guarded(|| Ok(self.prepared(waiting)));
            take(items.unwrap_or_else(|panic| vec![unread(INPUT, panic.to_string())]))
        };
        let (sender, batches) = sync_channel(1);
        thread::scope(|scope| {
            let mut send = move |waiting| go_on(sender.send(waiting).is_ok());
            let reading = || thread::Builder::new().spawn_scoped(scope, move || read_all(&mut send));
            match (!cfg!(target_family = "wasm")).then(reading) {
                Some(Ok(_)) => while batches.recv().is_ok_and(|waiting| pass_on(waiting).is_continue()) {},
                _ => read_all(&mut pass_on),
            }
            // The sender ends when nothing more is wanted.
            drop(batches);
        });
    }

    fn read_all(&self, send: &mut OnWaiting) -> ControlFlow<()> {
        let mut batch = Batch {
            send,
            waiting: Vec::new(),
            size: 0,
        };
        for mut group in run::groups(&self.inputs.sources) {
            for run in mem::take(&mut group.inputs) {
                self.read(&run, &mut group, &mut batch)?;
            }
            batch.waiting.extend(group.end());
        }
        batch.hand_on()
    }

    /// Builds traces and prepares them on all cores. No two sessions have one id.
    fn prepared(&self, waiting: Waiting) -> Vec<Item<P>> {
        let records = match waiting {
            Waiting::Records(records) => records,
            Waiting::Unread(source, reason) => return vec![unread(&source, reason)],
        };
        let built = records.into_par_iter().flat_map_iter(|(item, source)| {
            let items = item.build().into_iter();
            items.map(move |item| (item, source.clone()))
        });
        let mut built: Vec<_> = built.collect();
        let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        built.retain_mut(|(item, _)| ids.claim(item));
        drop(ids);
        let prepared = built.into_par_iter().map(|(item, source)| Item {
            place: place_of(&source, item.place.line, item.place.index),
            warning: match &item.content {
                Content::Read(trace) if item.format != Some(FormatName::Trace) => warning_of(trace),
                _ => None,
            },
            state: self.state_of(&source, item.format, item.content),
        });
        prepared.collect()
    }

    /// Prepares what a record came to, unless it is left out.
    fn state_of(&self, source: &str, format: Option<FormatName>, content: Content) -> State<P> {
        let value = match content {
            Content::Wrong(reason) => return State::Wrong(reason),
            Content::Skipped(reason) => return State::Skipped(reason),
            Content::Read(value) => value,
        };
        match self.inputs.filter.of_session(source, format, &value) {
            Verdict::Wanted => {}
            verdict => return State::LeftOut(verdict),
        }
        (self.prepare)(format, value).map_or_else(State::Wrong, State::Read)
    }

    /// Reads the files of a run as one input, which is named by the first.
    fn read(&self, run: &[String], group: &mut Group, batch: &mut Batch) -> ControlFlow<()> {
        let source = run.first().map_or(STDIN, String::as_str);
        let settings = Settings {
            format: self.inputs.format,
            given: Arc::new(self.inputs.given.clone()),
            file: (source != STDIN).then(|| source.into()),
        };
        // What comes through a pipe may take a while.
        let waits = metadata_of(source).is_some_and(|metadata| metadata.is_file());
        let (mut records, mut reader) = (Records::default(), TraceReader::new(settings));
        let source_name = name_of(source);
        let mut add = |batch: &mut Batch, runs: Vec<Run>, size: u64| {
            let runs = runs.into_iter();
            let left = runs.filter_map(|run| group.take(run, source_name.to_owned()));
            batch.waiting.extend(left);
            batch.size += size;
            match batch.is_full() {
                true => batch.hand_on(),
                false => ControlFlow::Continue(()),
            }
        };
        let mut send = |records: &mut Records, reader: &mut TraceReader, batch: &mut Batch| {
            for record in records {
                let size = record.place.size;
                add(batch, reader.read(record), size)?;
            }
            match waits {
                true => ControlFlow::Continue(()),
                false => batch.hand_on(),
            }
        };
        let (mut foreign, mut flow) = (None, ControlFlow::Continue(()));
        let mut consume = |text: &[u8]| {
            foreign = records.push(text).err();
            if foreign.is_none() && flow.is_continue() {
                flow = send(&mut records, &mut reader, batch);
            }
            go_on(foreign.is_none() && flow.is_continue())
        };
        let read = run.iter().enumerate().try_for_each(|(at, file)| {
            // A file may end without the end of its line.
            if at > 0 && consume(b"\n").is_break() {
                return Ok(());
            }
            read_chunks(file, &self.messages, &mut consume)
        });
        flow?;
        if foreign.is_none() {
            // If reading fails, the text before may end with a whole trace.
            foreign = records.finish().err();
        }
        if foreign.is_none() {
            send(&mut records, &mut reader, batch)?;
            add(batch, reader.end(), 0)?;
        }
        let reason = match (read, foreign) {
            (Err(error), _) => reason_of(&error),
            (_, Some(foreign)) => foreign_input(source, foreign),
            _ => return ControlFlow::Continue(()),
        };
        batch.hand_on()?;
        (batch.send)(Waiting::Unread(source_name.to_owned(), reason))
    }
}

/// Records that are prepared at once: those of a large input, or of several small ones.
struct Batch<'b, 's> {
    send: &'b mut OnWaiting<'s>,
    /// The records, each with its source.
    waiting: Vec<(Run, String)>,
    /// How many bytes of input were read for them.
    size: u64,
}

impl Batch<'_, '_> {
    /// Returns whether there is enough for all cores, or too much to wait.
    fn is_full(&self) -> bool {
        let has_for_all = self.waiting.len() >= RECORDS_PER_CORE * rayon::current_num_threads();
        self.size >= BATCH_SIZE && has_for_all || self.size >= MOST_OF_BATCH
    }

    /// Passes the records on.
    fn hand_on(&mut self) -> ControlFlow<()> {
        self.size = 0;
        match mem::take(&mut self.waiting) {
            waiting if waiting.is_empty() => ControlFlow::Continue(()),
            waiting => (self.send)(Waiting::Records(waiting)),
        }
    }
}

fn place_of(source: &str, line: Option<u64>, index: Option<u64>) -> Place {
    Place {
        source: source.to_owned(),
        line: line.unwrap_or_default(),
        index,
    }
}

/// Describes the problem of an input that is no text, and the way out.
fn foreign_input(source: &str, Foreign { what, program }: Foreign) -> String {
    let name = match source {
        STDIN => String::new(),
        name if name.contains(char::is_whitespace) => format!(" \"{name}\""),
        name => format!(" {name}"),
    };
    format!("it is {what}: use {program}{name} | kp-score score -")
}
