//! Decompresses inputs so that nothing before a fault in gzip is lost.

use std::{
    cell::Cell,
    fmt::Display,
    io::{self, BufRead, Read},
    ops::{ControlFlow, Range},
};

use flate2::bufread::GzDecoder;
use ruzstd::decoding::StreamingDecoder;

/// How a member of gzip begins; the third byte is deflate, the only method there is.
const GZIP: &[u8] = &[0x1f, 0x8b, 0x08];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// So many bytes are inflated at once: where a member is damaged, those of the last time may be lost.
const INFLATED_SIZE: usize = 32 * 1024;

/// At most so many bytes are read, or decompressed, at once. Lines of a chunk are parsed on all cores, so that a chunk must hold many.
const CHUNK_SIZE: usize = 512 * 1024;

/// An input whose next bytes can be read ahead.
pub struct Input<R> {
    reader: R,
    buffer: Vec<u8>,
    /// Where in the buffer the bytes are that were read and not consumed.
    unread: Range<usize>,
}

impl<R: Read> Input<R> {
    /// Creates an input of which the usual number of bytes are read at once.
    #[must_use]
    pub fn new(reader: R) -> Self {
        Self::with_capacity(CHUNK_SIZE, reader)
    }

    /// Creates an input of which at most so many bytes are read at once.
    #[must_use]
    pub fn with_capacity(bytes: usize, reader: R) -> Self {
        Self {
            reader,
            buffer: vec![0; bytes],
            unread: 0..0,
        }
    }

    /// Returns whether the input goes on with these bytes.
    fn starts_with(&mut self, bytes: &[u8]) -> io::Result<bool> {
        while self.unread.len() < bytes.len() && self.read_more()? > 0 {}
        Ok(self.buffer[self.unread.clone()].starts_with(bytes))
    }

    /// Appends to the buffer; returns how many bytes, none at the end.
    fn read_more(&mut self) -> io::Result<usize> {
        self.buffer.copy_within(self.unread.clone(), 0);
        self.unread = 0..self.unread.len();
        let read = loop {
            match self.reader.read(&mut self.buffer[self.unread.end..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        self.unread.end += read;
        Ok(read)
    }
}

impl<R: Read> Read for Input<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let length = self.fill_buf()?.read(bytes)?;
        self.consume(length);
        Ok(length)
    }
}

impl<R: Read> BufRead for Input<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.unread.is_empty() {
            self.read_more()?;
        }
        Ok(&self.buffer[self.unread.clone()])
    }

    fn consume(&mut self, length: usize) {
        self.unread.start += length;
    }
}

/// Takes a piece of text; tells whether to go on.
pub type Consumer<'c> = dyn FnMut(&[u8]) -> ControlFlow<()> + 'c;

/// Passes on the text of an input in pieces until the consumer has enough. Decompresses an input that begins as gzip or zstd
/// does, in any number of members or frames. Bytes after them are passed on unchanged, on a line of their own, so that they
/// are judged as text; zeros, which pad files, are left out.
///
/// # Errors
/// After all that could be decompressed, if a member is cut off or damaged. Of a frame of zstd that is, the last window is lost.
pub fn read_text<R: Read>(input: &mut Input<R>, consume: &mut Consumer) -> io::Result<()> {
    let last = Cell::new(None);
    let mut take = |bytes: &[u8]| {
        last.set(bytes.last().copied().or(last.get()));
        consume(bytes)
    };
    loop {
        let flow = if input.starts_with(GZIP)? {
            pass_on(&mut GzDecoder::new(&mut *input), &mut take)?
        } else if input.starts_with(ZSTD)? {
            pass_on(
                &mut StreamingDecoder::new(&mut *input).map_err(damaged)?,
                &mut take,
            )?
        } else {
            break;
        };
        if flow.is_break() {
            return Ok(());
        }
        last.set(last.get().or(Some(b'\n')));
        skip_zeros(input)?;
    }
    let is_over = input.fill_buf()?.is_empty();
    if last.get().is_some_and(|last| last != b'\n') && !is_over && take(b"\n").is_break() {
        return Ok(());
    }
    loop {
        let bytes = input.fill_buf()?;
        let length = bytes.len();
        if length == 0 || take(bytes).is_break() {
            return Ok(());
        }
        input.consume(length);
    }
}

/// Passes on what a decoder reads to its end, in chunks.
fn pass_on(decoder: &mut dyn Read, take: &mut Consumer) -> io::Result<ControlFlow<()>> {
    let mut text = vec![0; CHUNK_SIZE];
    loop {
        let (mut length, mut result) = (0, Ok(1));
        while length < text.len() && matches!(result, Ok(read) if read > 0) {
            let end = text.len().min(length + INFLATED_SIZE);
            result = decoder.read(&mut text[length..end]);
            length += result.as_ref().copied().unwrap_or_default();
        }
        if length > 0 && take(&text[..length]).is_break() {
            return Ok(ControlFlow::Break(()));
        }
        match result {
            Ok(0) => return Ok(ControlFlow::Continue(())),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(io::Error::other("its compressed contents are cut off"));
            }
            Err(error) => return Err(damaged(error)),
        }
    }
}

