//! Which runs are earlier copies of others: what a resumed or forked session has in common with the one before.

use std::{
    collections::{HashSet, VecDeque},
    ffi::OsString,
    hash::{DefaultHasher, Hash, Hasher},
    path::Path,
    slice,
};

use knowledgepulse_json::{Text, Value};

use super::runs::Run;
use crate::{
    FormatName,
    event::{Event, Fact, IS_SUB_AGENT, PARENT, ToolResult, What},
    session::{Session, is_said},
    values::{hash_of, string_of},
};

/// Returns a number for a name, or the id of a message, that copies of a session of this format have too.
pub(crate) fn key_of(format: FormatName, name: &str) -> u64 {
    hash_of(&(format, name))
}

/// Returns the names of runs in an event, and of those that a fork has a copy of.
pub(crate) fn names_of(event: &Event) -> Vec<&Text> {
    let is_mark = |what: &What| matches!(what, What::Fact(Fact::Last(IS_SUB_AGENT, _)));
    let is_sub_agent = event.what.iter().any(is_mark);
    let named = event.what.iter().flat_map(|what| match what {
        What::Fact(Fact::Id(name)) => slice::from_ref(name),
        What::Copies { of, .. } if !is_sub_agent => of,
        _ => &[],
    });
    event.origin.run.iter().chain(named).collect()
}

/// Shorter ids are numbers, which other sessions have too.
const SHORTEST_ID: usize = 12;

fn id_of(event: &Event) -> Option<&Text> {
    event.origin.id.as_ref().filter(|id| id.len() >= SHORTEST_ID)
}

/// Returns what the first message of a session has in common with that of a copy: its id, or its text and time, which a fork with ids of
/// its own has too.
pub(crate) fn begins_as(format: FormatName, events: &[Event]) -> impl Iterator<Item = u64> {
    let first = events.iter().find(|event| is_said(event));
    let keys = first.map(|first| {
        let (id, time) = (id_of(first), time_of(first));
        let by_id = id.map(|id| key_of(format, id));
        let tells = id.is_none() || time.is_some();
        let by_text = tells.then(|| hash_of(&(format, content_of(first), time)));
        [by_id, by_text]
    });
    keys.into_iter().flatten().flatten()
}

fn time_of(event: &Event) -> Option<String> {
    event.origin.time.as_ref().map(Value::to_json)
}

/// Returns a number for what an event says.
fn content_of(event: &Event) -> u64 {
    let mut hasher = DefaultHasher::new();
    for what in &event.what {
        match what {
            What::Said(_, text) | What::Result(ToolResult { content: text, .. }) => {
                text.as_bytes().hash(&mut hasher)
            }
            What::Call(call) => (call.name.as_deref(), call.args.to_json()).hash(&mut hasher),
            _ => {}
        }
    }
    hasher.finish()
}

/// What tells a run and its copies.
#[derive(Debug)]
pub(crate) struct Print {
    name: Option<Text>,
    /// The kind of file that it is in: an agent may keep a session in several.
    store: Option<OsString>,
    /// Whether it is of a sub-agent, which may begin with all that its parent has said.
    is_sub_agent: bool,
    /// When its first message was said.
    began: Option<String>,
    /// The ids of its messages.
    ids: HashSet<u64>,
    /// What its messages say, in their order.
    said: Vec<u64>,
}

/// A copy may lack one of so many messages of the run that contains it.
const MAY_LACK_ONE_OF: usize = 20;

impl Print {
    /// Returns the print of a run if it has something in common with others.
    fn of(format: FormatName, session: &Session, source: &str, shared: &HashSet<u64>) -> Option<Self> {
        let (events, known) = session.named();
        let mut named = events.iter().rev().map(names_of);
        let mut names = named.find(|names| !names.is_empty()).unwrap_or_default();
        names.extend(known);
        let is_shared = |name: &&Text| shared.contains(&key_of(format, name));
        let begins_as = begins_as(format, events).any(|first| shared.contains(&first));
        if !begins_as && !names.iter().any(is_shared) {
            return None;
        }
        let said = || events.iter().filter(|event| is_said(event));
        // A sub-agent may have the name of its session, and none of its own.
        let parent = string_of(session.noted(PARENT));
        let own = names.first().filter(|name| parent != Some(name));
        Some(Self {
            name: own.copied().cloned(),
            store: Path::new(source).extension().map(Into::into),
            is_sub_agent: session.noted(IS_SUB_AGENT).is_some(),
            began: said().next().and_then(time_of),
            ids: said().filter_map(id_of).map(|id| hash_of(&id.as_str())).collect(),
            said: said().map(content_of).collect(),
        })
    }

    /// Returns whether the run is an earlier copy of another one.
    fn is_in(&self, other: &Self) -> bool {
        if other.is_sub_agent && !self.is_sub_agent && self.store == other.store {
            return false;
        }
        let is_most = |part: usize, of: usize| of > 0 && (of - part) * MAY_LACK_ONE_OF <= of;
        let is_of_another_store = self.name.is_some() && self.name == other.name && self.store != other.store;
        let may_be_forked = self.began.is_some() && self.began == other.began;
        if !self.ids.is_empty() && !other.ids.is_empty() {
            let common = self.ids.intersection(&other.ids).count();
            // The messages of a fork, and those in another store, may have ids of their own.
            if common > 0 || !may_be_forked && !is_of_another_store {
                return is_most(common, self.ids.len());
            }
        }
        if is_of_another_store {
            return self.said.len() <= other.said.len();
        }
        let same = self
            .said
            .iter()
            .zip(&other.said)
            .take_while(|(one, other)| one == other);
        is_most(same.count(), self.said.len())
    }
}

