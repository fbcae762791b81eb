//! `kp-score clean`: files, with secrets, personal data and the identities of each file replaced.
//!
//! A file is read twice. The first time, identities are learned from it, and what cannot be cleaned ends the run before anything is
//! written. JSON is cleaned string by string, as the trace that it may be. All else is cleaned as text. Cores take a file each.

mod args;

use std::{
    collections::{BTreeMap, HashMap},
    fs::{self, File},
    io::{self, Seek},
    path::{Path, PathBuf},
};

use knowledgepulse_clean::{Cleaner, Finding, Identities, block_of};
use knowledgepulse_formats::{
    DEFAULT_LIMIT, Place,
    input::compression::{CHUNK_SIZE, read_text},
    reader::{Run, Settings, TraceReader},
    records::Record,
    run::runs,
    sections::{Section, Sections, SplitError},
};
use knowledgepulse_json::{Value, json_object};
use knowledgepulse_os::temporary;
use knowledgepulse_share::{clean_json_text, clean_plain_text, in_order, logs::is_database};

use crate::{
    Exit, Failure, Filter, MOST_UNITS, Messages, Output, Result, STDIN, Stop, Waiting, counted,
    files::read_chunks, name_of, printable, read::go_on, show::review::places_of, show::review::tell_first,
    told,
};
pub(crate) use args::{CleanArgs, CleaningArgs};

/// Cleans the files that the arguments name.
pub(crate) fn run(args: &CleanArgs, messages: &Messages, stop: &Stop) -> Result<Exit> {
    let cleaner = args.cleaning.open()?;
    let inputs = args.inputs(messages)?.into_iter();
    let sources = inputs.map(|(path, name)| Source::open(path, name, args.check));
    let sources = sources.collect::<Result<Vec<_>>>()?;
    let by_path: HashMap<&str, &Source> = sources.iter().map(|source| (&*source.path, source)).collect();
    let paths = sources.iter().map(|source| source.path.clone());
    // The filter judges runs, of which some have several files.
    let runs = match args.filter != Filter::default() {
        true => runs(&paths.collect::<Vec<_>>()),
        false => paths.map(|path| vec![path]).collect(),
    };
    let mut wanted = Vec::new();
    in_order(
        &runs,
        |run| {
            let files = run.iter().map(|file| by_path[file.as_str()]).collect();
            learn(files, &args.filter, cleaner.replaces_identifiers(), stop)
        },
        |_, learned: Result<_>| learned.map(|learned| wanted.extend(learned)),
    )?;
    let named = wanted
        .iter()
        .map(|(source, identities)| (&*source.path, &*source.name, identities));
    let outputs = args.outputs(&named.collect::<Vec<_>>())?;
    let jobs: Vec<_> = wanted.into_iter().zip(outputs).collect();
    let (mut counts, mut places, mut review) = (BTreeMap::new(), Vec::new(), Vec::new());
    in_order(
        &jobs,
        |((source, identities), output)| {
            let mut cleaner = cleaner.clone();
            cleaner.set_identities(identities.clone());
            let open = || output.as_deref().map_or_else(|| Ok(Output::standard()), opened);
            source.clean(cleaner, (!args.check).then(open).transpose()?, stop)
        },
        |((source, _), _), cleaned: Result<Found>| {
            let found = cleaned?;
            for (_, finding) in &found.places {
                *counts.entry(finding.name.clone()).or_insert(0) += 1;
            }
            if args.check {
                places.extend(
                    found
                        .places
                        .into_iter()
                        .map(|place| (name_of(&source.path), place)),
                );
            }
            review.extend(found.review);
            Result::Ok(())
        },
    )?;
    if args.check {
        Output::print(&listed(&places, args.json))?;
    }
    messages.note(summary(&counts, jobs.len(), args.check));
    tell_first(&review, messages);
    Ok(if places.is_empty() { Exit::Ok } else { Exit::Found })
}

