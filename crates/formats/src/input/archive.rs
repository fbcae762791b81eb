//! Archives of Inspect: a JSON file for each sample; one sample is decompressed at a time, and the header of its log is added to it.

use std::{fmt::Display, io::Read};

use flate2::bufread::DeflateDecoder;
use knowledgepulse_json::parse_str;
use rawzip::{
    CompressionMethod, ZipArchive, ZipArchiveEntryWayfinder, ZipSliceArchive, ZipVerification, crc32,
};
use ruzstd::decoding::StreamingDecoder;

use super::{Foreign, Lines, unreadable};
use crate::{DEFAULT_LIMIT, common::too_long};

/// The field of a sample that has the header of its log.
pub const LOG: &str = "log";

/// How an archive begins.
pub const MAGIC: &[u8] = b"PK\x03\x04";

/// An archive that is no log of Inspect, or too long.
pub const ZIP: Foreign = Foreign::new("a ZIP archive", "unzip -p");

/// The header of a finished log, and the header of an unfinished one.
const HEADERS: [&[u8]; 2] = [b"header.json", b"_journal/start.json"];

const SAMPLES: &[u8] = b"samples/";

type Archive = ZipSliceArchive<Vec<u8>>;

struct Member {
    name: String,
    method: CompressionMethod,
    place: ZipArchiveEntryWayfinder,
}

/// Returns the samples of a log, a line each, whose first field is the header of the log.
///
/// # Errors
/// If the archive is broken, or is no log.
pub fn lines_of(bytes: Vec<u8>) -> Result<Lines, Foreign> {
    let (archive, header, samples) = opened(bytes).ok_or(ZIP)?;
    let header = text_of(&archive, &header, DEFAULT_LIMIT)
        .and_then(|text| parse_str(&text).map_err(|error| format!("{}: {error}", header.name)));
    let (beginning, problem) = match header {
        Ok(header) => {
            let log = header
                .get("eval")
                .map(|log| format!("{{\"{LOG}\":{},", log.to_json()));
            (log.unwrap_or_else(|| "{".into()), None)
        }
        Err(error) => ("{".into(), Some(unreadable(&error))),
    };
    let line_of = move |sample| match text_of(&archive, &sample, DEFAULT_LIMIT) {
        // Line breaks stand between the tokens of JSON only.
        Ok(text) => text.replace(['\n', '\r'], " ").replacen('{', &beginning, 1) + "\n",
        Err(error) => unreadable(&error),
    };
    Ok(Box::new(
        problem.into_iter().chain(samples.into_iter().map(line_of)),
    ))
}

/// Opens an archive: returns its header and its samples; `None` if it is broken, or is no log.
fn opened(bytes: Vec<u8>) -> Option<(Archive, Member, Vec<Member>)> {
    let length = bytes.len() as u64;
    let archive = ZipArchive::from_slice(bytes).ok()?;
    let mut headers = [None, None];
    let mut samples = Vec::new();
    let mut size = 0;
    let mut entries = archive.entries();
    while let Some(entry) = entries.next_entry().ok()? {
        let path = entry.file_path();
        let name = path.as_bytes();
        let member = Member {
            name: String::from_utf8_lossy(name).into_owned(),
            method: entry.compression_method(),
            place: entry.wayfinder(),
        };
        size += entry.compressed_size_hint();
        if let Some(at) = HEADERS.iter().position(|header| *header == name) {
            headers[at] = Some(member);
        } else if name.starts_with(SAMPLES) && name.ends_with(b".json") {
            samples.push(member);
        }
    }
    // Files that share their bytes would take more time than the archive is long.
    let header = headers.into_iter().flatten().next().filter(|_| size <= length)?;
    Some((archive, header, samples))
}

/// Returns the text of a file of an archive, of at most so many bytes.
///
/// # Errors
/// The problem, behind the name of the file.
fn text_of(archive: &Archive, member: &Member, limit: u64) -> Result<String, String> {
    let bytes = bytes_of(archive, member, limit);
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).map_err(|_| "not UTF-8".into()));
    text.map_err(|error| format!("{}: {error}", member.name))
}

fn bytes_of(archive: &Archive, member: &Member, limit: u64) -> Result<Vec<u8>, String> {
    let entry = archive.get_entry(member.place).map_err(damaged)?;
    let most = limit + 1;
    let mut data = entry.data();
    let mut bytes = Vec::new();
    match member.method {
        CompressionMethod::STORE => drop(data.take(most).read_to_end(&mut bytes).map_err(damaged)?),
        CompressionMethod::DEFLATE => {
            let mut deflated = DeflateDecoder::new(data).take(most);
            deflated.read_to_end(&mut bytes).map_err(damaged)?;
        }
        CompressionMethod::ZSTD => {
            while !data.is_empty() && bytes.len() as u64 <= limit {
                let left = most - bytes.len() as u64;
                let mut frame = StreamingDecoder::new(&mut data).map_err(damaged)?.take(left);
                frame.read_to_end(&mut bytes).map_err(damaged)?;
            }
        }
        _ => return Err("it is compressed in a way that is not known".into()),
    }
    if bytes.len() as u64 > limit {
        return Err(too_long(limit));
    }
    let found = ZipVerification {
        crc: crc32(&bytes),
        uncompressed_size: bytes.len() as u64,
    };
    entry.claim_verifier().valid(found).map_err(damaged)?;
    Ok(bytes)
}

fn damaged(reason: impl Display) -> String {
    format!("its compressed contents are damaged: {reason}")
}

#[cfg(test)]
mod tests {
    use std::io::{Write, sink};

