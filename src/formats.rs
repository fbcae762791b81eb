//! Readers of the formats that agents write, for JavaScript.

use std::{
    collections::VecDeque,
    path::Path,
    sync::{Arc, Mutex},
};

use napi::bindgen_prelude::{AsyncTask, Utf16String};
use napi_derive::napi;

use knowledgepulse_command::{
    filter::{Excluded, Filter},
    traces::{self, Inputs, State, TraceRead, Traces},
};
use knowledgepulse_error::{self as error, Code, Error};
use knowledgepulse_formats::{
    FormatName, Given, Known,
    encoding::Foreign,
    reader::{Content, Item, Run, Settings, TraceReader, of_no_format},
    records::{self, Record, Records},
    trace::known_of,
};
use knowledgepulse_json::{Text, json_object};
use knowledgepulse_trace::facts::Fact;

use crate::background::{self, Background, locked};

/// So many bytes of input are read in one call, or a record.
const BATCH_SIZE: u64 = 64 * 1024;

/// Options of an input.
#[napi(object, object_to_js = false)]
pub struct NativeReadSettings {
    /// The format of every record; without it, each record is recognised by its content.
    pub format: Option<String>,
    pub success: Option<bool>,
    pub file: Option<String>,
}

impl NativeReadSettings {
    fn format(&self) -> Option<FormatName> {
        FormatName::from_name(self.format.as_ref()?)
    }

    fn given(&self) -> Given {
        Given {
            success: self.success,
            ..Given::default()
        }
    }
}

/// Returns the names of the formats that an input may be said to be of.
#[napi(catch_unwind, ts_return_type = "import('../index.js').FormatName[]")]
pub fn format_names() -> Vec<&'static str> {
    FormatName::ALL.iter().map(|format| format.name()).collect()
}

/// The result of a record: a trace, or the reason why there is no trace.
#[napi(object, object_from_js = false, use_nullable = true)]
#[derive(Default)]
pub struct NativeItem {
    /// The file that it is in, if that was read by its path.
    pub file: Option<String>,
    /// The line on which it begins, from 1.
    pub line: Option<f64>,
    /// The position in the array that it is an element of, from 0.
    pub index: Option<f64>,
    /// Null if no format recognises the record.
    #[napi(ts_type = "import('../index.js').FormatName | null")]
    pub format: Option<&'static str>,
    /// The trace in JSON; null if the record has no trace.
    pub json: Option<String>,
    /// Whether success and confidence are known, of a trace.
    pub known: Option<(bool, bool)>,
    pub error: Option<Utf16String>,
    /// Why there is no trace: the records are not of a conversation.
    pub skipped: Option<Utf16String>,
    /// Why the file could not be read to its end.
    pub unread: Option<String>,
    /// What is told of the session, of a trace in a file: the fields of `SessionResult` in JSON.
    pub about: Option<String>,
}

/// Reads one input, whose bytes come in pieces.
#[napi]
pub struct NativeTraceReader(Arc<Mutex<Input>>);

/// An input that is read.
struct Input {
    /// The bytes that came since the last call, and whether they are the last.
    bytes: Vec<u8>,
    is_last: bool,
    is_finished: bool,
    records: Records,
    reader: TraceReader,
    items: VecDeque<Run>,
}

#[napi]
impl NativeTraceReader {
    /// Creates a reader of one input.
    #[napi(constructor, catch_unwind)]
    pub fn new(settings: NativeReadSettings) -> Self {
        Self(Arc::new(Mutex::new(Input::new(settings))))
    }

    /// Takes the next bytes, or their end.
    #[napi(catch_unwind)]
    pub fn push(&self, bytes: Option<&[u8]>) {
        let mut input = locked(&self.0);
        match bytes {
            Some(bytes) => input.bytes.extend_from_slice(bytes),
            None => input.is_last = true,
        }
    }

    /// Resolves to the results of some of the records; null if all available records were read. Rejects with `ERR_INVALID_INPUT` for bytes
    /// that cannot be read as text.
    #[napi(catch_unwind, ts_return_type = "Promise<NativeItem[] | null>")]
    pub fn next(&self) -> AsyncTask<Background<Option<Vec<NativeItem>>>> {
        let input = Arc::clone(&self.0);
        background::run(move || locked(&input).next())
    }
}

/// Returns the results of one value, given in JSON.
#[napi(catch_unwind)]
#[allow(clippy::needless_pass_by_value)] // Values that JavaScript hands over are owned.
pub fn read_value(json: String, settings: NativeReadSettings) -> Vec<NativeItem> {
    let mut reader = Input::new(settings).reader;
    let record = Record {
        place: knowledgepulse_formats::Place::default(),
        content: records::read_value(json.as_bytes()),
    };
    let mut runs = reader.read(record);
    runs.extend(reader.end());
    runs.into_iter().flat_map(Run::build).map(native).collect()
}

impl Input {
    fn new(settings: NativeReadSettings) -> Self {
        let settings = Settings {
            format: settings.format(),
            given: Arc::new(settings.given()),
            file: settings.file.map(Into::into),
        };
        Self {
            bytes: Vec::new(),
            is_last: false,
            is_finished: false,
            records: Records::default(),
            reader: TraceReader::new(settings),
            items: VecDeque::new(),
        }
    }

