//! Which files are one input (the events of OpenHands in a folder, the segments of a thread of Codex), and which inputs may hold copies of
//! each other's runs.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap, HashSet},
    fs::{self, File},
    io, iter,
    ops::ControlFlow,
    path::Path,
    sync::LazyLock,
};

use knowledgepulse_json::{Object, Text, Value};
use rayon::prelude::*;
use regex::Regex;

use super::{
    copies::{Group, begins_as, key_of, names_of},
    named::Named,
    runs::{Content, Item},
};
use crate::{
    FormatName,
    event::Events,
    input::{compression::read_text, lines_of_file, names_in_database},
    records::{MOST_FIRST_RECORDS, Record, Records},
    trace,
    values::{fields_of, hash_of, regex, string_of},
    words::tags,
};

/// So many bytes of a file are read at once for its first records. All that are read are parsed.
const BEGINNING_SIZE: usize = 16 * 1024;

/// So many bytes of a table hold its first records. Its last row in them may be cut off.
const MOST_OF_TABLE: usize = 1024 * 1024;

/// How many segments a thread has at most.
const MOST_SEGMENTS: usize = 1000;

/// What the first records of a file say of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Head {
    /// The format of the first record that is of one.
    pub format: Option<FormatName>,
    /// Whether a record is JSON.
    pub is_json: bool,
    /// What copies of its sessions have in common with them: names, the ids of their first messages, their first turns.
    keys: Vec<u64>,
}

/// Reads the first records of a file, which is decompressed, or the names of the sessions in a database.
///
/// # Errors
/// If the file cannot be read. One of another kind has no record.
pub fn head_of(path: &Path) -> io::Result<Head> {
    if let Some(head) = head_of_database(path)? {
        return Ok(head);
    }
    let mut head = Head::default();
    first_records(path, |record| {
        let Ok(value) = record.content else {
            return true;
        };
        head.is_json = true;
        head.format = head.format.or_else(|| FormatName::of(&value, Some(path)));
        let Some(format) = head.format.filter(|format| format.is_of_sessions()) else {
            return head.format.is_none();
        };
        let mut say = Events::default();
        if format.format().decode(&value, &mut say).is_ok() {
            let named = say.list.iter().flat_map(names_of);
            head.keys.extend(named.map(|name| key_of(format, name)));
            head.keys.extend(begins_as(format, &say.list));
        }
        true
    })?;
    if let Some(format) = head.format {
        let session = Named::by(format.name(), path).session;
        head.keys.extend(session.map(|name| key_of(format, &name)));
    }
    head.keys.sort_unstable();
    head.keys.dedup();
    Ok(head)
}

/// Reads the names of the sessions in a database; `None` for another file.
fn head_of_database(path: &Path) -> io::Result<Option<Head>> {
    let (agent, names) = match names_in_database(path) {
        Ok(Some(found)) => found,
        Ok(None) => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::Unsupported => return Ok(Some(Head::default())),
        Err(error) => return Err(error),
    };
    let Some(format) = FormatName::from_name(agent) else {
        return Ok(Some(Head::default()));
    };
    let mut times: HashMap<&str, u32> = HashMap::new();
    for begins in names.iter().filter_map(|(_, begins)| begins.as_deref()) {
        *times.entry(begins).or_default() += 1;
    }
    let mut keys = Vec::new();
    for (name, begins) in &names {
        // Cursor's are keys, which end with the name.
        let key = key_of(format, name.rsplit(':').next().unwrap_or_default());
        // What begins as others of the database is shared, as a name in several files is.
        let is_shared = begins.as_deref().is_some_and(|begins| times[begins] > 1);
        keys.extend(iter::repeat_n(key, 1 + usize::from(is_shared)));
    }
    Ok(Some(Head {
        format: Some(format),
        is_json: true,
        keys,
    }))
}