    use flate2::{Compression, write::DeflateEncoder};
    use rawzip::ZipArchiveWriter;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;
    use crate::records::Records;

    const METHODS: [CompressionMethod; 3] = [
        CompressionMethod::STORE,
        CompressionMethod::DEFLATE,
        CompressionMethod::ZSTD,
    ];

    const LOG: [(&str, &str); 4] = [
        ("_journal/start.json", "{}"),
        ("samples/1_epoch_1.json", "{\n\"a\": 12345}"),
        ("summaries.json", "[]"),
        ("samples/2_epoch_1.json", r#"{"b":2}"#),
    ];

    fn compressed(text: &[u8], method: CompressionMethod) -> Vec<u8> {
        if method == CompressionMethod::DEFLATE {
            let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(text).unwrap();
            return encoder.finish().unwrap();
        }
        if method == CompressionMethod::ZSTD {
            let frames = text.chunks(5);
            return frames
                .flat_map(|frame| compress_to_vec(frame, CompressionLevel::Fastest))
                .collect();
        }
        text.to_vec()
    }

    fn archive(files: &[(&str, &str)], method: CompressionMethod) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = ZipArchiveWriter::new(&mut bytes);
        for (name, text) in files {
            let file = writer.new_file(name).compression_method(method);
            let (mut entry, config) = file.start().unwrap();
            let mut counted = config.wrap(sink());
            counted.write_all(text.as_bytes()).unwrap();
            let (_, descriptor) = counted.finish().unwrap();
            entry.write_all(&compressed(text.as_bytes(), method)).unwrap();
            entry.finish(descriptor).unwrap();
        }
        writer.finish().unwrap();
        bytes
    }

    fn read(files: &[(&str, &str)], method: CompressionMethod) -> Vec<String> {
        lines_of(archive(files, method)).unwrap().collect()
    }

    #[test]
    fn lines_of_a_log_are_its_samples_with_its_header() {
        for method in METHODS {
            assert_eq!(read(&LOG, method), ["{ \"a\": 12345}\n", "{\"b\":2}\n"]);
            let files = [LOG[0], LOG[1], ("header.json", r#"{"eval":{"task":"t"}}"#)];
            assert_eq!(
                read(&files, method),
                ["{\"log\":{\"task\":\"t\"}, \"a\": 12345}\n"]
            );
        }
    }

    #[test]
    fn text_of_refuses_a_file_that_is_too_long() {
        for method in METHODS {
            let (archive, _, samples) = opened(archive(&LOG, method)).unwrap();
            let texts = [7, 6].map(|limit| text_of(&archive, &samples[1], limit));
            let too_long = "samples/2_epoch_1.json: longer than 0.0000057220458984375 MB";
            assert_eq!(texts, [Ok(r#"{"b":2}"#.to_owned()), Err(too_long.to_owned())]);
        }
    }

    #[test]
    fn lines_of_name_what_is_damaged_and_go_on() {
        for method in METHODS {
            let mut bytes = archive(&LOG, method);
            let name = LOG[1].0.as_bytes();
            let at = bytes.windows(name.len()).position(|part| part == name).unwrap();
            bytes[at + name.len() + 10] ^= 1;
            let found: Vec<_> = lines_of(bytes).unwrap().collect();
            let damaged = "samples/1_epoch_1.json: its compressed contents are damaged: ";
            assert!(found[0].contains(damaged), "{method:?}: {found:?}");
            assert_eq!(found[1], "{\"b\":2}\n");
        }
    }

    #[test]
    fn lines_of_refuses_what_is_no_log() {
        let bytes = archive(&LOG, CompressionMethod::STORE);
        let cut_off = bytes[..bytes.len() / 2].to_vec();
        for bytes in [Vec::new(), cut_off, archive(&LOG[1..], CompressionMethod::STORE)] {
            assert!(lines_of(bytes).is_err());
        }
    }

    #[test]
    fn lines_of_refuses_an_archive_whose_files_share_their_bytes() {
        let text = "x".repeat(1000);
        let mut bytes = archive(&[LOG[0], ("samples/1.json", &text)], CompressionMethod::STORE);
        assert!(lines_of(bytes.clone()).is_ok());
        // The list of files names the sample three times; the end of the archive has its count, its size and its place.
        let mut end = bytes.split_off(bytes.len() - 22);
        let place = u32::from_le_bytes(end[16..20].try_into().unwrap()) as usize;
        let list = bytes.split_off(place);
        let sample = list.windows(4).rposition(|start| start == b"PK\x01\x02").unwrap();
        let list = [&list[..], &list[sample..], &list[sample..]].concat();
        end[8..10].copy_from_slice(&4_u16.to_le_bytes());
        end[10..12].copy_from_slice(&4_u16.to_le_bytes());
        end[12..16].copy_from_slice(&u32::try_from(list.len()).unwrap().to_le_bytes());
        assert!(lines_of([bytes, list, end].concat()).is_err());
    }

    #[test]
    fn records_of_a_log_that_comes_in_pieces_are_its_samples() {
        let mut records = Records::default();
        for piece in archive(
            &[LOG[0], LOG[1], ("samples/3.json", "no JSON")],
            CompressionMethod::STORE,
        )
        .chunks(9)
        {
            records.push(piece).unwrap();
            assert!(records.next().is_none());
        }
        records.finish().unwrap();
        let found = records.map(|record| (record.place.line, record.content.map(|value| value.to_json())));
        let error = "not JSON: no value at byte 1".to_owned();
        assert_eq!(
            found.collect::<Vec<_>>(),
            [(Some(1), Ok(r#"{"a":12345}"#.into())), (Some(2), Err(error))]
        );
    }
}
