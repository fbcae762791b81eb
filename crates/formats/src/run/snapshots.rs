//! Which rows are snapshots of one run, or turns of one: the longest stands for the others. They are compared in JSON, before they are decoded.

use std::{collections::VecDeque, mem, slice};

use super::runs::Row;
use crate::{
    DEFAULT_LIMIT,
    conversations::{JOINED, replied_to, response_of, state_in, without_event},
    prelude::*,
    values::hash_of,
};

/// What tells rows that may be snapshots of one run.
type Marks = [Option<u64>; 2];

/// So many rows that name their run wait for others that go on with them.
const MOST_HELD: usize = 64;

/// The last rows of an input, which later ones may go on with.
#[derive(Default)]
pub struct Snapshots(VecDeque<(Marks, Row)>);

impl Snapshots {
    /// Takes a row, which waits for the next one, and for several if it names its run: snapshots may be mixed. Returns those that wait no longer.
    pub fn take(&mut self, mut row: Row) -> Vec<Row> {
        let marks = marks_of(&row.value);
        let is_one = |(mark, other): (&Option<u64>, &Option<u64>)| mark.is_some() && mark == other;
        let is_like = |(others, _): &&mut (Marks, Row)| marks.iter().zip(others).any(is_one);
        let of_run = self.0.iter_mut().filter(is_like).find_map(|(_, held)| {
            let has_grown = is_begun_by(&row.value, &held.value);
            (has_grown || is_begun_by(&held.value, &row.value)).then_some((held, has_grown))
        });
        if let Some((held, has_grown)) = of_run {
            if has_grown {
                mem::swap(held, &mut row);
            }
            held.copies += row.copies + 1;
            held.place.size += row.place.size;
            return Vec::new();
        }
        let mut held = self.0.iter_mut().map(|(_, held)| held);
        let before = link_of(&row.value)
            .and_then(|link| held.find_map(|before| Some((place_of(&before.value, link)?, before))));
        if let Some((at, before)) = before {
            match join(&mut before.value, at, mem::take(&mut row.value)) {
                Some(fork) => row.value = fork,
                None => {
                    before.place.size += row.place.size;
                    return Vec::new();
                }
            }
        }
        self.0.push_back((marks, row));
        let mut left = Vec::new();
        while let Some((marks, _)) = self.0.front() {
            let most = match marks {
                [None, None] => 0,
                [None, _] => 1,
                _ => MOST_HELD,
            };
            let size = || self.0.iter().map(|(_, row)| row.place.size).sum::<u64>();
            if self.0.len() <= most && size() <= DEFAULT_LIMIT {
                break;
            }
            left.extend(self.0.pop_front().map(|(_, row)| row));
        }
        left
    }

    /// Returns the rows that wait.
    pub fn end(&mut self) -> impl Iterator<Item = Row> + use<> {
        mem::take(&mut self.0).into_iter().map(|(_, row)| row)
    }
}

/// Returns the thread that a state of LangGraph is of.
fn thread_of(record: &Value) -> Option<&Value> {
    first_at(record, "config/configurable/thread_id checkpoint/thread_id")
}

/// Returns the messages of a row that are in no text.
fn plain_list(row: &Value) -> &[Value] {
    let row = without_event(row);
    let (is_state, own) = (is(row, "langgraph-state"), object_of(Some(row)));
    let inner = if is_state { state_in(row) } else { own };
    let asked = ["response"].into_iter().chain(words("asked"));
    let asked = asked.filter_map(|name| inner.get(name)?.as_object());
    let inner = [inner].into_iter().chain(asked);
    // Requests of Responses have items.
    let is_list = |list: &&[Value], name| {
        !list.is_empty() && (!matches!(name, "input" | "prompt") || is_message(&list[0]))
    };
    let mut lists = inner.flat_map(|inner| {
        let names = words("messages-field").chain(["input", "prompt"]);
        names.filter_map(|name| Some(list_at(inner, name)).filter(|list| is_list(list, name)))
    });
    lists.next().unwrap_or_default()
}

/// Returns what the agent says and calls in messages.
fn said_in<'m>(messages: impl IntoIterator<Item = &'m Value>) -> Vec<What> {
    let mut say = Events::default();
    for message in messages {
        add_message(&mut say, message);
    }
    let said = say.list.into_iter().flat_map(|event| event.what);
    said.filter(|what| matches!(what, What::Call(_) | What::Said(TextKind::Message, _)))
        .collect()
}

