//! Reads the inputs of all commands: bytes, records, and traces, which each command prepares on all cores as it needs them.

use std::{
    mem,
    ops::ControlFlow,
    sync::{
        Arc,
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
    Context, Exit, Failure, Filter, Messages, Place, Result, STDIN, Stop, TraceInfo, files::metadata_of,
    files::read_chunks, files::total_size, filter::LeftOut, name_of, reason_of,
};

/// So many bytes of input are handed on at once, if those are so many records for each core, and at most so many bytes, or a record.
const BATCH_SIZE: u64 = 512 * 1024;
const RECORDS_PER_CORE: usize = 4;
const MOST_OF_BATCH: u64 = 8 * 1024 * 1024;

/// How many batches of records may wait.
const MOST_WAITING_BATCHES: usize = 4;

/// How often a run that waits for input looks whether it is interrupted.
const PAUSE: Duration = Duration::from_millis(50);

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
    /// Why files were left out by it.
    pub(crate) left_out: Vec<LeftOut>,
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
    LeftOut(LeftOut),
    /// It is wrong, for this reason.
    Wrong(Text),
    /// Its input could not be read to its end, for this reason.
    Unread(String),
}

/// Prepares a trace, with what it tells and the format that it was converted from, on any core. A value of no known format may be a trace.
///
/// # Errors
/// Why it is no trace.
pub(crate) type Prepare<'p, P> =
    dyn Fn(Option<FormatName>, TraceInfo, Value) -> std::result::Result<P, Text> + Sync + 'p;

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
    /// Why files and sessions were left out.
    pub(crate) left_out: Vec<LeftOut>,
}

/// So many bad lines are told, unless all are asked for.
const MOST_TOLD: u64 = 20;

