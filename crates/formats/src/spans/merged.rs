//! A conversation that is told several times, in parts. Messages are taken apart into items: a turn of the user, a thought, a call, a
//! result. An item that is there already is not added again.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::prelude::*;

/// An item of a conversation. Equal items have equal keys.
#[derive(Debug)]
pub struct Item {
    what: What,
    /// A number for what it says.
    pub key: u64,
    /// Whether a message has it.
    is_spoken: bool,
    /// Whether the span of a tool has it.
    is_traced: bool,
    /// Whether it is only the failure of such a span: a message may have what the model was told of it.
    is_failure: bool,
    /// How long the call took.
    milliseconds: Option<f64>,
    /// The place in the conversation of a call's result, or of a result's call.
    other: Option<usize>,
}

impl Item {
    fn new(what: What, message: &Value) -> Self {
        let key = match &what {
            What::Call(call) => hash_of(&("call", &call.id, &call.name, call.args.to_json())),
            // Some spans have a text without the blanks around it.
            What::Said(kind, text) => hash_of(&(*kind as u8, trim(text))),
            What::Result(result) => hash_of(&("result", &result.content)),
            // Of these, nothing else is kept.
            What::LeftOut(name) if [SYSTEM, MALFORMED].iter().any(|whole| *name == **whole) => {
                hash_of(&message.to_json())
            }
            What::LeftOut(name) => hash_of(&("left out", name)),
            _ => 0,
        };
        Self {
            what,
            key,
            is_spoken: true,
            is_traced: false,
            is_failure: false,
            milliseconds: None,
            other: None,
        }
    }

    /// Returns an item of the span of a tool.
    pub fn traced(what: What, is_failure: bool, milliseconds: Option<f64>) -> Self {
        Self {
            is_spoken: false,
            is_traced: true,
            is_failure,
            milliseconds,
            ..Self::new(what, &Value::Null)
        }
    }

    /// Adds the other half of a call. A message has the model's own words, which a span may have in other ones.
    fn join(&mut self, half: Self) {
        if half.is_traced {
            (self.is_traced, self.milliseconds) = (true, half.milliseconds);
        } else {
            (self.is_spoken, self.what, self.key) = (true, half.what, half.key);
        }
    }
}

const SYSTEM: &str = "system message";
const MALFORMED: &str = "malformed message";

/// Returns the items of messages; of a malformed one, that it is one.
pub fn items_of_all(messages: &[Value]) -> Vec<Item> {
    messages.iter().flat_map(items_of).collect()
}

fn items_of(message: &Value) -> Vec<Item> {
    let mut events = Events::default();
    match is_message(message) {
        true => add_message(&mut events, message),
        false => events.leave_out(MALFORMED),
    }
    let whats = events.list.into_iter().flat_map(|event| event.what);
    whats.map(|what| Item::new(what, message)).collect()
}

/// An item of a list of messages: whether it is new to the conversation, and whether it is a call of which only the span of
/// the tool was known.
struct Listed {
    node: usize,
    is_new: bool,
    is_half: bool,
}

/// Returns whether two calls differ because the same names have other values. Under other names, a span may have the same
/// arguments in other words, such as arguments that the tool adds itself.
fn are_two(call: &Call, other: &Call) -> bool {
    let names = |call: &Call| call.args.keys().cloned().collect::<HashSet<_>>();
    let is_text = call.args.len() == 1 && call.args.contains("arguments");
    !is_text && !call.args.is_empty() && names(call) == names(other)
}

/// A list of messages that later ones may go on with: how often each item is in it, and its calls, which its results are of.
#[derive(Default)]
pub struct List {
    first: Option<u64>,
    /// Whether the conversation ends with it: then all that follows is new.
    is_last: bool,
    counts: HashMap<u64, usize>,
    /// By their ids, and all of them under none.
    calls: HashMap<Option<Text>, VecDeque<usize>>,
    answered: HashSet<usize>,
}