/// Passes on the first records of a file until `goes_on` has enough.
fn first_records(path: &Path, mut goes_on: impl FnMut(Record) -> bool) -> io::Result<()> {
    let (mut left, mut records) = (MOST_FIRST_RECORDS, Records::default());
    let mut take = |records: &mut Records| {
        for record in records {
            left -= 1;
            if !goes_on(record) || left == 0 {
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    };
    let mut flow = ControlFlow::Continue(());
    let mut push = |text: &[u8]| {
        // Something else than text has no records.
        flow = match records.push(text) {
            Ok(()) => take(&mut records),
            Err(_) => ControlFlow::Break(()),
        };
        match records.decoder.kept() > MOST_OF_TABLE {
            true => ControlFlow::Break(()),
            false => flow,
        }
    };
    match lines_of_file(path)? {
        Some(mut lines) => drop(lines.try_for_each(|line| push(line.as_bytes()))),
        None => read_text(File::open(path)?, BEGINNING_SIZE, &mut push)?,
    }
    if flow.is_continue() && records.finish().is_ok() {
        let _ = take(&mut records);
    }
    Ok(())
}

/// Groups files by their runs, and runs by what copies have in common.
#[must_use]
pub fn groups(files: &[String]) -> Vec<Group> {
    let inputs = runs(files);
    let is_alone = inputs.len() == 1;
    let head = |input: &Vec<String>| match input.first().map(Path::new)? {
        // A file alone may be a pipe, which is read once. A database is none, and holds several sessions.
        path if is_alone => head_of_database(path).ok()?,
        path => head_of(path).ok(),
    };
    let heads = inputs.par_iter().map(head);
    let keys: Vec<Vec<u64>> = heads.map(|head| head.unwrap_or_default().keys).collect();
    let mut count: HashMap<u64, u32> = HashMap::new();
    for key in keys.iter().flatten() {
        *count.entry(*key).or_default() += 1;
    }
    let shared = |at: usize| keys[at].iter().copied().filter(|key| count[key] > 1);
    // The inputs with a key are joined with the first that has it; those come one after the other.
    let mut first_of: HashMap<u64, usize> = HashMap::new();
    let mut above: Vec<usize> = (0..inputs.len()).collect();
    let root = |above: &[usize], mut at: usize| {
        while above[at] != at {
            at = above[at];
        }
        at
    };
    for at in 0..inputs.len() {
        for key in shared(at) {
            let first = root(&above, *first_of.entry(key).or_insert(at));
            let own = root(&above, at);
            above[first.max(own)] = first.min(own);
        }
    }
    let mut groups: BTreeMap<usize, Group> = BTreeMap::new();
    for (at, input) in inputs.into_iter().enumerate() {
        let group = groups.entry(root(&above, at)).or_default();
        group.inputs.push(input);
        group.shared.extend(shared(at));
    }
    // The longest first: what it contains need not be kept.
    let size = |file: &String| fs::metadata(file).map_or(0, |stat| stat.len());
    let sorted = groups.into_values().map(|mut group| {
        let length = |input: &Vec<String>| Reverse(input.iter().map(size).sum::<u64>());
        group.inputs.sort_by_cached_key(length);
        group
    });
    sorted.collect()
}

/// The ids of the sessions that were read.
#[derive(Debug, Default)]
pub struct Ids(HashSet<u64>);

impl Ids {
    /// Returns whether a session is a new one. Gives it an id of its own where only its steps tell it from another one.
    pub fn claim(&mut self, item: &mut Item) -> bool {
        let Content::Read(trace) = &mut item.content else {
            return true;
        };
        if !item.format.is_some_and(FormatName::is_of_sessions) {
            return true;
        }
        let id = |trace: &Value| hash_of(&trace.get("id").and_then(Value::as_str));
        self.0.insert(id(trace)) || {
            trace::name_by_steps(trace);
            self.0.insert(id(trace))
        }
    }
}

/// Groups files by their runs: each group is read as one input, and is named by its first file. The order of the files stays.
#[must_use]
pub fn runs(files: &[String]) -> Vec<Vec<String>> {
    let all: HashSet<&str> = files.iter().map(String::as_str).collect();
    let files = files.iter().map(String::as_str);
    let files: Vec<&str> = files.filter(|file| !is_copy(file, &all)).collect();
    let bases = bases_of(&files);
    let of_one_thread = bases.values().filter(|(_, is_same)| *is_same);
    let segments: HashSet<&str> = of_one_thread.map(|(base, _)| *base).collect();
    let mut groups: Vec<Vec<String>> = Vec::new();
    let mut folders: HashMap<&str, usize> = HashMap::new();
    for file in files.into_iter().filter(|file| !segments.contains(file)) {
        match event_of(file) {
            Some((folder, _)) => {
                let at = *folders.entry(folder).or_insert(groups.len());
                groups.resize_with(groups.len().max(at + 1), Vec::new);
                groups[at].push(file.to_owned());
            }
            None => groups.push(segments_of(file, &bases)),
        }
    }
    for at in folders.into_values() {
        groups[at].sort_by_key(|file| event_of(file).map(|(_, number)| number));
    }
    groups
}

/// The paths of files that are copies, and of those that they are copies of.
static COPIES: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let rows = tags("copy").iter();
    rows.map(|[copy, whole]| (regex(copy), *whole)).collect()
});

