//! Reads the inputs on a thread of its own: bytes, text, records, and what these come to.

use std::{
    fs::File,
    io::{self, Read},
    mem,
    ops::ControlFlow,
    path::Path,
    sync::mpsc::SyncSender,
};

use knowledgepulse_formats::{
    Context, Files, FormatName, Given,
    encoding::Foreign,
    reader::{Item, Settings, TraceReader},
    records::Records,
};

use crate::{
    compression::{Consumer, Input, read_text},
    error::reason_of,
    file_identity::metadata_of,
    messages::Messages,
    options::{STDIN, name_of},
    waiting::Waiting,
};

/// So many bytes of input are handed on at once, or a record.
const BATCH_SIZE: u64 = 64 * 1024;

/// What the reading thread tells.
pub(crate) enum Event {
    /// Some records of the current input came to this.
    Items(Vec<Item>),
    /// The next items are of this input.
    Begin(String),
    /// The current input could not be read to its end, for this reason.
    Failed(String),
    /// There is no more to read.
    End,
    /// The run is to end before everything was read.
    Interrupted,
}

/// What is to be read, and how.
pub(crate) struct Reading {
    /// The inputs: paths, or [`STDIN`].
    pub sources: Vec<String>,
    /// Their format; `None` where each record is recognised.
    pub format: Option<FormatName>,
    /// What is said of traces of other formats.
    pub given: Given,
    /// Counts what is read.
    pub messages: Messages,
}

/// The run does not want to know more.
struct Unwanted;

impl Reading {
    /// Reads everything; ends early if the receiver is gone.
    pub(crate) fn run(&self, events: &SyncSender<Event>) {
        let files = Files::default();
        for source in &self.sources {
            if self.read(source, &files, events).is_err() {
                return;
            }
        }
        drop(events.send(Event::End));
    }

    fn read(&self, source: &str, files: &Files, events: &SyncSender<Event>) -> Result<(), Unwanted> {
        let send = |event| events.send(event).map_err(|_| Unwanted);
        send(Event::Begin(name_of(source).to_owned()))?;
        let context = Context {
            file: (source != STDIN).then(|| source.into()),
            files: files.clone(),
        };
        let mut batches = Batches {
            records: Records::default(),
            reader: TraceReader::new(Settings {
                format: self.format,
                given: self.given.clone(),
                context,
            }),
            events,
            is_unwanted: false,
        };
        let mut foreign = None;
        let read = self.read_chunks(source, &mut |text| {
            self.messages.on_text(text.len() as u64);
            foreign = batches.records.push(text).err();
            if foreign.is_none() {
                batches.send()
            } else {
                ControlFlow::Break(())
            }
        });
        if foreign.is_none() && !batches.is_unwanted {
            // Where reading fails, what was read before may end with a whole trace.
            foreign = batches.records.finish().err();
            let is_wanted = foreign.is_some() || batches.send().is_continue() && batches.end().is_continue();
            batches.is_unwanted |= !is_wanted;
        }
        if batches.is_unwanted {
            return Err(Unwanted);
        }
        match (read, foreign) {
            (Err(error), _) => send(Event::Failed(reason_of(&error))),
            (_, Some(foreign)) => send(Event::Failed(foreign_input(source, foreign))),
            _ => Ok(()),
        }
    }

    /// Hands on the text of a file or of standard input, decompressed where it begins as compressed text does.
    fn read_chunks(&self, source: &str, consume: &mut Consumer) -> io::Result<()> {
        if metadata_of(source).is_some_and(|metadata| metadata.is_dir()) {
            let files = Path::new(if source == STDIN { "" } else { source }).join("*.jsonl");
            let files = files.display();
            return Err(io::Error::other(format!(
                "it is a directory (EISDIR): name the files in it, such as {files}"
            )));
        }
        let input: Box<dyn Read> = if source == STDIN {
            Box::new(Waiting(io::stdin()))
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
struct Batches<'e> {
    records: Records,
    reader: TraceReader,
    events: &'e SyncSender<Event>,
    is_unwanted: bool,
}

impl Batches<'_> {
    /// Hands on what the records that are there came to.
    fn send(&mut self) -> ControlFlow<()> {
        let mut items = Vec::new();
        let mut size = 0;
        while let Some(record) = self.records.next() {
            size += record.size;
            items.extend(self.reader.read(record));
            if size >= BATCH_SIZE {
                size = 0;
                self.hand_on(mem::take(&mut items))?;
            }
        }
        self.hand_on(items)
    }

    /// Hands on what the end of the input ends.
    fn end(&mut self) -> ControlFlow<()> {
        let items = self.reader.end();
        self.hand_on(items)
    }

    fn hand_on(&mut self, items: Vec<Item>) -> ControlFlow<()> {
        if items.is_empty() || self.events.send(Event::Items(items)).is_ok() {
            return ControlFlow::Continue(());
        }
        self.is_unwanted = true;
        ControlFlow::Break(())
    }
}

/// What is wrong with an input that is no text, and what to do about it.
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
