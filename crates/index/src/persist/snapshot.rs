//! Snapshots of a memory, and writing them to a file.

use std::{
    collections::HashMap,
    fs,
    io::{self, Write},
    path::Path,
    time::{Instant, SystemTime},
};

use bytemuck::NoUninit;
use safetensors::tensor::{Dtype, Metadata, TensorInfo};
use twox_hash::XxHash3_128;

use knowledgepulse_error::{Error, Result, fault};
use knowledgepulse_os::{links::target_of, temporary};
use knowledgepulse_trace::label::Label;

use super::{
    CHECKSUM_BYTES, Contents, FORMAT, HeldTraces, TRACES, VECTORS, microseconds, milliseconds,
    require_regular, tensors::LENGTH_BYTES,
};
use crate::{
    document::{Document, DocumentWord},
    method::Method,
    moment::Moment,
};

/// A snapshot of a memory of vectors or of traces. It shares their contents, and does not change with the memory.
#[derive(Debug, Clone)]
pub struct Snapshot {
    contents: Contents,
    taken: Moment,
    clock: SystemTime,
}

/// The beginning of the names of temporary files.
const PREFIX: &str = ".knowledgepulse-";

impl Snapshot {
    pub(crate) fn of(contents: Contents, now: Instant, clock: SystemTime) -> Self {
        Self {
            contents,
            taken: Moment::at(now),
            clock,
        }
    }

    /// Writes the snapshot to `path`, which is replaced in one step, so there is always a complete file. Symbolic links are followed, and
    /// permissions are kept.
    ///
    /// # Errors
    /// [`Error::Io`]; what was at `path` is as it was.
    pub fn save(&self, path: &Path) -> Result<()> {
        self.replace(path).map_err(|source| Error::Io {
            path: path.into(),
            action: "written",
            source,
        })
    }

