//! Archives of Inspect: a JSON file for each sample; one sample is decompressed at a time, and the header of its log is added to it.

use std::{fmt::Display, io::Read};

use flate2::bufread::DeflateDecoder;
use knowledgepulse_json::parse;
use rawzip::{
    CompressionMethod, ZipArchive, ZipArchiveEntryWayfinder, ZipSliceArchive, ZipVerification, crc32,
};
use ruzstd::decoding::StreamingDecoder;

/// The field of a sample that has the header of its log, as `input::archive` adds it too.
pub const LOG: &str = "log";

/// How an archive begins.
pub const BEGINNING: &[u8] = b"PK\x03\x04";

/// The header of a finished log, and the header of an unfinished one.
const HEADERS: [&[u8]; 2] = [b"header.json", b"_journal/start.json"];

const SAMPLES: &[u8] = b"samples/";

/// The files of a log that are still to be read.
pub struct Archive {
    archive: ZipSliceArchive<Vec<u8>>,
    /// The beginning of each sample: the log's header as its first field.
    beginning: Vec<u8>,
    members: std::vec::IntoIter<Member>,
}

struct Member {
    name: String,
    number: Option<u64>,
    method: CompressionMethod,
    place: ZipArchiveEntryWayfinder,
}

/// A file of a log.
pub struct File {
    /// Its name.
    pub name: String,
    /// The number of the sample, from 1; `None` for the header of all samples.
    pub number: Option<u64>,
    /// The contents, `None` if they are too long, or the problem.
    pub contents: Result<Option<Vec<u8>>, String>,
}

impl Archive {
    /// Opens an archive; `None` if it is broken, or is no log.
    pub fn open(bytes: Vec<u8>) -> Option<Self> {
        let length = bytes.len() as u64;
        let archive = ZipArchive::from_slice(bytes).ok()?;
        let mut headers = [None, None];
        let mut samples = Vec::new();
        let mut size = 0;
        let mut entries = archive.entries();
        while let Some(entry) = entries.next_entry().ok()? {
            let path = entry.file_path();
            let name = path.as_bytes();
            let member = |number| Member {
                name: String::from_utf8_lossy(name).into_owned(),
                number,
                method: entry.compression_method(),
                place: entry.wayfinder(),
            };
            size += entry.compressed_size_hint();
            if let Some(at) = HEADERS.iter().position(|header| *header == name) {
                headers[at] = Some(member(None));
            } else if name.starts_with(SAMPLES) && name.ends_with(b".json") {
                samples.push(member(Some(samples.len() as u64 + 1)));
            }
        }
        // Files that share their bytes would take more time than the archive is long.
        if size > length {
            return None;
        }
        let header = headers.into_iter().flatten().next()?;
        samples.insert(0, header);
        let members = samples.into_iter();
        let beginning = Vec::new();
        Some(Self {
            archive,
            beginning,
            members,
        })
    }

    /// Returns the next sample, or the header if it cannot be read.
    pub fn next(&mut self, limit: usize) -> Option<File> {
        loop {
            let member = self.members.next()?;
            let mut contents = self.contents(&member, limit);
            match &mut contents {
                Ok(Some(header)) if member.number.is_none() => {
                    if let Ok(header) = parse(header) {
                        let eval = header
                            .get("eval")
                            .map(|eval| format!("{{\"{LOG}\":{},", eval.to_json()));
                        self.beginning = eval.unwrap_or_default().into_bytes();
                        continue;
                    }
                }
                Ok(Some(sample)) if sample.starts_with(b"{") && !self.beginning.is_empty() => {
                    sample.splice(..1, self.beginning.iter().copied());
                }
                _ => {}
            }
            return Some(File {
                contents,
                name: member.name,
                number: member.number,
            });
        }
    }

    fn contents(&self, member: &Member, limit: usize) -> Result<Option<Vec<u8>>, String> {
        let entry = self.archive.get_entry(member.place).map_err(damaged)?;
        let most = limit as u64 + 1;
        let mut data = entry.data();
        let mut text = Vec::new();
        match member.method {
            CompressionMethod::STORE => data.take(most).read_to_end(&mut text).map_err(damaged)?,
            CompressionMethod::DEFLATE => {
                let mut deflated = DeflateDecoder::new(data).take(most);
                deflated.read_to_end(&mut text).map_err(damaged)?
            }
            CompressionMethod::ZSTD => {
                while !data.is_empty() && text.len() <= limit {
                    let left = most - text.len() as u64;
                    let mut frame = StreamingDecoder::new(&mut data).map_err(damaged)?.take(left);
                    frame.read_to_end(&mut text).map_err(damaged)?;
                }
                text.len()
            }
            _ => return Err("it is compressed in a way that is not known".into()),
        };
        if text.len() > limit {
            return Ok(None);
        }
        let found = ZipVerification {
            crc: crc32(&text),
            uncompressed_size: text.len() as u64,
        };
        entry.claim_verifier().valid(found).map_err(damaged)?;
        Ok(Some(text))
    }
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
        ("samples/1_epoch_1.json", "first sample"),
        ("summaries.json", "[]"),
        ("samples/2_epoch_1.json", "second sample"),
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