impl List {
    fn add_call(&mut self, id: Option<Text>, at: usize) {
        for id in [None, id] {
            self.calls.entry(id).or_default().push_back(at);
        }
    }

    /// Returns the next call with this id, or else the first, that has no result in this list.
    fn answer(&mut self, id: &Option<Text>) -> Option<usize> {
        let calls = self.calls.get_mut(id)?;
        while let Some(call) = calls.pop_front() {
            if self.answered.insert(call) {
                return Some(call);
            }
        }
        None
    }
}

/// The other half of a call, and the call of a result without an id, are sought among so many calls, the last ones.
const MOST_COMPARED: usize = 1024;

/// The items of a conversation, which are named by their numbers.
#[derive(Default)]
pub struct Conversation {
    nodes: Vec<Item>,
    order: Vec<usize>,
    by_key: HashMap<u64, Vec<usize>>,
    /// The last call with each id.
    by_id: HashMap<Text, usize>,
    calls: Vec<usize>,
    has_user: bool,
}

impl Conversation {
    /// Adds the new items of consecutive messages, which go on with a list: with the model's input, if these are its output.
    /// Repetitions within them stay.
    pub fn add(&mut self, items: Vec<Item>, mut list: List) -> List {
        let Some(first) = items.first().map(|item| item.key) else {
            return list;
        };
        // An agent may return the whole conversation.
        if list.first == Some(first) {
            list = List::default();
        }
        list.first.get_or_insert(first);
        let items = items.into_iter();
        let listed: Vec<Listed> = items.map(|item| self.listed_of(item, &mut list)).collect();
        self.insert(&listed);
        list.is_last = listed.last().map(|each| each.node) == self.order.last().copied();
        list
    }

    /// Returns what all items say. Calls have their numbers for ids, because some have none or use one again.
    pub fn into_whats(self) -> Vec<What> {
        let mut whats = Vec::with_capacity(self.nodes.len());
        for at in self.order {
            let node = &self.nodes[at];
            let mut what = node.what.clone();
            let call = node.other.filter(|_| matches!(what, What::Result(_)));
            let number = Text::from(call.unwrap_or(at).to_string());
            let took = node.milliseconds.map(|took| What::Took(number.clone(), took));
            if let What::Call(Call { id, .. }) | What::Result(ToolResult { id, .. }) = &mut what {
                *id = Some(number);
            }
            whats.push(what);
            whats.extend(took);
        }
        whats
    }

    /// Returns the node of an item, which is new unless the conversation has it.
    fn listed_of(&mut self, item: Item, list: &mut List) -> Listed {
        let (next, is_traced) = (self.nodes.len(), item.is_traced);
        let same = self.same_as(&item, list).filter(|_| !is_traced);
        let (mut known, mut is_half) = (same, false);
        match &item.what {
            What::Call(call) => {
                let id = call.id.clone();
                known = same.or_else(|| self.half_of(call, is_traced));
                is_half = same.is_none() && known.is_some();
                let at = known.unwrap_or(next);
                list.add_call(id.clone(), at);
                if known.is_none() {
                    self.calls.push(at);
                    self.nodes.push(item);
                } else if is_half {
                    self.nodes[at].join(item);
                }
                if known.is_none() || is_half && !is_traced {
                    self.by_id.extend(id.map(|id| (id, at)));
                }
                if same.is_none() && !is_traced {
                    self.remember(at);
                }
            }
            What::Result(result) => {
                let call = self.call_of(&result.id, list);
                known = call.map_or(same, |call| self.nodes[call].other);
                match known {
                    Some(at) if self.nodes[at].is_failure => {
                        let mut result = result.clone();
                        result.failed = Some(true);
                        let other = self.nodes[at].other;
                        self.nodes[at] = Item::new(What::Result(result), &Value::Null);
                        self.nodes[at].other = other;
                        self.remember(at);
                    }
                    // A message may say that a call failed whose span went well.
                    Some(at) => {
                        if let (What::Result(known), Some(true)) = (&mut self.nodes[at].what, result.failed) {
                            known.failed = result.failed;
                        }
                    }
                    None => {
                        if let Some(call) = call {
                            self.nodes[call].other = Some(next);
                        }
                        self.nodes.push(Item { other: call, ..item });
                        self.remember(next);
                    }
                }
            }
            _ if known.is_none() => {
                self.nodes.push(item);
                self.remember(next);
            }
            _ => {}
        }
        Listed {
            node: known.unwrap_or(next),
            is_new: known.is_none(),
            is_half,
        }
    }

