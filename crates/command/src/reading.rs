//! Reads the inputs: bytes, text, records, and traces.

use std::{
    fs::File,
    io::{self, Read},
    mem,
    ops::ControlFlow,
    sync::Arc,
};

use knowledgepulse_formats::{
    Context, DEFAULT_LIMIT, Files, FormatName, Given,
    encoding::Foreign,
    input::database_lines,
    map::Map,
    reader::{Settings, TraceReader, read_alone},
    records::{Record, Records},
    sources,
};

use crate::{
    compression::{Consumer, Input, read_text},
    error::reason_of,
    messages::Messages,
    options::{STDIN, name_of},
    pieces::{Preparation, Prepared, Taken, Unprepared},
    waiting::Waiting,
};

/// So many bytes of input are handed on at once, or a record.
const BATCH_SIZE: u64 = 512 * 1024;

/// The events of reading the inputs one after the other.
pub(crate) enum Event {
    /// Some records of the current input.
    Items(Vec<Prepared>),
    /// The next items are of this input.
    Begin(String),
    /// The current input could not be read to its end, for this reason.
    Failed(String),
    /// There is no more to read.
    End,
    /// The run is to end before everything was read.
    Interrupted,
}

/// Takes an event. Returns whether more events are wanted.
pub(crate) type Take<'t> = dyn FnMut(Event) -> ControlFlow<()> + 't;

/// The inputs, and how to read them.
pub(crate) struct Reading {
    /// The inputs: paths, or [`STDIN`].
    pub sources: Vec<String>,
    /// Their format; `None` where each record is recognised.
    pub format: Option<FormatName>,
    /// Where things are in records of another format.
    pub map: Option<Map>,
    /// The given outcome and domain of traces of other formats.
    pub given: Given,
    /// Counts the bytes and records that are read.
    pub messages: Messages,
    /// How the records are prepared.
    pub preparation: Arc<Preparation>,
}

impl Reading {
    /// Reads everything, until `take` has enough.
    pub(crate) fn run(&self, take: &mut Take) -> ControlFlow<()> {
        let files = Files::default();
        for run in sources::runs(&self.sources) {
            self.read(&run, &files, take)?;
        }
        take(Event::End)
    }

    /// Reads the files of a run as one input, which is named by the first.
    fn read(&self, run: &[String], files: &Files, take: &mut Take) -> ControlFlow<()> {
        let source = run.first().map_or(STDIN, String::as_str);
        take(Event::Begin(name_of(source).to_owned()))?;
        let context = Context {
            file: (source != STDIN).then(|| source.into()),
            files: files.clone(),
        };
        let settings = Settings {
            format: self.format,
            map: self.map.clone(),
            given: Arc::new(self.given.clone()),
            context,
        };
        // A trace is prepared in the task that parses it: memory is freed slowly on another thread than it was allocated on.
        let preparation = Arc::clone(&self.preparation);
        let alone = settings.clone();
        let mut batches = Batches {
            records: Records::with(DEFAULT_LIMIT, move |value, text, is_parallel| {
                // It is recognised here too, while its memory is in the cache of this core.
                let recognised = alone.format.is_none().then(|| alone.recognise(&value)).flatten();
                let read = if is_parallel {
                    read_alone(&alone, value, recognised)
                } else {
                    Err(value)
                };
                match read {
                    Ok((format, content)) => {
                        Taken::Trace(format, preparation.prepare_content(Some(format), content, text))
                    }
                    Err(value) => Taken::Other(value, text.map(str::to_owned), recognised),
                }
            }),
            preparation: &self.preparation,
            reader: TraceReader::new(settings),
            take,
            flow: ControlFlow::Continue(()),
        };
        let mut foreign = None;
        let mut consume = |text: &[u8]| {
            self.messages.on_text(text.len() as u64);
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
        match (read, foreign) {
            (Err(error), _) => take(Event::Failed(reason_of(&error))),
            (_, Some(foreign)) => take(Event::Failed(foreign_input(source, foreign))),
            _ => ControlFlow::Continue(()),
        }
    }

    /// Hands on the text of a file or of standard input, decompressed where it begins as compressed text does.
    fn read_chunks(&self, source: &str, consume: &mut Consumer) -> io::Result<()> {
        let input: Box<dyn Read> = if source == STDIN {
            Box::new(Waiting(io::stdin()))
        } else if let Some(lines) = database_lines(source.as_ref())? {
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
struct Batches<'t, 'f> {
    records: Records<Taken>,
    preparation: &'t Preparation,
    reader: TraceReader,
    take: &'t mut Take<'f>,
    /// Whether the run wants more.
    flow: ControlFlow<()>,
}

impl Batches<'_, '_> {
    /// Passes on the results of the available records.
    fn send(&mut self) -> ControlFlow<()> {
        let mut items = Vec::new();
        let mut size = 0;
        while let Some(record) = self.records.next() {
            size += record.size;
            self.read(record, &mut items);
            if size >= BATCH_SIZE {
                size = 0;
                self.hand_on(mem::take(&mut items))?;
            }
        }
        self.hand_on(items)
    }

    /// Adds the results of a record.
    fn read(&mut self, record: Record<Taken>, items: &mut Vec<Unprepared>) {
        let (content, recognised) = match record.content {
            Ok(Taken::Trace(format, content)) => {
                items.extend(self.reader.pass(format).into_iter().map(Unprepared::Read));
                items.push(Unprepared::Prepared(Prepared {
                    size: record.size,
                    line: record.line,
                    index: record.index,
                    content,
                }));
                return;
            }
            Ok(Taken::Other(value, text, recognised)) => (Ok((value, text)), recognised),
            Err(error) => (Err(error), None),
        };
        let record = Record {
            line: record.line,
            index: record.index,
            size: record.size,
            content,
        };
        let read = self.reader.read_recognised(record, recognised);
        items.extend(read.into_iter().map(Unprepared::Read));
    }

    /// Passes on the traces that end with the input.
    fn end(&mut self) -> ControlFlow<()> {
        let items = self.reader.end().into_iter().map(Unprepared::Read).collect();
        self.hand_on(items)
    }

    fn hand_on(&mut self, items: Vec<Unprepared>) -> ControlFlow<()> {
        if !items.is_empty() {
            self.flow = (self.take)(Event::Items(self.preparation.prepare_all(items)));
        }
        self.flow
    }
}

/// Describes the problem of an input that is no text, and the way out.
fn foreign_input(source: &str, Foreign { what, program }: Foreign) -> String {
    let name = match source {
        STDIN => String::new(),
        name if name.contains(char::is_whitespace) => format!(" \"{name}\""),
        name => format!(" {name}"),
    };
    format!("it is {what}: use {program}{name} | kp-score")
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