impl Seen {
    /// Counts what a record came to, and tells it.
    fn add<P>(
        &mut self,
        Item {
            place,
            warning,
            state,
        }: &Item<P>,
        messages: &Messages,
    ) {
        if let Some(warning) = warning {
            messages.warning(format!("{place}: {warning}"));
        }
        match state {
            State::Read(_) => {}
            State::Skipped(reason) => {
                self.without_conversation += 1;
                if messages.is_verbose() {
                    messages.note(format!("{place}: {reason}"));
                }
            }
            State::LeftOut(why) => self.left_out.push(*why),
            State::Wrong(reason) => self.add_bad(place, reason, messages),
            State::Unread(reason) => {
                self.unread += 1;
                messages.failure(format!("cannot read {}: {reason}", place.source));
            }
        }
    }

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
        match self.left_out.is_empty() {
            true => "there is no trace in the input; kp-score formats lists what is read".into(),
            false => "no session is left by --since, --agent, --project, --min-turns, --exclude and the file ignore".into(),
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
/// Those of `take`, or if there is no thread to read on.
pub(crate) fn read<P: Send>(
    inputs: &Inputs,
    prepare: &Prepare<P>,
    take: &mut Take<P>,
    Context { messages, stop, .. }: Context,
) -> Result<Seen> {
    let mut reading = Reading::begin(inputs.clone(), messages.clone())?;
    messages.start_progress(total_size(&inputs.sources));
    let mut seen = Seen {
        left_out: inputs.left_out.clone(),
        ..Seen::default()
    };
    while let Some(items) = reading.next(prepare).filter(|_| !stop.is_set()) {
        items.iter().for_each(|item| seen.add(item, messages));
        take(items, &mut seen)?;
    }
    messages.stop_progress();
    if seen.bad > MOST_TOLD && !messages.is_verbose() {
        messages.note("further bad lines are only counted; --verbose names them all");
    }
    inputs.filter.tell_ignored(&seen.left_out, messages);
    Ok(seen)
}

pub(crate) fn go_on(is_wanted: bool) -> ControlFlow<()> {
    match is_wanted {
        true => ControlFlow::Continue(()),
        false => ControlFlow::Break(()),
    }
}

/// What was read and waits to be prepared.
enum Waiting {
    /// Records, each with its source.
    Records(Vec<(Run, String)>),
    /// An input that could not be read to its end, and why.
    Unread(String, String),
}

/// Inputs that a thread reads, until this is dropped, and whose records are prepared on all cores where they are taken, while the next ones
/// are read.
pub(crate) struct Reading {
    waiting: Receiver<Waiting>,
    filter: Filter,
    /// The ids of the sessions so far.
    ids: Ids,
}

impl Reading {
    /// Begins to read. WebAssembly has no threads, so there all is read now. After a panic, which is a bug, the input counts as not read.
    ///
    /// # Errors
    /// If there is no thread to read on.
    pub(crate) fn begin(inputs: Inputs, messages: Messages) -> Result<Self> {
        let filter = inputs.filter.clone();
        let read_all = move |send: &dyn Fn(Waiting) -> bool| {
            if let Err(panic) = guarded(|| Ok(Reader::new(&inputs, &messages, send).read_all())) {
                send(Waiting::Unread("the input".into(), panic.to_string()));
            }
        };
        let waiting = if cfg!(target_family = "wasm") {
            let (sender, waiting) = channel();
            read_all(&|next| sender.send(next).is_ok());
            waiting
        } else {
            let (sender, waiting) = sync_channel(MOST_WAITING_BATCHES);
            let thread = thread::Builder::new().name("kp-score-reading".into());
            thread
                .spawn(move || read_all(&|next| sender.send(next).is_ok()))
                .map_err(|error| Failure::file(format!("no thread to read on: {error}")))?;
            waiting
        };
        Ok(Self {
            waiting,
            filter,
            ids: Ids::default(),
        })
    }

    /// Returns the next records, none if they take a while; `None` at the end.
    pub(crate) fn next<P: Send>(&mut self, prepare: &Prepare<P>) -> Option<Vec<Item<P>>> {
        match self.waiting.recv_timeout(PAUSE) {
            Ok(Waiting::Records(records)) => Some(self.prepared(records, prepare)),
            Ok(Waiting::Unread(source, reason)) => Some(vec![Item {
                place: place_of(&source, None, None),
                warning: None,
                state: State::Unread(reason),
            }]),
            Err(RecvTimeoutError::Timeout) => Some(Vec::new()),
            Err(RecvTimeoutError::Disconnected) => None,
        }
    }

    /// Builds traces and prepares them on all cores. No two sessions have one id.
    fn prepared<P: Send>(&mut self, records: Vec<(Run, String)>, prepare: &Prepare<P>) -> Vec<Item<P>> {
        let built = records.into_par_iter().flat_map_iter(|(item, source)| {
            let items = item.build().into_iter();
            items.map(move |item| (item, source.clone()))
        });
        let mut built: Vec<_> = built.collect();
        built.retain_mut(|(item, _)| self.ids.claim(item));
        let prepared = built.into_par_iter().map(|(item, source)| Item {
            place: place_of(&source, item.place.line, item.place.index),
            warning: match &item.content {
                Content::Read(trace) if item.format != Some(FormatName::Trace) => warning_of(trace),
                _ => None,
            },
            state: match item.content {
                Content::Wrong(reason) => State::Wrong(reason),
                Content::Skipped(reason) => State::Skipped(reason),
                Content::Read(value) => {
                    let about = TraceInfo::of(&value, item.format.unwrap_or(FormatName::Trace));
                    match self.filter.of_session(&source, &about, &value) {
                        None => prepare(item.format, about, value).map_or_else(State::Wrong, State::Read),
                        Some(why) => State::LeftOut(why),
                    }
                }
            },
        });
        prepared.collect()
    }
}

/// Reads inputs, and hands on what waits, until no more is wanted. Records are handed on together: those of a large input, or of several
/// small ones.
struct Reader<'r> {
    inputs: &'r Inputs,
    messages: &'r Messages,
    /// Takes what waits, and returns whether more is wanted.
    send: &'r dyn Fn(Waiting) -> bool,
    /// The records that are handed on next, each with its source, and how many bytes of input were read for them.
    records: Vec<(Run, String)>,
    size: u64,
}

impl<'r> Reader<'r> {
    fn new(inputs: &'r Inputs, messages: &'r Messages, send: &'r dyn Fn(Waiting) -> bool) -> Self {
        Self {
            inputs,
            messages,
            send,
            records: Vec::new(),
            size: 0,
        }
    }

