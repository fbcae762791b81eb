//! Merges the spans of a trace, which overlap: the call of a model has the messages that came before, the span of its agent
//! repeats some of them, and a tool call is in messages and in a span of its own.
//!
//! Messages are taken apart into items: a turn of the user, a thought, a call, a result. An item that is there already is not added
//! again.

use std::{
    cell::OnceCell,
    collections::{HashMap, HashSet},
    rc::Rc,
    sync::Arc,
};

use knowledgepulse_json::{Text, Value};

use crate::{
    messages::{add_message, is_message},
    trace::{Call, Calls, Outcome, Sink, TextKind, TraceBuilder},
    values::{joined, trimmed},
};

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

/// An item of a conversation, as found in a message.
struct Item {
    found: Found,
    /// The comparison key of an item: equal items have equal keys. It is written when items are compared, which most traces
    /// of one span never need.
    key: OnceCell<Key>,
}

type Key = Rc<[u8]>;

type Items = Rc<[Rc<Item>]>;

enum Found {
    Said(TextKind, Text),
    LeftOut(Text),
    Call(Call),
    Result(Outcome),
}

/// The words for the kinds of texts in a key, in their order.
const KEYS: [&str; 5] = ["user", "event", "reasoning", "message", "system"];

impl Item {
    fn new(found: Found) -> Rc<Self> {
        let key = OnceCell::new();
        Rc::new(Self { found, key })
    }

    fn key(&self) -> &Key {
        self.key.get_or_init(|| {
            let (kind, text) = match &self.found {
                Found::Call(call) => (
                    "call",
                    call_key(&[&id_key(call.id.as_ref()), &name_key(call), &args_key(call)]),
                ),
                // Some spans have a text without the blanks around it.
                Found::Said(kind, text) => (KEYS[*kind as usize], trimmed(text)),
                Found::LeftOut(text) => ("leaveOut", text.clone()),
                Found::Result(result) => ("result", result.content.clone()),
            };
            call_key(&[&kind.into(), &text]).as_bytes().into()
        })
    }

    fn as_call(&self) -> Option<&Call> {
        match &self.found {
            Found::Call(call) => Some(call),
            _ => None,
        }
    }
}

fn call_key(parts: &[&Text]) -> Text {
    joined(parts.iter().copied().cloned(), "\n")
}

fn id_key(id: Option<&Text>) -> Text {
    id.cloned().unwrap_or_else(|| "undefined".into())
}

fn name_key(call: &Call) -> Text {
    id_key(call.name.as_ref())
}

fn args_key(call: &Call) -> Text {
    call.args.to_json().into()
}

/// Takes a message apart: notes the calls of `add_message`, instead of making steps.
#[derive(Default)]
struct Recorder(Vec<Rc<Item>>);

impl Recorder {
    fn note(&mut self, found: Found) {
        self.0.push(Item::new(found));
    }
}

impl Sink for Recorder {
    fn leave_out(&mut self, what: impl Into<Text>) {
        self.note(Found::LeftOut(what.into()));
    }

    fn at(&mut self, _time: Option<&Value>) {}

    fn system(&mut self, content: Option<&Value>) {
        self.say_content(TextKind::System, content);
    }

    fn say(&mut self, kind: TextKind, text: Text) {
        self.note(Found::Said(kind, text));
    }

    fn call(&mut self, call: Call) {
        self.note(Found::Call(call));
    }

    fn result(&mut self, result: Outcome) {
        self.note(Found::Result(result));
    }
}

/// Returns the items of a message; of a malformed one, the counts of its parts.
fn items_of(message: &Value) -> Vec<Rc<Item>> {
    let mut recorder = Recorder::default();
    if is_message(message) && add_message(&mut recorder, message).is_ok() {
        return recorder.0;
    }
    let item = Item::new(Found::LeftOut("malformed message".into()));
    let _ = item
        .key
        .set(format!("malformed\n{}", message.to_json()).as_bytes().into());
    vec![item]
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
    /// By which its result refers to it.
    number: Option<Text>,
}