    fn replace(&self, path: &Path) -> io::Result<()> {
        let target = target_of(path);
        let existing = match fs::metadata(&target) {
            Ok(existing) => {
                // Renaming would replace a device too.
                require_regular(&existing)?;
                Some(existing)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let directory = target.parent().unwrap_or(Path::new("."));
        let file = temporary::create(directory, PREFIX, existing.as_ref())?;
        self.write(file.as_file().as_ref())?;
        temporary::replace(&target, file)
    }

    /// Writes the snapshot in the format of the module.
    ///
    /// # Errors
    /// Those of `output`.
    pub fn write(&self, mut output: impl Write) -> io::Result<()> {
        let Tensors { data, infos } = self.tensors();
        let header = Metadata::new(Some(self.metadata()), infos).map_err(io::Error::other)?;
        let mut header = serde_json::to_vec(&header)?;
        // Aligns the tensors.
        header.resize(header.len().next_multiple_of(LENGTH_BYTES), b' ');
        fault::point("save");
        let mut hasher = XxHash3_128::new();
        let length = (header.len() as u64).to_le_bytes();
        for part in [&length[..], &header, &data[..data.len() - CHECKSUM_BYTES]] {
            hasher.write(part);
            output.write_all(part)?;
        }
        output.write_all(&hasher.finish_128().to_be_bytes())
    }

    /// Returns the tensors of the file, in order. The checksum is zero.
    fn tensors(&self) -> Tensors {
        let contents = &self.contents;
        let clock = microseconds(self.clock);
        let time = |added: Moment| {
            let age = added.age(self.taken).as_micros();
            clock.saturating_sub(i64::try_from(age).unwrap_or(i64::MAX))
        };
        let entries: Vec<_> = contents.entries().collect();
        let labels = || entries.iter().map(|(label, _)| *label);
        let lengths = labels().map(|label| label.map_or(0, |label| label.len()));
        let of_entries = |columns| Some([entries.len(), columns]);
        let mut tensors = Tensors::default();
        tensors.push(
            "added",
            Dtype::I64,
            None,
            entries.iter().map(|(_, added)| time(*added)),
        );
        tensors.push("label_ends", Dtype::U64, None, ends(lengths));
        let mut dimensions = contents.options.dimensions;
        if let Some(HeldTraces {
            method,
            documents,
            hashes,
        }) = &contents.traces
        {
            let lengths = documents.iter().map(|document| document.words.len());
            let terms = contents.words().map(|word| word.term);
            tensors.push("term_ends", Dtype::U64, None, ends(lengths));
            tensors.push("words", Dtype::U64, None, hashes.iter().copied());
            tensors.push("terms", Dtype::U32, None, terms);
            dimensions = if *method == Method::Lexical { 0 } else { dimensions };
        }
        let rows = contents
            .vectors
            .iter()
            .flat_map(|row| contents.vectors.components(row));
        tensors.push("vectors", Dtype::F32, of_entries(dimensions), rows);
        if contents.traces.is_some() {
            let counts = contents.words().map(|word| { word.count }.code());
            tensors.push("counts", Dtype::U16, None, counts);
        }
        let labelled = labels().map(|label| u8::from(label.is_some()));
        tensors.push("labelled", Dtype::BOOL, None, labelled);
        tensors.push(
            "labels",
            Dtype::U8,
            None,
            labels().flatten().flat_map(|label| label.bytes()),
        );
        tensors.push("checksum", Dtype::U8, None, [0_u8; CHECKSUM_BYTES]);
        tensors
    }

    fn metadata(&self) -> HashMap<String, String> {
        let Contents {
            options,
            origin,
            traces,
            ..
        } = &self.contents;
        let version = if traces.is_some() { TRACES } else { VECTORS };
        let model = origin.model.as_ref();
        let fields = [
            ("format", Some(FORMAT.into())),
            ("version", Some(version.into())),
            ("max_elements", Some(options.max_elements.to_string())),
            ("saved_at", Some(microseconds(self.clock).to_string())),
            (
                "ttl_ms",
                options.time_to_live.map(|time| milliseconds(time).to_string()),
            ),
            ("model", model.map(|model| model.model.clone())),
            ("dtype", model.map(|model| model.dtype.clone())),
            ("model_sha256", model.and_then(|model| model.sha256.clone())),
            ("method", origin.method.clone()),
        ];
        let fields = fields.into_iter();
        fields
            .filter_map(|(key, value)| Some((key.to_owned(), value?)))
            .collect()
    }
}

/// Tensors one after another.
#[derive(Default)]
struct Tensors {
    data: Vec<u8>,
    infos: Vec<(String, TensorInfo)>,
}

impl Tensors {
    /// Appends a tensor. Without a shape it has one dimension.
    fn push<T: NoUninit>(
        &mut self,
        name: &str,
        dtype: Dtype,
        shape: Option<[usize; 2]>,
        values: impl IntoIterator<Item = T>,
    ) {
        let start = self.data.len();
        for value in values {
            self.data.extend_from_slice(bytemuck::bytes_of(&value));
        }
        let data_offsets = (start, self.data.len());
        let count = (self.data.len() - start) * 8 / dtype.bitsize();
        let shape = shape.map_or_else(|| vec![count], Vec::from);
        let info = TensorInfo {
            dtype,
            shape,
            data_offsets,
        };
        self.infos.push((name.to_owned(), info));
    }
}

/// Returns where consecutive parts of these lengths end.
fn ends(lengths: impl Iterator<Item = usize>) -> impl Iterator<Item = u64> {
    let mut end = 0;
    lengths.map(move |length| {
        end += length as u64;
        end
    })
}

impl Contents {
    fn documents(&self) -> impl Iterator<Item = &Document> {
        let traces = self.traces.iter().flat_map(|traces| &traces.documents);
        traces.map(|document| &**document)
    }

    fn words(&self) -> impl Iterator<Item = &DocumentWord> {
        self.documents().flat_map(|document| &document.words)
    }

    /// Returns the label of each vector or trace, and when it was added.
    fn entries(&self) -> Box<dyn Iterator<Item = (Option<&Label>, Moment)> + '_> {
        match self.traces {
            None => Box::new(self.vectors.iter().map(|row| (row.label, row.added))),
            Some(_) => Box::new(
                self.documents()
                    .map(|document| (document.label.as_ref(), document.added)),
            ),
        }
    }

    /// Returns the labels of the entries, oldest first.
    pub fn labels(&self) -> impl Iterator<Item = Option<&Label>> {
        self.entries().map(|(label, _)| label)
    }
}
