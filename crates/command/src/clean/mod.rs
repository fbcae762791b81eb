//! `kp-score clean`: files, with secrets and personal data replaced.
//!
//! JSON is cleaned string by string, as the trace that it may be, and every other byte of it stays. All else is cleaned as text.

mod findings;
mod options;

use std::{collections::BTreeMap, fs, fs::File, io, io::Read, ops::ControlFlow, path::Path};

use knowledgepulse_clean::{Cleaner, Finding};
use knowledgepulse_json::{Value, parse_str};

use crate::{
    compression::{Input, read_text},
    error::{Exit, Failure, Result},
    host::Host,
    messages::Messages,
    options::{STDIN, name_of},
    output_file::{OutputFile, StandardOutput},
    printable::counted,
    splice::replace_strings,
    start::Stop,
    waiting::Waiting,
};
use options::Options;

/// Something that was found, in a file and a line.
struct Found {
    file: String,
    line: usize,
    finding: Finding,
}

/// Runs `clean` with the arguments behind it. Returns `None` if they ask for help.
pub(crate) fn run(
    arguments: &[String],
    host: &dyn Host,
    messages: &Messages,
    stop: &Stop,
) -> Result<Option<Exit>> {
    let Some(mut options) = options::read(arguments)? else {
        return Ok(None);
    };
    messages.set_quiet(options.quiet);
    if let Some(folder) = options.out.as_deref().filter(|out| out.ends_with('/')) {
        fs::create_dir_all(folder).map_err(|error| Failure::write(folder, &error))?;
    }
    let mut found = Vec::new();
    for source in options.sources.clone() {
        let text = read(&source)?;
        let (clean, findings) = clean_file(&text, &mut options.cleaner);
        let file = name_of(&source).to_owned();
        found.extend(findings.into_iter().map(|(line, finding)| Found {
            file: file.clone(),
            line,
            finding,
        }));
        if stop.is_interrupted() {
            return Err(Failure::interrupted("interrupted; this file was not written"));
        }
        write(&options, &source, clean.as_deref().unwrap_or(&text))?;
    }
    if let Some(file) = &options.findings {
        OutputFile::replace(file, findings::report(file, &found, host.version()).as_bytes())?;
    }
    messages.note(summary(&options, &found));
    let fails = |found: &Found| options.fail_on.contains(&found.finding.name);
    Ok(Some(if found.iter().any(fails) {
        Exit::Found
    } else {
        Exit::Ok
    }))
}

fn summary(options: &Options, found: &[Found]) -> String {
    let mut counts = BTreeMap::<&str, u64>::new();
    for found in found {
        *counts.entry(&found.finding.name).or_default() += 1;
    }
    let counts: Vec<_> = counts
        .iter()
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    let files = counted(options.sources.len() as u64, "file");
    if counts.is_empty() {
        return format!("{files}: nothing to replace");
    }
    format!("{files}: replaced {}", counts.join(", "))
}

/// Reads a text, decompressed.
fn read(source: &str) -> Result<String> {
    let failed = |error| Failure::read(name_of(source), &error);
    let input: Box<dyn Read> = if source == STDIN {
        Box::new(Waiting(io::stdin()))
    } else if Path::new(source).is_dir() {
        return Err(Failure::file(format!(
            "{source} is a directory: name the files in it"
        )));
    } else {
        Box::new(File::open(source).map_err(failed)?)
    };
    let mut bytes = Vec::new();
    let mut take = |text: &[u8]| {
        bytes.extend_from_slice(text);
        ControlFlow::Continue(())
    };
    read_text(&mut Input::new(input), &mut take).map_err(failed)?;
    String::from_utf8(bytes).map_err(|_| {
        Failure::file(format!(
            "{} is not UTF-8 text; iconv makes it so",
            name_of(source)
        ))
    })
}

fn write(options: &Options, source: &str, text: &str) -> Result<()> {
    match options.output_of(source).map_err(Failure::usage)? {
        Some(file) => OutputFile::replace(&file, text.as_bytes()),
        None => StandardOutput::print(text.as_bytes()),
    }
}

