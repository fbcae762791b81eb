//! The last list of `kp-score`, so that its numbers name sessions afterwards.

use std::{
    collections::{BTreeSet, HashMap},
    fs, path,
};

use knowledgepulse_formats::run::runs;
use serde::{Deserialize, Serialize};

use crate::{Failure, Output, Result, STDIN, Set, filter::settings_file};

/// The name of the file, in the user's settings folder.
const FILE: &str = "listed.json";

/// A session that was listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
        let id = scored.about.id.as_ref()?.to_string();
        let files = runs.get(&scored.place.source)?.clone();
        Some(Listed { id, files })
    });
    let file = settings_file(FILE).unwrap_or_default();
    let write = || -> Option<()> {
        let text = serde_json::to_string(&sessions.collect::<Option<Vec<_>>>()?).ok()?;
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
    let sessions = text.and_then(|text| serde_json::from_str(&text).ok());
    let sessions: Vec<Listed> = sessions.unwrap_or_default();
    let at = |number: &usize| {
        let session = number.checked_sub(1).and_then(|at| sessions.get(at));
        let problem = match sessions.len() {
            0 => "there is no list: kp-score makes one".to_owned(),
            count => format!("there is no session {number}: the last list has {count}"),
        };
        session.cloned().ok_or_else(|| Failure::usage(problem))
    };
    numbers.iter().map(at).collect()
}
