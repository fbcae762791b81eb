//! Which files are one run: the events of OpenHands in a folder, the segments of a thread of Codex. Copies of a session are left out.

use std::{
    collections::{HashMap, HashSet},
    fs::{self, File},
    io::{BufRead, BufReader, Read},
    path::Path,
};

use knowledgepulse_json::{Object, Value, parse, parse_str};

use crate::values::{fields_of, str_of};

/// The first line of a rollout has fewer bytes.
const LONGEST_HEADER: u64 = 1024 * 1024;

/// How many segments a thread has at most.
const MOST_SEGMENTS: usize = 1000;

/// The result of a trial is some kilobytes long.
const LONGEST_SMALL: u64 = 16 * 1024 * 1024;

/// Part of the name of a copy that OpenClaw keeps beside a session.
const CHECKPOINT: &str = ".checkpoint.";

/// Groups files by their runs: each group is read as one input, and is named by its first file. The order of the files stays.
#[must_use]
pub fn runs(files: &[String]) -> Vec<Vec<String>> {
    let all: HashSet<&str> = files.iter().map(String::as_str).collect();
    let files: Vec<&String> = files.iter().filter(|file| !is_copy(file, &all)).collect();
    let segments = Segments::of(&files);
    let mut groups: Vec<Vec<(u64, String)>> = Vec::new();
    let mut folders: HashMap<&Path, usize> = HashMap::new();
    for file in files {
        if segments.is_base.contains(file.as_str()) {
            continue;
        }
        match event_of(file) {
            Some((folder, number)) => {
                let at = *folders.entry(folder).or_insert(groups.len());
                if at == groups.len() {
                    groups.push(Vec::new());
                }
                groups[at].push((number, file.clone()));
            }
            None => groups.push(
                segments
                    .before(file)
                    .into_iter()
                    .zip(0..)
                    .map(|(file, at)| (at, file))
                    .collect(),
            ),
        }
    }
    for group in &mut groups {
        group.sort_by_key(|(number, _)| *number);
    }
    let names = |group: Vec<(u64, String)>| group.into_iter().map(|(_, file)| file).collect();
    groups.into_iter().map(names).collect()
}

/// Returns whether a file is a copy of others that are read too.
fn is_copy(file: &str, all: &HashSet<&str>) -> bool {
    let name = file.rsplit(['/', '\\']).next().unwrap_or_default();
    let folder = &file[..file.len() - name.len()];
    // OpenHands keeps pages of the events beside them.
    if let Some(run) = folder.trim_end_matches(['/', '\\']).strip_suffix("event_cache") {
        return all.contains(format!("{run}events/0.json").as_str());
    }
    let Some((session, _)) = name.split_once(CHECKPOINT) else {
        return false;
    };
    all.contains(format!("{folder}{session}.jsonl").as_str())
}

/// Returns the folder and the number of a file that holds one event of OpenHands: `events/event-00001-ID.json` or `events/1.json`.
fn event_of(file: &str) -> Option<(&Path, u64)> {
    let path = Path::new(file);
    let folder = path.parent()?;
    let name = path.file_name()?.to_str()?.strip_suffix(".json")?;
    let number = match name.strip_prefix("event-") {
        Some(rest) => rest.split('-').next()?,
        None => name,
    };
    let is_event = folder.file_name()? == "events" && number.bytes().all(|byte| byte.is_ascii_digit());
    is_event
        .then(|| number.parse().ok())
        .flatten()
        .map(|number| (folder, number))
}

/// The rollouts of Codex that go on with others. The name of a file has the id of its rollout; a thread that was rolled back has several.
#[derive(Default)]
struct Segments<'f> {
    /// By a file, the file that it goes on with.
    bases: HashMap<&'f str, &'f str>,
    /// The files that another file of the same thread goes on with.
    is_base: HashSet<&'f str>,
}

