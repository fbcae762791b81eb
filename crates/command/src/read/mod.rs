//! Reads the inputs of all commands: bytes, records, and traces, which each command prepares on all cores as it needs them.

use std::{
    fs::File,
    io::{self, Read},
    mem,
    ops::ControlFlow,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{RecvTimeoutError, TryRecvError, sync_channel},
    },
    thread,
    time::Duration,
};

use knowledgepulse_error::guarded;
use knowledgepulse_formats::{
    FormatName, Given, Known,
    copies::Copies,
    encoding::Foreign,
    input::{
        compression::{Consumer, Input, read_text},
        lines_of_file,
    },
    reader::{Content, OfNoFormat, Run, Settings, TraceReader},
    records::Records,
    run::{self, Ids},
    trace::warning_of,
};
use knowledgepulse_json::{Text, Value};
use rayon::prelude::*;

use crate::{
    error::{Failure, Result, reason_of},
    files::{
        file_identity::{STDIN, name_of, total_size},
        stop::Stop,
        waiting::Waiting,
    },
    filter::{Filter, LeftOut, Verdict},
    score::scored::Place,
    show::messages::{BadLines, Messages},
};

/// So many bytes of input are handed on at once, or a record.
const BATCH_SIZE: u64 = 512 * 1024;

/// How many batches of records may wait.
const MOST_WAITING_BATCHES: usize = 4;

/// How often a run that waits for input looks whether it is interrupted.
const PAUSE: Duration = Duration::from_millis(50);

/// The inputs, and how to read them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Inputs {
    /// Files, or [`STDIN`].
    pub sources: Vec<String>,
    /// Their format; `None` where each record is recognised.
    pub format: Option<FormatName>,
    /// The given outcome and domain of traces of other formats.
    pub given: Given,
    /// Which sessions are read.
    pub filter: Filter,
    /// How many files were left out by it.
    pub left_out: LeftOut,
}

impl Inputs {
    /// Leaves out the files that have no wanted session, also by their times if agents keep those.
    pub(crate) fn leave_out_files(&mut self, are_kept: bool) {
        let (filter, left_out) = (&self.filter, &mut self.left_out);
        self.sources.retain(|file| {
            let verdict = filter.of_file(file, are_kept);
            left_out.files += u64::from(verdict == Verdict::Ignored);
            left_out.others += u64::from(verdict == Verdict::Other);
            verdict == Verdict::Wanted
        });
    }
}

/// A trace that was read.
pub(crate) struct ReadTrace<'t> {
    /// The format that it was converted from, or [`FormatName::Trace`].
    pub format: FormatName,
    /// Which parts of its outcome its record told.
    pub known: Known,
    /// The trace.
    pub value: Value,
    /// Its JSON, if it was read from that.
    pub text: Option<&'t str>,
    /// The hint for a record of no known format, if it is no trace.
    pub foreign: Option<OfNoFormat>,
}

/// A record on its way: where it is, and what became of it.
pub(crate) struct Item<P> {
    pub place: Place,
    /// Its size in the input, in bytes.
    pub size: u64,
    /// What may be wrong with its trace.
    pub warning: Option<Text>,
    pub state: State<P>,
}

/// What became of a record.
pub(crate) enum State<P> {
    /// A trace, as the command prepares it.
    Read(P),
    /// It is not of a conversation, for this reason.
    Skipped(Text),
    /// The filter leaves it out.
    LeftOut(Verdict),
    /// It is wrong, for this reason.
    Wrong(Text),
}

/// Prepares a trace on any core.
///
/// # Errors
/// Why it is no trace.
pub(crate) type Prepare<P> = dyn Fn(ReadTrace) -> std::result::Result<P, Text> + Send + Sync;

/// What a command does with its traces.
pub(crate) trait Sink<P> {
    /// Takes a trace, in the order of the input.
    fn take(&mut self, place: Place, size: u64, trace: P, seen: &mut Seen) -> Result<()>;

    /// Finishes the trace that was begun first, while no other one can be taken. Returns whether there was one.
    fn settle(&mut self, _seen: &mut Seen) -> Result<bool> {
        Ok(false)
    }

