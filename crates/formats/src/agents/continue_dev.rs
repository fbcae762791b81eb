//! Continue: `~/.continue/sessions/ID.json`, with the types of `core/index.d.ts` in continuedev/continue.

use std::{
    collections::HashMap,
    ffi::OsStr,
    fs,
    path::PathBuf,
    sync::{Mutex, PoisonError},
    time::SystemTime,
};

use crate::{input::text_of_small, prelude::*};

pub static FORMAT: Format = Format::of_messages("continue", add_item).beside(beside);

/// The list of a folder, `sessions.json`.
struct List {
    file: PathBuf,
    changed: SystemTime,
    /// When each session began.
    times: HashMap<String, Value>,
}

impl List {
    fn read(file: PathBuf, changed: SystemTime) -> Self {
        let list = text_of_small(&file).and_then(|list| parse_str(&list).ok());
        let time_of = |session: &Value| {
            let time = str_of(session.get("dateCreated"))?.parse::<f64>().ok()?;
            Some((str_of(session.get("sessionId"))?.to_owned(), time.into()))
        };
        let times = list_of(list.as_ref()).iter().filter_map(time_of).collect();
        Self { file, changed, times }
    }
}

/// The lists that were used last: each has all sessions of its folder.
static LISTS: Mutex<Vec<List>> = Mutex::new(Vec::new());

/// So many lists are kept.
const MOST_LISTS: usize = 8;

/// Says when a session began, by the list beside it.
fn beside(path: &Path, say: &mut Events) {
    let file = path.with_file_name("sessions.json");
    let changed = fs::metadata(&file).and_then(|list| list.modified());
    let (Ok(changed), Some(id)) = (changed, path.file_stem().and_then(OsStr::to_str)) else {
        return;
    };
    let mut lists = LISTS.lock().unwrap_or_else(PoisonError::into_inner);
    let known = lists
        .iter()
        .position(|list| list.file == file && list.changed == changed);
    let list = known.map_or_else(|| List::read(file, changed), |at| lists.remove(at));
    if let Some(time) = list.times.get(id) {
        say.begin_record(None, Some(time));
    }
    lists.insert(0, list);
    lists.truncate(MOST_LISTS);
}

fn add_item(say: &mut Events, item: &Value) {
    let message = fields_of(item, "message");
    let content = message.get("content");
    if let Some(thought) = text_at(fields_of(item, "reasoning"), "text") {
        say.say(TextKind::Reasoning, thought);
    }
    match str_of(message.get("role")).unwrap_or_default() {
        "thinking" => say.say_content(TextKind::Reasoning, content),
        role => add_as(say, message, role, content),
    }
    for state in list_at(item, "toolCallStates") {
        add_state(say, state);
    }
}

/// What became of a call. Its output may be in a message too.
fn add_state(say: &mut Events, state: &Value) {
    let Some(id) = id_of(state.get("toolCallId")) else {
        return;
    };
    match str_of(state.get("status")) {
        Some("errored") => say.add(What::Failed(id.clone(), true)),
        Some("canceled") => say.add(What::Failed(id.clone(), false)),
        _ => {}
    }
    let output = list_at(state, "output").iter();
    let output: Vec<_> = output.filter_map(|item| item.get("content")).cloned().collect();
    if !output.is_empty() {
        say.answer(Some(id), Some(&output.into()), None);
    }
}

#[cfg(test)]
mod tests {
    use std::{fs::File, time::Duration};

    use super::*;

    #[test]
    fn the_list_is_read_once_for_all_sessions_of_a_folder_until_it_changes() {
        let folder = tempfile::tempdir().unwrap();
        let list = folder.path().join("sessions.json");
        let write = |text: &str, changed: Option<SystemTime>| {
            fs::write(&list, text).unwrap();
            let file = File::options().write(true).open(&list).unwrap();
            changed.iter().for_each(|time| file.set_modified(*time).unwrap());
        };
        let time_of = |at: usize| {
            let mut say = Events::default();
            beside(&folder.path().join(format!("s{at}.json")), &mut say);
            let events = say.into_list();
            events.first()?.origin.time.as_ref().map(Value::to_json)
        };
        let entry = |at| format!(r#"{{"sessionId":"s{at}","dateCreated":"17956{at:08}"}}"#);
        let entries: Vec<_> = (0..100).map(entry).collect();
        write(&format!("[{}]", entries.join(",")), None);
        let changed = fs::metadata(&list).unwrap().modified().unwrap();
        assert!(time_of(0).is_some());
        // What is read a second time has no sessions.
        write("[]", Some(changed));
        for at in 0..100 {
            assert_eq!(time_of(at), Some(format!("17956{at:08}")));
        }
        write("[]", Some(changed + Duration::from_secs(1)));
        assert_eq!(time_of(0), None);
    }
}
