//! `kp-score clean`: files, with secrets, personal data and the identities of each file replaced.
//!
//! A file's text is held in memory: identities are learned from all of it before it is cleaned. JSON is cleaned string by string, as the trace
//! that it may be.
//! All else is cleaned as text. Cores take a file each, and files are written in order.

mod args;

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashSet},
};

use knowledgepulse_clean::{Cleaner, Finding, Identities, block_of};
use knowledgepulse_formats::{
    DEFAULT_LIMIT,
    sections::{Section, Sections, SplitError},
};
use knowledgepulse_json::{Value, json_object, parse_str};
use knowledgepulse_share::{FreeNames, clean_json_text, clean_plain_text, in_order};

use crate::{
    Exit, Failure, MOST_UNITS, Messages, Output, Result, Stop, counted, files::read_chunks, name_of,
    printable, read::go_on, show::review::places_of, show::review::tell_first, target_of, told,
};
pub(crate) use args::{CleanArgs, CleaningArgs};

/// Cleans the files that the arguments name.
pub(crate) fn run(args: &CleanArgs, messages: &Messages, stop: &Stop) -> Result<Exit> {
    let cleaner = args.cleaning.open()?;
    let inputs = args.inputs(messages)?;
    let read: HashSet<_> = inputs.iter().map(|(path, _)| target_of(path)).collect();
    let mut names = FreeNames::default();
    let (mut counts, mut places, mut review) = (BTreeMap::new(), Vec::new(), Vec::new());
    in_order(
        &inputs,
        |(path, _)| Cleaned::of(path, cleaner.clone(), stop),
        |input, cleaned: Result<Cleaned>| {
            let cleaned = cleaned?;
            for (_, finding) in &cleaned.found {
                *counts.entry(finding.name.clone()).or_insert(0) += 1;
            }
            if args.check {
                let found = cleaned.found.into_iter();
                places.extend(found.map(|place| (name_of(&input.0), place)));
            } else {
                let mut output = args.output(input, &cleaned.identities, &read, &mut names)?;
                for text in cleaned.texts {
                    output.write(text.as_bytes())?;
                }
                output.publish()?;
            }
            review.extend(cleaned.review);
            Result::Ok(())
        },
    )?;
    if args.check {
        Output::print(&listed(&places, args.json))?;
    }
    messages.note(summary(&counts, inputs.len(), args.check));
    tell_first(&review, messages);
    Ok(if places.is_empty() { Exit::Ok } else { Exit::Found })
}

/// A finding, and its line.
type FoundAt = (usize, Finding);

/// Returns the places in files: in JSON, or one a line.
fn listed(places: &[(&str, FoundAt)], json: bool) -> String {
    if !json {
        let line = |(file, (line, Finding { name, excerpt, .. })): &(&str, FoundAt)| {
            format!(
                "{}:{line}: {name} {excerpt}\n",
                printable(&(*file).into(), MOST_UNITS)
            )
        };
        return places.iter().map(line).collect();
    }
    let place = |(file, (line, finding)): &(&str, FoundAt)| {
        json_object! {
            "file": *file,
            "line": *line,
            "kind": finding.name.as_str(),
            "path": finding.path.as_str(),
            "excerpt": finding.excerpt.as_str(),
        }
    };
    places.iter().map(place).collect::<Value>().to_json() + "\n"
}

fn summary(counts: &BTreeMap<String, u64>, files: usize, is_check: bool) -> String {
    let files = counted(files as u64, "file");
    if counts.is_empty() {
        return format!("{files}: nothing to replace");
    }
    let verb = if is_check { "found" } else { "replaced" };
    format!("{files}: {verb} {}", told(counts))
}

/// Returns the failure of a file that cannot be split.
fn not_split(name: &str, error: SplitError) -> Failure {
    Failure::file(match error {
        SplitError::NotUtf8 => format!("{name} is not UTF-8 text; iconv makes it so"),
        SplitError::TooLong(line) => {
            let megabytes = DEFAULT_LIMIT / 1024 / 1024;
            format!("{name}:{line}: longer than {megabytes} MB")
        }
        SplitError::TooDeep(line) => format!("{name}:{line}: nested too deeply to be cleaned"),
    })
}