/// An item of a list of messages: whether it is new to the conversation, and whether it is a call of which only the span of
/// the tool was known.
struct Place {
    node: usize,
    is_new: bool,
    is_half: bool,
}

/// Calls that only a message has so far, or only a span, in their order.
#[derive(Default)]
struct Queue {
    calls: Vec<usize>,
    next: usize,
}

impl Queue {
    /// Returns the first call that is still without its other half.
    fn first(&mut self, nodes: &[Node]) -> Option<usize> {
        let is_whole = |at: usize| nodes[at].is_spoken && nodes[at].is_traced;
        while self.calls.get(self.next).is_some_and(|&at| is_whole(at)) {
            self.next += 1;
        }
        self.calls.get(self.next).copied()
    }
}

/// Returns whether two calls differ because the same names have other values. Under other names, a span may have the same
/// arguments in other words, such as arguments that the tool adds itself.
fn are_two(call: &Call, other: &Call) -> bool {
    let names = |call: &Call| {
        let mut names: Vec<Text> = call.args.keys().cloned().collect();
        names.sort_unstable_by(|a, b| a.as_bytes().cmp(b.as_bytes()));
        joined(names, ",")
    };
    let (names, others) = (names(call), names(other));
    names == others && names != "arguments" && !names.is_empty()
}

/// Such calls of all tools, by the tool, and by its ids and arguments, as far as they are asked for.
#[derive(Default)]
struct Halves(HashMap<Text, Queue>);

impl Halves {
    fn add(&mut self, at: usize, call: &Call) {
        let (name, id, args) = (name_key(call), id_key(call.id.as_ref()), args_key(call));
        let keys = [
            name.clone(),
            call_key(&[&name, &id]),
            call_key(&[&name, &Text::default(), &args]),
            call_key(&[&name, &id, &args]),
        ];
        for key in keys {
            self.0.entry(key).or_default().calls.push(at);
        }
    }

    /// Returns the other half of a call: the one with its id, or else the first one if one of the two has no id, equal
    /// arguments first.
    fn find(&mut self, call: &Call, nodes: &[Node]) -> Option<usize> {
        if self.0.is_empty() {
            return None;
        }
        let (name, args, none) = (name_key(call), args_key(call), id_key(None));
        let keys = match &call.id {
            None => vec![call_key(&[&name, &Text::default(), &args]), name],
            Some(id) => vec![
                call_key(&[&name, id]),
                call_key(&[&name, &none, &args]),
                call_key(&[&name, &none]),
            ],
        };
        let last = keys.len() - 1;
        keys.iter().enumerate().find_map(|(at, key)| {
            let half = self.0.get_mut(key)?.first(nodes)?;
            let is_other = at == last
                && nodes[half]
                    .item
                    .as_call()
                    .is_some_and(|other| are_two(call, other));
            (!is_other).then_some(half)
        })
    }
}

/// A list of messages: how often each item is in it, and its calls, which its results are of.
#[derive(Default)]
struct List {
    first: Option<Rc<Item>>,
    /// Whether the conversation ends with it: then all that follows is new.
    is_last: bool,
    counts: HashMap<Key, usize>,
    by_id: HashMap<Option<Text>, Calls>,
    all: Vec<usize>,
    answered: HashSet<usize>,
    next: usize,
}

impl List {
    /// Returns how often an item was there before this time.
    fn count(&mut self, key: &Key) -> usize {
        let count = self.counts.entry(Rc::clone(key)).or_default();
        *count += 1;
        *count - 1
    }

    fn add(&mut self, id: Option<Text>, call: usize) {
        self.all.push(call);
        self.by_id.entry(id).or_default().places.push(call);
    }

    /// Returns the next call with this id, or else the first that has no result in this list.
    fn answer(&mut self, id: &Option<Text>) -> Option<usize> {
        let call = if id.is_some() {
            self.by_id.get_mut(id).and_then(Calls::answer)
        } else {
            while self
                .all
                .get(self.next)
                .is_some_and(|call| self.answered.contains(call))
            {
                self.next += 1;
            }
            self.all.get(self.next).copied()
        };
        self.answered.extend(call);
        call
    }
}