/// So many runs of a group wait at most for one that contains them.
const MOST_WAITING: usize = 64;

/// A run, and the file that it is in.
type Sourced = (Run, String);

/// Inputs that may have copies of each other's sessions, in the order in which they are read. Leaves out the runs that are contained in others.
#[derive(Default)]
pub struct Group {
    /// The files of each input, as [`runs`](super::runs) groups them.
    pub inputs: Vec<Vec<String>>,
    /// What several of the inputs have in common, or several sessions of one.
    pub(crate) shared: HashSet<u64>,
    waiting: VecDeque<(Print, Sourced, u64)>,
}

impl Group {
    /// Takes a run of a file. Returns it if no later run can contain it, or another one that was waiting.
    pub fn take(&mut self, run: Run, source: String) -> Option<Sourced> {
        let print = match &run {
            Run::Session(session, format, _) if !self.shared.is_empty() => {
                Print::of(*format, session, &source, &self.shared)
            }
            _ => None,
        };
        match print {
            Some(print) => self.keep(print, (run, source)),
            None => Some((run, source)),
        }
    }

    /// Keeps a run that a later one may contain. Returns the one that has waited longest, if too many are waiting.
    fn keep(&mut self, print: Print, run: Sourced) -> Option<Sourced> {
        if let Some((.., copies)) = self.waiting.iter_mut().find(|(other, ..)| print.is_in(other)) {
            *copies += 1;
            return None;
        }
        let mut own = 0;
        self.waiting.retain(|(other, _, copies)| {
            let is_copy = other.is_in(&print);
            own += if is_copy { copies + 1 } else { 0 };
            !is_copy
        });
        self.waiting.push_back((print, run, own));
        let is_full = self.waiting.len() > MOST_WAITING;
        is_full.then(|| self.waiting.pop_front()).flatten().map(standing)
    }

    /// Ends the group: returns the runs that are left.
    pub fn end(self) -> impl Iterator<Item = Sourced> {
        self.waiting.into_iter().map(standing)
    }
}

/// Returns a run that says how many earlier copies it stands for.
fn standing((_, (mut run, source), copies): (Print, Sourced, u64)) -> Sourced {
    run.stand_for(copies);
    (run, source)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Place, run::Content};

    fn print(name: &str, store: &str, ids: &[u64], said: &[u64]) -> Print {
        Print {
            name: Some(name.into()),
            store: Some(store.into()),
            is_sub_agent: false,
            began: None,
            ids: ids.iter().copied().collect(),
            said: said.to_vec(),
        }
    }

    #[test]
    fn is_in_compares_ids_else_the_same_beginning_else_two_stores() {
        let many: Vec<u64> = (0..40).collect();
        let long = print("a", "jsonl", &many, &[]);
        for (ids, is_copy) in [
            (&many[..20], true),
            (&[&many[..19], &[99]].concat(), true),
            (&[&many[..18], &[98, 99]].concat(), false),
        ] {
            assert_eq!(print("b", "jsonl", ids, &[]).is_in(&long), is_copy, "{ids:?}");
        }
        let said = print("a", "jsonl", &[], &[1, 2, 3]);
        assert!(print("b", "jsonl", &[], &[1, 2]).is_in(&said));
        assert!(!print("a", "jsonl", &[], &[1, 4]).is_in(&said));
        assert!(print("a", "vscdb", &[], &[8, 9]).is_in(&said));
        let forked = Print {
            is_sub_agent: true,
            ..print("c", "jsonl", &[], &[1, 2, 3, 4])
        };
        assert!(!said.is_in(&forked));
        assert!(forked.is_in(&Print {
            is_sub_agent: true,
            ..print("c", "jsonl", &[], &[1, 2, 3, 4, 5])
        }));
        let of_sub_agent = Print {
            is_sub_agent: true,
            ..print("a", "vscdb", &[], &[8, 9, 7])
        };
        assert!(said.is_in(&of_sub_agent));
        assert!(!print("b", "vscdb", &[], &[8, 9]).is_in(&said));
        let at = |ids: &[u64], said: &[u64], time: &str| Print {
            began: Some(time.into()),
            ..print("c", "db", ids, said)
        };
        let forked = at(&[1, 2, 3], &[4, 5, 6], "9");
        assert!(at(&[7, 8], &[4, 5], "9").is_in(&forked));
        assert!(!at(&[7, 8], &[4, 5], "3").is_in(&forked));
        assert!(!at(&[7, 8], &[4, 9], "9").is_in(&forked));
    }

    #[test]
    fn the_longest_stands_for_all_in_whatever_order_they_come() {
        let runs = [&[1_u64, 2][..], &[1, 2, 3, 4], &[1, 2, 3], &[1, 9]];
        for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]] {
            let mut copies = Group::default();
            for at in order {
                let run = Run::done(Place::default(), None, Content::Wrong(Text::default()));
                let taken = copies.keep(print("a", "jsonl", &[], runs[at]), (run, at.to_string()));
                assert!(taken.is_none());
            }
            let left = copies
                .waiting
                .iter()
                .map(|(_, (_, at), copies)| (at.as_str(), *copies));
            let mut left: Vec<_> = left.collect();
            left.sort_unstable();
            assert_eq!(left, [("1", 2), ("3", 0)], "{order:?}");
        }
    }
}