/// A clean file.
#[derive(Default)]
struct Cleaned {
    /// Its sections, in order.
    texts: Vec<String>,
    identities: Identities,
    found: Vec<FoundAt>,
    /// The places where a person should look.
    review: Vec<String>,
}

impl Cleaned {
    /// Reads a file or standard input, and cleans it by the identities that it has.
    fn of(path: &str, mut cleaner: Cleaner, stop: &Stop) -> Result<Self> {
        let name = name_of(path);
        let (mut cleaned, mut sections) = (Self::default(), Vec::new());
        let learns = cleaner.replaces_identifiers();
        read_sections(path, stop, |line, section| {
            match &section {
                _ if !learns => {}
                Section::Json(_, value) => cleaned.identities.learn_json(value),
                Section::Text(text) => cleaned.identities.learn_text(text),
            }
            // A value takes several times the memory of its text, which is parsed once more.
            let is_json = matches!(section, Section::Json(..));
            let (Section::Json(text, _) | Section::Text(text)) = section;
            sections.push((line, text, is_json));
        })?;
        cleaned.identities.finish();
        cleaner.set_identities(cleaned.identities.clone());
        for (line, text, is_json) in sections {
            let value = is_json.then(|| parse_str(&text).ok()).flatten();
            let clean = match value {
                Some(value) => clean_json_text(&mut cleaner, &text, &value)
                    .map_err(|_| not_split(name, SplitError::TooDeep(line)))?,
                None => clean_plain_text(&mut cleaner, &text),
            };
            let line = usize::try_from(line).unwrap_or(usize::MAX);
            cleaned.review.extend(places_of(name, line, &clean.review));
            let found = clean.found.into_iter();
            cleaned
                .found
                .extend(found.map(|(before, finding)| (line + before, finding)));
            let changed = match clean.text {
                Cow::Owned(text) => Some(text),
                Cow::Borrowed(_) => None,
            };
            cleaned.texts.push(changed.unwrap_or(text));
        }
        Ok(cleaned)
    }
}