/// A list of messages that later ones may go on with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListId(usize);

/// The items of a trace in their order.
#[derive(Default)]
pub struct Conversation {
    nodes: Vec<Node>,
    first: Option<usize>,
    last: Option<usize>,
    lists: Vec<List>,
    /// The list that all items are of, until there is another one.
    only: Option<ListId>,
    /// Of each message, by its address, because several spans hold the same one.
    items: HashMap<usize, (Arc<Value>, Items)>,
    is_comparing: bool,
    by_key: HashMap<Key, Vec<usize>>,
    /// The last call with each id.
    by_id: HashMap<Option<Text>, usize>,
    calls: Vec<usize>,
    first_unanswered: usize,
    has_user: bool,
    /// Calls that no span of a tool has had yet.
    untraced: Halves,
    /// Calls that no message has had yet.
    unspoken: Halves,
}

impl Conversation {
    /// Adds the new items of consecutive messages, which continue `list` if it is given: the model's input, if these are its
    /// output. Repetitions within them stay.
    pub fn add(&mut self, messages: &[Arc<Value>], list: Option<ListId>) -> ListId {
        let mut list = list.unwrap_or_else(|| self.new_list());
        let mut items = Vec::new();
        for message in messages {
            items.extend(self.items_of(message).iter().cloned());
        }
        let Some(first) = items.first() else {
            return list;
        };
        // An agent may return the whole conversation.
        if self.lists[list.0]
            .first
            .as_ref()
            .is_some_and(|other| other.key() == first.key())
        {
            list = self.new_list();
        }
        self.lists[list.0].first.get_or_insert_with(|| Rc::clone(first));
        if self.first.is_none() {
            self.only = Some(list);
        } else if self.only != Some(list) {
            self.compare();
        }
        let places: Vec<Place> = items.into_iter().map(|item| self.place_of(item, list)).collect();
        self.insert(&places);
        self.lists[list.0].is_last = places.last().map(|place| place.node) == self.last;
        list
    }

    /// Lets go of a list that nothing goes on with.
    pub fn end(&mut self, list: ListId) {
        if self.is_comparing {
            self.lists[list.0] = List::default();
        }
    }

    fn new_list(&mut self) -> ListId {
        self.lists.push(List::default());
        ListId(self.lists.len() - 1)
    }

    /// Makes the items comparable, if there are items of the first list to compare them with.
    fn compare(&mut self) {
        if std::mem::replace(&mut self.is_comparing, true) {
            return;
        }
        let mut next = self.first;
        while let Some(at) = next {
            let item = Rc::clone(&self.nodes[at].item);
            if let Some(only) = self.only {
                self.lists[only.0].count(item.key());
            }
            self.remember(at);
            if let Some(call) = item.as_call() {
                self.untraced.add(at, call);
            }
            next = self.nodes[at].after;
        }
    }

    fn items_of(&mut self, message: &Arc<Value>) -> Items {
        let address = Arc::as_ptr(message) as usize;
        let make = || (Arc::clone(message), items_of(message).into());
        Rc::clone(&self.items.entry(address).or_insert_with(make).1)
    }