impl<'f> Segments<'f> {
    fn of(files: &[&'f String]) -> Self {
        let mut by_rollout = HashMap::new();
        for file in files {
            by_rollout.extend(rollout_of(file).map(|id| (id, file.as_str())));
        }
        let mut segments = Self::default();
        for file in files.iter().filter(|file| rollout_of(file).is_some()) {
            let Some(meta) = meta_of(file) else { continue };
            let base = fields_of(&meta, "history_base").get("thread_id").cloned();
            let base = str_of(base.as_ref());
            let Some(&base) = base
                .and_then(|base| by_rollout.get(base))
                .filter(|base| **base != file.as_str())
            else {
                continue;
            };
            segments.bases.insert(file, base);
            let is_same = meta_of(base).is_some_and(|other| other.get("id") == meta.get("id"));
            if is_same {
                segments.is_base.insert(base);
            }
        }
        segments
    }

    /// Returns a file and those that it goes on with, the first one first.
    fn before(&self, file: &str) -> Vec<String> {
        let mut all = vec![file.to_owned()];
        let mut next = file;
        while let Some(base) = self.bases.get(next).filter(|_| all.len() < MOST_SEGMENTS) {
            all.push((*base).to_owned());
            next = base;
        }
        all.reverse();
        all
    }
}

/// Returns the id of a rollout, which the name of its file ends with: `rollout-2026-10-01T09-00-00-ID.jsonl`.
fn rollout_of(file: &str) -> Option<&str> {
    /// The length of a UUID.
    const ID_LENGTH: usize = 36;
    let name = file.rsplit(['/', '\\']).next()?.strip_prefix("rollout-")?;
    let name = name.strip_suffix(".jsonl")?;
    name.len().checked_sub(ID_LENGTH).and_then(|at| name.get(at..))
}

/// Returns what the first line of a rollout says.
fn meta_of(file: &str) -> Option<Object> {
    let mut line = String::new();
    let file = File::open(file).ok()?.take(LONGEST_HEADER);
    BufReader::new(file).read_line(&mut line).ok()?;
    match parse_str(line.trim()).ok()?.get("payload") {
        Some(Value::Object(meta)) => Some(meta.clone()),
        _ => None,
    }
}

/// Returns the object in a small file; `None` if there is none.
pub(crate) fn read_small(file: &Path) -> Option<Object> {
    let stat = fs::metadata(file).ok()?;
    let bytes = (stat.is_file() && stat.len() <= LONGEST_SMALL).then(|| fs::read(file).ok())??;
    match parse(&bytes) {
        Ok(Value::Object(object)) => Some(object),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn named(runs: Vec<Vec<String>>, folder: &Path) -> Vec<Vec<String>> {
        let folder = format!("{}/", folder.display());
        let name = |file: String| file.replace(&folder, "");
        runs.into_iter()
            .map(|run| run.into_iter().map(name).collect())
            .collect()
    }

    #[test]
    fn runs_groups_the_events_of_a_folder_by_their_numbers() {
        let files = [
            "a/events/event-00010-x.json",
            "a/events/event-00002-y.json",
            "b/events/1.json",
            "b/events/0.json",
            "b/other/0.json",
            "b/events/page.json",
        ];
        let runs = runs(&files.map(str::to_owned));
        assert_eq!(
            runs,
            [
                vec!["a/events/event-00002-y.json", "a/events/event-00010-x.json"],
                vec!["b/events/0.json", "b/events/1.json"],
                vec!["b/other/0.json"],
                vec!["b/events/page.json"],
            ]
        );
    }

    #[test]
    fn runs_leaves_out_copies_of_files_that_are_read() {
        let files = [
            "s/a.checkpoint.1.jsonl",
            "s/a.jsonl",
            "s/b.checkpoint.1.jsonl",
            "o/event_cache/0-25.json",
            "o/events/0.json",
        ];
        let runs = runs(&files.map(str::to_owned));
        assert_eq!(
            runs,
            [["s/a.jsonl"], ["s/b.checkpoint.1.jsonl"], ["o/events/0.json"]]
        );
    }

    #[test]
    fn runs_joins_the_segments_of_a_thread_and_keeps_what_a_fork_goes_on_with() {
        let folder = tempfile::tempdir().unwrap();
        let id = |number: u8| format!("019fc0de-0000-7000-8000-00000000000{number}");
        let files: Vec<String> = [(1, 1, None), (2, 1, Some(1)), (3, 3, Some(2))]
            .iter()
            .map(|(rollout, thread, base): &(u8, u8, Option<u8>)| {
                let base =
                    base.map(|base| serde_json::json!({ "thread_id": id(base), "end_ordinal_exclusive": 4 }));
                let payload = serde_json::json!({ "id": id(*thread), "history_base": base });
                let line = serde_json::json!({ "type": "session_meta", "payload": payload });
                let path = folder
                    .path()
                    .join(format!("rollout-{rollout}-{}.jsonl", id(*rollout)));
                fs::write(&path, format!("{line}\n{{}}")).unwrap();
                path.to_str().unwrap().to_owned()
            })
            .collect();
        let name = |number: u8| format!("rollout-{number}-{}.jsonl", id(number));
        assert_eq!(
            named(runs(&files), folder.path()),
            [vec![name(1), name(2)], vec![name(1), name(2), name(3)]]
        );
    }
}