/// Returns whether a file is a copy of others that are read too.
fn is_copy(file: &str, all: &HashSet<&str>) -> bool {
    let is_of =
        |(copy, whole): &(Regex, &str)| copy.is_match(file) && all.contains(&*copy.replace(file, *whole));
    // A file alone is no copy, and needs no expression.
    all.len() > 1 && COPIES.iter().any(is_of)
}

/// A file that holds one event of OpenHands, `events/event-00001-ID.json` or `events/1.json`, or one message of Strands,
/// `messages/message_1.json`: its folder, and the number.
static EVENT: LazyLock<Regex> = LazyLock::new(|| {
    regex(r"^(.*?)(?:^|[/\\])(?:events[/\\](?:event-)?|messages[/\\]message_)([0-9]+)(?:-[^/\\]*)?\.json$")
});

fn event_of(file: &str) -> Option<(&str, u64)> {
    let found = EVENT.captures(file)?;
    Some((found.get(1)?.as_str(), found[2].parse().ok()?))
}

/// Returns by each rollout of Codex the file that it goes on with, and whether both are of one thread, as where a thread was rolled back. The
/// name of a file has the id of its rollout.
fn bases_of<'f>(files: &[&'f str]) -> HashMap<&'f str, (&'f str, bool)> {
    let id_of = |file| Named::by(FormatName::Codex.name(), Path::new(file)).session;
    let rollouts = files.iter().filter_map(|file| Some((id_of(file)?, *file)));
    let by_id: HashMap<Text, &str> = rollouts.collect();
    let based = by_id.values().filter_map(|&file| {
        let meta = meta_of(file)?;
        let base = string_of(fields_of(&meta, "history_base").get("thread_id"))?;
        let base = *by_id.get(base).filter(|base| **base != file)?;
        let is_same = meta_of(base).is_some_and(|other| other.get("id") == meta.get("id"));
        Some((file, (base, is_same)))
    });
    based.collect()
}

/// Returns a file and those that it goes on with, the first one first.
fn segments_of(file: &str, bases: &HashMap<&str, (&str, bool)>) -> Vec<String> {
    let before = iter::successors(Some(file), |file| bases.get(file).map(|(base, _)| *base));
    let mut all: Vec<String> = before.take(MOST_SEGMENTS).map(str::to_owned).collect();
    all.reverse();
    all
}

