//! Files that a run reads and writes, which file a name means, and what ends a run early.

pub(crate) mod file_identity;
pub(crate) mod output;
pub mod stop;
pub(crate) mod waiting;

use std::{
    fs::File,
    io::{self, Read},
};

use knowledgepulse_formats::input::{
    compression::{CHUNK_SIZE, Consumer, read_text},
    lines_of_file,
};

use crate::{STDIN, Waiting};

/// Hands on the text of a file or of standard input, decompressed where it begins as compressed text does; of a database a session a line.
/// `on_read` gets how many bytes were read, compressed ones too.
pub(crate) fn read_chunks(source: &str, on_read: &dyn Fn(u64), consume: &mut Consumer) -> io::Result<()> {
    let input: Box<dyn Read> = if source == STDIN {
        Box::new(Waiting(io::stdin()))
    } else if let Some(lines) = lines_of_file(source.as_ref())? {
        for line in lines {
            on_read(line.len() as u64);
            if consume((line + "\n").as_bytes()).is_break() {
                break;
            }
        }
        return Ok(());
    } else {
        Box::new(File::open(source)?)
    };
    read_text(Counted { input, on_read }, CHUNK_SIZE, consume)
}

/// Counts the bytes that are read.
struct Counted<'c> {
    input: Box<dyn Read>,
    on_read: &'c dyn Fn(u64),
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.input.read(buffer)?;
        (self.on_read)(length as u64);
        Ok(length)
    }
}