    /// Returns the node of the same item, if it was there as often as it is in the list; `None` where all is new.
    fn same_as(&self, item: &Item, list: &mut List) -> Option<usize> {
        let count = list.counts.entry(item.key).or_default();
        *count += 1;
        let nodes = self.by_key.get(&item.key).filter(|_| !list.is_last)?;
        nodes.get(*count - 1).copied()
    }

    fn last_calls(&self) -> impl Iterator<Item = usize> + Clone {
        let first = self.calls.len().saturating_sub(MOST_COMPARED);
        self.calls[first..].iter().copied()
    }

    /// Returns the half of a call that only a message or only a span has so far: the one with its id, or with its arguments, or else the
    /// first one if one of the two has no id.
    fn half_of(&self, call: &Call, is_traced: bool) -> Option<usize> {
        let said = |at: usize| {
            let node = &self.nodes[at];
            let is_whole = if is_traced { node.is_traced } else { node.is_spoken };
            match &node.what {
                What::Call(other) if !is_whole && other.name == call.name => Some(other),
                _ => None,
            }
        };
        let find = |fits: &dyn Fn(&Call) -> bool| self.last_calls().find(|at| said(*at).is_some_and(fits));
        let may_be = |other: &Call| other.id.is_none() || call.id.is_none();
        find(&|other| call.id.is_some() && other.id == call.id)
            .or_else(|| find(&|other| other.args == call.args))
            .or_else(|| find(&may_be).filter(|at| said(*at).is_none_or(|other| !are_two(call, other))))
    }

    /// Returns the call that a result in a list is of. Without an id, it is the first of which the model was told no result.
    fn call_of(&self, id: &Option<Text>, list: &mut List) -> Option<usize> {
        if list.calls.contains_key(id) {
            return list.answer(id);
        }
        match id {
            // Google ADK names a call and its result anew in each list.
            Some(id) => list.answer(&None).or_else(|| self.by_id.get(id).copied()),
            None => {
                let is_told = |result: usize| !self.nodes[result].is_failure;
                self.last_calls()
                    .find(|call| !self.nodes[*call].other.is_some_and(is_told))
            }
        }
    }

    /// Adds a node to the index of its contents.
    fn remember(&mut self, at: usize) {
        self.by_key.entry(self.nodes[at].key).or_default().push(at);
    }

    /// Puts new items before the known one that follows them in their list, and at the end if none does. The beginning of a
    /// list is put before a known item only if no message has told how the conversation began: there was no turn of a user,
    /// or that item is a call that only a span had.
    fn insert(&mut self, listed: &[Listed]) {
        let known = listed.iter().position(|each| !each.is_new);
        let begin = match known {
            Some(known) if self.has_user && !listed[known].is_half => known,
            _ => 0,
        };
        let (first, rest) = listed.split_at(begin);
        self.order.extend(first.iter().map(|each| each.node));
        let mut next = None;
        for run in rest.chunk_by(|one, other| one.is_new == other.is_new).rev() {
            if run[0].is_new {
                let at = next.and_then(|next| self.order.iter().rposition(|node| *node == next));
                let at = at.unwrap_or(self.order.len());
                self.order.splice(at..at, run.iter().map(|each| each.node));
            }
            next = Some(run[0].node);
        }
        let is_user = |each: &Listed| matches!(self.nodes[each.node].what, What::Said(TextKind::User, _));
        self.has_user = self.has_user || listed.iter().any(is_user);
    }
}
