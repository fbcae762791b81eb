//! `kp-score clean`: files, with secrets, personal data and the identities of each file replaced.
//!
//! A file is read twice. The first time, identities are learned from it, and what cannot be cleaned ends the run before anything is
//! written. JSON is cleaned string by string, as the trace that it may be, and every other byte of it stays. All else is cleaned as
//! text.

mod args;
mod findings;
mod parts;

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read, Seek},
    ops::ControlFlow,
    path::Path,
};

use knowledgepulse_clean::{Cleaner, Finding, Identities};
use knowledgepulse_os::temporary;
use knowledgepulse_share::{CleanText, clean_json_text, clean_plain_text};

use crate::{
    VERSION,
    compression::{Input, read_text},
    error::{Exit, Failure, Result},
    file_identity::{STDIN, name_of},
    messages::Messages,
    output_file::{OutputFile, StandardOutput},
    printable::counted,
    review::Review,
    stop::Stop,
    waiting::Waiting,
};
use args::Options;
pub(crate) use args::{CleanArgs, CleaningArgs};
use parts::{Part, Parts, Take};

/// Something that was found, in a file and a line.
struct Found {
    file: String,
    line: usize,
    finding: Finding,
}

/// Cleans the files that the arguments name.
pub(crate) fn run(args: CleanArgs, messages: &Messages, stop: &Stop) -> Result<Exit> {
    let mut options = args.open()?;
    let identifiers = options.args.cleaning.identifiers;
    // Pseudonyms hold for all files, so they are learned from all of them.
    let is_shared = options.args.pseudonyms;
    let mut sources = Vec::new();
    let mut identities = Identities::default();
    for source in &options.sources {
        let mut source = Source::open(source)?;
        source.read(stop, &mut |part, _| {
            match part {
                _ if !identifiers => {}
                Part::Json(_, value) => identities.learn_json(&value),
                Part::Text(text) => identities.learn_text(text),
                Part::Between(_) => {}
            }
            Ok(())
        })?;
        let learned = if is_shared {
            Identities::default()
        } else {
            std::mem::take(&mut identities)
        };
        sources.push((source, learned));
    }
    let learned = sources.iter().map(|(_, learned)| learned);
    options.name_outputs(learned.map(|learned| if is_shared { &identities } else { learned }))?;
    options.cleaner.set_identities(identities);
    if let Some(folder) = options.args.out.as_deref().filter(|out| out.ends_with('/')) {
        fs::create_dir_all(folder).map_err(|error| Failure::write(folder, &error))?;
    }
    let mut found = FoundAll {
        lists: options.args.check || options.args.findings.is_some(),
        ..FoundAll::default()
    };
    for (at, (mut source, learned)) in sources.into_iter().enumerate() {
        if !is_shared {
            options.cleaner.set_identities(learned);
        }
        let mut output = match options.args.check {
            true => Output::None,
            false => Output::open(options.outputs[at].as_deref())?,
        };
        let file = name_of(&source.name).to_owned();
        source.read(stop, &mut |part, line| {
            found.clean(&mut options.cleaner, &mut output, &file, part, line)
        })?;
        output.finish()?;
    }
    if let Some(file) = &options.args.findings {
        OutputFile::replace(file, findings::report(file, &found.listed, VERSION).as_bytes())?;
    }
    let is_counted = |name: &String| found.counts.contains_key(name);
    let mut is_found = options.fail_on.iter().any(is_counted);
    if options.args.check {
        let line = |Found { file, line, finding }: &Found| {
            let Finding { name, excerpt, .. } = finding;
            format!("{file}:{line}: {name} {excerpt}\n")
        };
        let lines: String = found.listed.iter().map(line).collect();
        StandardOutput::print(lines.as_bytes())?;
        is_found |= options.fail_on.is_empty() && !found.listed.is_empty();
    }
    messages.note(summary(&options, &found.counts));
    found.review.tell(messages);
    Ok(if is_found { Exit::Found } else { Exit::Ok })
}

fn summary(options: &Options, counts: &BTreeMap<String, u64>) -> String {
    let counts: Vec<_> = counts
        .iter()
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    let files = counted(options.sources.len() as u64, "file");
    if counts.is_empty() {
        return format!("{files}: nothing to replace");
    }
    let verb = if options.args.check { "found" } else { "replaced" };
    format!("{files}: {verb} {}", counts.join(", "))
}

/// An input that can be read twice.
struct Source {
    name: String,
    /// The contents of an input that cannot be read twice.
    copy: Option<File>,
}

impl Source {
    fn open(name: &str) -> Result<Self> {
        let failed = |error| Failure::read(name_of(name), &error);
        if name != STDIN && Path::new(name).is_dir() {
            return Err(Failure::file(format!(
                "{name} is a directory: name the files in it"
            )));
        }
        let is_file = name != STDIN && fs::metadata(name).map_err(failed)?.is_file();
        if is_file {
            let name = name.to_owned();
            return Ok(Self { name, copy: None });
        }
        let mut copy = temporary::unnamed().map_err(failed)?;
        let copied = if name == STDIN {
            io::copy(&mut Waiting(io::stdin()), &mut copy)
        } else {
            File::open(name).and_then(|mut input| io::copy(&mut input, &mut copy))
        };
        copied.map_err(failed)?;
        Ok(Self {
            name: name.to_owned(),
            copy: Some(copy),
        })
    }