    /// Is told of a record that makes no trace.
    fn on_bad(&mut self, _place: &Place, _reason: &Text) {}

    /// Is told of an input that could not be read to its end.
    fn on_unread(&mut self, source: &str, reason: String, messages: &Messages) {
        messages.failure(format!("cannot read {source}: {reason}"));
    }
}

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
    pub left_out: LeftOut,
    /// The words that count what the file `ignore` names.
    pub ignored: Option<String>,
    bad_lines: BadLines,
}

impl Seen {
    /// Counts a record that makes no trace, and names it unless there were many.
    pub(crate) fn add_bad(&mut self, place: &Place, reason: &Text, messages: &Messages) {
        self.bad += 1;
        self.bad_lines.add(place, reason, messages);
    }

    /// Says why no trace was read, where no line was wrong.
    pub(crate) fn why_nothing(&self) -> String {
        match self.left_out.files + self.left_out.ignored + self.left_out.others {
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

/// Reads everything, until the run is ended, and hands the traces to `sink`.
///
/// # Errors
/// Those of `sink`.
pub(crate) fn read<P: Send + 'static>(
    inputs: &Inputs,
    prepare: Arc<Prepare<P>>,
    sink: &mut dyn Sink<P>,
    messages: &Messages,
    stop: &Stop,
) -> Result<Seen> {
    let reader = Reader {
        inputs: inputs.clone(),
        messages: messages.clone(),
        prepare,
        ids: Mutex::default(),
    };
    messages.start_progress(total_size(&inputs.sources));
    let mut seen = Seen {
        left_out: inputs.left_out,
        ..Seen::default()
    };
    if cfg!(target_family = "wasm") {
        let mut result = Ok(());
        let _ = reader.run(&mut |event| {
            result = take(event, sink, &mut seen, messages, stop);
            go_on(result.is_ok() && !stop.is_set())
        });
        result?;
    } else {
        let (sender, events) = sync_channel(MOST_WAITING_BATCHES);
        let thread = thread::Builder::new().name("kp-score-reading".into());
        let read = move || {
            // The receiver is gone when nothing more is wanted.
            let mut send = |event| go_on(sender.send(event).is_ok());
            if let Err(panic) = guarded(|| Ok(reader.run(&mut send))) {
                let _ = send(Event::Failed("the input".into(), panic.to_string()));
            }
        };
        thread
            .spawn(read)
            .map_err(|error| Failure::file(format!("no thread to read on: {error}")))?;
        while !stop.is_set() {
            let event = match events.try_recv() {
                Err(TryRecvError::Empty) if sink.settle(&mut seen)? => continue,
                Err(TryRecvError::Empty) => events.recv_timeout(PAUSE),
                received => received.map_err(|_| RecvTimeoutError::Disconnected),
            };
            match event {
                Ok(event) => take(event, sink, &mut seen, messages, stop)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
    }
    while sink.settle(&mut seen)? {}
    seen.bad_lines.end(messages);
    seen.ignored = inputs.filter.ignored_words(&seen.left_out);
    Ok(seen)
}

/// Handles an event of reading.
fn take<P>(
    event: Event<P>,
    sink: &mut dyn Sink<P>,
    seen: &mut Seen,
    messages: &Messages,
    stop: &Stop,
) -> Result<()> {
    let items = match event {
        Event::Items(items) => items,
        Event::Failed(source, reason) => {
            seen.unread += 1;
            sink.on_unread(&source, reason, messages);
            return Ok(());
        }
    };
    for Item {
        place,
        size,
        warning,
        state,
    } in items
    {
        // Interrupted, the input may end in the middle of a trace.
        if stop.is_set() {
            break;
        }
        if let Some(warning) = warning {
            messages.warning(format!("{place}: {warning}"));
        }
        match state {
            State::Read(trace) => sink.take(place, size, trace, seen)?,
            State::Skipped(reason) => {
                messages.on_done();
                seen.without_conversation += 1;
                messages.detail_at(&place, &reason);
            }
            State::LeftOut(verdict) => {
                messages.on_done();
                let is_ignored = verdict == Verdict::Ignored;
                seen.left_out.ignored += u64::from(is_ignored);
                seen.left_out.others += u64::from(!is_ignored);
            }
            State::Wrong(reason) => {
                messages.on_done();
                sink.on_bad(&place, &reason);
                seen.add_bad(&place, &reason, messages);
            }
        }
    }
    Ok(())
}

fn go_on(is_wanted: bool) -> ControlFlow<()> {
    if is_wanted {
        ControlFlow::Continue(())
    } else {
        ControlFlow::Break(())
    }
}

/// The events of reading the inputs one after the other.
enum Event<P> {
    /// Some records of an input.
    Items(Vec<Item<P>>),
    /// This input could not be read to its end, for this reason.
    Failed(String, String),
}

/// Takes an event. Returns whether more events are wanted.
type Take<'t, P> = dyn FnMut(Event<P>) -> ControlFlow<()> + 't;

struct Reader<P> {
    inputs: Inputs,
    messages: Messages,
    prepare: Arc<Prepare<P>>,
    /// The ids of the sessions so far.
    ids: Mutex<Ids>,
}

impl<P: Send + 'static> Reader<P> {
    /// Reads everything, until `take` has enough.
    fn run(&self, take: &mut Take<P>) -> ControlFlow<()> {
        for group in run::groups(&self.inputs.sources) {
            let mut copies = group.copies();
            for run in &group.inputs {
                self.read(run, copies.as_mut(), take)?;
            }
            let items: Vec<_> = copies.into_iter().flat_map(Copies::end).collect();
            if !items.is_empty() {
                take(Event::Items(self.prepared(items)))?;
            }
        }
        ControlFlow::Continue(())
    }

    /// Builds traces and prepares them on all cores. No two sessions have one id.
    fn prepared(&self, items: Vec<(Run, String)>) -> Vec<Item<P>> {
        let built = items.into_par_iter().flat_map_iter(|(item, source)| {
            let items = item.build().into_iter();
            items.map(move |item| (item, source.clone()))
        });
        let mut built: Vec<_> = built.collect();
        let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        built.retain_mut(|(item, _)| ids.claim(item));
        drop(ids);
        let prepared = built.into_par_iter().map(|(item, source)| Item {
            place: place_of(&source, item.place.line, item.place.index),
            size: item.place.size,
            warning: match &item.content {
                Content::Converted(trace, _) => warning_of(trace),
                _ => None,
            },
            state: self.state_of(&source, item.format, item.content),
        });
        prepared.collect()
    }

    /// Prepares what a record came to, unless it is left out.
    fn state_of(&self, source: &str, format: Option<FormatName>, content: Content) -> State<P> {
        let is_trace = |value: &Value| value.get("steps").is_some();
        match &content {
            Content::Converted(value, _) | Content::Plain(value, _) if is_trace(value) => {
                let format = format.unwrap_or(FormatName::Trace);
                match self.inputs.filter.of_session(source, format, value) {
                    Verdict::Wanted => {}
                    verdict => return State::LeftOut(verdict),
                }
            }
            _ => {}
        }
        state_of(&*self.prepare, format, content)
    }

    /// Reads the files of a run as one input, which is named by the first.
    fn read(&self, run: &[String], copies: Option<&mut Copies>, take: &mut Take<P>) -> ControlFlow<()> {
        let source = run.first().map_or(STDIN, String::as_str);
        let settings = Settings {
            format: self.inputs.format,
            given: Arc::new(self.inputs.given.clone()),
            file: (source != STDIN).then(|| source.into()),
        };
        let mut batches = Batches {
            source: name_of(source),
            records: Records::default(),
            reading: self,
            copies,
            reader: TraceReader::new(settings),
            take,
            flow: ControlFlow::Continue(()),
        };
        let mut foreign = None;
        let mut consume = |text: &[u8]| {
            foreign = batches.records.push(text).err();
            if foreign.is_none() {
                batches.send()
            } else {
                ControlFlow::Break(())
            }
        };
        let read = run.iter().enumerate().try_for_each(|(at, file)| {
            // A file may end without the end of its line.
            if at > 0 && consume(b"\n").is_break() {
                return Ok(());
            }
            self.read_chunks(file, &mut consume)
        });
        batches.flow?;
        if foreign.is_none() {
            // If reading fails, the text before may end with a whole trace.
            foreign = batches.records.finish().err();
        }
        if foreign.is_none() {
            batches.send()?;
            batches.end()?;
        }
        let reason = match (read, foreign) {
            (Err(error), _) => reason_of(&error),
            (_, Some(foreign)) => foreign_input(source, foreign),
            _ => return ControlFlow::Continue(()),
        };
        take(Event::Failed(name_of(source).to_owned(), reason))
    }

    /// Hands on the text of a file or of standard input, decompressed where it begins as compressed text does.
    fn read_chunks(&self, source: &str, consume: &mut Consumer) -> io::Result<()> {
        let input: Box<dyn Read> = if source == STDIN {
            Box::new(Waiting(io::stdin()))
        } else if let Some(lines) = lines_of_file(source.as_ref())? {
            for line in lines {
                self.messages.on_read(line.len() as u64);
                if consume(line.as_bytes()).is_break() {
                    break;
                }
            }
            return Ok(());
        } else {
            Box::new(File::open(source)?)
        };
        let counted = Counted {
            input,
            messages: &self.messages,
        };
        read_text(&mut Input::new(counted), consume)
    }
}

/// The records of an input, on their way to the run.
struct Batches<'t, 'f, P> {
    source: &'t str,
    records: Records,
    reading: &'t Reader<P>,
    /// The runs that a later one of the input's group may contain.
    copies: Option<&'t mut Copies>,
    reader: TraceReader,
    take: &'t mut Take<'f, P>,
    /// Whether the run wants more.
    flow: ControlFlow<()>,
}

impl<P: Send + 'static> Batches<'_, '_, P> {
    /// Passes on the results of the available records.
    fn send(&mut self) -> ControlFlow<()> {
        let mut items = Vec::new();
        let mut size = 0;
        while let Some(record) = self.records.next() {
            size += record.place.size;
            items.extend(self.reader.read(record));
            if size >= BATCH_SIZE {
                size = 0;
                self.hand_on(mem::take(&mut items))?;
            }
        }
        self.hand_on(items)
    }

    /// Passes on the traces that end with the input.
    fn end(&mut self) -> ControlFlow<()> {
        let items = self.reader.end();
        self.hand_on(items)
    }

    /// Prepares records on all cores, and passes them on.
    fn hand_on(&mut self, items: Vec<Run>) -> ControlFlow<()> {
        if items.is_empty() {
            return self.flow;
        }
        let source = self.source;
        let with = items.into_iter().map(|item| (item, source.to_owned()));
        let items = match &mut self.copies {
            Some(copies) => with
                .filter_map(|(item, source)| copies.take(item, source))
                .collect(),
            None => with.collect(),
        };
        self.flow = (self.take)(Event::Items(self.reading.prepared(items)));
        self.flow
    }
}

fn place_of(source: &str, line: Option<u64>, index: Option<u64>) -> Place {
    Place {
        source: source.to_owned(),
        line: line.unwrap_or_default(),
        index,
    }
}

/// Prepares what a record came to.
fn state_of<P>(prepare: &Prepare<P>, format: Option<FormatName>, content: Content) -> State<P> {
    let all = Known {
        success: true,
        confidence: true,
    };
    let (value, known, text) = match content {
        Content::Wrong(reason) => return State::Wrong(reason),
        Content::Skipped(reason) => return State::Skipped(reason),
        Content::Converted(value, known) => (value, known, None),
        Content::Plain(value, text) => (value, all, text),
    };
    let foreign = (format.is_none() && value.as_object().is_some()).then(|| OfNoFormat::new(&value));
    let read = ReadTrace {
        format: format.unwrap_or(FormatName::Trace),
        known,
        value,
        text: text.as_deref(),
        foreign,
    };
    prepare(read).map_or_else(State::Wrong, State::Read)
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

/// Counts the bytes that are read, compressed ones too.
struct Counted<'m> {
    input: Box<dyn Read>,
    messages: &'m Messages,
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.input.read(buffer)?;
        self.messages.on_read(length as u64);
        Ok(length)
    }
}
