//! Puts together what the spans of a trace tell, where each tells a part and repeats others: a call of a model has the messages that
//! came before, the span of its agent has some of them again, and the call of a tool is in messages and in a span of its own.
//!
//! Messages are taken apart into items: a turn of the user, a thought, a call, a result. An item that is there already is not added
//! again.

use std::{
    cell::OnceCell,
    collections::{HashMap, HashSet},
};

use knowledgepulse_json::{Object, Text, Value};

use crate::{
    Wrong,
    mapping::{Call, Outcome, Sink, TraceBuilder},
    messages::{add_message, is_message},
    values::joined,
};

/// What a [`TraceBuilder`] does with a text.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    User,
    Message,
    Reasoning,
    Event,
    System,
    LeaveOut,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Message => "message",
            Self::Reasoning => "reasoning",
            Self::Event => "event",
            Self::System => "system",
            Self::LeaveOut => "leaveOut",
        }
    }
}

/// What a message says or does.
#[derive(Debug, Clone)]
enum What {
    Text(Kind, Text),
    Call(Call),
    Result(Outcome),
}

#[derive(Debug, Clone)]
struct Item {
    what: What,
    key: OnceCell<Text>,
}

impl Item {
    fn new(what: What) -> Self {
        Self {
            what,
            key: OnceCell::new(),
        }
    }

    /// What two items have in common that are the same. It is written when they are compared, which most traces of one span never
    /// are.
    fn key(&self) -> &Text {
        self.key.get_or_init(|| match &self.what {
            What::Text(kind, text) => joined([kind.name().into(), text.clone()], "\n"),
            What::Result(result) => joined(["result".into(), result.content.clone()], "\n"),
            What::Call(call) => joined(
                [
                    "call".into(),
                    spelled(&call.id),
                    spelled(&call.name),
                    args_of(call),
                ],
                "\n",
            ),
        })
    }
}

/// A name in a key, which may be missing.
fn spelled(name: &Option<Text>) -> Text {
    name.clone().unwrap_or_else(|| "undefined".into())
}

fn args_of(call: &Call) -> Text {
    let mut json = Vec::new();
    call.args.write(&mut json);
    String::from_utf8(json).unwrap_or_default().into()
}

/// Takes a message apart: notes what [`add_message`] finds, instead of making steps of it.
#[derive(Debug, Default)]
struct Recorder {
    items: Vec<Item>,
}

impl Recorder {
    fn note(&mut self, kind: Kind, text: Text) {
        self.items.push(Item::new(What::Text(kind, text)));
    }

    /// The items of a message.
    fn items_of(message: &Value) -> Result<Vec<Item>, Wrong> {
        let mut recorder = Self::default();
        let added = if is_message(message) {
            add_message(&mut recorder, message)
        } else {
            Err(Wrong::new("it is no message"))
        };
        match added {
            Ok(()) => Ok(recorder.items),
            Err(Wrong::TooDeep) => Err(Wrong::TooDeep),
            Err(Wrong::Malformed(_)) => {
                let item = Item::new(What::Text(Kind::LeaveOut, "malformed message".into()));
                let key = joined(["malformed".into(), message.to_json().into()], "\n");
                Ok(vec![Item {
                    key: key.into(),
                    ..item
                }])
            }
        }
    }
}

impl Sink for Recorder {
    fn leave_out(&mut self, what: impl Into<Text>) {
        self.note(Kind::LeaveOut, what.into());
    }

    fn at(&mut self, _time: Option<&Value>) {}

    fn system(&mut self, content: Option<&Value>) {
        let text = self.text_of(content);
        self.note(Kind::System, text);
    }

    fn user(&mut self, text: Text) {
        self.note(Kind::User, text);
    }

    fn event(&mut self, text: Text) {
        self.note(Kind::Event, text);
    }

    fn reasoning(&mut self, text: Text) {
        self.note(Kind::Reasoning, text);
    }

    fn message(&mut self, text: Text) {
        self.note(Kind::Message, text);
    }

    fn call(&mut self, call: Call) {
        self.items.push(Item::new(What::Call(call)));
    }

    fn result(&mut self, result: Outcome) {
        self.items.push(Item::new(What::Result(result)));
    }
}

/// A node of a [`Conversation`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NodeId(usize);

/// A list of messages of a [`Conversation`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListId(usize);

/// An item in its place in the conversation.
#[derive(Debug)]
struct Node {
    item: Item,
    before: Option<NodeId>,
    after: Option<NodeId>,
    /// The call of a result.
    call: Option<NodeId>,
    /// The result of a call.
    result: Option<NodeId>,
    /// Whether a message has this call.
    is_spoken: bool,
    /// Whether a span of a tool has it.
    is_traced: bool,
    /// How long the call took.
    milliseconds: Option<f64>,
    /// The number by which the result refers to its call.
    number: Option<Text>,
}

