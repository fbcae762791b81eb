//! A conversation that is told several times, in parts. Messages are taken apart into items: a turn of the user, a thought, a call, a
//! result. An item that is there already is not added again.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    hash::{DefaultHasher, Hash, Hasher},
    rc::Rc,
};

use crate::prelude::*;

/// The contents of a tool's span.
#[derive(Debug, Clone, Default)]
pub struct ToolSpan {
    /// The call.
    pub call: Call,
    /// Whether something stands where the name is.
    pub is_named: bool,
    /// The content of the result.
    pub content: Option<Value>,
    /// Whether the call failed.
    pub failed: Option<bool>,
    /// How long the call took.
    pub milliseconds: Option<f64>,
}

/// An item of a conversation. Equal items have equal keys.
#[derive(Debug)]
pub struct Item {
    what: What,
    key: u64,
}

/// The items of messages, which several spans may share.
pub type Items = Vec<Rc<Item>>;

fn hash_of(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

impl Item {
    fn new(what: What, message: &Value) -> Rc<Self> {
        let key = match &what {
            What::Call(call) => hash_of(("call", &call.id, &call.name, call.args.to_json())),
            // Some spans have a text without the blanks around it.
            What::Said(kind, text) => hash_of((*kind as u8, trimmed(text))),
            What::Result(result) => hash_of(("result", &result.content)),
            // Of these, nothing else is kept.
            What::LeftOut(name) if [SYSTEM, MALFORMED].iter().any(|whole| *name == **whole) => {
                hash_of(message.to_json())
            }
            What::LeftOut(name) => hash_of(("left out", name)),
            _ => 0,
        };
        Rc::new(Self { what, key })
    }
}

const SYSTEM: &str = "system message";
const MALFORMED: &str = "malformed message";

/// Returns the items of messages; of a malformed one, that it is one.
pub fn items_of_all(messages: &[Value]) -> Items {
    messages.iter().flat_map(items_of).collect()
}

fn items_of(message: &Value) -> Items {
    let mut events = Events::default();
    if !is_message(message) || add_message(&mut events, message).is_err() {
        events = Events::default();
        events.leave_out(MALFORMED);
    }
    let whats = events.into_list().into_iter().flat_map(|event| event.what);
    whats.map(|what| Item::new(what, message)).collect()
}

/// An item in its place in the conversation. Other nodes are named by their numbers.
struct Node {
    item: Rc<Item>,
    before: Option<usize>,
    after: Option<usize>,
    /// Of a result.
    call: Option<usize>,
    /// Of a call.
    result: Option<usize>,
    /// Whether a message has this call.
    is_spoken: bool,
    /// Whether a span of a tool has it.
    is_traced: bool,
    milliseconds: Option<f64>,
}

/// An item of a list of messages: whether it is new to the conversation, and whether it is a call of which only the span of
/// the tool was known.
struct Place {
    node: usize,
    is_new: bool,
    is_half: bool,
}

/// Returns whether two calls differ because the same names have other values. Under other names, a span may have the same
/// arguments in other words, such as arguments that the tool adds itself.
fn are_two(call: &Call, other: &Call) -> bool {
    let has_all = |call: &Call, other: &Call| {
        let mut names = call.args.keys();
        names.all(|name| other.args.contains(name))
    };
    let is_text = call.args.len() == 1 && call.args.contains("arguments");
    !is_text && !call.args.is_empty() && call.args.len() == other.args.len() && has_all(call, other)
}

/// Calls that only a message has so far, or only a span, in their order: by the tool, its id and its arguments, as far as they are
/// asked for.
#[derive(Default)]
struct Halves(HashMap<u64, VecDeque<usize>>);

type Id<'c> = Option<Option<&'c Text>>;

fn half_key(call: &Call, id: Id, has_args: bool) -> u64 {
    hash_of((&call.name, id, has_args.then(|| call.args.to_json())))
}

impl Halves {
    fn add(&mut self, at: usize, call: &Call) {
        let id = Some(call.id.as_ref());
        for (id, has_args) in [(None, false), (None, true), (id, false), (id, true)] {
            self.0
                .entry(half_key(call, id, has_args))
                .or_default()
                .push_back(at);
        }
    }

    /// Returns the other half of a call: the one with its id, or else the first one if one of the two has no id, equal
    /// arguments first.
    fn find(&mut self, call: &Call, nodes: &[Node]) -> Option<usize> {
        if self.0.is_empty() {
            return None;
        }
        let any: Id = if call.id.is_some() { Some(None) } else { None };
        let own = call
            .id
            .as_ref()
            .and_then(|id| self.first(half_key(call, Some(Some(id)), false), nodes));
        own.or_else(|| self.first(half_key(call, any, true), nodes))
            .or_else(|| {
                let half = self.first(half_key(call, any, false), nodes)?;
                let is_other = matches!(&nodes[half].item.what, What::Call(other) if are_two(call, other));
                (!is_other).then_some(half)
            })
    }

    /// Returns the first call that is still without its other half.
    fn first(&mut self, key: u64, nodes: &[Node]) -> Option<usize> {
        let calls = self.0.get_mut(&key)?;
        while calls
            .front()
            .is_some_and(|&at| nodes[at].is_spoken && nodes[at].is_traced)
        {
            calls.pop_front();
        }
        calls.front().copied()
    }
}

/// A list of messages that later ones may go on with: how often each item is in it, and its calls, which its results are of.
#[derive(Default)]
pub struct List {
    first: Option<u64>,
    /// Whether the conversation ends with it: then all that follows is new.
    is_last: bool,
    counts: HashMap<u64, usize>,
    by_id: HashMap<Option<Text>, VecDeque<usize>>,
    waiting: VecDeque<usize>,
    answered: HashSet<usize>,
}

impl List {
    /// Returns the next call with this id, or else the first that has no result in this list.
    fn answer(&mut self, id: &Option<Text>) -> Option<usize> {
        let answered = &self.answered;
        let call = if id.is_some() {
            self.by_id.get_mut(id)?.pop_front()
        } else {
            while self.waiting.front().is_some_and(|call| answered.contains(call)) {
                self.waiting.pop_front();
            }
            self.waiting.pop_front()
        };
        self.answered.extend(call);
        call
    }
}

/// The items of a conversation in their order.
#[derive(Default)]
pub struct Conversation {
    nodes: Vec<Node>,
    first: Option<usize>,
    last: Option<usize>,
    by_key: HashMap<u64, Vec<usize>>,
    /// The last call with each id.
    by_id: HashMap<Text, usize>,
    calls: VecDeque<usize>,
    has_user: bool,
    /// Calls that no span of a tool has had yet.
    untraced: Halves,
    /// Calls that no message has had yet.
    unspoken: Halves,
}

impl Conversation {
    /// Adds the new items of consecutive messages, which go on with a list: with the model's input, if these are its output.
    /// Repetitions within them stay.
    pub fn add(&mut self, items: &[Rc<Item>], mut list: List) -> List {
        let Some(first) = items.first() else {
            return list;
        };
        // An agent may return the whole conversation.
        if list.first == Some(first.key) {
            list = List::default();
        }
        list.first.get_or_insert(first.key);
        let places: Vec<Place> = items.iter().map(|item| self.place_of(item, &mut list)).collect();
        self.insert(&places);
        list.is_last = places.last().map(|place| place.node) == self.last;
        list
    }

    /// Adds the call of a tool, if no message has it; returns its node.
    pub fn add_call(&mut self, span: &ToolSpan) -> usize {
        let call = &span.call;
        let half = self.untraced.find(call, &self.nodes);
        let at = half.unwrap_or_else(|| {
            let at = self.add_call_node(Item::new(What::Call(call.clone()), &Value::Null), call);
            self.unspoken.add(at, call);
            self.link(at, None);
            at
        });
        self.nodes[at].is_traced = true;
        self.nodes[at].milliseconds = span.milliseconds;
        at
    }

    /// Adds the result of a call that `add_call` has returned, if no message has it.
    pub fn add_result(&mut self, call: usize, span: &ToolSpan) {
        if span.content.is_none() || self.nodes[call].result.is_some() {
            return;
        }
        let result = Outcome {
            id: None,
            content: Events::default().text_of(span.content.as_ref()),
            failed: span.failed,
        };
        let at = self.add_result_node(Item::new(What::Result(result), &Value::Null), Some(call));
        self.link(at, None);
    }

    /// Returns what all items say. Calls have their numbers for ids, because some have none or use one again.
    pub fn into_whats(self) -> Vec<What> {
        let mut whats = Vec::with_capacity(self.nodes.len());
        let number_of = |at: usize| Some(Text::from(at.to_string()));
        let mut next = self.first;
        while let Some(at) = next {
            let node = &self.nodes[at];
            next = node.after;
            match &node.item.what {
                What::Call(call) => {
                    let id = number_of(at);
                    let took = id.clone().zip(node.milliseconds);
                    whats.push(What::Call(Call { id, ..call.clone() }));
                    whats.extend(took.map(|(id, milliseconds)| What::Took(id, milliseconds)));
                }
                What::Result(result) => whats.push(What::Result(Outcome {
                    id: number_of(node.call.unwrap_or(at)),
                    ..result.clone()
                })),
                what => whats.push(what.clone()),
            }
        }
        whats
    }

    /// Returns the node of an item, which is new unless the conversation has it.
    fn place_of(&mut self, item: &Rc<Item>, list: &mut List) -> Place {
        let same = self.same_as(item, list);
        let mut half = None;
        let (known, node) = match &item.what {
            What::Call(call) => {
                if same.is_none() {
                    half = self.unspoken.find(call, &self.nodes);
                }
                let node = same.unwrap_or_else(|| self.add_spoken(item, call, half));
                list.waiting.push_back(node);
                list.by_id.entry(call.id.clone()).or_default().push_back(node);
                (same.or(half), node)
            }
            What::Result(result) => {
                let call = self.call_of(&result.id, list);
                let known = call.map_or(same, |call| self.nodes[call].result);
                let node = known.unwrap_or_else(|| self.add_result_node(Rc::clone(item), call));
                (known, node)
            }
            _ => {
                let node = same.unwrap_or_else(|| {
                    let at = self.add_node(Rc::clone(item));
                    self.remember(at);
                    at
                });
                (same, node)
            }
        };
        Place {
            node,
            is_new: known.is_none(),
            is_half: half.is_some(),
        }
    }

    /// Returns the node of a call in a message: that of its span, or a new one.
    fn add_spoken(&mut self, item: &Rc<Item>, call: &Call, half: Option<usize>) -> usize {
        let at = half.unwrap_or_else(|| self.add_call_node(Rc::clone(item), call));
        self.nodes[at].is_spoken = true;
        // The model's own words, which a span may have in other ones.
        self.nodes[at].item = Rc::clone(item);
        self.remember(at);
        match (&call.id, half) {
            (Some(id), Some(_)) => drop(self.by_id.insert(id.clone(), at)),
            (_, None) => self.untraced.add(at, call),
            _ => {}
        }
        at
    }

    /// Returns the node of the same item, if it was there as often as it is in the list; `None` where all is new.
    fn same_as(&self, item: &Item, list: &mut List) -> Option<usize> {
        let count = list.counts.entry(item.key).or_default();
        *count += 1;
        let nodes = self.by_key.get(&item.key).filter(|_| !list.is_last)?;
        nodes.get(*count - 1).copied()
    }

    /// Returns the call that a result in a list is of.
    fn call_of(&mut self, id: &Option<Text>, list: &mut List) -> Option<usize> {
        let call = list.answer(id);
        if call.is_some() || list.by_id.contains_key(id) {
            return call;
        }
        if let Some(id) = id {
            return self.by_id.get(id).copied();
        }
        let nodes = &self.nodes;
        while self
            .calls
            .front()
            .is_some_and(|call| nodes[*call].result.is_some())
        {
            self.calls.pop_front();
        }
        self.calls.front().copied()
    }

    fn add_node(&mut self, item: Rc<Item>) -> usize {
        self.nodes.push(Node {
            item,
            before: None,
            after: None,
            call: None,
            result: None,
            is_spoken: false,
            is_traced: false,
            milliseconds: None,
        });
        self.nodes.len() - 1
    }

    fn add_call_node(&mut self, item: Rc<Item>, call: &Call) -> usize {
        let at = self.add_node(item);
        self.calls.push_back(at);
        self.by_id.extend(call.id.clone().map(|id| (id, at)));
        at
    }

    fn add_result_node(&mut self, item: Rc<Item>, call: Option<usize>) -> usize {
        let at = self.add_node(item);
        self.nodes[at].call = call;
        if let Some(call) = call {
            self.nodes[call].result = Some(at);
        }
        self.remember(at);
        at
    }

    /// Adds a node to the index of its contents.
    fn remember(&mut self, at: usize) {
        self.by_key.entry(self.nodes[at].item.key).or_default().push(at);
    }

    /// Puts new items before the known one that follows them in their list, and at the end if none does. The beginning of a
    /// list is put before a known item only if no message has told how the conversation began: there was no turn of a user,
    /// or that item is a call that only a span had.
    fn insert(&mut self, places: &[Place]) {
        let known = places.iter().position(|place| !place.is_new);
        let begin = match known {
            Some(known) if self.has_user && !places[known].is_half => known,
            _ => 0,
        };
        for place in &places[..begin] {
            self.link(place.node, None);
        }
        let mut next = None;
        for place in places[begin..].iter().rev() {
            if place.is_new {
                self.link(place.node, next);
            }
            next = Some(place.node);
        }
        let is_user =
            |place: &Place| matches!(self.nodes[place.node].item.what, What::Said(TextKind::User, _));
        self.has_user = self.has_user || places.iter().any(is_user);
    }

    /// Puts a node before another one; at the end without one.
    fn link(&mut self, at: usize, after: Option<usize>) {
        let before = after.map_or(self.last, |after| self.nodes[after].before);
        self.nodes[at].before = before;
        self.nodes[at].after = after;
        match before {
            Some(before) => self.nodes[before].after = Some(at),
            None => self.first = Some(at),
        }
        match after {
            Some(after) => self.nodes[after].before = Some(at),
            None => self.last = Some(at),
        }
    }
}