/// Opens an output, with the folders above it.
fn opened(file: &str) -> Result<Output> {
    let folder = Path::new(file).parent().unwrap_or(Path::new(""));
    let failed = |error| Failure::write(&folder.display().to_string(), &error);
    fs::create_dir_all(folder).map_err(failed)?;
    Output::open(file)
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

/// An input that can be read twice.
struct Source {
    /// A path, or [`STDIN`].
    path: String,
    /// Its path below the folder that was named.
    name: PathBuf,
    /// The contents of an input that cannot be read twice.
    copy: Option<File>,
}

impl Source {
    /// Opens an input; a database only to list what is in it.
    fn open(path: String, name: PathBuf, lists: bool) -> Result<Self> {
        let failed = |error| Failure::read(name_of(&path), &error);
        let mut copy = None;
        if path == STDIN || !fs::metadata(&path).map_err(failed)?.is_file() {
            let mut file = temporary::unnamed().map_err(failed)?;
            let copied = match path.as_str() {
                STDIN => io::copy(&mut Waiting(io::stdin()), &mut file),
                path => File::open(path).and_then(|mut input| io::copy(&mut input, &mut file)),
            };
            copied.map_err(failed)?;
            copy = Some(file);
        } else if !lists && is_database(Path::new(&path)) {
            return Err(Failure::file(format!(
                "{path} is a database: kp-score share writes its sessions, clean"
            )));
        }
        Ok(Self { path, name, copy })
    }

    /// Reads its sections, decompressed, each with its line.
    fn read(&self, stop: &Stop, mut take: impl FnMut(u64, Section) -> Result<()>) -> Result<()> {
        let name = name_of(&self.path);
        let mut sections = Sections::new(DEFAULT_LIMIT, block_of);
        let mut take_all = |sections: &mut Sections| {
            sections.try_for_each(|section| {
                let (line, section) = section.map_err(|error| not_split(name, error))?;
                take(line, section)
            })
        };
        let mut result = Ok(());
        let mut push = |bytes: &[u8]| {
            sections.push(bytes);
            result = match stop.is_interrupted() {
                true => Err(Failure::interrupted("interrupted; this file was not written")),
                false => take_all(&mut sections),
            };
            go_on(result.is_ok())
        };
        let read = match &self.copy {
            Some(copy) => {
                let mut copy = copy;
                copy.rewind()
                    .and_then(|()| read_text(copy, CHUNK_SIZE, &mut push))
            }
            None => read_chunks(&self.path, &Messages::silent(), &mut push),
        };
        read.map_err(|error| Failure::read(name, &error))?;
        result?;
        sections.finish();
        take_all(&mut sections)
    }

    /// Cleans it into an output. Returns what was found.
    fn clean(&self, mut cleaner: Cleaner, mut output: Option<Output>, stop: &Stop) -> Result<Found> {
        let mut found = Found::default();
        let name = name_of(&self.path);
        let mut write = |text: &str| match &mut output {
            Some(output) => output.write(text.as_bytes()).map(drop),
            None => Ok(()),
        };
        self.read(stop, |line, section| {
            let clean = match &section {
                Section::Json(text, value) => clean_json_text(&mut cleaner, text, value)
                    .map_err(|_| not_split(name, SplitError::TooDeep(line)))?,
                Section::Text(text) if !text.bytes().any(is_of_word) => return write(text),
                Section::Text(text) => clean_plain_text(&mut cleaner, text),
            };
            let line = usize::try_from(line).unwrap_or(usize::MAX);
            found.review.extend(places_of(name, line, &clean.review));
            write(&clean.text)?;
            let places = clean.found.into_iter();
            found
                .places
                .extend(places.map(|(before, finding)| (line + before, finding)));
            Ok(())
        })?;
        output.map_or(Ok(()), Output::publish)?;
        Ok(found)
    }
}

/// Learns the identities of each file of a run, if they are wanted; returns no file if the filter wants no session of it.
fn learn<'s>(
    files: Vec<&'s Source>,
    filter: &Filter,
    are_wanted: bool,
    stop: &Stop,
) -> Result<Vec<(&'s Source, Identities)>> {
    let name = files.first().map_or(STDIN, |file| &file.path);
    let mut reader = TraceReader::new(Settings {
        file: (name != STDIN).then(|| name.into()),
        ..Settings::default()
    });
    let has_wanted = |runs: Vec<Run>| {
        let mut items = runs.into_iter().flat_map(Run::build);
        items.any(|item| filter.wants(name, &item))
    };
    let (mut is_wanted, mut learned) = (*filter == Filter::default(), Vec::new());
    for file in files {
        let mut identities = Identities::default();
        file.read(stop, |line, section| {
            let value = match section {
                Section::Text(text) => {
                    if are_wanted {
                        identities.learn_text(&text);
                    }
                    return Ok(());
                }
                Section::Json(_, value) => value,
            };
            if are_wanted {
                identities.learn_json(&value);
            }
            let values = match value {
                Value::Array(values) => values,
                value => vec![value],
            };
            let place = Place {
                line: Some(line),
                ..Place::default()
            };
            is_wanted = is_wanted
                || values.into_iter().any(|value| {
                    let content = Ok(value);
                    has_wanted(reader.read(Record { place, content }))
                });
            Ok(())
        })?;
        identities.finish();
        learned.push((file, identities));
    }
    if !is_wanted && !has_wanted(reader.end()) {
        learned.clear();
    }
    Ok(learned)
}

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || !byte.is_ascii()
}