/// An item of a list of messages: whether the conversation has it for the first time, and whether that is a call of which it had
/// only the span of the tool.
#[derive(Debug, Clone, Copy)]
struct Place {
    node: NodeId,
    is_new: bool,
    is_half: bool,
}

/// Calls that only a message has so far, or only a span, in their order.
#[derive(Debug, Default)]
struct Queue {
    calls: Vec<NodeId>,
    next: usize,
}

/// Such calls of all tools, by the tool, and by its ids and arguments.
#[derive(Debug, Default)]
struct Halves(HashMap<Text, Queue>);

impl Halves {
    fn add(&mut self, node: NodeId, call: &Call) {
        let (name, id, args) = (spelled(&call.name), spelled(&call.id), args_of(call));
        for key in [
            name.clone(),
            joined([name.clone(), id.clone()], "\n"),
            joined([name.clone(), Text::default(), args.clone()], "\n"),
            joined([name, id, args], "\n"),
        ] {
            self.0.entry(key).or_default().calls.push(node);
        }
    }

    /// The other half of a call: the one with its id, or else the first of which one has no id, those with the same arguments before
    /// others.
    fn find(&mut self, call: &Call, nodes: &[Node]) -> Option<NodeId> {
        if self.0.is_empty() {
            return None;
        }
        let (name, none) = (spelled(&call.name), Text::from("undefined"));
        let keys = match &call.id {
            None => vec![joined([name.clone(), Text::default(), args_of(call)], "\n"), name],
            Some(id) => vec![
                joined([name.clone(), id.clone()], "\n"),
                joined([name.clone(), none.clone(), args_of(call)], "\n"),
                joined([name, none], "\n"),
            ],
        };
        let last = keys.len() - 1;
        for (at, key) in keys.iter().enumerate() {
            let Some(queue) = self.0.get_mut(key) else {
                continue;
            };
            let is_whole = |node: &NodeId| nodes[node.0].is_spoken && nodes[node.0].is_traced;
            while queue.calls.get(queue.next).is_some_and(is_whole) {
                queue.next += 1;
            }
            let Some(&node) = queue.calls.get(queue.next) else {
                continue;
            };
            let What::Call(other) = &nodes[node.0].item.what else {
                continue;
            };
            if at < last || !are_two(&call.args, &other.args) {
                return Some(node);
            }
        }
        None
    }
}

/// Whether two calls are two because they have other values for the same names. Under other names, a span may have the same arguments
/// in other words, as with those that the tool adds itself.
fn are_two(args: &Object, others: &Object) -> bool {
    let names_of = |args: &Object| {
        let mut names: Vec<Text> = args.keys().cloned().collect();
        names.sort_by(|a, b| a.as_bytes().cmp(b.as_bytes()));
        joined(names, ",")
    };
    let names = names_of(args);
    names == names_of(others) && names != "arguments" && !names.is_empty()
}

/// The calls of one id, and how many of them have results.
#[derive(Debug, Default)]
struct Calls {
    calls: Vec<NodeId>,
    answered: usize,
}

/// A list of messages: how often each item is in it, and its calls, which its results are of.
#[derive(Debug, Default)]
struct List {
    first: Option<Text>,
    /// Whether the conversation ends with it: then all that follows is new.
    is_last: bool,
    counts: HashMap<Text, usize>,
    by_id: HashMap<Option<Text>, Calls>,
    all: Vec<NodeId>,
    answered: HashSet<NodeId>,
    next: usize,
}

impl List {
    /// How often an item was there before this time.
    fn count(&mut self, key: &Text) -> usize {
        let count = self.counts.entry(key.clone()).or_default();
        *count += 1;
        *count - 1
    }

    fn add(&mut self, id: Option<Text>, call: NodeId) {
        self.all.push(call);
        self.by_id.entry(id).or_default().calls.push(call);
    }

    /// The next call with this id, or without one the first that has no result in this list.
    fn answer(&mut self, id: &Option<Text>) -> Option<NodeId> {
        let call = if id.is_some() {
            self.by_id.get_mut(id).and_then(|calls| {
                calls.answered += 1;
                calls.calls.get(calls.answered - 1)
            })
        } else {
            while self
                .all
                .get(self.next)
                .is_some_and(|call| self.answered.contains(call))
            {
                self.next += 1;
            }
            self.all.get(self.next)
        };
        let call = call.copied();
        self.answered.extend(call);
        call
    }
}

