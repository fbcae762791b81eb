//! The text of an input in UTF-8. Other inputs are recognised by how they begin.

use std::{borrow::Cow, mem};

use crate::{
    DEFAULT_LIMIT, archive,
    input::{self, LinesOf},
};

pub use crate::input::Foreign;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A number of UTF-16 of its two bytes.
type Unit = fn([u8; 2]) -> u16;

/// How UTF-16 begins: with a byte order mark, which is no text, as PowerShell writes it, or without one.
const UTF_16: [(&[u8], Unit); 6] = [
    (b"\xff\xfe", u16::from_le_bytes),
    (b"{\0", u16::from_le_bytes),
    (b"[\0", u16::from_le_bytes),
    (b"\xfe\xff", u16::from_be_bytes),
    (b"\0{", u16::from_be_bytes),
    (b"\0[", u16::from_be_bytes),
];

/// How inputs begin that are no text that can be read.
#[rustfmt::skip]
const FOREIGN: [(&[u8], Foreign); 16] = [
    (b"\x1f\x8b\x08", Foreign::new("compressed with gzip", "gzip -dc")),
    (b"\x28\xb5\x2f\xfd", Foreign::new("compressed with zstd", "zstd -dc")),
    (b"\xfd7zXZ\0", Foreign::new("compressed with xz", "xz -dc")),
    (b"BZh", Foreign::new("compressed with bzip2", "bzip2 -dc")),
    (b"PAR1", Foreign::new("a table in Parquet", "pqrs cat --json")),
    (b"ARROW1", ARROW), (b"\xff\xff\xff\xff", ARROW),
    (b"SQLite", Foreign::new("a database of SQLite", "sqlite3 -json")),
    (b"<!DOCT", HTML), (b"<!doct", HTML), (b"<html>", HTML), (b"<html ", HTML),
    (b"\xff\xfe\0\0", UTF_32_LE), (b"{\0\0\0", UTF_32_LE), (b"[\0\0\0", UTF_32_LE),
    (b"\0\0", Foreign::new("text in UTF-32 BE", "iconv -f UTF-32BE -t UTF-8")),
];
const UTF_32_LE: Foreign = Foreign::new("text in UTF-32", "iconv -f UTF-32LE -t UTF-8");
const ARROW: Foreign = Foreign::new("a table in Arrow", "to_json of datasets");
const HTML: Foreign = Foreign::new(
    "a page in HTML, as servers send it in place of a file",
    "html2text",
);

/// An archive that is no log of Inspect, or too long.
pub const ZIP: Foreign = Foreign::new("a ZIP archive", "unzip -p");

/// A tar archive, by what stands in its first header.
const TAR: Foreign = Foreign::new("a tar archive", "tar -xO");
const IN_TAR: (usize, &[u8]) = (257, b"ustar");

/// A database or a history of Aider that is too long to be read from its bytes.
const TOO_LONG: Foreign = Foreign::new("a database or Markdown of more than 256 MB", "sqlite3 -json");

/// Archives and databases of more bytes are not read.
const ARCHIVE_LIMIT: u64 = 4 * DEFAULT_LIMIT;

/// The longest of all these, in bytes.
const BEGINNING_LENGTH: usize = 6;