/// What was found in a file.
#[derive(Default)]
struct Found {
    places: Vec<FoundAt>,
    review: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use knowledgepulse_clean::CleanOptions;

    fn cleaned(text: &str) -> (String, Vec<(usize, String)>) {
        let cleaner = Cleaner::new(CleanOptions {
            identifiers: true,
            strict: true,
        });
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        fs::write(path("in"), text).unwrap();
        let source = Source::open(path("in"), PathBuf::new(), false).unwrap();
        let output = Output::open(&path("out")).unwrap();
        let found = source.clean(cleaner, Some(output), &Stop::default()).unwrap();
        let places = found
            .places
            .into_iter()
            .map(|(line, finding)| (line, finding.name));
        (fs::read_to_string(path("out")).unwrap(), places.collect())
    }

    #[test]
    fn json_without_findings_keeps_every_byte_and_other_json_is_written_anew() {
        let text = "{\n  \"n\": 1.50, \"caf\\u00e9\": \"x\"\n}\n";
        let found = "{\n  \"n\": 1.50, \"big\": 12345678901234567890, \"to\": [\"a@b.cc\"]\n}\n";
        let (clean, places) = cleaned(&format!("{text}{found}"));
        let expected = "{\"n\":1.5,\"big\":12345678901234567890,\"to\":[\"[REDACTED:email-1]\"]}\n";
        assert_eq!(clean, format!("{text}{expected}"));
        assert_eq!(places, [(4, "email".to_owned())]);
    }

    #[test]
    fn lines_are_cleaned_as_json_or_as_text() {
        let text = "\u{feff}{\"password\":\"hunter22\"}\nsome text\nAPI_TOKEN=hunter22\n{\"a\":1}\n{\"b\":\"c@d.ee\"}";
        let (clean, places) = cleaned(text);
        assert_eq!(
            clean,
            "\u{feff}{\"password\":\"[REDACTED:password-1]\"}\nsome text\nAPI_TOKEN=[REDACTED:password-1]\n{\"a\":1}\n{\"b\":\"[REDACTED:email-1]\"}"
        );
        let lines: Vec<_> = places.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [1, 3, 5]);
    }

    #[test]
    fn learn_reads_a_run_once_and_says_whether_the_filter_wants_a_session_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        let record = |role: &str| {
            format!(
                r#"{{"type":"{role}","sessionId":"s","uuid":"{role}","cwd":"/home/maja/blog","message":{{"role":"{role}","content":"Write to Maja"}}}}"#
            ) + "\n"
        };
        fs::write(path("session.jsonl"), record("user") + &record("assistant")).unwrap();
        fs::write(path("notes.txt"), "/home/maja/blog\n").unwrap();
        let learned = |name: &str, project: &str| {
            let filter = Filter {
                project: Some(project.into()),
                ..Filter::default()
            };
            // What can be read once alone, as standard input, is copied.
            let mut copy = temporary::unnamed().unwrap();
            io::copy(&mut File::open(path(name)).unwrap(), &mut copy).unwrap();
            let source = Source {
                path: STDIN.into(),
                name: PathBuf::new(),
                copy: Some(copy),
            };
            let learned = learn(vec![&source], &filter, true, &Stop::default()).unwrap();
            learned.into_iter().map(|(_, identities)| identities).next()
        };
        let identities = learned("session.jsonl", "blog").unwrap();
        assert_eq!(identities.clean_name("maja.jsonl"), "user-1.jsonl");
        assert!(learned("session.jsonl", "shop").is_none());
        assert!(learned("notes.txt", "blog").is_none());
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
        let refused = Source::open(path.clone(), PathBuf::new(), false).err().unwrap();
        assert!(
            refused
                .message
                .ends_with("is a database: kp-score share writes its sessions, clean")
        );
        let cleaner = Cleaner::new(CleanOptions {
            identifiers: true,
            strict: true,
        });
        let source =
            Source::open(path, PathBuf::new(), true).unwrap_or_else(|failure| panic!("{}", failure.message));
        let found = source.clean(cleaner, None, &Stop::default());
        let places = found
            .unwrap_or_else(|failure| panic!("{}", failure.message))
            .places;
        let places: Vec<_> = places
            .iter()
            .map(|(line, finding)| (*line, &*finding.name))
            .collect();
        assert_eq!(places, [(1, "email")]);
    }
}
