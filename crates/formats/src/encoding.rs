//! The text of an input in UTF-8. Other inputs are recognised by how they begin.

use std::{iter, mem};

use crate::{
    DEFAULT_LIMIT,
    input::{self, Lines, LinesOf, archive, table},
    words::row_where,
};

pub use crate::input::Foreign;

/// How UTF-16 begins: with a byte order mark, as PowerShell writes it, or without one.
const UTF_16: [([&[u8]; 3], LinesOf); 2] = [
    ([b"\xff\xfe", b"{\0", b"[\0"], |bytes| {
        Ok(of_utf_16(&bytes, u16::from_le_bytes))
    }),
    ([b"\xfe\xff", b"\0{", b"\0["], |bytes| {
        Ok(of_utf_16(&bytes, u16::from_be_bytes))
    }),
];

/// A tar archive, by what stands in its first header.
const TAR: Foreign = Foreign::new("a tar archive", "tar -xO");
const IN_TAR: (usize, &[u8]) = (257, b"ustar");

/// An input that is too long to be kept until it is whole.
const TOO_LONG: Foreign = Foreign::new(
    "a database, a table, Markdown or text in UTF-16 of more than 256 MB",
    "sqlite3 -json",
);

/// Archives and databases of more bytes are not read.
const ARCHIVE_LIMIT: u64 = 4 * DEFAULT_LIMIT;

/// The longest of all these, in bytes. The names of a table in CSV may take more, up to the end of their line.
const BEGINNING_LENGTH: usize = 6;
const MOST_OF_NAMES: usize = 64 * 1024;

/// Makes UTF-8 of an input, chunk by chunk.
pub enum Decoder {
    /// The first bytes of an input whose encoding is not known yet.
    Beginning(Vec<u8>),
    /// Text in UTF-8.
    Utf8,
    /// The bytes of an input that becomes lines once they are all there.
    Whole(Vec<u8>, LinesOf),
}

impl Default for Decoder {
    fn default() -> Self {
        Self::Beginning(Vec::new())
    }
}

impl Decoder {
    /// Returns the text of the next bytes.
    ///
    /// # Errors
    /// If the input is no text that can be read.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<u8>, Foreign> {
        match self {
            Self::Beginning(beginning) => {
                beginning.extend_from_slice(bytes);
                let begins_name = |byte: &u8| byte.is_ascii_alphabetic() || b"\"_\xef".contains(byte);
                let may_be_names =
                    beginning.first().is_some_and(begins_name) && !beginning.iter().any(u8::is_ascii_control);
                let length = if may_be_names {
                    MOST_OF_NAMES
                } else {
                    BEGINNING_LENGTH
                };
                if beginning.len() >= length {
                    return self.begin();
                }
            }
            Self::Utf8 => return Ok(bytes.to_vec()),
            Self::Whole(whole, _) => {
                if (whole.len() + bytes.len()) as u64 > ARCHIVE_LIMIT {
                    let is_zip = whole.starts_with(archive::MAGIC);
                    return Err(if is_zip { archive::ZIP } else { TOO_LONG });
                }
                whole.extend_from_slice(bytes);
            }
        }
        Ok(Vec::new())
    }

    /// Returns the text of the bytes that were kept back, and the lines of an input that is whole.
    ///
    /// # Errors
    /// If the input is no text that can be read.
    pub fn finish(&mut self) -> Result<(Vec<u8>, Lines), Foreign> {
        // All of it may be shorter than a beginning.
        let text = self.begin()?;
        let lines = match self {
            Self::Whole(bytes, lines_of) => lines_of(mem::take(bytes))?,
            _ => Box::new(iter::empty()),
        };
        Ok((text, lines))
    }

    /// Returns how many bytes wait for the end of an input that can be read without it: of none that is an archive.
    pub fn kept(&self) -> usize {
        match self {
            Self::Whole(bytes, _) if !bytes.starts_with(archive::MAGIC) => bytes.len(),
            _ => 0,
        }
    }

    /// Returns the text of the first bytes, by which the encoding is known.
    fn begin(&mut self) -> Result<Vec<u8>, Foreign> {
        let Self::Beginning(beginning) = self else {
            return Ok(Vec::new());
        };
        let beginning = mem::take(beginning);
        *self = Self::Utf8;
        let (at, mark) = IN_TAR;
        if beginning.get(at..).is_some_and(|header| header.starts_with(mark)) {
            return Err(TAR);
        }
        let begins = |start: &&[u8]| beginning.starts_with(start);
        let lines_of = input::reader_of(&beginning);
        let first = beginning.iter().take(BEGINNING_LENGTH);
        let hex: String = first.map(|byte| format!("{byte:02x}")).collect();
        if let Some([_, foreign]) = row_where("foreign", |start| hex.starts_with(start))
            && lines_of.is_none()
        {
            let (what, program) = foreign.split_once(" | ").unwrap_or_default();
            return Err(Foreign::new(what, program));
        }
        let utf_16 = || UTF_16.iter().find(|(starts, _)| starts.iter().any(begins));
        let table = || table::begins_table(&beginning).then_some(table::lines_of as LinesOf);
        if let Some(lines_of) = lines_of.or_else(|| Some(utf_16()?.1)).or_else(table) {
            *self = Self::Whole(beginning, lines_of);
            return Ok(Vec::new());
        }
        Ok(beginning)
    }
}