    /// Reads its parts, decompressed.
    fn read(&mut self, stop: &Stop, take: &mut Take) -> Result<()> {
        let failed = |error| Failure::read(name_of(&self.name), &error);
        let input: Box<dyn Read + '_> = match &mut self.copy {
            Some(copy) => {
                copy.rewind().map_err(failed)?;
                Box::new(copy)
            }
            None => Box::new(File::open(&self.name).map_err(failed)?),
        };
        let mut parts = Parts::new(name_of(&self.name));
        let mut result = Ok(());
        let mut push = |bytes: &[u8]| {
            result = match stop.is_interrupted() {
                true => Err(Failure::interrupted("interrupted; this file was not written")),
                false => parts.push(bytes, take),
            };
            if result.is_ok() {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        };
        read_text(&mut Input::new(input), &mut push).map_err(failed)?;
        result?;
        parts.finish(take)
    }
}

/// A file, standard output, or nothing.
enum Output {
    None,
    File(OutputFile),
    Standard(StandardOutput),
}

impl Output {
    fn open(name: Option<&str>) -> Result<Self> {
        Ok(match name {
            Some(name) => Self::File(OutputFile::open(name)?),
            None => Self::Standard(StandardOutput::new()),
        })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        match self {
            Self::File(file) => file.write(bytes),
            Self::Standard(stdout) => stdout.write(bytes).map(drop),
            Self::None => Ok(()),
        }
    }

    fn finish(self) -> Result<()> {
        match self {
            Self::File(mut file) => {
                file.finish()?;
                file.publish(true)
            }
            Self::Standard(mut stdout) => stdout.flush().map(drop),
            Self::None => Ok(()),
        }
    }
}

/// The findings of a run.
#[derive(Default)]
struct FoundAll {
    counts: BTreeMap<String, u64>,
    /// Whether the findings are listed.
    lists: bool,
    listed: Vec<Found>,
    review: Review,
}

impl FoundAll {
    /// Cleans a part of a file, which begins on a line.
    fn clean(
        &mut self,
        cleaner: &mut Cleaner,
        output: &mut Output,
        file: &str,
        part: Part,
        line: usize,
    ) -> Result<()> {
        let (old, clean) = match part {
            Part::Json(text, value) => (text, clean_json_text(cleaner, text, value)),
            Part::Text(text) => (text, clean_plain_text(cleaner, text)),
            Part::Between(text) => return output.write(text.as_bytes()),
        };
        self.review.add_text(file, line, &clean.text);
        output.write(clean.text.as_bytes())?;
        self.add(file, line, old, clean);
        Ok(())
    }

    /// Adds the findings in a text that begins on a line of a file.
    fn add(&mut self, file: &str, line: usize, old: &str, clean: CleanText) {
        let ends: Vec<usize> = memchr::memchr_iter(b'\n', old.as_bytes()).collect();
        for (place, finding) in clean.found {
            let before = ends.partition_point(|end| *end < place);
            *self.counts.entry(finding.name.clone()).or_default() += 1;
            if self.lists {
                self.listed.push(Found {
                    file: file.to_owned(),
                    line: line + before,
                    finding,
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use knowledgepulse_clean::CleanOptions as Wanted;

    fn cleaned(text: &str) -> (String, Vec<(usize, String)>) {
        let mut cleaner = Cleaner::new(Wanted {
            identifiers: true,
            strict: true,
        });
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("out").display().to_string();
        let mut output = Output::open(Some(&file)).unwrap();
        let mut found = FoundAll {
            lists: true,
            ..FoundAll::default()
        };
        let mut parts = Parts::new("in");
        let mut take = |part: Part, line| found.clean(&mut cleaner, &mut output, "in", part, line);
        parts.push(text.as_bytes(), &mut take).unwrap();
        parts.finish(&mut take).unwrap();
        output.finish().unwrap();
        let found = found
            .listed
            .into_iter()
            .map(|found| (found.line, found.finding.name));
        (fs::read_to_string(file).unwrap(), found.collect())
    }

    #[test]
    fn json_keeps_every_byte_that_is_not_replaced() {
        let text = "{\n  \"n\": 1.50, \"big\": 12345678901234567890,\n  \"7\": [\"a@b.cc\", {}, []],\n  \"token\": 123456789,\n  \"caf\\u00e9\": \"x\"\n}\n";
        let (clean, found) = cleaned(text);
        assert_eq!(
            clean,
            text.replace("a@b.cc", "[REDACTED:email]")
                .replace("123456789,", "\"[REDACTED:password]\",")
                .replace(
                    "\"big\": \"[REDACTED:password]\"",
                    "\"big\": 12345678901234567890"
                )
        );
        assert_eq!(found, [(3, "email".to_owned()), (4, "password".to_owned())]);
    }

    #[test]
    fn a_name_that_stands_twice_hides_no_secret() {
        let (clean, _) = cleaned(r#"{"a":"b@c.dd","a":"x","e":"f@g.hh"}"#);
        assert_eq!(clean, r#"{"a":"x","e":"[REDACTED:email]"}"#);
        let (clean, _) = cleaned(r#"{"a":"b@c.dd","a":"x"}"#);
        assert_eq!(clean, r#"{"a":"x"}"#);
    }

    #[test]
    fn lines_are_cleaned_as_json_or_as_text() {
        let text = "\u{feff}{\"password\":\"hunter22\"}\nsome text\nAPI_TOKEN=hunter22\n{\"a\":1}\n{\"b\":\"c@d.ee\"}";
        let (clean, found) = cleaned(text);
        assert_eq!(
            clean,
            "\u{feff}{\"password\":\"[REDACTED:password]\"}\nsome text\nAPI_TOKEN=[REDACTED:password]\n{\"a\":1}\n{\"b\":\"[REDACTED:email]\"}"
        );
        let lines: Vec<_> = found.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [1, 3, 5]);
    }
}
