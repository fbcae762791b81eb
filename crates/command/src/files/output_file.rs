//! Files that appear with all their contents or not at all, and standard output.

use std::{
    fs::{self, File, Metadata, OpenOptions},
    io::{self, BufWriter, ErrorKind, Write},
    path::PathBuf,
    sync::Arc,
};

use flate2::{Compression, write::GzEncoder};

use knowledgepulse_os::temporary::TemporaryFile;

use crate::{
    error::{Failure, Result, reason_of},
    files::{
        file_identity::{directory_of, target_of},
        waiting::Waiting,
    },
};

const BUFFER_SIZE: usize = 64 * 1024;

/// The beginning of the names of temporary files.
const PREFIX: &str = ".kp-score-";

type Buffered = BufWriter<Waiting<Arc<File>>>;

enum Writer {
    Plain(Buffered),
    Gzip(Box<GzEncoder<Buffered>>),
}

impl Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(writer) => writer.write_all(bytes),
            Self::Gzip(writer) => writer.write_all(bytes),
        }
    }

    fn finish(self) -> io::Result<()> {
        let mut writer = match self {
            Self::Plain(writer) => writer,
            Self::Gzip(writer) => writer.finish()?,
        };
        writer.flush()
    }
}

/// An output. Its contents go to a temporary file, which takes its place when it is on the disk. Pipes and devices are written to
/// directly.
pub(crate) struct OutputFile {
    /// How it was named.
    pub name: String,
    writer: Option<Writer>,
    replacement: Option<Replacement>,
}

/// A temporary file, and where it is to go.
struct Replacement {
    temporary: TemporaryFile,
    path: PathBuf,
}

impl OutputFile {
    /// Opens it; compressed if the name ends in `.gz`.
    pub(crate) fn open(name: &str) -> Result<Self> {
        Self::try_open(name).map_err(|error| Failure::write(name, &error))
    }

    fn try_open(name: &str) -> io::Result<Self> {
        let existing = match fs::metadata(name) {
            Ok(metadata) => Some(metadata),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        if existing.as_ref().is_some_and(Metadata::is_dir) {
            return Err(ErrorKind::IsADirectory.into());
        }
        let is_file = existing.as_ref().is_none_or(Metadata::is_file);
        let standard = existing.as_ref().filter(|_| is_file).and_then(standard_stream);
        let mut replacement = None;
        let file = if let Some(standard) = standard {
            // As `/dev/stdout` is: replaced, it would lose what the shell has opened it for, and what it is appended to.
            Arc::new(standard)
        } else if is_file {
            let path = target_of(name);
            if existing.is_some() {
                // Where the old file may not be written to, it may not be replaced either.
                OpenOptions::new().write(true).open(&path)?;
            }
            let temporary = TemporaryFile::create(directory_of(&path), PREFIX, existing.as_ref())?;
            let file = Arc::clone(temporary.file());
            replacement = Some(Replacement { temporary, path });
            file
        } else {
            Arc::new(OpenOptions::new().write(true).open(name)?)
        };
        let writer = BufWriter::with_capacity(BUFFER_SIZE, Waiting(file));
        let is_compressed = name.to_ascii_lowercase().ends_with(".gz");
        let writer = if is_compressed {
            Writer::Gzip(Box::new(GzEncoder::new(writer, Compression::default())))
        } else {
            Writer::Plain(writer)
        };
        Ok(Self {
            name: name.to_owned(),
            writer: Some(writer),
            replacement,
        })
    }

    /// Writes bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        match &mut self.writer {
            Some(writer) => writer
                .write(bytes)
                .map_err(|error| Failure::write(&self.name, &error)),
            None => Ok(()),
        }
    }

    /// Puts everything on the disk.
    pub(crate) fn finish(&mut self) -> Result<()> {
        let finished = self.writer.take().map_or(Ok(()), Writer::finish).and_then(|()| {
            let replacement = self.replacement.as_ref();
            replacement.map_or(Ok(()), |replacement| replacement.temporary.file().sync_all())
        });
        finished.map_err(|error| Failure::write(&self.name, &error))
    }

    /// Returns whether its bytes go where it is named, as those of a pipe: dropped before [`OutputFile::publish`], another one leaves
    /// nothing.
    pub(crate) fn is_written_directly(&self) -> bool {
        self.replacement.is_none()
    }

    /// Puts it in its place; after [`OutputFile::finish`].
    pub(crate) fn publish(&mut self) -> Result<()> {
        let Some(Replacement { temporary, path }) = self.replacement.take() else {
            return Ok(());
        };
        temporary
            .persist(&path)
            .map_err(|error| Failure::write(&self.name, &error))
    }
}

/// The standard output or standard error that this file is; `None` if it is neither.
#[cfg(unix)]
fn standard_stream(file: &Metadata) -> Option<File> {
    use std::os::{fd::AsFd, unix::fs::MetadataExt};
    let is_same = |stream: &File| {
        let metadata = stream.metadata();
        metadata.is_ok_and(|stream| (stream.dev(), stream.ino()) == (file.dev(), file.ino()))
    };
    let (stdout, stderr) = (io::stdout(), io::stderr());
    [stdout.as_fd(), stderr.as_fd()]
        .into_iter()
        .filter_map(|stream| stream.try_clone_to_owned().ok().map(File::from))
        .find(is_same)
}

/// Elsewhere they have no names.
#[cfg(not(unix))]
fn standard_stream(_: &Metadata) -> Option<File> {
    None
}

/// Standard output.
pub(crate) struct StandardOutput {
    writer: BufWriter<Waiting<io::Stdout>>,
    is_closed: bool,
}

impl StandardOutput {
    pub(crate) fn new() -> Self {
        Self {
            writer: BufWriter::with_capacity(BUFFER_SIZE, Waiting(io::stdout())),
            is_closed: false,
        }
    }

    /// Writes all that a command has to say.
    pub(crate) fn print(text: &[u8]) -> Result<()> {
        let mut stdout = Self::new();
        stdout.write(text)?;
        stdout.flush().map(drop)
    }

    /// Writes text; returns whether there is a reader. Where it has gone away, what is written is lost.
    pub(crate) fn write(&mut self, text: &[u8]) -> Result<bool> {
        self.attempt(|writer| writer.write_all(text))
    }

    /// Hands everything on to the reader.
    pub(crate) fn flush(&mut self) -> Result<bool> {
        self.attempt(Write::flush)
    }

    fn attempt(
        &mut self,
        write: impl FnOnce(&mut BufWriter<Waiting<io::Stdout>>) -> io::Result<()>,
    ) -> Result<bool> {
        if self.is_closed {
            return Ok(false);
        }
        match write(&mut self.writer) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.is_closed = true;
                Ok(false)
            }
            Err(error) => {
                // Dropping the writer would write again.
                self.is_closed = true;
                let reason = reason_of(&error);
                Err(Failure::file(format!(
                    "cannot write to standard output: {reason}"
                )))
            }
        }
    }
}