/// Returns the text of bytes in UTF-16, without the byte order mark.
fn of_utf_16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Lines {
    let (pairs, _) = bytes.as_chunks::<2>();
    let units: Vec<u16> = pairs.iter().map(|pair| unit(*pair)).collect();
    let text = String::from_utf16_lossy(units.strip_prefix(&[0xfeff]).unwrap_or(&units));
    Box::new(iter::once(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the text of an input that comes in pieces of this size.
    fn decoded(input: &[u8], size: usize) -> Result<String, Foreign> {
        let mut decoder = Decoder::default();
        let mut text = Vec::new();
        for piece in input.chunks(size) {
            text.extend(decoder.push(piece)?);
        }
        let (rest, lines) = decoder.finish()?;
        text.extend(rest);
        text.extend(lines.flat_map(String::into_bytes));
        Ok(String::from_utf8(text).unwrap())
    }

    #[test]
    fn inputs_in_pieces_of_any_size_become_text_or_are_refused() {
        for (input, text) in [
            (&b"1"[..], Ok("1")),
            (b"\xef\xbb\xbf{\"a\":1}", Ok("\u{feff}{\"a\":1}")),
            (b"\xff\xfe[\0=\xd8\0\xde]\0", Ok("[\u{1f600}]")),
            (b"{\0}\0\n\0{\0}\0", Ok("{}\n{}")),
            (b"\xfe\xff\0[\xd8=\xde\0\0]", Ok("[\u{1f600}]")),
            (b"\0{\0}\0\n\0{\0}", Ok("{}\n{}")),
            (b"{\0\0\0}\0\0\0", Err("text in UTF-32")),
            (b"\0\0\0{\0\0\0}", Err("text in UTF-32 BE")),
            // A log that was cut while it was written to.
            (b"\0\0\0\0\0{}\n{}", Ok("\0\0\0\0\0{}\n{}")),
            (b"\0\0\n{}", Ok("\0\0\n{}")),
            (
                b"<!DOCTYPE html>",
                Err("a page in HTML, as servers send it in place of a file"),
            ),
            (
                b"SQLite format 3\0",
                Err("a database of SQLite of no agent that is known"),
            ),
            (b"\x1f\x8b\x08\0\0\0\0\0", Err("compressed with gzip")),
            (b"\xfd7zXZ\0\0\x04", Err("compressed with xz")),
            (b"PAR1\x15\0", Err("a table in Parquet that cannot be read")),
            (b"\x80\x05\x95\0", Err("a pickle of Python")),
            (b"ARROW1\0\0", Err("a table in Arrow")),
            (b"\xff\xff\xff\xff\x88\0", Err("a table in Arrow")),
        ] {
            for size in 1..=8 {
                let found = decoded(input, size).map_err(|foreign| foreign.what);
                assert_eq!(found.as_deref(), text.as_deref(), "{input:?} by {size}");
            }
        }
    }

    #[test]
    fn push_refuses_a_tar_archive_by_name() {
        let mut header = [0; 512];
        header[..4].copy_from_slice(b"a.js");
        header[257..262].copy_from_slice(b"ustar");
        let refused = Decoder::default().push(&header).map_err(|foreign| foreign.what);
        assert_eq!(refused, Err("a tar archive"));
    }
}