/// Hands on the sections of a file, decompressed, each with its line.
fn read_sections(path: &str, stop: &Stop, mut take: impl FnMut(u64, Section)) -> Result<()> {
    let name = name_of(path);
    let mut sections = Sections::new(DEFAULT_LIMIT, block_of);
    let mut take_all = |sections: &mut Sections| {
        sections.try_for_each(|section| {
            let (line, section) = section?;
            take(line, section);
            Ok(())
        })
    };
    let mut split = Ok(());
    let read = read_chunks(path, &Messages::silent(), &mut |bytes| {
        sections.push(bytes);
        split = take_all(&mut sections);
        go_on(split.is_ok() && !stop.is_interrupted())
    });
    read.map_err(|error| Failure::read(name, &error))?;
    if stop.is_interrupted() {
        return Err(Failure::interrupted("interrupted; this file was not written"));
    }
    sections.finish();
    let split = split.and_then(|()| take_all(&mut sections));
    split.map_err(|error| not_split(name, error))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use clap::Parser;
    use knowledgepulse_clean::CleanOptions;

    use super::*;

    /// The arguments of `clean`.
    #[derive(Parser)]
    struct Arguments {
        #[command(flatten)]
        clean: CleanArgs,
    }

    /// Returns the names of the inputs that the arguments name.
    fn inputs(arguments: &[&str]) -> Result<Vec<String>> {
        let arguments = Arguments::try_parse_from(["clean"].iter().chain(arguments)).unwrap();
        let inputs = arguments.clean.inputs(&Messages::silent())?;
        Ok(inputs
            .into_iter()
            .map(|(_, name)| name.display().to_string())
            .collect())
    }

    fn cleaned_file(path: &str) -> Cleaned {
        let cleaner = Cleaner::new(CleanOptions {
            identifiers: true,
            strict: true,
        });
        Cleaned::of(path, cleaner, &Stop::default()).unwrap_or_else(|failure| panic!("{}", failure.message))
    }

    fn places(cleaned: &Cleaned) -> Vec<(usize, &str)> {
        let places = cleaned.found.iter();
        places.map(|(line, finding)| (*line, &*finding.name)).collect()
    }

    fn cleaned(text: &str) -> Cleaned {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        cleaned_file(file.path().to_str().unwrap())
    }

    #[test]
    fn json_without_findings_keeps_every_byte_and_other_json_is_written_anew() {
        let text = "{\n  \"n\": 1.50, \"caf\\u00e9\": \"x\"\n}\n";
        let found = "{\n  \"n\": 1.50, \"big\": 12345678901234567890, \"to\": [\"a@b.cc\"]\n}\n";
        let clean = cleaned(&format!("{text}{found}"));
        let expected = "{\"n\":1.5,\"big\":12345678901234567890,\"to\":[\"[REDACTED:email-1]\"]}\n";
        assert_eq!(clean.texts.concat(), format!("{text}{expected}"));
        assert_eq!(places(&clean), [(4, "email")]);
    }

    #[test]
    fn lines_are_cleaned_as_json_or_as_text() {
        let text = "\u{feff}{\"password\":\"hunter22\"}\nsome text\nAPI_TOKEN=hunter22\n{\"a\":1}\n{\"b\":\"c@d.ee\"}";
        let clean = cleaned(text);
        assert_eq!(
            clean.texts.concat(),
            "\u{feff}{\"password\":\"[REDACTED:password-1]\"}\nsome text\nAPI_TOKEN=[REDACTED:password-1]\n{\"a\":1}\n{\"b\":\"[REDACTED:email-1]\"}"
        );
        let lines: Vec<_> = places(&clean).into_iter().map(|(line, _)| line).collect();
        assert_eq!(lines, [1, 3, 5]);
    }

    #[test]
    fn identities_of_a_file_are_learned_before_it_is_cleaned() {
        let clean = cleaned("Write to Maja\n{\"cwd\":\"/home/maja/blog\"}\n");
        assert_eq!(
            clean.texts.concat(),
            "Write to user-1\n{\"cwd\":\"/home/user-1/blog\"}\n"
        );
        assert_eq!(clean.identities.clean_name("maja.jsonl"), "user-1.jsonl");
    }

    #[test]
    fn inputs_are_the_files_of_which_the_filter_wants_a_session() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        let record = |role: &str| {
            format!(
                r#"{{"type":"{role}","sessionId":"s","uuid":"{role}","cwd":"/home/maja/blog","message":{{"role":"{role}","content":"Write to Maja"}}}}"#
            ) + "\n"
        };
        fs::write(path("session.jsonl"), record("user") + &record("assistant")).unwrap();
        fs::write(path("notes.txt"), "/home/maja/blog\n").unwrap();
        let all = path("");
        let wanted = |project: &str| inputs(&["--check", &all, "--project", project]).unwrap();
        assert_eq!(
            inputs(&["--check", &all]).unwrap(),
            ["notes.txt", "session.jsonl"]
        );
        assert_eq!(wanted("blog"), ["session.jsonl"]);
        assert_eq!(wanted("shop"), [""; 0]);
        let refused = inputs(&["-", "--project", "blog"]).err().unwrap();
        assert!(
            refused
                .message
                .starts_with("stdin can be read only once, so it cannot be filtered"),
            "{}",
            refused.message
        );
    }

    #[test]
    fn a_database_is_listed_but_not_cleaned() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data.sqlite3").display().to_string();
        let sql = include_str!("../../../../../__test__/formats/agents/kiro-sqlite/data.sqlite3.sql");
        let database = rusqlite::Connection::open(&path).unwrap();
        database
            .execute_batch(&sql.replace("Permission denied", "Ask bob@example.com"))
            .unwrap();
        drop(database);
        let refused = inputs(&[&path]).err().unwrap();
        assert!(
            refused
                .message
                .ends_with("is a database: kp-score share writes its sessions, clean")
        );
        assert!(inputs(&["--check", &path]).is_ok());
        assert_eq!(places(&cleaned_file(&path)), [(1, "email")]);
    }
}
