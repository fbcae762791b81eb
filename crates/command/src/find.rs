//! Folders as inputs, and the sessions of this machine: the files in them that a reader recognises.

use std::{mem, path::Path};

use knowledgepulse_formats::{FormatName, not_read_here, run::head_of};
use rayon::prelude::*;
use walkdir::WalkDir;

use crate::{Failure, Inputs, Messages, Result, Target, counted, files::metadata_of, is_same_file};

/// How the names of files end that belong to a database.
const OF_DATABASES: [&str; 3] = ["-wal", "-shm", "-journal"];

impl Inputs {
    /// Finds the files: those that are named, or the sessions on this machine without those that the user's file `ignore` names, but for those
    /// that the filter leaves out. Each folder is replaced by the files below it that a reader recognises or that cannot be read, in the order
    /// of their names, without links and the files that the run writes (`outputs`). Says how many files were skipped.
    ///
    /// # Errors
    /// If only folders are named, and no file in them is recognised, or the file `ignore` cannot be read.
    pub(crate) fn found(mut self, outputs: &[Target], messages: &Messages) -> Result<Self> {
        let are_kept = self.sources.is_empty();
        if are_kept {
            self.filter = self.filter.with_ignored()?;
            let agents = FormatName::ALL.iter().copied();
            let agents =
                agents.filter(|agent| self.filter.agents.is_empty() || self.filter.agents.contains(agent));
            let (files, skipped): (Vec<_>, Vec<_>) = agents.map(|agent| of_agent(agent, messages)).unzip();
            tell_not_read(&skipped.concat(), self.filter.agents.is_empty(), messages);
            self.sources = files.concat();
        }
        let (mut sources, mut empty) = (Vec::new(), Vec::new());
        for source in mem::take(&mut self.sources) {
            if are_kept || !metadata_of(&source).is_some_and(|metadata| metadata.is_dir()) {
                sources.push(source);
                continue;
            }
            let mut files = files_below(&source, messages);
            files.retain(|file| !outputs.iter().any(|(_, output)| is_same_file(output, file)));
            let any = self.format.is_some();
            let (files, skipped) = looked_at(files, |format| any || format.is_some());
            let place = format!("{source}: ");
            tell_skipped(&skipped, &place, "of no known format skipped", messages);
            if files.is_empty() {
                empty.push(source);
            }
            sources.extend(files);
        }
        if sources.is_empty() && !empty.is_empty() {
            let folders = empty.join(", ");
            let problem = format!("there is no file of a known format in {folders}");
            return Err(Failure::file(problem));
        }
        let (filter, left_out) = (&self.filter, &mut self.left_out);
        sources.retain(|file| {
            // Agents keep the times of their files.
            let why = filter.of_file(file, are_kept);
            left_out.extend(why);
            why.is_none()
        });
        self.sources = sources;
        Ok(self)
    }
}

/// Looks at the first records of files, on all cores. Returns those that are read, or of which reading says why it fails, and those that hold
/// no session.
fn looked_at(
    files: Vec<String>,
    is_wanted: impl Fn(Option<FormatName>) -> bool + Sync,
) -> (Vec<String>, Vec<String>) {
    let is_read = |file: &String| {
        let head = head_of(Path::new(file));
        head.map_or(true, |head| head.is_json && is_wanted(head.format))
    };
    files.into_par_iter().partition(is_read)
}

/// Finds the sessions of an agent on this machine, and the files beside them.
pub(crate) fn of_agent(agent: FormatName, messages: &Messages) -> (Vec<String>, Vec<String>) {
    let places = agent.format().here();
    let places = places.iter().filter_map(|place| place.to_str());
    let files = places.flat_map(|place| files_below(place, messages)).collect();
    looked_at(files, |format| format == Some(agent))
}

/// Says how many files were skipped, in one line.
fn tell_skipped(skipped: &[String], place: &str, why: &str, messages: &Messages) {
    if !skipped.is_empty() {
        let files = counted(skipped.len() as u64, "file");
        messages.note(format!("{place}{files} {why}"));
    }
}

/// Says how many files in the folders of agents hold no session, and, of all agents, which have left sessions that are not read.
pub(crate) fn tell_not_read(skipped: &[String], are_all: bool, messages: &Messages) {
    tell_skipped(skipped, "", "beside the sessions not read", messages);
    if are_all && let Some(agents) = not_read_here() {
        messages.note(format!("files with sessions that are not read: {agents}"));
    }
}

/// Returns the ordinary files below a folder in the order of their names, without links; of a file itself. What cannot be looked into
/// is among them, so that reading says why.
pub(crate) fn files_below(folder: &str, messages: &Messages) -> Vec<String> {
    let mut files = Vec::new();
    for entry in WalkDir::new(folder).sort_by_file_name() {
        let path = match &entry {
            Ok(entry) if !entry.file_type().is_file() => continue,
            Ok(entry) => Some(entry.path()),
            Err(error) => error.path(),
        };
        let is_of_database = |path: &str| OF_DATABASES.iter().any(|end| path.ends_with(end));
        match path.map(|path| path.to_str().ok_or(path.display())) {
            Some(Ok(path)) if is_of_database(path) => {}
            Some(Ok(path)) => files.push(path.to_owned()),
            Some(Err(path)) => messages.warning(format!("{path} is not UTF-8, so it is skipped")),
            None => messages.warning(format!("a part of {folder} cannot be read, so it is skipped")),
        }
    }
    files
}