/// Makes UTF-8 without a byte order mark of an input, chunk by chunk.
pub enum Decoder {
    /// The first bytes of an input whose encoding is not known yet.
    Beginning(Vec<u8>),
    /// Text in UTF-8.
    Utf8,
    /// UTF-16, and its bytes that make no character yet.
    Utf16(Unit, Vec<u8>),
    /// The bytes of an input that becomes text once they are all there; of an archive, if there is no way.
    Whole(Vec<u8>, Option<LinesOf>),
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
                if beginning.len() >= BEGINNING_LENGTH {
                    return self.finish();
                }
            }
            Self::Utf8 => return Ok(bytes.to_vec()),
            Self::Utf16(unit, left) => return Ok(decode_utf_16(*unit, left, bytes)),
            Self::Whole(whole, _) => {
                if (whole.len() + bytes.len()) as u64 > ARCHIVE_LIMIT {
                    let is_zip = whole.starts_with(archive::BEGINNING);
                    return Err(if is_zip { ZIP } else { TOO_LONG });
                }
                whole.extend_from_slice(bytes);
            }
        }
        Ok(Vec::new())
    }

    /// Returns the text of the bytes that were kept back.
    ///
    /// # Errors
    /// If the input is no text that can be read.
    pub fn finish(&mut self) -> Result<Vec<u8>, Foreign> {
        let beginning = match self {
            Self::Beginning(beginning) => mem::take(beginning),
            Self::Whole(bytes, Some(text_of)) => return text_of(mem::take(bytes)).map(String::into_bytes),
            _ => return Ok(Vec::new()),
        };
        *self = Self::Utf8;
        let text_of = input::reader_of(&beginning);
        if text_of.is_some() || beginning.starts_with(archive::BEGINNING) {
            *self = Self::Whole(beginning, text_of);
            return Ok(Vec::new());
        }
        let (at, mark) = IN_TAR;
        if beginning.get(at..).is_some_and(|header| header.starts_with(mark)) {
            return Err(TAR);
        }
        if let Some((_, foreign)) = FOREIGN
            .into_iter()
            .find(|(start, _)| beginning.starts_with(start))
        {
            return Err(foreign);
        }
        if let Some((start, unit)) = UTF_16.iter().find(|(start, _)| beginning.starts_with(start)) {
            *self = Self::Utf16(*unit, Vec::new());
            let is_mark = start.iter().all(|byte| *byte >= 0xfe);
            return self.push(if is_mark {
                &beginning[start.len()..]
            } else {
                &beginning
            });
        }
        match beginning.strip_prefix(BYTE_ORDER_MARK) {
            Some(text) => Ok(text.to_vec()),
            None => Ok(beginning),
        }
    }

    /// Takes out the bytes of the input, if it is an archive.
    pub fn take_archive(&mut self) -> Option<Vec<u8>> {
        match self {
            Self::Whole(archive, None) => Some(mem::take(archive)),
            _ => None,
        }
    }
}

/// Returns the text of the bytes that were left and of the next ones.
fn decode_utf_16(unit: Unit, left: &mut Vec<u8>, bytes: &[u8]) -> Vec<u8> {
    let bytes = if left.is_empty() {
        Cow::Borrowed(bytes)
    } else {
        Cow::Owned([left, bytes].concat())
    };
    let (pairs, rest) = bytes.as_chunks::<2>();
    let mut units: Vec<u16> = pairs.iter().map(|pair| unit(*pair)).collect();
    // The other half of a character may come next.
    let half = units.pop_if(|unit| (0xd800..0xdc00).contains(unit));
    *left = bytes[bytes.len() - rest.len() - if half.is_some() { 2 } else { 0 }..].to_vec();
    String::from_utf16_lossy(&units).into_bytes()
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
        text.extend(decoder.finish()?);
        Ok(String::from_utf8(text).unwrap())
    }

    #[test]
    fn inputs_in_pieces_of_any_size_become_text_or_are_refused() {
        for (input, text) in [
            (&b"1"[..], Ok("1")),
            (b"\xef\xbb\xbf{\"a\":1}", Ok("{\"a\":1}")),
            (b"\xff\xfe[\0=\xd8\0\xde]\0", Ok("[\u{1f600}]")),
            (b"{\0}\0\n\0{\0}\0", Ok("{}\n{}")),
            (b"\xfe\xff\0[\xd8=\xde\0\0]", Ok("[\u{1f600}]")),
            (b"\0{\0}\0\n\0{\0}", Ok("{}\n{}")),
            (b"{\0\0\0}\0\0\0", Err("text in UTF-32")),
            (b"\0\0\0{\0\0\0}", Err("text in UTF-32 BE")),
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

    #[test]
    fn an_archive_is_kept_whole() {
        let pieces = [&b"PK\x03\x04\0\0"[..], &[1; 100_000], &[2; 100_000]];
        let mut decoder = Decoder::default();
        for piece in pieces {
            assert_eq!(decoder.push(piece), Ok(Vec::new()));
        }
        assert_eq!(decoder.finish(), Ok(Vec::new()));
        assert_eq!(decoder.take_archive(), Some(pieces.concat()));
    }
}
