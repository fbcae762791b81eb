//! Readers of the formats that agents write, for JavaScript.

use std::{collections::VecDeque, sync::Arc};

use napi::{Error, bindgen_prelude::Utf16String};
use napi_derive::napi;

use knowledgepulse_formats::{
    FormatName, Given, Known,
    encoding::Foreign,
    reader::{Content, Item, OfNoFormat, Settings, TraceReader, Unbuilt},
    records::{Record, Records, reason_of},
    trace::known_of,
};
use knowledgepulse_json::{Text, parse_str};

use crate::error::Result;

/// So many bytes of input are read in one call, or a record.
const BATCH_SIZE: u64 = 64 * 1024;

/// Options of an input.
#[napi(object, object_to_js = false)]
pub struct NativeReadSettings {
    /// The format of every record; without it, each record is recognised by its content.
    pub format: Option<String>,
    pub success: Option<bool>,
    pub confidence: Option<f64>,
    /// `metadata.task_domain`
    pub domain: Option<String>,
    pub file: Option<String>,
}

/// Returns the names of the formats that an input may be said to be of.
#[napi(catch_unwind, ts_return_type = "import('../index.js').FormatName[]")]
pub fn format_names() -> Vec<&'static str> {
    FormatName::ALL.iter().map(|format| format.name()).collect()
}

/// The result of a record: a trace, or the reason why there is no trace.
#[napi(object, object_from_js = false, use_nullable = true)]
pub struct NativeItem {
    /// The line on which it begins, from 1.
    pub line: Option<f64>,
    /// The position in the array that it is an element of, from 0.
    pub index: Option<f64>,
    /// Its size in the input, in bytes.
    pub size: f64,
    /// Null if no format recognises the record.
    #[napi(ts_type = "import('../index.js').FormatName | null")]
    pub format: Option<&'static str>,
    /// The trace in JSON; null if the record has no trace, or is a JavaScript value that stays unchanged.
    pub json: Option<String>,
    /// Which parts of the outcome are known, of a trace.
    pub known: Option<NativeKnown>,
    pub error: Option<Utf16String>,
    /// Why there is no trace: the records are not of a conversation.
    pub skipped: Option<Utf16String>,
}

/// Which parts of a trace's outcome are known.
#[napi(object)]
pub struct NativeKnown {
    pub success: bool,
    pub confidence: bool,
}

/// Reads one input: bytes as they come, or values.
#[napi]
pub struct NativeTraceReader {
    records: Records,
    reader: TraceReader,
    items: VecDeque<Unbuilt>,
}

#[napi]
impl NativeTraceReader {
    /// Creates a reader of one input.
    #[napi(constructor, catch_unwind)]
    pub fn new(settings: NativeReadSettings) -> Result<Self> {
        let format = settings.format.map(|name| {
            let format = FormatName::from_name(&name);
            format.ok_or_else(|| Error::from_reason(format!("{name} is no format")))
        });
        let settings = Settings {
            format: format.transpose()?,
            given: Arc::new(Given {
                success: settings.success,
                confidence: settings.confidence,
                domain: settings.domain,
            }),
            file: settings.file.map(Into::into),
        };
        Ok(Self {
            records: Records::default(),
            reader: TraceReader::new(settings),
            items: VecDeque::new(),
        })
    }

    /// Takes the next bytes, or their end. Returns what is wrong with an input that cannot be read as text.
    #[napi(catch_unwind, ts_return_type = "string | null")]
    pub fn push(&mut self, bytes: Option<&[u8]>) -> Option<String> {
        let pushed = match bytes {
            Some(bytes) => self.records.push(bytes),
            None => self.records.finish(),
        };
        let Foreign { what, program } = pushed.err()?;
        Some(format!(
            "the input is {what}: make text in UTF-8 of it first, as {program} does"
        ))
    }

    /// Returns the results of some of the records; null if all available records were read.
    #[napi(catch_unwind, ts_return_type = "NativeItem[] | null")]
    pub fn next(&mut self) -> Option<Vec<NativeItem>> {
        let mut is_over = true;
        if self.items.is_empty() {
            let mut size = 0;
            while size < BATCH_SIZE
                && let Some(record) = self.records.next()
            {
                is_over = false;
                size += record.size;
                self.items.extend(self.reader.read(record));
            }
        }
        let items = self.take();
        (!is_over || !items.is_empty()).then_some(items)
    }

    /// Returns the results of a value, given in JSON and with its position in an array.
    #[napi(catch_unwind)]
    pub fn read(&mut self, json: String, index: Option<f64>) -> Vec<NativeItem> {
        let content = parse_str(&json).map(|value| (value, None));
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // It is an index.
        let index = index.map(|index| index as u64);
        let record = Record {
            line: None,
            index,
            size: 0,
            content: content.map_err(|error| reason_of(&error)),
        };
        let items = self.reader.read(record).into_iter();
        items.flat_map(Unbuilt::build).map(native).collect()
    }

    /// Ends the input. `next` returns the remaining records.
    #[napi(catch_unwind)]
    pub fn end(&mut self) {
        self.items.extend(self.reader.end());
    }

    /// Some of the items that wait.
    fn take(&mut self) -> Vec<NativeItem> {
        let mut size = 0;
        let mut items = Vec::new();
        while size < BATCH_SIZE
            && let Some(item) = self.items.pop_front()
        {
            for item in item.build() {
                size += item.size;
                items.push(native(item));
            }
        }
        items
    }
}

fn native(item: Item) -> NativeItem {
    #[allow(clippy::cast_precision_loss)] // No input has 2^53 bytes.
    let number = |number: u64| number as f64;
    let mut found = NativeItem {
        line: item.line.map(number),
        index: item.index.map(number),
        size: number(item.size),
        format: item.format.map(FormatName::name),
        json: None,
        known: None,
        error: None,
        skipped: None,
    };
    let utf_16 = |text: Text| text.encode_utf16().collect::<Vec<u16>>().into();
    let mut tell = |Known { success, confidence }| found.known = Some(NativeKnown { success, confidence });
    match item.content {
        Content::Converted(trace, known) => {
            tell(known);
            found.json = Some(trace.to_json());
        }
        Content::Plain(value, _) if item.format.is_none() => {
            found.error = Some(utf_16(OfNoFormat::new(&value).to_string().into()));
        }
        Content::Plain(value, text) => {
            tell(known_of(&value));
            // A value of JavaScript stays as it is.
            found.json = text.or_else(|| found.line.map(|_| value.to_json()));
        }
        Content::Wrong(reason) => found.error = Some(utf_16(reason)),
        Content::Skipped(reason) => found.skipped = Some(utf_16(reason)),
    }
    found
}