    fn read_all(&mut self) -> ControlFlow<()> {
        for mut group in run::groups(&self.inputs.sources) {
            for run in mem::take(&mut group.inputs) {
                self.read(&run, &mut group)?;
            }
            self.records.extend(group.end());
        }
        self.hand_on()
    }

    /// Reads the files of a run as one input, which is named by the first.
    fn read(&mut self, run: &[String], group: &mut Group) -> ControlFlow<()> {
        let source = run.first().map_or(STDIN, String::as_str);
        let mut records = Records::default();
        let mut reader = TraceReader::new(Settings {
            format: self.inputs.format,
            given: Arc::new(self.inputs.given.clone()),
            file: (source != STDIN).then(|| source.into()),
        });
        let (mut foreign, mut flow, messages) = (None, ControlFlow::Continue(()), self.messages);
        let mut consume = |text: &[u8]| {
            foreign = records.push(text).err();
            if foreign.is_none() && flow.is_continue() {
                flow = self.take(&mut records, &mut reader, group, source);
            }
            go_on(foreign.is_none() && flow.is_continue())
        };
        let read = run.iter().enumerate().try_for_each(|(at, file)| {
            // A file may end without the end of its line.
            match at > 0 && consume(b"\n").is_break() {
                true => Ok(()),
                false => read_chunks(file, messages, &mut consume),
            }
        });
        flow?;
        // If reading fails, the text before may end with a whole trace.
        let foreign = foreign.or_else(|| records.finish().err());
        if foreign.is_none() {
            self.take(&mut records, &mut reader, group, source)?;
            self.add(reader.end(), 0, group, source)?;
        }
        let reason = match (read, foreign) {
            (Err(error), _) => reason_of(&error),
            (_, Some(foreign)) => foreign_input(source, foreign),
            _ => return ControlFlow::Continue(()),
        };
        self.hand_on()?;
        go_on((self.send)(Waiting::Unread(name_of(source).to_owned(), reason)))
    }

    /// Takes the records that are there.
    fn take(
        &mut self,
        records: &mut Records,
        reader: &mut TraceReader,
        group: &mut Group,
        source: &str,
    ) -> ControlFlow<()> {
        for record in records {
            let size = record.place.size;
            self.add(reader.read(record), size, group, source)?;
        }
        // What comes through a pipe may take a while.
        match metadata_of(source).is_some_and(|metadata| metadata.is_file()) {
            true => go_on(true),
            false => self.hand_on(),
        }
    }

    /// Adds runs, and hands on when there is enough for all cores, or too much to wait.
    fn add(&mut self, runs: Vec<Run>, size: u64, group: &mut Group, source: &str) -> ControlFlow<()> {
        let runs = runs.into_iter();
        let left = runs.filter_map(|run| group.take(run, name_of(source).to_owned()));
        self.records.extend(left);
        self.size += size;
        let has_for_all = self.records.len() >= RECORDS_PER_CORE * rayon::current_num_threads();
        match self.size >= BATCH_SIZE && has_for_all || self.size >= MOST_OF_BATCH {
            true => self.hand_on(),
            false => go_on(true),
        }
    }

    /// Hands the records on.
    fn hand_on(&mut self) -> ControlFlow<()> {
        self.size = 0;
        let records = mem::take(&mut self.records);
        go_on(records.is_empty() || (self.send)(Waiting::Records(records)))
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
