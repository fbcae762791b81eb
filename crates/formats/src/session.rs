//! Makes one conversation of the events of a run: the rules that all formats have in common, each a function.

use std::{
    collections::{HashMap, HashSet},
    mem,
    ops::Range,
};

use knowledgepulse_json::{Text, Value, units_of};

use crate::{
    event::{Event, Events, Fact, IS_SUB_AGENT, PARENT, Parent, TextKind, ToolResult, Undo, What},
    parts::{Call, Part},
    spans::joined,
    trace::TraceBuilder,
    values::{input_of, is_blank, string_of},
    words::is_one,
};

/// The events of a run up to its end.
#[derive(Default)]
pub struct Session {
    builder: TraceBuilder,
    events: Vec<Event>,
}

impl Session {
    /// Begins a run, whose steps are added to a trace.
    #[must_use]
    pub(crate) fn new(builder: TraceBuilder) -> Self {
        Self {
            builder,
            events: Vec::new(),
        }
    }

    /// Adds events, which took so many bytes of the input.
    pub fn add(&mut self, events: impl IntoIterator<Item = Event>, size: u64) {
        self.builder.place.size += size;
        self.events.extend(events);
    }

    /// Adds the events of another run, which is of this one.
    pub(crate) fn join(&mut self, other: Self) {
        self.add(other.events, other.builder.place.size);
    }

    /// Says a fact of the run before its events, if it has a value.
    pub fn fact(&mut self, name: &'static str, value: Option<impl Into<Value>>) {
        self.builder.keep(name, value.map(Into::into).as_ref());
    }

    /// Says the name from which the id of its trace is made.
    pub fn name(&mut self, name: Text) {
        self.builder.ids = vec![name];
    }

    /// Returns its events, and the names that it has beside theirs: the first one is its own.
    pub(crate) fn named(&self) -> (&[Event], Vec<&Text>) {
        let known = ["session_id", PARENT].map(|name| string_of(self.builder.details.get(name)));
        let names = self.builder.ids.first().into_iter();
        (&self.events, names.chain(known.into_iter().flatten()).collect())
    }

    /// Returns a fact that its events or its path say, before its trace is built.
    pub(crate) fn noted(&self, name: &str) -> Option<&Value> {
        let mut whats = self.events.iter().rev().flat_map(|event| event.what.iter().rev());
        let said = whats.find_map(|what| match what {
            What::Fact(Fact::Last(of, value)) if *of == name => Some(value),
            _ => None,
        });
        said.or_else(|| self.builder.details.get(name))
    }

    /// Makes the steps of the trace.
    #[must_use]
    pub(crate) fn finish(self) -> TraceBuilder {
        let is_sub_agent = self.noted(IS_SUB_AGENT).is_some();
        let Self { mut builder, events } = self;
        let mut events = joined(&mut builder, events);
        let copied = turns_of_the_parent(&events).filter(|_| is_sub_agent);
        let copied = copied.map_or(0, |copied| events.drain(copied).count());
        let (events, repeated, taken_back) =
            replayed(without_summaries(without_echoes(with_whole_texts(events))));
        let (events, left) = branch_of_the_last(events);
        tell(&mut builder, without_repeated_parts(events));
        builder.leave_out_times("repeated event", repeated as u64);
        builder.leave_out_times("message that was taken back", taken_back as u64);
        builder.leave_out_times(OF_PARENT, copied as u64);
        builder.leave_out_times("entry of another branch", left as u64);
        builder
    }
}

/// Counts the header of a run that was copied, and what the run said.
pub(crate) const COPIED: &str = "session that was copied";
const OF_PARENT: &str = "line of the parent";

/// Returns where a sub-agent has the turns of its parent behind the header of it: up to the turn that begins while another one is open, which
/// has started the sub-agent.
fn turns_of_the_parent(events: &[Event]) -> Option<Range<usize>> {
    let counts = |event: &Event, fits: &dyn Fn(&str) -> bool| {
        let mut whats = event.what.iter();
        whats.any(|what| matches!(what, What::LeftOut(name) if fits(name)))
    };
    let from = 1 + events
        .iter()
        .position(|event| counts(event, &|name| name == COPIED))?;
    let mut is_open = false;
    let length = events[from..].iter().position(|event| {
        let begins = counts(event, &|name| is_one(name, "turn-begins"));
        let is_own = begins && is_open;
        is_open = begins || is_open && !counts(event, &|name| is_one(name, "turn-ends"));
        is_own
    })?;
    Some(from..from + length)
}

