//! Streams that another process may have made non-blocking.

use std::{
    io::{self, ErrorKind, Read, Write},
    thread,
    time::Duration,
};

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
