//! Decompresses inputs so that nothing before a fault in gzip is lost.

use std::{
    fmt::Display,
    io::{self, BufRead, BufReader, Read},
    ops::ControlFlow,
};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::StreamingDecoder;

/// How a member of gzip begins; the third byte is deflate, the only method there is.
const GZIP: &[u8] = &[0x1f, 0x8b, 0x08];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// So many bytes are inflated at once: where a member is damaged, those of the last time may be lost.
const INFLATED_SIZE: usize = 32 * 1024;

/// At most so many bytes are read, or decompressed, at once. Lines of a chunk are parsed on all cores, so that a chunk must hold many.
pub const CHUNK_SIZE: usize = 512 * 1024;

/// Takes a piece of text; tells whether to go on.
pub type Consumer<'c> = dyn FnMut(&[u8]) -> ControlFlow<()> + 'c;

/// Passes on the text of an input, of which at most `size` bytes are read at once, until the consumer has enough. Decompresses an input that
/// begins as gzip or zstd does, in any number of members or frames.
///
/// # Errors
/// After all that could be decompressed, if a member is cut off or damaged. Of a frame of zstd that is, the last window is lost.
pub fn read_text(input: impl Read, size: usize, consume: &mut Consumer) -> io::Result<()> {
    let mut input = BufReader::with_capacity(size, input);
    let mut beginning = Vec::new();
    let mut first = input.by_ref().take(ZSTD.len() as u64);
    first.read_to_end(&mut beginning)?;
    let mut input = beginning.as_slice().chain(input);
    if beginning.starts_with(GZIP) {
        return pass_on(&mut MultiGzDecoder::new(input), consume).map(drop);
    }
    if beginning == ZSTD {
        while !input.fill_buf()?.is_empty() {
            let mut frame = StreamingDecoder::new(&mut input).map_err(damaged)?;
            if pass_on(&mut frame, consume)?.is_break() {
                break;
            }
        }
        return Ok(());
    }
    loop {
        let length = match input.fill_buf() {
            Ok(text) if text.is_empty() || consume(text).is_break() => return Ok(()),
            Ok(text) => text.len(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            Err(error) => return Err(error),
        };
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
        let read = read_text(Slow(input), CHUNK_SIZE, &mut |piece| {
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
    fn members_follow_each_other() {
        let input = [&gzip(b"a\nb")[..], &gzip(b"c")].concat();
        assert_eq!(read(&input), (b"a\nbc".to_vec(), None));
        for text in ["plain", "a", ""] {
            assert_eq!(read(text.as_bytes()), (text.into(), None));
        }
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
    fn faults_are_told_behind_what_could_be_decompressed() {
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
            (
                after(b"garbage, of any length"),
                b"a\n",
                Some("damaged: invalid gzip header"),
            ),
        ] {
            let error = error.map(|error| format!("its compressed contents are {error}"));
            assert_eq!(read(&input), (text.to_vec(), error));
        }
    }

    #[test]
    fn a_frame_of_zstd_is_decompressed() {
        let text = lines(30_000);
        let frame = ruzstd::encoding::compress_to_vec(&text[..], ruzstd::encoding::CompressionLevel::Fastest);
        assert_eq!(
            read(&[&frame[..], &frame].concat()),
            ([&text[..], &text].concat(), None)
        );
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