fn skip_zeros(input: &mut dyn BufRead) -> io::Result<()> {
    loop {
        let zeros = input.fill_buf()?.iter().take_while(|byte| **byte == 0).count();
        if zeros == 0 {
            return Ok(());
        }
        input.consume(zeros);
    }
}

fn damaged(reason: impl Display) -> io::Error {
    io::Error::other(format!("its compressed contents are damaged: {reason}"))
}

#[cfg(test)]
mod tests {
    use std::{io::Write, sync::LazyLock};

    use flate2::{Compression, write::GzEncoder};
    use proptest::prelude::*;

    use super::*;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    /// Gives a byte at a time at first, as a slow pipe does.
    struct Slow<'b>(&'b [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
            let length = if self.0.len() < 200 { 1 } else { 5000 };
            self.0.read(&mut bytes[..length])
        }
    }

    fn read(input: &[u8]) -> (Vec<u8>, Option<String>) {
        let mut text = Vec::new();
        let read = read_text(&mut Input::new(Slow(input)), &mut |piece| {
            text.extend_from_slice(piece);
            ControlFlow::Continue(())
        });
        (text, read.err().map(|error| error.to_string()))
    }

    fn lines(count: usize) -> Vec<u8> {
        (0..count)
            .flat_map(|line| format!("line {} {line}\n", line * line).into_bytes())
            .collect()
    }

    #[test]
    fn members_padding_and_text_follow_each_other() {
        let input = [&gzip(b"a\nb")[..], &gzip(b"c"), &[0; 99], b"d\n"].concat();
        assert_eq!(read(&input), (b"a\nbc\nd\n".to_vec(), None));
        assert_eq!(
            read(&[gzip(b"a\n"), vec![0; 9]].concat()),
            (b"a\n".to_vec(), None)
        );
        assert_eq!(read(b"plain"), (b"plain".to_vec(), None));
        assert_eq!(read(b""), (Vec::new(), None));
    }

    #[test]
    fn a_header_may_have_an_extra_field_a_name_and_a_comment() {
        let mut member = gzip(b"a\n");
        // RFC 1952, 2.3: the flags are the fourth byte of ten.
        member[3] = 4 | 8 | 16;
        let fields = *b"\x03\0abcname.jsonl\0a comment\0";
        member.splice(10..10, fields);
        assert_eq!(read(&member), (b"a\n".to_vec(), None));
    }

    #[test]
    fn faults_are_told_and_what_is_no_gzip_is_text() {
        let whole = gzip(b"a\n");
        let mut wrong = whole.clone();
        wrong[whole.len() - 5] ^= 1;
        let after = |bytes: &[u8]| [&whole, bytes].concat();
        for (input, text, error) in [
            (whole[..whole.len() - 3].to_vec(), &b"a\n"[..], Some("cut off")),
            (after(&whole[..5]), b"a\n", Some("cut off")),
            (after(&whole[..10]), b"a\n", Some("cut off")),
            (
                wrong,
                b"a\n",
                Some("damaged: corrupt gzip stream does not have a matching checksum"),
            ),
            (after(b"garbage"), b"a\ngarbage", None),
            (after(b"\x1f\x8b\xff\xfe"), b"a\n\x1f\x8b\xff\xfe", None),
        ] {
            let error = error.map(|error| format!("its compressed contents are {error}"));
            assert_eq!(read(&input), (text.to_vec(), error));
        }
    }

    #[test]
    fn a_frame_of_zstd_is_decompressed() {
        let text = lines(30_000);
        let frame = ruzstd::encoding::compress_to_vec(&text[..], ruzstd::encoding::CompressionLevel::Fastest);
        let input = [&frame[..], &frame, b"d\n"].concat();
        assert_eq!(read(&input), ([&text[..], &text, b"d\n"].concat(), None));
        let (_, error) = read(&frame[..frame.len() / 2]);
        assert!(
            error
                .unwrap()
                .starts_with("its compressed contents are damaged: ")
        );
    }

    /// A text of a megabyte, and what `gzip` makes of it.
    static COMPRESSED: LazyLock<(Vec<u8>, Vec<u8>)> = LazyLock::new(|| {
        let text = lines(20_000);
        let compressed = gzip(&text);
        (text, compressed)
    });

    proptest! {
        #[test]
        fn nothing_before_a_fault_is_lost(at in 0.0..1.0_f64, flipped: bool) {
            let (text, whole) = &*COMPRESSED;
            let mut input = whole.clone();
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
            let part = |length: usize| (length as f64 * at) as usize;
            // The header of `gzip` has ten bytes.
            let at = 10 + part(input.len() - 10);
            if flipped {
                input[at] ^= 0x55;
            } else {
                input.truncate(at);
            }
            let (found, error) = read(&input);
            prop_assert!(error.is_some_and(|error| error.starts_with("its compressed contents are ")));
            if !flipped {
                prop_assert!(text.starts_with(&found));
                // The lines are about as compressible everywhere.
                prop_assert!(found.len() + 70_000 >= part(text.len()) * 9 / 10);
            }
        }
    }
}