/// Returns whether the conversation of a row is the beginning of that of another row: snapshots of a run repeat what was said before.
/// The same turn of two conversations is none, unless it has an id.
fn is_begun_by(row: &Value, beginning: &Value) -> bool {
    let (row, beginning) = (without_event(row), without_event(beginning));
    let is_same = |(one, other): (&Value, &Value)| match (one, other) {
        (Value::Object(one), Value::Object(other)) => without_marks(one).eq(without_marks(other)),
        _ => one == other,
    };
    let is_begun =
        |all: &[Value], first: &[Value]| first.len() <= all.len() && all.iter().zip(first).all(is_same);
    let is_of_thread = is(row, "langgraph-state")
        && is(beginning, "langgraph-state")
        && thread_of(row) == thread_of(beginning);
    let (all, first) = (plain_list(row), plain_list(beginning));
    let is_telling = first.len() > 1 || first.first().is_some_and(|first| is_given(first.get("id")));
    // The next request has the reply, which other samples of a model have otherwise.
    let is_next = || {
        let replied = replied_to(object_of(Some(beginning)));
        let said = said_in(all.iter().skip(first.len()).take(replied.len()));
        let replied = said_in(replied.iter().map(|message| &**message));
        let is_said = replied.iter().all(|what| said.contains(what));
        first.len() < all.len() && is_said && (is_telling || !replied.is_empty())
    };
    is_begun(all, first) && (is_of_thread || is_next())
}

/// Returns the name of the conversation of which a row has one turn: a row of llm's log, or a step of the AI SDK.
fn conversation_of(row: &Value) -> Option<&Value> {
    first_of(row, &["conversation_id", "callId"]).filter(|_| is(row, "turn"))
}

/// What a row goes on with: a name, and where another row has that name.
type Link<'r> = (&'r Value, fn(&Value) -> Option<&Value>);

/// Returns what a row goes on with: the response that its request names, or the turns before.
fn link_of(row: &Value) -> Option<Link<'_>> {
    let mut named = words("previous-response").filter_map(|path| in_path(row, path));
    match named.find(|name| !name.is_null()) {
        Some(name) => Some((name, response_of)),
        None => Some((conversation_of(row)?, conversation_of)),
    }
}

/// Returns the rows that were joined in a row, or the row itself.
fn joined_in(row: &Value) -> &[Value] {
    row.get(JOINED)
        .map_or(slice::from_ref(row), |rows| list_of(Some(rows)))
}

/// Returns the place of the row with which another goes on among those that were joined.
fn place_of(row: &Value, (name, named): Link) -> Option<usize> {
    joined_in(row).iter().rposition(|row| named(row) == Some(name))
}

/// Joins a row with those until the one with which it goes on. Returns it with copies of them if they go on otherwise.
fn join(before: &mut Value, at: usize, row: Value) -> Option<Value> {
    let rows = joined_in(before);
    if at + 1 < rows.len() {
        let rows = rows[..=at].iter().cloned().chain([row]);
        return Some(object([(JOINED, rows.collect())]));
    }
    if let Value::Object(fields) = before
        && let Some(Value::Array(rows)) = fields.get_mut(JOINED)
    {
        rows.push(row);
    } else {
        let rows = vec![mem::take(before), row];
        *before = object([(JOINED, rows.into())]);
    }
    None
}

/// Returns the fields of a message but for those that a copy of it may have otherwise.
fn without_marks(message: &Object) -> impl Iterator<Item = (&Text, &Value)> {
    let marks = tags("mark");
    let is_mark = move |name: &Text| marks.iter().any(|[mark, _]| mark == name);
    message.iter().filter(move |(name, _)| !is_mark(name))
}

/// Returns what the snapshots of a run have in common, which others may have too: the name of the run, and the first message.
fn marks_of(row: &Value) -> [Option<u64>; 2] {
    let row = without_event(row);
    let thread = thread_of(row).filter(|_| is(row, "langgraph-state"));
    let thread = thread.or_else(|| words("run-id").find_map(|name| row.get(name)));
    let thread = thread.or_else(|| response_of(row));
    let first = plain_list(row).first().map(|first| match first {
        Value::Object(first) => {
            let fields = without_marks(first).map(|(name, value)| (name, value.to_json()));
            hash_of(&fields.collect::<Vec<_>>())
        }
        first => hash_of(&first.to_json()),
    });
    [thread.map(|thread| hash_of(&thread.to_json())), first]
}
