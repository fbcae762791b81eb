//! Where the weights lie: a file or memory.

use std::{borrow::Cow, fmt, fs::File, io, ops::Range, sync::Arc};

/// Where the weights lie. A clone is of the same file or memory.
#[derive(Clone)]
pub struct Source {
    place: Place,
    length: u64,
}

#[derive(Clone)]
enum Place {
    File(Arc<File>),
    Memory(Arc<dyn AsRef<[u8]> + Send + Sync>),
}

impl Source {
    /// Creates a file, which is read where and when something of it is needed. It is never mapped: a file that another
    /// process cuts short is an error here and no crash.
    ///
    /// # Errors
    /// When the system does not tell its length, or it is no regular file.
    pub fn file(file: impl Into<Arc<File>>) -> io::Result<Self> {
        let file = file.into();
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            let message = "what holds the weights must be a regular file";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        Ok(Self {
            place: Place::File(file),
            length: metadata.len(),
        })
    }

    /// Memory, such as an `Arc<[u8]>`, a `Vec<u8>` or a `&'static [u8]`, which is kept as long as the model.
    pub fn memory(bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> Self {
        Self {
            length: bytes.as_ref().len() as u64,
            place: Place::Memory(Arc::new(bytes)),
        }
    }

    /// Returns how many bytes there are.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Returns the bytes of `range`: copied if they are in a file.
    ///
    /// # Errors
    /// When the file cannot be read or has become shorter.
    pub(crate) fn read(&self, range: Range<u64>) -> io::Result<Cow<'_, [u8]>> {
        let too_large = |_| io::Error::from(io::ErrorKind::OutOfMemory);
        match &self.place {
            Place::File(_) => {
                let length = usize::try_from(range.end.saturating_sub(range.start)).map_err(too_large)?;
                let mut bytes = Vec::new();
                bytes.try_reserve_exact(length)?;
                bytes.resize(length, 0);
                self.read_into(range.start, &mut bytes)?;
                Ok(Cow::Owned(bytes))
            }
            Place::Memory(memory) => {
                let start = usize::try_from(range.start).map_err(too_large)?;
                let end = usize::try_from(range.end).map_err(too_large)?;
                let bytes = (**memory).as_ref().get(start..end);
                bytes
                    .map(Cow::Borrowed)
                    .ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
            }
        }
    }

    /// Fills `bytes` from `offset` on.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub(crate) fn read_into(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        match &self.place {
            Place::File(file) => read_exact_at(file, offset, bytes),
            Place::Memory(_) => {
                bytes.copy_from_slice(&self.read(offset..offset + bytes.len() as u64)?);
                Ok(())
            }
        }
    }
}

#[cfg(unix)]
fn read_exact_at(file: &File, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, offset)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut offset: u64, mut bytes: &mut [u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, bytes, offset) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                offset += count as u64;
                bytes = &mut bytes[count..];
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// There is one thread, so nobody else moves the place.
#[cfg(target_os = "wasi")]
fn read_exact_at(mut file: &File, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
    use std::io::{Read, Seek, SeekFrom};
    file.seek(SeekFrom::Start(offset))?;
    file.read_exact(bytes)
}

#[cfg(not(any(unix, windows, target_os = "wasi")))]
fn read_exact_at(_: &File, _: u64, _: &mut [u8]) -> io::Result<()> {
    let message = "files are read at a position on Unix, Windows and WASI only; load the weights from memory";
    Err(io::Error::new(io::ErrorKind::Unsupported, message))
}

impl fmt::Debug for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let place = match &self.place {
            Place::File(_) => "file",
            Place::Memory(_) => "memory",
        };
        write!(formatter, "Source({place}, {} bytes)", self.length)
    }
}