/// So many facts of events that were taken back are kept at least.
const MOST_FACTS: usize = 100;

/// Makes texts and arguments of the pieces that follow each other.
fn with_whole_texts(events: Vec<Event>) -> Vec<Event> {
    let mut kept: Vec<Event> = Vec::with_capacity(events.len());
    for event in events {
        let before = kept.last_mut();
        let before = before.filter(|before| before.origin.message == event.origin.message);
        match (
            before.and_then(|before| before.what.last_mut()),
            event.what.as_slice(),
        ) {
            (Some(What::Piece(kind, text)), [What::Piece(next, more)]) if kind == next => {
                text.push_str(more);
            }
            (Some(What::Arguments(text)), [What::Arguments(more)]) => text.push_str(more),
            _ => kept.push(event),
        }
    }
    for at in 1..kept.len() {
        let (before, after) = kept.split_at_mut(at);
        let call = before.last_mut().and_then(|before| before.what.last_mut());
        if let (Some(What::Call(call)), Some([What::Arguments(text)])) =
            (call, after.first().map(|event| event.what.as_slice()))
        {
            call.args = input_of(Some(&text.clone().into()));
        }
    }
    for event in &mut kept {
        if let [What::Piece(kind, text)] = event.what.as_mut_slice() {
            event.what = said(*kind, mem::take(text));
        }
    }
    kept
}

/// Returns what a text of this kind says.
fn said(kind: TextKind, text: Text) -> Vec<What> {
    let mut events = Events::default();
    events.say_parts(kind, [Part::Text(text)]);
    events.list.into_iter().flat_map(|event| event.what).collect()
}

/// The other record of a prompt is at most so many before or behind.
const ECHO_WITHIN: usize = 16;

/// Makes texts of the echoes of which no other record has the text before the agent says something.
fn without_echoes(mut events: Vec<Event>) -> Vec<Event> {
    let text_of = |event: &Event| {
        event.what.iter().find_map(|what| match what {
            What::Said(TextKind::User, text) => Some(text.clone()),
            _ => None,
        })
    };
    for at in 0..events.len() {
        let [What::Echo(text)] = events[at].what.as_mut_slice() else {
            continue;
        };
        events[at].what = said(TextKind::User, mem::take(text));
        let own = text_of(&events[at]);
        let is_silent = |event: &&Event| text_of(event).is_some() || !is_said(event);
        let before = events[..at].iter().rev().take(ECHO_WITHIN).take_while(is_silent);
        let after = events[at + 1..].iter().take(ECHO_WITHIN).take_while(is_silent);
        if own.is_some() && before.chain(after).any(|event| text_of(event) == own) {
            events[at].what = vec![What::LeftOut("repeated prompt".into())];
        }
    }
    events
}

/// Counts summaries, each with the agent's message before it if that is the summary.
fn without_summaries(mut events: Vec<Event>) -> Vec<Event> {
    let mut last_said = None;
    for at in 0..events.len() {
        let [What::Summary(summary)] = events[at].what.as_mut_slice() else {
            last_said = if is_said(&events[at]) { Some(at) } else { last_said };
            continue;
        };
        let summary = mem::take(summary);
        events[at].what = vec![What::LeftOut("summary of a compaction".into())];
        let said = last_said.take().map(|said| &mut events[said].what);
        if let Some(said) = said
            && let [What::Said(TextKind::Message, text)] = said.as_slice()
            && !is_blank(text)
            && summary.ends_with(text.as_str())
        {
            said.clear();
        }
    }
    events
}