    /// Adds the call of a tool, if no message has it; returns its node.
    pub fn add_call(&mut self, span: &ToolSpan) -> usize {
        self.compare();
        let call = &span.call;
        let half = self.untraced.find(call, &self.nodes);
        let at = half.unwrap_or_else(|| {
            let item = Item::new(Found::Call(call.clone()));
            let at = self.add_call_node(item, call.id.clone());
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
        let outcome = Outcome {
            id: None,
            content: Recorder::default().text_of(span.content.as_ref()),
            failed: span.failed,
        };
        let item = Item::new(Found::Result(outcome));
        let at = self.add_result_node(item, Some(call));
        self.link(at, None);
    }

    /// Makes steps of all items.
    pub fn tell(mut self, builder: &mut TraceBuilder) {
        let mut count = 0_usize;
        let mut next = self.first;
        while let Some(at) = next {
            next = self.nodes[at].after;
            match &self.nodes[at].item.found {
                Found::Call(call) => {
                    // Results are assigned to their calls whatever the ids are: some have none, or use one again.
                    let number = Some(Text::from(count.to_string()));
                    count += 1;
                    builder.call(Call {
                        id: number.clone(),
                        ..call.clone()
                    });
                    if let Some(milliseconds) = self.nodes[at].milliseconds {
                        builder.took(number.as_ref(), milliseconds);
                    }
                    self.nodes[at].number = number;
                }
                Found::Result(result) => {
                    let number = self.nodes[at]
                        .call
                        .and_then(|call| self.nodes[call].number.clone());
                    builder.result(Outcome {
                        id: Some(number.unwrap_or_else(|| "no call".into())),
                        ..result.clone()
                    });
                }
                Found::Said(kind, text) => builder.say(*kind, text.clone()),
                Found::LeftOut(what) => builder.leave_out(what.clone()),
            }
        }
    }

    /// Returns the node of an item, which is new unless the conversation has it.
    fn place_of(&mut self, item: Rc<Item>, list: ListId) -> Place {
        let same = self.same_as(&item, list);
        let mut half = None;
        let (known, node) = match &item.found {
            Found::Call(call) => {
                if same.is_none() {
                    half = self.unspoken.find(call, &self.nodes);
                }
                let node = same.unwrap_or_else(|| self.add_spoken(Rc::clone(&item), call, half));
                self.lists[list.0].add(call.id.clone(), node);
                (same.or(half), node)
            }
            Found::Result(result) => {
                let call = self.call_of(&result.id, list);
                let known = call.map_or(same, |call| self.nodes[call].result);
                let node = known.unwrap_or_else(|| self.add_result_node(Rc::clone(&item), call));
                (known, node)
            }
            Found::Said(..) | Found::LeftOut(_) => {
                let node = same.unwrap_or_else(|| {
                    let at = self.add_node(Rc::clone(&item));
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
    fn add_spoken(&mut self, item: Rc<Item>, call: &Call, half: Option<usize>) -> usize {
        let at = half.unwrap_or_else(|| self.add_call_node(Rc::clone(&item), call.id.clone()));
        self.nodes[at].is_spoken = true;
        // The model's own words, which a span may have in other ones.
        self.nodes[at].item = item;
        self.remember(at);
        if half.is_some() {
            self.by_id.insert(call.id.clone(), at);
        } else if self.is_comparing {
            self.untraced.add(at, call);
        }
        at
    }

    /// Returns the node of the same item, if it was there as often as it is in the list; `None` where all is new.
    fn same_as(&mut self, item: &Item, list: ListId) -> Option<usize> {
        if !self.is_comparing {
            return None;
        }
        let list = &mut self.lists[list.0];
        let count = list.count(item.key());
        let is_last = list.is_last;
        let nodes = self.by_key.get(item.key()).filter(|_| !is_last)?;
        nodes.get(count).copied()
    }

    /// Returns the call that a result in a list is of.
    fn call_of(&mut self, id: &Option<Text>, list: ListId) -> Option<usize> {
        let list = &mut self.lists[list.0];
        let call = list.answer(id);
        if call.is_some() || list.by_id.contains_key(id) {
            return call;
        }
        if id.is_some() {
            return self.by_id.get(id).copied();
        }
        let is_answered = |call: &usize| self.nodes[*call].result.is_some();
        while self.calls.get(self.first_unanswered).is_some_and(is_answered) {
            self.first_unanswered += 1;
        }
        self.calls.get(self.first_unanswered).copied()
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
            number: None,
        });
        self.nodes.len() - 1
    }

    fn add_call_node(&mut self, item: Rc<Item>, id: Option<Text>) -> usize {
        let at = self.add_node(item);
        self.calls.push(at);
        self.by_id.insert(id, at);
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
        if self.is_comparing {
            let key = Rc::clone(self.nodes[at].item.key());
            self.by_key.entry(key).or_default().push(at);
        }
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
            |place: &Place| matches!(self.nodes[place.node].item.found, Found::Said(TextKind::User, _));
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