/// The items of a trace in their order.
#[derive(Debug, Default)]
pub struct Conversation {
    nodes: Vec<Node>,
    lists: Vec<List>,
    first: Option<NodeId>,
    last: Option<NodeId>,
    /// The list that all items are of, until there is another one.
    only: Option<ListId>,
    is_comparing: bool,
    by_key: HashMap<Text, Vec<NodeId>>,
    /// The last call with each id.
    by_id: HashMap<Option<Text>, NodeId>,
    calls: Vec<NodeId>,
    first_unanswered: usize,
    has_user: bool,
    /// Calls that no span of a tool has had yet.
    untraced: Halves,
    /// Calls that no message has had yet.
    unspoken: Halves,
}

impl Conversation {
    /// Adds what is new in messages that follow each other. What is said twice in them is there twice. `list` is the one that they
    /// go on with: what the model was given, where these are what it returned.
    ///
    /// # Errors
    /// If a message is nested too deeply.
    pub fn add<'a>(
        &mut self,
        messages: impl IntoIterator<Item = &'a Value>,
        list: Option<ListId>,
    ) -> Result<ListId, Wrong> {
        let mut items = Vec::new();
        for message in messages {
            items.extend(Recorder::items_of(message)?);
        }
        Ok(self.add_items(items, list))
    }

    fn add_items(&mut self, items: Vec<Item>, list: Option<ListId>) -> ListId {
        let begins_again = |list: &ListId| {
            let first = self.lists[list.0].first.as_ref();
            first.is_some() && first == items.first().map(Item::key)
        };
        // An agent may return the whole conversation.
        let list = list.filter(|list| !begins_again(list)).unwrap_or_else(|| {
            self.lists.push(List::default());
            ListId(self.lists.len() - 1)
        });
        let Some(first) = items.first() else {
            return list;
        };
        let first = first.key().clone();
        self.lists[list.0].first.get_or_insert(first);
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

    /// Makes the items comparable, when there is something to compare with those of the first list.
    fn compare(&mut self) {
        if self.is_comparing {
            return;
        }
        self.is_comparing = true;
        let mut next = self.first;
        while let Some(node) = next {
            let item = &self.nodes[node.0].item;
            if let Some(only) = self.only {
                self.lists[only.0].count(item.key());
            }
            if let What::Call(call) = &item.what {
                self.untraced.add(node, call);
            }
            self.remember(node);
            next = self.nodes[node.0].after;
        }
    }

    /// Adds the call that a span of a tool tells, if no message has it, and how long it took.
    pub fn add_call(&mut self, call: Call, milliseconds: Option<f64>) -> NodeId {
        self.compare();
        let node = self.untraced.find(&call, &self.nodes).unwrap_or_else(|| {
            let node = self.new_call(Item::new(What::Call(call.clone())));
            self.unspoken.add(node, &call);
            self.link(node, None);
            node
        });
        self.nodes[node.0].is_traced = true;
        self.nodes[node.0].milliseconds = milliseconds;
        node
    }

    /// Adds the result of a call that [`add_call`](Self::add_call) has returned, if no message has it.
    pub fn add_result(&mut self, call: NodeId, content: Option<&Value>, failed: Option<bool>) {
        if content.is_none() || self.nodes[call.0].result.is_some() {
            return;
        }
        let content = Recorder::default().text_of(content);
        let result = Outcome {
            id: None,
            content,
            failed,
        };
        let node = self.new_result(Item::new(What::Result(result)), Some(call));
        self.link(node, None);
    }

    /// Makes steps of all items.
    pub fn tell(mut self, builder: &mut TraceBuilder) {
        let mut count = 0;
        let mut next = self.first;
        while let Some(NodeId(at)) = next {
            next = self.nodes[at].after;
            let empty = What::Text(Kind::System, Text::default());
            match std::mem::replace(&mut self.nodes[at].item.what, empty) {
                What::Call(call) => {
                    // Results are of their calls whatever the ids are: some have none, or use one again.
                    let number = Some(Text::from(count.to_string()));
                    count += 1;
                    let id = number.clone();
                    builder.call(Call { id, ..call });
                    if let Some(milliseconds) = self.nodes[at].milliseconds {
                        builder.took(number.as_ref(), milliseconds);
                    }
                    self.nodes[at].number = number;
                }
                What::Result(result) => {
                    let number = self.nodes[at]
                        .call
                        .and_then(|call| self.nodes[call.0].number.clone());
                    let id = Some(number.unwrap_or_else(|| "no call".into()));
                    builder.result(Outcome { id, ..result });
                }
                What::Text(kind, text) => match kind {
                    Kind::User => builder.user(text),
                    Kind::Message => builder.message(text),
                    Kind::Reasoning => builder.reasoning(text),
                    Kind::Event => builder.event(text),
                    Kind::System => builder.system(None),
                    Kind::LeaveOut => builder.leave_out(text),
                },
            }
        }
    }

    /// The node of an item, which is new unless the conversation has it.
    fn place_of(&mut self, item: Item, list: ListId) -> Place {
        let same = self.same_as(&item, list);
        match &item.what {
            What::Call(call) => {
                let call = call.clone();
                let half = match same {
                    None => self.unspoken.find(&call, &self.nodes),
                    Some(_) => None,
                };
                let node = match same.or(half) {
                    None => self.new_call(item),
                    Some(node) => {
                        // The model's own words, which a span may have in other ones.
                        if half.is_some() {
                            self.nodes[node.0].item = item;
                        }
                        node
                    }
                };
                if same.is_none() {
                    self.nodes[node.0].is_spoken = true;
                    self.remember(node);
                    if half.is_some() {
                        self.by_id.insert(call.id.clone(), node);
                    } else if self.is_comparing {
                        self.untraced.add(node, &call);
                    }
                }
                self.lists[list.0].add(call.id, node);
                Place {
                    node,
                    is_new: same.is_none() && half.is_none(),
                    is_half: half.is_some(),
                }
            }
            What::Result(result) => {
                let call = self.call_of(&result.id, list);
                let known = match call {
                    None => same,
                    Some(call) => self.nodes[call.0].result,
                };
                Place {
                    node: known.unwrap_or_else(|| self.new_result(item, call)),
                    is_new: known.is_none(),
                    is_half: false,
                }
            }
            What::Text(..) => {
                let node = same.unwrap_or_else(|| {
                    let node = self.new_node(item, None);
                    self.remember(node);
                    node
                });
                Place {
                    node,
                    is_new: same.is_none(),
                    is_half: false,
                }
            }
        }
    }

    /// The node of the same item, if it was there as often as it is in the list; `None` where all is new.
    fn same_as(&mut self, item: &Item, list: ListId) -> Option<NodeId> {
        if !self.is_comparing {
            return None;
        }
        let key = item.key();
        let list = &mut self.lists[list.0];
        let count = list.count(key);
        if list.is_last {
            return None;
        }
        self.by_key.get(key)?.get(count).copied()
    }

    /// The call that a result in a list is of.
    fn call_of(&mut self, id: &Option<Text>, list: ListId) -> Option<NodeId> {
        let list = &mut self.lists[list.0];
        let call = list.answer(id);
        if call.is_some() || list.by_id.contains_key(id) {
            return call;
        }
        if id.is_some() {
            return self.by_id.get(id).copied();
        }
        let has_result = |call: &NodeId| self.nodes[call.0].result.is_some();
        while self.calls.get(self.first_unanswered).is_some_and(has_result) {
            self.first_unanswered += 1;
        }
        self.calls.get(self.first_unanswered).copied()
    }

    fn new_node(&mut self, item: Item, call: Option<NodeId>) -> NodeId {
        self.nodes.push(Node {
            item,
            before: None,
            after: None,
            call,
            result: None,
            is_spoken: false,
            is_traced: false,
            milliseconds: None,
            number: None,
        });
        NodeId(self.nodes.len() - 1)
    }

    fn new_call(&mut self, item: Item) -> NodeId {
        let id = match &item.what {
            What::Call(call) => call.id.clone(),
            _ => None,
        };
        let node = self.new_node(item, None);
        self.calls.push(node);
        self.by_id.insert(id, node);
        node
    }

    fn new_result(&mut self, item: Item, call: Option<NodeId>) -> NodeId {
        let node = self.new_node(item, call);
        if let Some(call) = call {
            self.nodes[call.0].result = Some(node);
        }
        self.remember(node);
        node
    }

    /// Makes a node be found by what is in it.
    fn remember(&mut self, node: NodeId) {
        if self.is_comparing {
            let key = self.nodes[node.0].item.key().clone();
            self.by_key.entry(key).or_default().push(node);
        }
    }

    /// Puts new items before the known one that follows them in their list, and at the end if none does. What begins a list is put
    /// before a known item only if no message has told how the conversation began: there was no turn of a user, or that item is a
    /// call that only a span had.
    fn insert(&mut self, places: &[Place]) {
        let known = places.iter().position(|place| !place.is_new);
        let begin = known
            .filter(|&at| !places[at].is_half && self.has_user)
            .unwrap_or(0);
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
        let is_user = |place: &Place| matches!(self.nodes[place.node.0].item.what, What::Text(Kind::User, _));
        self.has_user = self.has_user || places.iter().any(is_user);
    }

    /// Puts a node before another one, or at the end.
    fn link(&mut self, node: NodeId, after: Option<NodeId>) {
        let before = match after {
            None => self.last.replace(node),
            Some(after) => self.nodes[after.0].before.replace(node),
        };
        match before {
            None => self.first = Some(node),
            Some(before) => self.nodes[before.0].after = Some(node),
        }
        self.nodes[node.0].before = before;
        self.nodes[node.0].after = after;
    }
}