/// Puts a record whose name was there before in the place of that one, as a later snapshot of it, and leaves out what was taken back.
/// Returns how many records were repeated, and how many taken back.
fn replayed(events: Vec<Event>) -> (Vec<Event>, usize, usize) {
    let mut kept: Vec<Event> = Vec::with_capacity(events.len());
    let (mut repeated, mut taken_back) = (0, 0);
    let mut places: HashMap<Text, usize> = HashMap::new();
    for mut event in events {
        while let Some(at) = event.what.iter().position(|what| matches!(what, What::Undo(_))) {
            if let What::Undo(undo) = event.what.remove(at) {
                let from = beginning_of(&undo, &kept, &places);
                let undone = kept.split_off(from);
                let mut facts: Option<Event> = None;
                for mut event in undone {
                    let said_more = take_back(&mut event, &mut places);
                    taken_back += usize::from(said_more && undo != Undo::All);
                    match &mut facts {
                        Some(facts) if facts.what.len() < MOST_FACTS => facts.what.append(&mut event.what),
                        Some(_) => {}
                        None => facts = Some(event),
                    }
                }
                kept.extend(facts);
            }
        }
        let place = event
            .origin
            .id
            .clone()
            .map(|id| *places.entry(id).or_insert(kept.len()));
        match place.and_then(|at| kept.get_mut(at)) {
            None => kept.push(event),
            Some(before) => {
                repeated += 1;
                if !event.what.is_empty() {
                    before.what = event.what;
                }
            }
        }
    }
    (kept, repeated, taken_back)
}

/// Takes back what an event said. Facts about the run itself stay true. Returns whether it said something else.
fn take_back(event: &mut Event, places: &mut HashMap<Text, usize>) -> bool {
    let is_fact = |what: &What| matches!(what, What::Fact(_));
    let said_more = !event.what.iter().all(is_fact);
    event.what.retain(is_fact);
    if let Some(id) = event.origin.id.take() {
        places.remove(&id);
    }
    said_more
}

/// Returns the first event that is taken back, given the places of records by their names.
fn beginning_of(undo: &Undo, events: &[Event], places: &HashMap<Text, usize>) -> usize {
    match undo {
        Undo::All => 0,
        Undo::From(id) => places.get(id).copied().unwrap_or_default(),
        Undo::FromIfThere(id) => places.get(id).copied().unwrap_or(events.len()),
        Undo::Ordinal(first) => {
            let is_later = |event: &Event| event.origin.ordinal.is_some_and(|ordinal| ordinal >= *first);
            events.iter().position(is_later).unwrap_or(events.len())
        }
        Undo::Turns(0) => events.len(),
        Undo::Turns(turns) => {
            let turn_at = |(at, event): (usize, &Event)| is_turn(event).then_some(at);
            let mut turns_at = events.iter().enumerate().rev().filter_map(turn_at);
            turns_at.nth(turns - 1).unwrap_or_default()
        }
    }
}

fn is_turn(event: &Event) -> bool {
    let is_said = |what: &What| matches!(what, What::Said(TextKind::User, text) if !is_blank(text));
    event.what.iter().any(is_said)
}

/// Returns whether an event is of the conversation itself.
pub fn is_said(event: &Event) -> bool {
    let is_said = |what: &What| matches!(what, What::Said(..) | What::Call(_) | What::Result(_));
    event.what.iter().any(is_said)
}

/// Leaves out the events that do not lead to the last one, where the events form a tree: the user has left their branch. Returns
/// how many. Events beside the branch stay if they are parts of a message of it, or calls and results of it: those of parallel
/// calls hang on their calls, not in one line.
fn branch_of_the_last(mut events: Vec<Event>) -> (Vec<Event>, usize) {
    let is_link = |event: &Event| matches!(event.origin.parent, Parent::Of(_));
    if !events.iter().any(is_link) {
        return (events, 0);
    }
    let parents = parents_of(&events);
    let is_node = |event: &Event| event.origin.id.is_some();
    let mut is_kept: Vec<bool> = events.iter().map(|event| !is_node(event)).collect();
    let mut waiting = path_to_the_last(&events, &parents);
    for &at in &waiting {
        is_kept[at] = true;
    }
    let mut by_key: HashMap<(&str, &Text), Vec<usize>> = HashMap::new();
    for (at, event) in events.iter().enumerate().filter(|(at, _)| !is_kept[*at]) {
        for key in keys_of(event) {
            by_key.entry(key).or_default().push(at);
        }
    }
    while let Some(at) = waiting.pop() {
        for key in keys_of(&events[at]) {
            for other in by_key.remove(&key).unwrap_or_default() {
                if !mem::replace(&mut is_kept[other], true) {
                    waiting.push(other);
                }
            }
        }
    }
    let left = is_kept.iter().filter(|is_kept| !**is_kept).count();
    let mut is_kept = is_kept.into_iter();
    events.retain(|_| is_kept.next().unwrap_or_default());
    (events, left)
}

