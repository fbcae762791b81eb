//! Where a run writes: files that appear with all their contents or not at all, and standard output.

use std::{
    fs::{self, Metadata, OpenOptions},
    io::{self, BufWriter, ErrorKind, Write},
    path::PathBuf,
    sync::Arc,
};

use knowledgepulse_os::temporary::TemporaryFile;

use crate::{Failure, Result, Waiting, files::file_identity::standard_stream, reason_of, target_of};

const BUFFER_SIZE: usize = 64 * 1024;

/// The beginning of the names of temporary files.
const PREFIX: &str = ".kp-score-";

type Buffered = BufWriter<Waiting<Box<dyn Write + Send>>>;

fn buffered(output: impl Write + Send + 'static) -> Buffered {
    BufWriter::with_capacity(BUFFER_SIZE, Waiting(Box::new(output) as _))
}

/// An output. The contents of a file go to a temporary file, which takes its place when it is on the disk. Pipes, devices and standard
/// output are written to directly.
pub(crate) struct Output {
    /// How it was named; `None` of standard output.
    name: Option<String>,
    writer: Buffered,
    /// The temporary file, and where it is to go.
    replacement: Option<(TemporaryFile, PathBuf)>,
    /// Whether writing has failed, as where the reader of standard output has gone away.
    is_closed: bool,
}

impl Output {
    /// Returns standard output.
    pub(crate) fn standard() -> Self {
        Self {
            name: None,
            writer: buffered(io::stdout()),
            replacement: None,
            is_closed: false,
        }
    }

    /// Writes all that a command has to say.
    pub(crate) fn print(text: &str) -> Result<()> {
        let mut stdout = Self::standard();
        stdout.write(text.as_bytes())?;
        stdout.publish()
    }

    /// Opens a file. What is written is not compressed, so a name that says so is refused.
    pub(crate) fn open(name: &str) -> Result<Self> {
        if let Some((plain, ending @ ("gz" | "zst"))) = name.rsplit_once('.') {
            return Err(Failure::usage(format!(
                "{name}: outputs are not compressed, as .{ending} says: name it {plain}, and compress that"
            )));
        }
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
        let mut replacement = None;
        let file = if let Some(standard) = standard_stream(name).filter(|_| is_file) {
            // As `/dev/stdout` is: replaced, it would lose what the shell has opened it for, and what it is appended to.
            Arc::new(standard)
        } else if is_file {
            let path = target_of(name);
            if existing.is_some() {
                // Where the old file may not be written to, it may not be replaced either.
                OpenOptions::new().write(true).open(&path)?;
            }
            let temporary = TemporaryFile::create(path.parent().unwrap_or(&path), PREFIX, existing.as_ref())?;
            let file = Arc::clone(temporary.file());
            replacement = Some((temporary, path));
            file
        } else {
            Arc::new(OpenOptions::new().write(true).open(name)?)
        };
        Ok(Self {
            name: Some(name.to_owned()),
            writer: buffered(file),
            replacement,
            is_closed: false,
        })
    }

    /// Writes bytes. Returns whether there is a reader: where that of standard output has gone away, they are lost.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<bool> {
        self.attempt(|writer| writer.write_all(bytes))
    }

    /// Hands everything on to the reader.
    pub(crate) fn flush(&mut self) -> Result<bool> {
        self.attempt(Write::flush)
    }

    /// Writes out everything, and puts a file in its place.
    pub(crate) fn publish(mut self) -> Result<()> {
        self.flush()?;
        let Some((temporary, path)) = self.replacement.take() else {
            return Ok(());
        };
        let published = temporary
            .file()
            .sync_all()
            .and_then(|()| temporary.persist(&path));
        published.map_err(|error| self.failure(&error))
    }

    /// Returns whether its bytes go where it is named, as those of a pipe: dropped before [`Output::publish`], another one leaves nothing.
    pub(crate) fn is_written_directly(&self) -> bool {
        self.replacement.is_none()
    }

    fn attempt(&mut self, write: impl FnOnce(&mut Buffered) -> io::Result<()>) -> Result<bool> {
        if self.is_closed {
            return Ok(false);
        }
        let Err(error) = write(&mut self.writer) else {
            return Ok(true);
        };
        self.is_closed = true;
        match self.name {
            None if error.kind() == ErrorKind::BrokenPipe => Ok(false),
            _ => Err(self.failure(&error)),
        }
    }

    fn failure(&self, error: &io::Error) -> Failure {
        let standard = || Failure::file(format!("cannot write to standard output: {}", reason_of(error)));
        let name = self.name.as_ref();
        name.map_or_else(standard, |name| Failure::write(name, error))
    }
}
