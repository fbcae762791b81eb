//! Folders as inputs, and the sessions of this machine: the files in them that a reader recognises.

use std::{collections::HashSet, path::Path, sync::Arc};

use knowledgepulse_formats::{
    FormatName,
    run::{head_of, runs},
};
use rayon::{iter::Either, prelude::*};
use walkdir::WalkDir;

use crate::{
    Failure, Filter, Inputs, Item, Messages, Result, Seen, State, Stop, Target, counted,
    files::file_identity::metadata_of, is_same_file, read::read,
};

/// How the names of files end that belong to a database.
const OF_DATABASES: [&str; 3] = ["-wal", "-shm", "-journal"];

/// What is said of files in the folders of agents that hold no session.
pub(crate) const NOT_READ: &str = "beside the sessions not read";

/// Replaces each folder among the inputs by the files below it that a reader recognises or that cannot be read, in the order of their
/// names. Leaves out links and the files that the run writes (`outputs`), and says how many files were skipped.
///
/// # Errors
/// If only folders are named, and no file in them is recognised.
pub(crate) fn expand(mut inputs: Inputs, outputs: &[Target], messages: &Messages) -> Result<Inputs> {
    let mut sources = Vec::new();
    let mut empty = Vec::new();
    let any = inputs.format.is_some();
    for source in std::mem::take(&mut inputs.sources) {
        if !metadata_of(&source).is_some_and(|metadata| metadata.is_dir()) {
            sources.push(source);
            continue;
        }
        let mut files = files_below(&source, messages);
        files.retain(|file| !outputs.iter().any(|(_, output)| is_same_file(output, file)));
        let found = Found::of(files, |format| any || format.is_some());
        found.tell_skipped(&format!("{source}: "), "of no known format skipped", messages);
        if found.files.is_empty() {
            empty.push(source);
        }
        sources.extend(found.files);
    }
    if sources.is_empty() && !empty.is_empty() {
        return Err(Failure::file(format!(
            "there is no file of a known format in {}",
            empty.join(", ")
        )));
    }
    inputs.sources = sources;
    inputs.leave_out_files(false);
    Ok(inputs)
}

impl Inputs {
    /// Finds the files: those that are named and those in folders, or the sessions on this machine that the user's file `ignore` does not
    /// name.
    pub(crate) fn found(self, messages: &Messages) -> Result<Self> {
        if !self.sources.is_empty() {
            return expand(self, &[], messages);
        }
        let (format, given) = (self.format, self.given);
        Ok(Self {
            format,
            given,
            ..sessions(self.filter.with_ignored()?, messages)
        })
    }
}

/// Files that were looked at.
#[derive(Default)]
pub(crate) struct Found {
    /// Those that are read, and those of which reading says why it fails.
    pub files: Vec<String>,
    /// Those that hold no session.
    pub skipped: Vec<String>,
}

impl Found {
    /// Looks at the first records of files, on all cores.
    fn of(files: Vec<String>, is_wanted: impl Fn(Option<FormatName>) -> bool + Sync) -> Self {
        let looked_at = files.into_par_iter().map(|file| {
            let head = head_of(Path::new(&file));
            let is_read = head.map_or(true, |head| head.is_json && is_wanted(head.format));
            (file, is_read)
        });
        let (read, skipped) = looked_at.partition_map(|(file, is_read)| match is_read {
            true => Either::Left(file),
            false => Either::Right(file),
        });
        Self { files: read, skipped }
    }

    /// Finds the sessions of an agent on this machine.
    pub(crate) fn on_this_machine(agent: FormatName, messages: &Messages) -> Self {
        let places = agent.format().here();
        let places = places.iter().filter_map(|place| place.to_str());
        let files = places.flat_map(|place| files_below(place, messages)).collect();
        Self::of(files, |format| format == Some(agent))
    }

    /// Says how many files were skipped, in one line.
    pub(crate) fn tell_skipped(&self, place: &str, why: &str, messages: &Messages) {
        if messages.is_verbose() {
            for file in &self.skipped {
                messages.note(format!("{file}: skipped, it is of no known format"));
            }
        }
        if !self.skipped.is_empty() {
            let more = match messages.is_verbose() {
                true => "",
                false => " (--verbose names them)",
            };
            let files = counted(self.skipped.len() as u64, "file");
            messages.note(format!("{place}{files} {why}{more}"));
        }
    }
}

/// Returns the sessions on this machine that a filter does not leave out by their files.
pub(crate) fn sessions(filter: Filter, messages: &Messages) -> Inputs {
    let mut all = Found::default();
    for agent in FormatName::ALL {
        if filter.agents.is_empty() || filter.agents.contains(agent) {
            let found = Found::on_this_machine(*agent, messages);
            all.files.extend(found.files);
            all.skipped.extend(found.skipped);
        }
    }
    all.tell_skipped("", NOT_READ, messages);
    let mut inputs = Inputs::new(all.files, filter);
    inputs.leave_out_files(true);
    inputs
}

/// Returns the files that have a wanted session.
///
/// # Errors
/// If the run is interrupted.
pub(crate) fn files_with_sessions(
    inputs: Inputs,
    messages: &Messages,
    stop: &Stop,
) -> Result<HashSet<String>> {
    let mut found = HashSet::new();
    let mut take = |item: Option<Item<()>>, _: &mut Seen| {
        found
            .extend(item.and_then(|item| matches!(item.state, State::Read(())).then_some(item.place.source)));
        Ok(false)
    };
    read(&inputs, Arc::new(|_| Ok(())), &mut take, messages, stop)?;
    if stop.is_interrupted() {
        return Err(Failure::interrupted("interrupted: nothing was cleaned"));
    }
    let runs = runs(&inputs.sources).into_iter();
    // A run is named by its first file.
    let wanted = runs.filter(|run| run.first().is_some_and(|file| found.contains(file)));
    Ok(wanted.flatten().collect())
}

/// Returns the ordinary files below a folder in the order of their names, without links; of a file itself. What cannot be looked into
/// is among them, so that reading says why.
pub(crate) fn files_below(folder: &str, messages: &Messages) -> Vec<String> {
    let mut files = Vec::new();
    for entry in WalkDir::new(folder).sort_by_file_name() {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                match error.path().and_then(Path::to_str) {
                    Some(path) => files.push(path.to_owned()),
                    None => messages.warning(format!("cannot read a part of {folder}: {error}")),
                }
                continue;
            }
        };
        if !entry.file_type().is_file() {
            continue;
        }
        let Some(path) = entry.path().to_str() else {
            let path = entry.path().display();
            messages.warning(format!("{path} is not UTF-8, so it is skipped"));
            continue;
        };
        if !OF_DATABASES.iter().any(|end| path.ends_with(end)) {
            files.push(path.to_owned());
        }
    }
    files
}