/// Returns the places of the last record and all before it; of the last one that says something, if that is not among them: programs
/// note late what an earlier record has caused.
fn path_to_the_last(events: &[Event], parents: &[Option<usize>]) -> Vec<usize> {
    let path_to = |last: Option<usize>| {
        let mut path = Vec::new();
        let mut is_seen = vec![false; events.len()];
        let mut next = last;
        while let Some(at) = next.filter(|&at| !mem::replace(&mut is_seen[at], true)) {
            path.push(at);
            next = parents[at];
        }
        path
    };
    let last = |holds: fn(&Event) -> bool| {
        events
            .iter()
            .rposition(|event| event.origin.id.is_some() && holds(event))
    };
    let path = path_to(last(|_| true));
    match last(is_said) {
        Some(said) if !path.contains(&said) => path_to(Some(said)),
        _ => path,
    }
}

/// Returns the place of the parent of each event.
fn parents_of(events: &[Event]) -> Vec<Option<usize>> {
    let places = events.iter().enumerate();
    let places: HashMap<&Text, usize> = places
        .filter_map(|(at, event)| Some((event.origin.id.as_ref()?, at)))
        .collect();
    let (mut before, mut compacted) = (None, None);
    let parents = events.iter().enumerate().map(|(at, event)| {
        if event.what.contains(&What::Compacted) {
            compacted = Some(at);
        }
        let parent = match &event.origin.parent {
            // A conversation goes on after a summary, whatever its records hang on.
            Parent::None | Parent::Of(_) if compacted == Some(at) => before,
            Parent::None => before.filter(|_| compacted.is_some()),
            Parent::Before => before,
            // The record that it names may be missing.
            Parent::Of(id) => places
                .get(id)
                .copied()
                .filter(|&place| compacted <= Some(place))
                .or(before),
        };
        if event.origin.id.is_some() {
            before = Some(at);
        }
        parent
    });
    parents.collect()
}

/// Returns the names that parts of one message, and a call and its results, have in common.
fn keys_of(event: &Event) -> Vec<(&'static str, &Text)> {
    let message = event.origin.message.as_ref().map(|id| ("message", id));
    let calls = event.what.iter().filter_map(|what| match what {
        What::Call(Call { id, .. }) | What::Result(ToolResult { id, .. }) => Some(("call", id.as_ref()?)),
        _ => None,
    });
    message.into_iter().chain(calls).collect()
}

/// An id that is so long names one call; shorter ones are used again by some models.
const UNIQUE_LENGTH: usize = 12;

/// A part is compared with so many others of its message or its call's id, the last ones.
const MOST_COMPARED: usize = 32;

/// By the id of a message or a call, the places of its texts, its calls and its results.
type Seen = HashMap<Text, [Vec<(usize, usize)>; 3]>;

/// Leaves out parts of a message that repeat others of it, and calls and results that were there before. A part that a longer one
/// begins with is replaced: messages are written again as they grow.
fn without_repeated_parts(mut events: Vec<Event>) -> Vec<Event> {
    let (mut seen, mut dropped) = (Seen::new(), HashSet::new());
    for at in 0..events.len() {
        for part in 0..events[at].what.len() {
            let (what, message) = (&events[at].what[part], events[at].origin.message.as_ref());
            let (kind, id) = match what {
                What::Said(_, text) if !is_blank(text) => (0, message),
                What::Call(call) => (1, call.id.as_ref()),
                What::Result(result) => (2, result.id.as_ref()),
                _ => continue,
            };
            let Some(id) = id else { continue };
            let parts = seen.entry(id.clone()).or_default();
            let is_waiting = parts[2].len() < parts[1].len();
            let is_same = |&(at, part): &(usize, usize)| match (&events[at].what[part], what) {
                (What::Said(other, said), What::Said(kind, text)) => other == kind && grows(said, text),
                (What::Call(said), What::Call(call)) => {
                    let is_one = message.is_some() && events[at].origin.message.as_ref() == message;
                    let is_unique = units_of(id) >= UNIQUE_LENGTH;
                    let may_be = is_one || is_waiting || is_unique;
                    may_be && repeats(said, call, is_one || is_waiting && is_unique)
                }
                (What::Result(said), What::Result(result)) => {
                    !is_waiting && grows(&said.content, &result.content)
                }
                _ => false,
            };
            let mut last = parts[kind].iter().rev().take(MOST_COMPARED).copied();
            let Some((other_at, other_part)) = last.find(is_same) else {
                parts[kind].push((at, part));
                continue;
            };
            // The later one is as long or longer.
            let mut later = what.clone();
            let before = &mut events[other_at].what[other_part];
            if let (What::Result(later), What::Result(before)) = (&mut later, &*before) {
                later.failed = before.failed.or(later.failed);
            }
            *before = later;
            dropped.insert((at, part));
        }
    }
    for (at, event) in events.iter_mut().enumerate() {
        let mut parts = 0..;
        let mut is_kept = || parts.next().is_some_and(|part| !dropped.contains(&(at, part)));
        if !dropped.is_empty() {
            event.what.retain(|_| is_kept());
        }
    }
    events
}

