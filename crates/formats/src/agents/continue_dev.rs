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

pub static FORMAT: Format = Format::sessions("continue", decode).beside(beside);

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

/// The list that was read last: it has all sessions of its folder, which are read one after the other.
static LAST: Mutex<Option<List>> = Mutex::new(None);

/// Says when a session began, by the list beside it.
fn beside(path: &Path, say: &mut Events) {
    let file = path.with_file_name("sessions.json");
    let changed = fs::metadata(&file).and_then(|list| list.modified());
    let (Ok(changed), Some(id)) = (changed, path.file_stem().and_then(OsStr::to_str)) else {
        return;
    };
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    let list = match last.take() {
        Some(list) if list.file == file && list.changed == changed => list,
        _ => List::read(file, changed),
    };
    if let Some(time) = list.times.get(id) {
        say.begin_record(None, Some(time));
    }
    *last = Some(list);
}

fn decode(session: &Value, say: &mut Events) -> Result<Decoded, Wrong> {
    say.begin_run("continue-facts", session);
    for item in list_at(session, "history") {
        add_item(say, item);
    }
    Ok(Decoded::Whole)
}

fn add_item(say: &mut Events, item: &Value) {
    let message = fields_of(item, "message");
    let content = message.get("content");
    say.first_fact("model", fields_of(message, "usage").get("model"));
    say.begin(Origin::default());
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
    use std::time::Instant;

    use super::*;

    /// Returns the seconds in which so many sessions of a folder look at the list beside them.
    fn time_of(sessions: usize) -> f64 {
        let folder = tempfile::tempdir().unwrap();
        let entry = |at| {
            format!(
                r#"{{"sessionId":"s{at}","title":"{:0200}","dateCreated":"17956{at:08}"}}"#,
                0
            )
        };
        let list: Vec<_> = (0..sessions).map(entry).collect();
        fs::write(
            folder.path().join("sessions.json"),
            format!("[{}]", list.join(",")),
        )
        .unwrap();
        let start = Instant::now();
        for at in 0..sessions {
            let mut say = Events::default();
            beside(&folder.path().join(format!("s{at}.json")), &mut say);
            let events = say.into_list();
            let time = events[0].origin.time.as_ref().map(Value::to_json);
            assert_eq!(time, Some(format!("17956{at:08}")));
        }
        start.elapsed().as_secs_f64()
    }

    /// Sixteen times the sessions take sixteen times the time; if each read the whole list, 256 times.
    #[test]
    fn time_grows_linearly_with_the_sessions_of_a_folder() {
        assert!((0..3).any(|_| time_of(1600) < 64.0 * time_of(100)));
    }
}