/// Cleans the text of a file. Returns `None` if there is nothing to replace, and the findings with their lines.
fn clean_file(text: &str, cleaner: &mut Cleaner) -> (Option<String>, Vec<(usize, Finding)>) {
    let mut parts = Parts {
        cleaner,
        clean: String::new(),
        is_changed: false,
        found: Vec::new(),
    };
    let start = text.len() - text.trim_start_matches('\u{feff}').len();
    parts.clean.push_str(&text[..start]);
    match json_of(&text[start..]) {
        Some(value) => parts.json(&text[start..], value, 1),
        None => parts.lines(&text[start..]),
    }
    (parts.is_changed.then_some(parts.clean), parts.found)
}

/// Returns the objects and arrays that a text is JSON of.
fn json_of(text: &str) -> Option<Value> {
    text.trim_start()
        .starts_with(['{', '['])
        .then(|| parse_str(text).ok())
        .flatten()
}

/// The clean parts of a file, one after the other.
struct Parts<'c> {
    cleaner: &'c mut Cleaner,
    clean: String,
    is_changed: bool,
    found: Vec<(usize, Finding)>,
}

impl Parts<'_> {
    /// Cleans lines: each line of JSON by itself, and the lines between as texts.
    fn lines(&mut self, text: &str) {
        let (mut start, mut at, mut first, mut number) = (0, 0, 1, 1);
        for line in text.split_inclusive('\n') {
            let value = line.starts_with('{').then(|| json_of(line)).flatten();
            if let Some(value) = value {
                self.text(&text[start..at], first);
                self.json(line, value, number);
                start = at + line.len();
                first = number + 1;
            }
            at += line.len();
            number += 1;
        }
        self.text(&text[start..], first);
    }

    fn json(&mut self, text: &str, value: Value, line: usize) {
        let Ok(clean) = self.cleaner.clean_json(value.clone()) else {
            // Nested too deeply to be cleaned as JSON.
            self.cleaner.take_findings();
            return self.text(text, line);
        };
        let findings = self.cleaner.take_findings();
        // Where a name stands twice, the value holds only the last of its members, and nothing was looked for in the others.
        let replaced = replace_strings(text, &value, &clean);
        self.is_changed |= replaced.is_none() || !findings.is_empty();
        let Some(replaced) = replaced else {
            self.clean.push_str(&clean.to_json());
            let ending = &text[text.trim_end().len()..];
            self.clean.push_str(ending);
            self.found
                .extend(findings.into_iter().map(|finding| (line, finding)));
            return;
        };
        self.clean.push_str(&replaced.text);
        let ends: Vec<usize> = text.match_indices('\n').map(|(at, _)| at).collect();
        for finding in findings {
            let place = replaced.places.get(&finding.pointer).copied().unwrap_or_default();
            let before = ends.partition_point(|end| *end < place);
            self.found.push((line + before, finding));
        }
    }

    fn text(&mut self, text: &str, line: usize) {
        if text.is_empty() {
            return;
        }
        let units: Vec<u16> = text.encode_utf16().collect();
        let clean = self.cleaner.clean_text(&units);
        let mut findings = self.cleaner.take_findings();
        findings.sort_by_key(|finding| finding.start);
        let (mut at, mut line) = (0, line);
        for finding in findings {
            let start = finding.start.max(at);
            line += units[at..start]
                .iter()
                .filter(|unit| **unit == u16::from(b'\n'))
                .count();
            at = start;
            self.found.push((line, finding));
        }
        match clean {
            // The text was valid, and markers are ASCII between its characters.
            Some(clean) => {
                self.clean.push_str(&String::from_utf16_lossy(&clean));
                self.is_changed = true;
            }
            None => self.clean.push_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use knowledgepulse_clean::Options as Wanted;

    fn cleaned(text: &str) -> (String, Vec<(usize, String)>) {
        let mut cleaner = Cleaner::new(Wanted {
            identifiers: true,
            strict: true,
        });
        let (clean, found) = clean_file(text, &mut cleaner);
        let found = found
            .into_iter()
            .map(|(line, finding)| (line, finding.name))
            .collect();
        (clean.unwrap_or_else(|| text.to_owned()), found)
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