/// Returns whether a text is another one that has grown, or the same.
fn grows(before: &Text, text: &Text) -> bool {
    text.as_bytes().starts_with(before.as_bytes())
}

/// Returns whether a call is one that was made before, or that was written before its arguments were complete. `is_one` says that the id
/// names one call, in whatever words its arguments are.
fn repeats(before: &Call, call: &Call, is_one: bool) -> bool {
    before.name == call.name && (is_one || before.args.is_empty() || before.args == call.args)
}

/// Makes steps of the events.
fn tell(builder: &mut TraceBuilder, events: Vec<Event>) {
    // Which calls failed, which are steps, the first record that is no copy, and how many calls have no result yet.
    let (mut failed, mut called, mut first, mut waiting) = (HashMap::new(), HashSet::new(), 0.0, 0_usize);
    for what in events.iter().flat_map(|event| &event.what) {
        match what {
            What::Failed(id, is_failed) => drop(failed.insert(id.clone(), *is_failed)),
            What::Call(Call { id: Some(id), .. }) => drop(called.insert(id.clone())),
            What::Copies { before, .. } => first = *before,
            _ => {}
        }
    }
    for event in events {
        if event.origin.ordinal.is_some_and(|ordinal| ordinal < first) {
            builder.leave_out(OF_PARENT);
            continue;
        }
        builder.at(event.origin.time.as_ref());
        for what in event.what {
            match what {
                What::Said(kind, text) => builder.say(kind, text),
                What::Call(call) => {
                    waiting += 1;
                    builder.call(call);
                }
                What::Result(result) => {
                    waiting = waiting.saturating_sub(1);
                    let noted = result.id.as_ref().and_then(|id| failed.get(id));
                    builder.result(ToolResult {
                        failed: noted.copied().or(result.failed),
                        ..result
                    });
                }
                What::Ran(call, result) => {
                    let is_told = call.id.as_ref().is_some_and(|id| called.contains(id));
                    if !is_told && waiting > 0 {
                        builder.call(call);
                        result.into_iter().for_each(|result| builder.result(result));
                    }
                }
                What::LeftOut(what) => builder.leave_out(what),
                What::Took(id, milliseconds) => builder.took(&id, milliseconds),
                What::Success(success) => {
                    builder.is_conversation = true;
                    builder.success = Some(success);
                }
                What::Before(turn) => builder.user_before(turn),
                What::Fact(fact) => builder.add_fact(fact),
                What::Undo(_)
                | What::Compacted
                | What::Summary(_)
                | What::Span(_)
                | What::Failed(..)
                | What::Piece(..)
                | What::Arguments(_)
                | What::Echo(_)
                | What::Copies { .. }
                | What::Continues { .. } => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use knowledgepulse_json::{Object, Value};

    use super::*;
    use crate::{FormatName, Given, Place, event::Origin};

    fn said(kind: TextKind, text: &str) -> What {
        What::Said(kind, text.into())
    }

    fn user(text: &str) -> What {
        said(TextKind::User, text)
    }

    fn agent(text: &str) -> What {
        said(TextKind::Message, text)
    }

    fn call(id: &str, argument: &str) -> What {
        let args: Object = [("a".into(), argument.into())].into_iter().collect();
        What::Call(Call {
            id: Some(id.into()),
            name: Some("t".into()),
            args,
            server: None,
        })
    }

    fn result(id: &str, text: &str) -> What {
        What::Result(ToolResult {
            id: Some(id.into()),
            content: text.into(),
            failed: None,
        })
    }

    /// An event, whose origin is written `ID`, `ID<PARENT`, `ID<` for the first of a tree, and with `@MESSAGE` behind it.
    fn event(origin: &str, what: Vec<What>) -> Event {
        let (origin, message) = origin
            .split_once('@')
            .map_or((origin, None), |(origin, message)| (origin, Some(message)));
        let (id, parent) = match origin.split_once('<') {
            None => (origin, Parent::Before),
            Some((id, "")) => (id, Parent::None),
            Some((id, parent)) => (id, Parent::Of(parent.into())),
        };
        let origin = Origin {
            id: Some(Text::from(id)).filter(|id| !id.is_empty()),
            parent,
            message: message.map(Text::from),
            ..Origin::default()
        };
        Event { origin, what }
    }

    /// Returns the task and the contents of the steps that events become.
    fn told(events: Vec<Event>) -> Vec<String> {
        let mut session = Session::new(TraceBuilder::new(
            FormatName::ClaudeCode.format(),
            Place::default(),
        ));
        session.add(events, 0);
        let trace = session.finish().finish(&Given::default());
        let text = |value: Option<&Value>| {
            value
                .and_then(Value::as_str)
                .unwrap_or_default()
                .replace('\n', " ")
        };
        let task = text(trace.get("task").and_then(|task| task.get("objective")));
        // What stands in for an objective repeats the first step.
        let is_derived = task.starts_with(knowledgepulse_trace::OBJECTIVE_OF_FIRST_STEP);
        let task = if is_derived { String::new() } else { task };
        let steps = trace.get("steps").and_then(Value::as_array).unwrap();
        [task]
            .into_iter()
            .chain(steps.iter().map(|step| text(step.get("content"))))
            .collect()
    }

    #[test]
    fn a_record_that_is_there_again_replaces_the_first() {
        for (events, expected) in [
            (
                vec![
                    event("1", vec![user("a")]),
                    event("2", vec![agent("b")]),
                    event("1", vec![user("c")]),
                ],
                ["c", "b"],
            ),
            (
                vec![
                    event("1", vec![user("a")]),
                    event("2", vec![agent("b")]),
                    event("2", vec![]),
                ],
                ["a", "b"],
            ),
        ] {
            assert_eq!(told(events), expected);
        }
    }

    #[test]
    fn what_was_taken_back_is_left_out() {
        let undo = |undo| event("", vec![What::Undo(undo)]);
        let turns = || {
            vec![
                event("1", vec![user("a")]),
                event("2", vec![agent("b")]),
                event("3", vec![user("c")]),
                event("4", vec![agent("d")]),
            ]
        };
        for (undone, expected) in [
            (Undo::From("3".into()), vec!["a", "b", "e"]),
            (Undo::From("?".into()), vec!["", "e"]),
            (Undo::All, vec!["", "e"]),
            (Undo::Turns(0), vec!["a", "b", "e", "d"]),
            (Undo::Turns(1), vec!["a", "b", "e"]),
            (Undo::Turns(5), vec!["", "e"]),
        ] {
            let events = [turns(), vec![undo(undone.clone()), event("3", vec![agent("e")])]].concat();
            assert_eq!(told(events), expected, "{undone:?}");
        }
    }

    #[test]
    fn the_branch_of_the_last_record_is_the_conversation() {
        let begin = || vec![event("1<", vec![user("a")]), event("2<1", vec![agent("b")])];
        for (rest, expected) in [
            (
                vec![event("3<2", vec![user("c")]), event("4<2", vec![user("d")])],
                vec!["a", "b", "d"],
            ),
            (vec![event("3<", vec![user("c")])], vec!["c"]),
            (vec![event("3<?", vec![user("c")])], vec!["a", "b", "c"]),
            (vec![event("3", vec![user("c")])], vec!["a", "b", "c"]),
            // Parallel calls, each with its result.
            (
                vec![
                    event("3<2@m", vec![call("x", "1")]),
                    event("4<3@m", vec![call("y", "2")]),
                    event("5<3", vec![result("x", "r")]),
                    event("6<4", vec![result("y", "s")]),
                    event("7<6", vec![agent("c")]),
                ],
                vec!["a", "b", "t a: 1", "t a: 2", "r", "s", "c"],
            ),
            // A note about an earlier record comes last.
            (
                vec![
                    event("3<2", vec![user("c")]),
                    event("4<1", vec![What::LeftOut("note".into())]),
                ],
                vec!["a", "b", "c"],
            ),
            // A circle.
            (
                vec![event("3<4", vec![user("c")]), event("4<3", vec![agent("d")])],
                vec!["c", "d"],
            ),
        ] {
            let events = [begin(), rest].concat();
            assert_eq!(told(events.clone()), expected, "{events:?}");
        }
    }

    #[test]
    fn a_conversation_goes_on_after_a_summary_whatever_its_records_hang_on() {
        let begin = || vec![event("1<", vec![user("a")]), event("2<1", vec![agent("b")])];
        let boundary = |origin| event(origin, vec![What::Compacted]);
        for rest in [
            vec![boundary("3<2"), event("4<3", vec![user("c")])],
            vec![boundary("3<"), event("4<", vec![user("c")])],
            vec![boundary("3<?"), event("4<2", vec![user("c")])],
        ] {
            let again = [boundary("5<1"), event("6<2", vec![agent("d")])];
            let events = [begin(), rest, again.to_vec()].concat();
            assert_eq!(told(events.clone()), ["a", "b", "c", "d"], "{events:?}");
        }
    }

    #[test]
    fn parts_calls_and_results_that_are_there_again_count_once() {
        for (events, expected) in [
            (
                vec![
                    event("1@m", vec![agent("I r")]),
                    event("2@m", vec![agent("I read")]),
                ],
                vec!["", "I read"],
            ),
            (
                vec![event("1@m", vec![agent("a")]), event("2@n", vec![agent("a")])],
                vec!["", "a", "a"],
            ),
            (
                vec![
                    event("1", vec![call("x", "1")]),
                    event("2", vec![call("x", "1"), result("x", "r")]),
                ],
                vec!["", "t a: 1", "r"],
            ),
            // A span and a message have the arguments in other words.
            (
                vec![
                    event("1", vec![call("call_0123456789", "1")]),
                    event(
                        "2",
                        vec![call("call_0123456789", "1.0"), result("call_0123456789", "r")],
                    ),
                ],
                vec!["", "t a: 1.0", "r"],
            ),
            // Some models use their ids again.
            (
                vec![event(
                    "1",
                    vec![call("x", "1"), result("x", "r"), call("x", "1"), result("x", "r")],
                )],
                vec!["", "t a: 1", "r", "t a: 1", "r"],
            ),
            (
                vec![
                    event(
                        "1",
                        vec![call("call_0123456789", "1"), result("call_0123456789", "r")],
                    ),
                    event(
                        "2",
                        vec![
                            call("call_0123456789", "1"),
                            result("call_0123456789", "r, all of it"),
                        ],
                    ),
                ],
                vec!["", "t a: 1", "r, all of it"],
            ),
        ] {
            assert_eq!(told(events.clone()), expected, "{events:?}");
        }
    }

    #[test]
    fn a_call_within_another_is_a_step_unless_it_is_told_otherwise() {
        let ran = || match (call("in", "1"), result("in", "s")) {
            (What::Call(call), What::Result(result)) => What::Ran(call, Some(result)),
            _ => unreachable!(),
        };
        for (what, expected) in [
            (
                vec![call("out", "0"), ran(), result("out", "r")],
                vec!["", "t a: 0", "t a: 1", "s", "r"],
            ),
            (
                vec![call("in", "1"), ran(), result("in", "r")],
                vec!["", "t a: 1", "r"],
            ),
            (vec![ran()], vec![""]),
        ] {
            assert_eq!(told(vec![event("", what)]), expected);
        }
    }

    #[test]
    fn without_echoes_keeps_one_of_two_records_of_a_prompt_in_either_order() {
        let echo = |text: &str| What::Echo(text.into());
        let events = |list: Vec<What>| {
            let event = |what| Event {
                what: vec![what],
                ..Event::default()
            };
            list.into_iter().map(event).collect::<Vec<_>>()
        };
        let left = || What::LeftOut("repeated prompt".into());
        for (given, expected) in [
            (vec![echo("a"), user("a")], vec![left(), user("a")]),
            (vec![user("a"), echo("a")], vec![user("a"), left()]),
            (
                vec![echo("a"), agent("b"), user("a")],
                vec![user("a"), agent("b"), user("a")],
            ),
            (vec![echo("a"), user("b")], vec![user("a"), user("b")]),
        ] {
            assert_eq!(without_echoes(events(given)), events(expected));
        }
    }
}
