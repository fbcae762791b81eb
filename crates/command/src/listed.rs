//! The last list of `kp-score`, so that its numbers name sessions afterwards.

use std::{
    collections::{BTreeSet, HashMap},
    fs, path,
};

use knowledgepulse_formats::run::runs;
use knowledgepulse_json::{Value, json_object, parse_str};

use crate::{Failure, Output, Result, STDIN, Set, filter::settings_file};

/// The name of the file, in the user's settings folder.
const FILE: &str = "listed.json";

/// A session that was listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed {
    pub id: String,
    /// The files of its run.
    pub files: Vec<String>,
}

/// Remembers the sessions of a list, by their places in the set, which was read from `sources`, or forgets the list before. Returns whether
/// they can be found again.
pub(crate) fn remember(set: &Set, listed: &[usize], sources: &[String]) -> bool {
    let absolute = |file: &String| Some(path::absolute(file).ok()?.to_str()?.to_owned());
    let runs = runs(sources).into_iter().filter(|run| run[0] != STDIN);
    let files_of = |run: Vec<String>| (run[0].clone(), run.iter().filter_map(absolute).collect());
    let runs: HashMap<String, Vec<String>> = runs.map(files_of).collect();
    let sessions = listed.iter().map(|&index| {
        let scored = &set.scored[index];
        let files = runs.get(&scored.place.source)?.iter();
        let files: Value = files.map(String::as_str).collect();
        Some(json_object! { "id": scored.about.id.clone()?, "files": files })
    });
    let Some(file) = settings_file(FILE) else {
        return false;
    };
    let write = || -> Option<()> {
        let text = Value::from(sessions.collect::<Option<Vec<_>>>()?).to_json();
        fs::create_dir_all(file.parent()?).ok()?;
        let mut output = Output::open(file.to_str()?).ok()?;
        output.write(text.as_bytes()).ok()?;
        output.publish().ok()
    };
    let is_written = write().is_some();
    if !is_written {
        // Its numbers would name other sessions.
        drop(fs::remove_file(&file));
    }
    is_written
}

/// Returns the files of sessions, each once.
pub(crate) fn files_of_all(sessions: &[Listed]) -> Vec<String> {
    let files: BTreeSet<_> = sessions.iter().flat_map(|session| &session.files).collect();
    files.into_iter().cloned().collect()
}

/// Returns the sessions of these numbers in the last list, which begin at 1.
///
/// # Errors
/// If there is no list, or it has no such number.
pub(crate) fn listed(numbers: &[usize]) -> Result<Vec<Listed>> {
    let text = settings_file(FILE).and_then(|file| fs::read_to_string(file).ok());
    let sessions = text.and_then(|text| parse_str(&text).ok());
    let sessions = sessions.as_ref().and_then(Value::as_array).unwrap_or_default();
    let at = |number: &usize| {
        let session = number.checked_sub(1).and_then(|at| sessions.get(at));
        let found = session.and_then(|session| {
            let files = session.get("files")?.as_array()?.iter();
            Some(Listed {
                id: session.get("id")?.as_str()?.to_owned(),
                files: files
                    .filter_map(|file| file.as_str().map(str::to_owned))
                    .collect(),
            })
        });
        let problem = match sessions.len() {
            0 => "there is no list: kp-score makes one".to_owned(),
            count => format!("there is no session {number}: the last list has {count}"),
        };
        found.ok_or_else(|| Failure::usage(problem))
    };
    numbers.iter().map(at).collect()
}
