//! Files that a run reads and writes, which file a name means, and what ends a run early.

use std::{
    fs::{self, File, Metadata, OpenOptions},
    io::{self, BufWriter, ErrorKind, Read, Write},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use knowledgepulse_formats::input::{
    compression::{CHUNK_SIZE, Consumer, read_text},
    lines_of_file,
};
pub use knowledgepulse_os::links::target_of;
use knowledgepulse_os::temporary::{self, TemporaryFile};
use same_file::Handle;

use crate::{Failure, Messages, Result, reason_of};

/// The name of standard input among the inputs.
pub const STDIN: &str = "-";

/// A file that is written, and its option.
pub(crate) type Target<'a> = (&'static str, &'a str);

/// Returns the name of an input in messages.
pub fn name_of(source: &str) -> &str {
    if source == STDIN { "stdin" } else { source }
}

/// Returns the metadata of an input; `None` on failure, which reading the input will report, and of standard input.
pub fn metadata_of(source: &str) -> Option<Metadata> {
    fs::metadata(source).ok().filter(|_| source != STDIN)
}

/// Returns whether an input is the same ordinary file as another one, also through symbolic links, or standard input that a shell has opened it
/// as. Returns false for terminals and pipes, which cannot be overwritten.
pub fn is_same_file(input: &str, other: &str) -> bool {
    let is_file = |name: &str| metadata_of(name).is_none_or(|metadata| metadata.is_file());
    let is_stdin = || Ok::<_, io::Error>(Handle::stdin()? == Handle::from_path(other)?);
    match input {
        STDIN => is_file(other) && is_stdin().unwrap_or(false),
        _ => is_file(input) && target_of(input) == target_of(other),
    }
}

/// Returns how many bytes there are to read; `None` if that is not known.
pub fn total_size<'s>(sources: impl IntoIterator<Item = &'s String>) -> Option<u64> {
    let files = sources
        .into_iter()
        .map(|source| metadata_of(source).filter(Metadata::is_file));
    files.map(|file| file.map(|metadata| metadata.len())).sum()
}

/// Hands on the text of a file or of standard input, decompressed where it begins as compressed text does; of a database a session a line.
/// `messages` show how many bytes were read, compressed ones too.
pub(crate) fn read_chunks(source: &str, messages: &Messages, consume: &mut Consumer) -> io::Result<()> {
    let input: Box<dyn Read> = if source == STDIN {
        Box::new(Waiting(io::stdin()))
    } else if let Some(lines) = lines_of_file(source.as_ref())? {
        for line in lines {
            messages.on_read(line.len() as u64);
            if consume((line + "\n").as_bytes()).is_break() {
                break;
            }
        }
        return Ok(());
    } else {
        Box::new(File::open(source)?)
    };
    read_text(messages.counted(input), CHUNK_SIZE, consume)
}

/// How long to wait before a stream is asked again.
const PAUSE: Duration = Duration::from_millis(2);

/// A stream whose reads and writes wait: a pipe or terminal that is shared with other processes may be non-blocking.
#[derive(Debug)]
pub(crate) struct Waiting<S>(pub S);

fn waiting<T>(mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match attempt() {
            Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(PAUSE),
            result => return result,
        }
    }
}

impl<S: Read> Read for Waiting<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        waiting(|| self.0.read(buffer))
    }
}

impl<S: Write> Write for Waiting<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        waiting(|| self.0.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        waiting(|| self.0.flush())
    }
}

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
        let file = if is_file {
            let path = target_of(name);
            if existing.is_some() {
                // Where the old file may not be written to, it may not be replaced either.
                OpenOptions::new().write(true).open(&path)?;
            }
            let temporary = temporary::create(path.parent().unwrap_or(&path), PREFIX, existing.as_ref())?;
            let file = Arc::clone(temporary.as_file());
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
        let published = match self.replacement.take() {
            Some((temporary, path)) => temporary::replace(&path, temporary),
            None => Ok(()),
        };
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

/// Ends a run before it has read everything. Traces in flight are still scored and written.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    is_set: Arc<AtomicBool>,
    is_interrupted: Arc<AtomicBool>,
}

impl Stop {
    /// Ends the run as a signal does. Returns whether this is the first time: at the second, the process must end at once, and
    /// leaves its temporary files.
    pub fn interrupt(&self, messages: &Messages) -> bool {
        if self.is_interrupted.swap(true, Ordering::SeqCst) {
            messages.stop_progress();
            return false;
        }
        self.end_reading();
        messages.warning("interrupted: finishing the traces that were begun; once more to end at once");
        true
    }

    pub(crate) fn end_reading(&self) {
        self.is_set.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.is_set.load(Ordering::SeqCst)
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        self.is_interrupted.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    #[cfg(unix)]
    use super::*;

    #[cfg(unix)]
    #[test]
    fn is_same_file_sees_links_and_missing_files() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
        fs::write(path("a"), "").unwrap();
        std::os::unix::fs::symlink("a", path("b")).unwrap();
        assert!(is_same_file(&path("a"), &path("b")));
        assert!(is_same_file(&path("new"), &path("./new")));
        assert!(!is_same_file(&path("a"), &path("new")));
        assert!(!is_same_file("/dev/null", "/dev/null"));
    }

    #[cfg(unix)]
    #[test]
    fn is_same_file_sees_a_linked_folder_of_a_file_that_is_not_there_yet() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
        fs::create_dir(path("folder")).unwrap();
        std::os::unix::fs::symlink("folder", path("link")).unwrap();
        assert!(is_same_file(&path("folder/new"), &path("link/new")));
    }
}