/// Returns what the first record of a rollout says.
fn meta_of(file: &str) -> Option<Object> {
    let mut meta = None;
    let read = first_records(Path::new(file), |record| {
        let payload = record
            .content
            .ok()
            .and_then(|value| value.get("payload").cloned());
        meta = payload.and_then(|payload| payload.as_object().cloned());
        false
    });
    read.ok().and(meta)
}

#[cfg(test)]
mod tests {
    use std::{fs, io::Write};

    use flate2::{Compression, write::GzEncoder};

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
            "c/messages/message_10.json",
            "c/messages/message_9.json",
        ];
        let runs = runs(&files.map(str::to_owned));
        assert_eq!(
            runs,
            [
                vec!["a/events/event-00002-y.json", "a/events/event-00010-x.json"],
                vec!["b/events/0.json", "b/events/1.json"],
                vec!["b/other/0.json"],
                vec!["b/events/page.json"],
                vec!["c/messages/message_9.json", "c/messages/message_10.json"],
            ]
        );
    }

    #[test]
    fn head_of_a_table_needs_no_more_than_its_beginning() {
        let row = format!(
            "\"[{{\"\"role\"\":\"\"user\"\",\"\"content\"\":\"\"{}\"\"}}]\"\n",
            "a".repeat(50_000)
        );
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let mut gzip = GzEncoder::new(Vec::new(), Compression::none());
        gzip.write_all(format!("id,messages\n{}", format!("b,{row}").repeat(50)).as_bytes())
            .unwrap();
        // The file is cut off behind what is read.
        let gzip = gzip.finish().unwrap();
        file.write_all(&gzip[..gzip.len() - 1000]).unwrap();
        let head = head_of(file.path()).unwrap();
        assert_eq!(head.format, Some(FormatName::OpenaiChat));
    }

    #[test]
    fn runs_leaves_out_copies_of_files_that_are_read() {
        let files = [
            "s/a.checkpoint.1.jsonl",
            "s/a.jsonl",
            "s/b.checkpoint.1.jsonl",
            "g/chat_history.jsonl",
            "g/updates.jsonl",
            "h/chat_history.jsonl",
            "o/event_cache/0-25.json",
            "o/events/0.json",
            "logs/transcript.jsonl",
            "logs/transcript_full.jsonl",
            "m/sessions/request_dump_a_1.json",
            "m/state.db",
            "k/k.compaction.json",
            "k/k.messages.json",
            "v/chatSessions/a.json",
            "v/chatSessions/b.jsonl",
            "v/GitHub.copilot-chat/transcripts/a.jsonl",
            "v/GitHub.copilot-chat/transcripts/b.jsonl",
            "v/GitHub.copilot-chat/transcripts/c.jsonl",
        ];
        let runs = runs(&files.map(str::to_owned));
        assert_eq!(
            runs,
            [
                ["s/a.jsonl"],
                ["s/b.checkpoint.1.jsonl"],
                ["g/updates.jsonl"],
                ["h/chat_history.jsonl"],
                ["o/events/0.json"],
                ["logs/transcript_full.jsonl"],
                ["m/state.db"],
                ["k/k.messages.json"],
                ["v/chatSessions/a.json"],
                ["v/chatSessions/b.jsonl"],
                ["v/GitHub.copilot-chat/transcripts/c.jsonl"],
            ]
        );
    }

    #[test]
    fn a_session_that_was_reset_is_one_of_its_agent_whatever_its_name_ends_with() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl.reset.2026-10-01T09-00-00.000Z");
        fs::write(
            &path,
            r#"{"type":"session","id":"s","timestamp":"2026-10-01T09:00:00.000Z"}"#,
        )
        .unwrap();
        assert_eq!(head_of(&path).unwrap().format, FormatName::from_name("pi"));
        let files = ["s.jsonl", "s.jsonl.reset.2026-10-01T09-00-00.000Z"].map(str::to_owned);
        assert_eq!(runs(&files), files.map(|file| [file]));
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