    fn next(&mut self) -> error::Result<Option<Vec<NativeItem>>> {
        let unreadable = |Foreign { what, program }| {
            let advice = format!("make text in UTF-8 of it first, as {program} does");
            Error::Other(Code::InvalidInput, format!("the input is {what}: {advice}"))
        };
        let bytes = std::mem::take(&mut self.bytes);
        if !bytes.is_empty() {
            self.records.push(&bytes).map_err(unreadable)?;
        }
        if self.is_last && !self.is_finished {
            self.is_finished = true;
            self.records.finish().map_err(unreadable)?;
        }
        let mut is_over = true;
        if self.items.is_empty() {
            let mut size = 0;
            while size < BATCH_SIZE
                && let Some(record) = self.records.next()
            {
                is_over = false;
                size += record.place.size;
                self.items.extend(self.reader.read(record));
            }
            if is_over && self.is_finished {
                self.items.extend(self.reader.end());
            }
        }
        let items = self.take();
        Ok((!is_over || !items.is_empty()).then_some(items))
    }

    /// Builds some of the items that wait.
    fn take(&mut self) -> Vec<NativeItem> {
        let mut size = 0;
        let mut items = Vec::new();
        while size < BATCH_SIZE
            && let Some(item) = self.items.pop_front()
        {
            for item in item.build() {
                size += item.place.size;
                items.push(native(item));
            }
        }
        items
    }
}

/// Reads files and folders, or the sessions of agents on this machine, in the background.
#[napi]
pub struct NativeTraces(Option<Arc<Traces>>);

#[napi]
impl NativeTraces {
    /// Begins to read these paths.
    #[napi(constructor, catch_unwind)]
    pub fn new(paths: Vec<String>, settings: NativeReadSettings) -> Self {
        let mut inputs = Inputs::new(paths, Filter::default());
        inputs.format = settings.format();
        inputs.given = settings.given();
        Self(Some(Traces::new(inputs).into()))
    }

    /// Begins to read the sessions of agents on this machine: since a time in ISO 8601, of these agents or of all, in this project, without these
    /// ids, files and folders.
    #[napi(factory, catch_unwind)]
    #[allow(clippy::needless_pass_by_value)] // Values that JavaScript hands over are owned.
    pub fn of_this_machine(
        since: Option<String>,
        agents: Vec<String>,
        project: Option<String>,
        ignored: Vec<String>,
    ) -> Self {
        let agents = agents.iter().filter_map(|name| FormatName::from_name(name));
        let excluded = ignored.iter().map(|name| Excluded::new(name, Path::new("")));
        let filter = Filter {
            since,
            agents: agents.collect(),
            project,
            excluded: excluded.collect(),
            ..Filter::default()
        };
        Self(Some(Traces::new(Inputs::new(Vec::new(), filter)).into()))
    }

    /// Resolves to the next results, none if they take a while; null at the end. Rejects with `ERR_INVALID_INPUT` for folders without a
    /// session.
    #[napi(catch_unwind, ts_return_type = "Promise<NativeItem[] | null>")]
    pub fn next(&self) -> AsyncTask<Background<Option<Vec<NativeItem>>>> {
        let traces = self.0.clone();
        background::run(move || {
            let Some(traces) = traces else { return Ok(None) };
            let results = traces.next()?;
            Ok(results.map(|results| results.into_iter().filter_map(native_at).collect()))
        })
    }

    /// Ends the reading.
    #[napi(catch_unwind)]
    pub fn close(&mut self) {
        self.0 = None;
    }
}

/// Returns a result of reading a path; `None` of what a program is not told.
fn native_at(traces::Item { place, state, .. }: traces::Item<TraceRead>) -> Option<NativeItem> {
    let mut item = NativeItem {
        line: (place.line > 0).then(|| number_of(place.line)),
        index: place.index.map(number_of),
        file: Some(place.source),
        ..NativeItem::default()
    };
    match state {
        State::Read(TraceRead { known, about, json }) => {
            item.format = Some(about.format.name());
            let facts = about.facts.into_iter().map(Fact::to_value);
            let about = json_object! {
                "agent": about.agent,
                "project": about.project,
                "createdAt": about.when,
                "facts": facts.collect::<Vec<_>>(),
            };
            item.about = Some(about.to_json());
            item.known = Some(pair_of(known));
            item.json = Some(json);
        }
        State::Wrong(reason) => item.error = Some(utf_16_of(&reason)),
        State::Unread(reason) => item.unread = Some(reason),
        State::Skipped(_) | State::LeftOut(_) => return None,
    }
    Some(item)
}

#[allow(clippy::cast_precision_loss)] // No input has 2^53 bytes.
fn number_of(number: u64) -> f64 {
    number as f64
}

fn pair_of(
    Known {
        success, confidence, ..
    }: Known,
) -> (bool, bool) {
    (success, confidence)
}

fn utf_16_of(text: &Text) -> Utf16String {
    text.encode_utf16().collect::<Vec<u16>>().into()
}

fn native(item: Item) -> NativeItem {
    let mut found = NativeItem {
        line: item.place.line.map(number_of),
        index: item.place.index.map(number_of),
        format: item.format.map(FormatName::name),
        ..NativeItem::default()
    };
    match item.content {
        Content::Read(value) if item.format.is_none() => {
            found.error = Some(utf_16_of(&of_no_format(&value).into()));
        }
        Content::Read(trace) => {
            found.known = Some(pair_of(known_of(&trace)));
            found.json = Some(trace.to_json());
        }
        Content::Wrong(reason) => found.error = Some(utf_16_of(&reason)),
        Content::Skipped(reason) => found.skipped = Some(utf_16_of(&reason)),
    }
    found
}