    fn read(bytes: Vec<u8>, limit: usize) -> Vec<(String, Option<u64>, String)> {
        let mut archive = Archive::open(bytes).unwrap();
        let mut found = Vec::new();
        while let Some(File {
            name,
            number,
            contents,
        }) = archive.next(limit)
        {
            let contents = match contents {
                Ok(Some(bytes)) => String::from_utf8(bytes).unwrap(),
                Ok(None) => "too long".into(),
                Err(error) => error,
            };
            found.push((name, number, contents));
        }
        found
    }

    #[test]
    fn read_of_a_log_is_its_samples() {
        for method in METHODS {
            let expected = [
                ("samples/1_epoch_1.json", Some(1), "first sample"),
                ("samples/2_epoch_1.json", Some(2), "too long"),
            ];
            let expected = expected.map(|(name, number, contents)| (name.into(), number, contents.into()));
            assert_eq!(read(archive(&LOG, method), 12), expected);
        }
    }

    #[test]
    fn read_adds_the_header_of_a_log_that_is_finished_to_its_samples() {
        let sample = ("samples/1_epoch_1.json", r#"{"a":1}"#);
        let files = [LOG[0], sample, ("header.json", r#"{"eval":{"task":"t"}}"#)];
        let found = read(archive(&files, CompressionMethod::STORE), 100);
        assert_eq!(
            (found.len(), found[0].2.as_str()),
            (1, r#"{"log":{"task":"t"},"a":1}"#)
        );
    }

    #[test]
    fn read_names_what_is_damaged_and_goes_on() {
        for method in METHODS {
            let mut bytes = archive(&LOG, method);
            let name = LOG[1].0.as_bytes();
            let at = bytes.windows(name.len()).position(|part| part == name).unwrap();
            bytes[at + name.len() + 10] ^= 1;
            let found = read(bytes, 100);
            assert!(
                found[0].2.starts_with("its compressed contents are damaged: "),
                "{found:?}"
            );
            assert_eq!(found[1].2, "second sample");
        }
    }

    #[test]
    fn open_refuses_what_is_no_log() {
        let bytes = archive(&LOG, CompressionMethod::STORE);
        let cut_off = bytes[..bytes.len() / 2].to_vec();
        for bytes in [Vec::new(), cut_off, archive(&LOG[1..], CompressionMethod::STORE)] {
            assert!(Archive::open(bytes).is_none());
        }
    }

    #[test]
    fn open_refuses_an_archive_whose_files_share_their_bytes() {
        let text = "x".repeat(1000);
        let mut bytes = archive(&[LOG[0], ("samples/1.json", &text)], CompressionMethod::STORE);
        assert!(Archive::open(bytes.clone()).is_some());
        // The list of files names the sample three times; the end of the archive has its count, its size and its place.
        let mut end = bytes.split_off(bytes.len() - 22);
        let place = u32::from_le_bytes(end[16..20].try_into().unwrap()) as usize;
        let list = bytes.split_off(place);
        let sample = list.windows(4).rposition(|start| start == b"PK\x01\x02").unwrap();
        let list = [&list[..], &list[sample..], &list[sample..]].concat();
        end[8..10].copy_from_slice(&4_u16.to_le_bytes());
        end[10..12].copy_from_slice(&4_u16.to_le_bytes());
        end[12..16].copy_from_slice(&u32::try_from(list.len()).unwrap().to_le_bytes());
        assert!(Archive::open([bytes, list, end].concat()).is_none());
    }

    #[test]
    fn records_of_a_log_name_the_file_that_is_no_json() {
        let mut records = Records::default();
        records
            .push(&archive(&LOG[..2], CompressionMethod::STORE))
            .unwrap();
        records.finish().unwrap();
        let errors: Vec<_> = records.map(|record| record.content.err()).collect();
        let error = "samples/1_epoch_1.json: not JSON: no value at byte 1";
        assert_eq!(errors, [Some(error.into())]);
    }
}
