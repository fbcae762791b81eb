//! Streams that hash the bytes of a file, and stop when a call is cancelled.

use std::io::{self, BufWriter, Read, Write};

use twox_hash::XxHash3_128;

use knowledgepulse_error::{Call, Error};

use super::{CHECKSUM_BYTES, Unreadable, damaged};
use crate::room::WithRoom;

/// The bytes that are written at a time.
pub(super) const BUFFER_BYTES: usize = 1024 * 1024;

/// Hashes what is read.
pub(super) struct HashedInput<R> {
    input: R,
    hasher: XxHash3_128,
}

impl<R: Read> HashedInput<R> {
    pub(super) fn new(input: R) -> Self {
        Self {
            input,
            hasher: XxHash3_128::new(),
        }
    }

    pub(super) fn read(&mut self, bytes: &mut [u8]) -> std::result::Result<(), Unreadable> {
        self.read_unhashed(bytes)?;
        self.hasher.write(bytes);
        Ok(())
    }

    fn read_unhashed(&mut self, bytes: &mut [u8]) -> std::result::Result<(), Unreadable> {
        self.input.read_exact(bytes).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => damaged("it became shorter while it was read"),
            _ => Unreadable::Io(error),
        })
    }

    pub(super) fn read_values<T: bytemuck::Pod>(
        &mut self,
        count: usize,
    ) -> std::result::Result<Vec<T>, Unreadable> {
        let mut values = zeros(count)?;
        self.read(bytemuck::cast_slice_mut(&mut values))?;
        Ok(values)
    }

    pub(super) fn require_checksum(mut self) -> std::result::Result<(), Unreadable> {
        let mut checksum = [0; CHECKSUM_BYTES];
        self.read_unhashed(&mut checksum)?;
        if checksum != self.hasher.finish_128().to_be_bytes() {
            return Err(damaged("its checksum is wrong"));
        }
        Ok(())
    }
}

pub(super) fn zeros<T: bytemuck::Pod>(count: usize) -> std::result::Result<Vec<T>, Unreadable> {
    let mut values = Vec::with_room(count).ok_or(Error::OutOfMemory { dimensions: count })?;
    values.resize(count, T::zeroed());
    Ok(values)
}

/// Hashes what is written, and writes in large pieces.
pub(super) struct HashedOutput<W: Write> {
    output: BufWriter<W>,
    hasher: XxHash3_128,
}

impl<W: Write> HashedOutput<W> {
    pub(super) fn new(output: W) -> Self {
        Self {
            output: BufWriter::with_capacity(BUFFER_BYTES, output),
            hasher: XxHash3_128::new(),
        }
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hasher.write(bytes);
        self.output.write_all(bytes)
    }

    /// Appends the checksum.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.output.write_all(&self.hasher.finish_128().to_be_bytes())?;
        self.output.flush()
    }
}

/// A file whose reads and writes fail once a call is cancelled, so that the call ends early.
pub(super) struct UnlessCancelled<'c, F> {
    pub(super) file: F,
    pub(super) call: &'c Call,
}

impl<F> UnlessCancelled<'_, F> {
    fn require_wanted(&self) -> io::Result<()> {
        if self.call.is_cancelled() {
            return Err(io::Error::other(Error::Aborted));
        }
        Ok(())
    }
}

impl<F: Read> Read for UnlessCancelled<'_, F> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.require_wanted()?;
        self.file.read(bytes)
    }
}

impl<F: Write> Write for UnlessCancelled<'_, F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.require_wanted()?;
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
