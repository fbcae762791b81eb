//! Joins the spans of a run into events of one conversation. Spans overlap: the call of a model has the messages that came before, the
//! span of its agent repeats some of them, and the call of a tool is in messages and in a span of its own.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    mem,
};

mod merged;
pub mod said;

use jiff::Timestamp;

use crate::{date, langchain, prelude::*, trace::TraceBuilder, verdicts::is_verdict};
use merged::{Conversation, Item, List, items_of_all};
use said::{Said, argument_in, messages_in, messages_within, said_in, text_within};

/// The event of an evaluation.
const EVALUATION: &str = "gen_ai.evaluation.result";

/// The end of a span that is around all others, or around others with its own end not known.
const LATEST: i128 = 1 << 64;

/// What a span adds to the conversation.
struct Told {
    span: Span,
    is_tool: bool,
    /// A model's input and output, or a tool's call and result.
    said: Said,
    /// Whether the output repeats some of the messages within its span.
    repeats: bool,
}

impl Told {
    fn of(mut span: Span) -> Self {
        let is_tool = is_tool(&span.attributes);
        Self {
            said: if is_tool {
                tool_of(&mut span)
            } else {
                said_in(&span)
            },
            span,
            is_tool,
            repeats: false,
        }
    }

    fn has_messages(&self) -> bool {
        !self.is_tool && !self.said.is_empty()
    }
}

/// Returns what the only span of a run says, in numbers for its items: its input, and that with its output. Both are empty for a tool or
/// without an output, and for other runs.
pub fn said_alone(events: &[Event]) -> [Vec<u64>; 2] {
    let whats = events.iter().flat_map(|event| &event.what);
    let mut spans = whats.filter(|what| matches!(what, What::Span(_)));
    let (Some(What::Span(span)), None) = (spans.next(), spans.next()) else {
        return [Vec::new(), Vec::new()];
    };
    let said = (!is_tool(&span.attributes)).then(|| said_in(span));
    let said = said.filter(|said| !said.output.is_empty()).unwrap_or_default();
    let keys = |items: &[Item]| items.iter().map(|item| item.key).collect::<Vec<_>>();
    let [input, output] = [&said.input, &said.output].map(|items| keys(items));
    [input.clone(), [input, output].concat()]
}

/// Replaces the spans among events by what they say together. Events without spans stay as they are.
pub fn joined(builder: &mut TraceBuilder, events: Vec<Event>) -> Vec<Event> {
    let mut whats = events.iter().flat_map(|event| &event.what);
    if !whats.any(|what| matches!(what, What::Span(_))) {
        return events;
    }
    let (mut spans, mut facts, mut reward) = (Vec::new(), Vec::new(), None);
    for what in events.into_iter().flat_map(|event| event.what) {
        match what {
            What::Span(span) => spans.push(*span),
            What::Fact(Fact::Framework(name)) => drop(builder.framework.get_or_insert(name)),
            What::Fact(Fact::Reward(value)) => drop(reward.get_or_insert(value)),
            What::Fact(fact) => facts.push(fact),
            _ => {}
        }
    }
    spans.sort_by_key(|span| span.start);
    move_logs(&mut spans);
    builder.keep("spans", Some(&spans.len().into()));
    facts.into_iter().for_each(|fact| builder.add_fact(fact));
    builder.is_conversation = spans.iter().any(|span| is_of_agent(&span.attributes));
    if let Some(first) = spans.first().filter(|first| first.start > 0) {
        builder.created_at = Timestamp::from_nanosecond(first.start).ok().map(date::to_iso);
    }
    let mut told: Vec<Told> = spans.into_iter().map(Told::of).collect();
    keep_outermost(&mut told, builder);
    if !told.iter().any(Told::has_messages) {
        read_outer_values(&mut told);
    }
    let reward = reward.or_else(|| told.iter().find_map(|each| verdict_of(&each.span)));
    let acts = acts_of(&mut told, builder);
    let mut what = converse(told, acts).into_whats();
    what.extend(reward.map(|reward| What::Fact(Fact::Reward(reward))));
    vec![Event {
        what,
        ..Event::default()
    }]
}

/// Returns what an evaluation that a span has among its events says of the task.
fn verdict_of(span: &Span) -> Option<Value> {
    let score = |(name, event): &(Text, Object)| {
        let is_one =
            name == EVALUATION && str_of(event.get("gen_ai.evaluation.name")).is_some_and(is_verdict);
        let names = ["gen_ai.evaluation.score.value", "gen_ai.evaluation.score.label"];
        first_of(event, &names).filter(|_| is_one).cloned()
    };
    span.events.iter().find_map(score)
}

/// Moves what records of logs say into the spans that they name, unless these say it themselves.
fn move_logs(spans: &mut Vec<Span>) {
    let (logs, others): (Vec<_>, Vec<_>) = spans.drain(..).partition(|span| span.is_log);
    let says = |span: &&Span| !logs.is_empty() && !said_in(span).is_empty();
    let told = others.iter().filter(says);
    let told: HashSet<Text> = told.filter_map(|span| span.id.clone()).collect();
    let is_new = |log: &Span| log.id.as_ref().is_none_or(|id| !told.contains(id));
    let mut places = HashMap::new();
    for span in others.into_iter().chain(logs.into_iter().filter(is_new)) {
        let at = span.id.clone().map(|id| *places.entry(id).or_insert(spans.len()));
        match at.and_then(|at| spans.get_mut(at)) {
            Some(other) if span.is_log => {
                other.events.extend(span.events);
                other.start = other.start.min(span.start);
                other.end = other.end.max(span.end);
                let known = other.attributes.clone();
                other.attributes.extend(span.attributes);
                other.attributes.extend(known);
            }
            _ => spans.push(span),
        }
    }
    spans.sort_by_key(|span| span.start);
}

/// Returns whether a span is of an agent or a model, and of a conversation.
fn is_of_agent(attributes: &Object) -> bool {
    let kinds = "gen_ai.operation.name openinference.span.kind ai.operationId".split(' ');
    let mut kinds = kinds.filter_map(|name| str_of(attributes.get(name)));
    let is_search = |kind: &str| words("span-of-search").any(|name| kind.starts_with(name));
    let is_of_agents = |name: &Text| {
        let group = name.split_once('.').map(|(group, _)| group);
        matches!(name.as_str(), "input.value" | "output.value")
            || group.is_some_and(|group| is_one(group, "span-attribute"))
    };
    !kinds.any(is_search) && attributes.keys().any(is_of_agents)
}

fn is_tool(attributes: &Object) -> bool {
    let is = |name, kind| str_of(attributes.get(name)) == Some(kind);
    // Google's kit has a span for the results of parallel calls together.
    if is("gen_ai.tool.name", "(merged tools)") {
        return false;
    }
    is("gen_ai.operation.name", "execute_tool")
        || is("openinference.span.kind", "TOOL")
        || is("traceloop.span.kind", "tool")
        || attributes.contains("ai.toolCall.name")
        || (attributes.contains("gen_ai.tool.name") && !attributes.contains("gen_ai.operation.name"))
}

/// Returns what Traceloop has of a function's input or output, in JSON of its own around it.
fn entity_in(attributes: &Object, side: &str) -> Option<Value> {
    let parsed = parsed(attributes.get(&format!("traceloop.entity.{side}")))?;
    let fields = object_of(Some(&parsed));
    let inner = first_of(fields, &["kwargs", "inputs", "input_str", "outputs", "output"]);
    Some(inner.unwrap_or(&parsed).clone())
}

fn tool_of(span: &mut Span) -> Said {
    let attributes = &span.attributes;
    // Strands has both in events.
    let told = |event: &str, name: &str| {
        let mut events = span.events.iter().filter(|(each, _)| *each == event);
        events.find_map(|(_, attributes)| attributes.get(name).cloned())
    };
    let name = first_named(attributes, "tool-name");
    let id = first_named(attributes, "tool-id");
    let args = first_named(attributes, "tool-input")
        .cloned()
        .or_else(|| entity_in(attributes, "input"))
        .or_else(|| told("gen_ai.tool.message", "content"));
    let content = first_named(attributes, "tool-output")
        .cloned()
        .or_else(|| told("gen_ai.choice", "message"))
        .or_else(|| entity_in(attributes, "output"));
    let raised = || told("exception", "exception.message");
    let raised = span.message.clone().map(Value::from).or_else(raised);
    // LangChain makes a message of it, which names the call.
    let whole = parsed(content.as_ref()).map(Cow::into_owned);
    let told = whole.as_ref().map(|told| told.get("output").unwrap_or(told));
    let message = told.and_then(langchain::unwrapped).map(|(_, fields)| fields);
    let answered = message.and_then(|message| message.get("tool_call_id"));
    let id = string_of(id.or(answered)).cloned();
    // Tools of Google's kit say so in the same field, perhaps within their response.
    let status = message
        .or(told.and_then(|told| told.get("response").unwrap_or(told).as_object()))
        .and_then(|fields| fields.get("status"));
    if str_of(status) == Some("error") {
        span.is_ok = Some(false);
    }
    let content = match (message, &whole) {
        (Some(message), _) => message.get("content").cloned(),
        (None, Some(Value::String(text))) => Some(text.clone().into()),
        _ => content,
    };
    let failed = span.is_ok.map(|is_ok| !is_ok);
    let failure = || raised.unwrap_or_else(|| "error".into());
    #[allow(clippy::cast_precision_loss)] // As JavaScript's `Number` does.
    let milliseconds =
        (span.end >= span.start && span.start > 0).then(|| (span.end - span.start) as f64 / 1e6);
    let args = args.as_ref().and_then(argument_in).or(args);
    let call = Call {
        id,
        ..Call::new(None, name, args.as_ref())
    };
    let is_failure = content.is_none() && failed == Some(true);
    let content = content.or_else(|| is_failure.then(failure));
    let result = content.map(|content| {
        let result = ToolResult {
            content: Events::default().text_of(Some(&content)),
            failed,
            ..ToolResult::default()
        };
        Item::traced(What::Result(result), is_failure, None)
    });
    Said {
        input: vec![Item::traced(What::Call(call), false, milliseconds)],
        output: result.into_iter().collect(),
        replies: 0,
    }
}

/// Leaves out all spans but the outermost if that one has the whole conversation: the spans within repeat it, or belong to sub-agents.
fn keep_outermost(told: &mut Vec<Told>, builder: &mut TraceBuilder) {
    let is_outer =
        |each: &Told| each.span.may_have_all && each.span.parent.is_none() && each.said.replies > 1;
    let Some(outer) = told.iter().position(is_outer) else {
        return;
    };
    builder.keep_first("model", told.iter().find_map(|each| model_of(&each.span)));
    builder.keep_first(TOOLS, told.iter().find_map(|each| tools_in(&each.span)).as_ref());
    builder.leave_out_times("span within the conversation", told.len() as u64 - 1);
    *told = vec![told.swap_remove(outer)];
}

fn model_of(span: &Span) -> Option<&Value> {
    first_named(&span.attributes, "span-model")
}

fn tools_in(span: &Span) -> Option<Value> {
    tools_of(span.attributes.get("gen_ai.tool.definitions"))
}

/// Reads the values of the first span that has any. Where no span has messages, it is around the others.
fn read_outer_values(told: &mut [Told]) {
    let value = |span: &Span, side: &str| {
        let own = span.attributes.get(&format!("{side}.value")).cloned();
        own.or_else(|| entity_in(&span.attributes, side).map(|entity| text_within(&entity)))
    };
    let mut silent = told.iter_mut().filter(|each| !each.is_tool);
    let Some((each, input)) = silent.find_map(|each| value(&each.span, "input").map(|input| (each, input)))
    else {
        return;
    };
    let items = |value: Option<&Value>, role| -> Vec<Item> { items_of_all(&messages_in(value, role)) };
    each.said.input = items(asked_in(&input).as_ref().or(Some(&input)), "user");
    each.said.output = items(value(&each.span, "output").as_ref(), "assistant");
    each.span.end = LATEST;
}

/// Returns what the user asks in the arguments of a function: a message among them, or what is in a field of a question; `None` in a request
/// to a model.
fn asked_in(input: &Value) -> Option<Value> {
    let input = parsed(Some(input)).filter(|input| messages_within(input, "user").is_none())?;
    let fields = input.as_object()?;
    let message = fields.values().find(|value| is_message(value));
    message.or_else(|| first_named(fields, "question")).cloned()
}

/// When a span adds something to the conversation, whether it is at its end, its number, and whether it is the first of the two: a tool's
/// call or a model's input, and then the result or the output.
type Act = (i128, bool, usize, bool);

/// Returns the acts of all spans, two of each, in their order: the second at the end of a span if that is known or others are within it.
fn acts_of(told: &mut [Told], builder: &mut TraceBuilder) -> Vec<Act> {
    let has_messages = told.iter().any(Told::has_messages);
    let around_tools = ids_around(told, |each| each.is_tool);
    let around_messages = ids_around(told, Told::has_messages);
    let mut acts: Vec<Act> = Vec::new();
    for (at, each) in told.iter_mut().enumerate() {
        let (span, said) = (&mut each.span, &mut each.said);
        if builder.agent_id.is_none() {
            let agent = text_at(&span.attributes, "gen_ai.agent.name");
            builder.agent_id = agent.or_else(|| text_at(&span.attributes, "ai.telemetry.functionId"));
        }
        builder.keep_first("model", model_of(span));
        if !builder.details.contains(TOOLS) {
            builder.keep_first(TOOLS, tools_in(span).as_ref());
        }
        // A run that has ended well may not have done its task.
        if span.parent.is_none() && span.is_ok == Some(false) {
            builder.success = Some(false);
        }
        let is_in = |ids: &HashSet<Text>| span.id.as_ref().is_some_and(|id| ids.contains(id));
        each.repeats = is_in(&around_messages) || span.end == LATEST;
        let is_around = each.repeats || is_in(&around_tools);
        if each.is_tool && has_messages && first_named(&span.attributes, "tool-name").is_none() {
            builder.leave_out("tool span without a name");
            continue;
        }
        if said.is_empty() {
            builder.leave_out("span without messages");
            continue;
        }
        if !each.is_tool {
            // The AI SDK puts the texts of all calls together in the span around them.
            if each.repeats && span.attributes.contains("ai.prompt") {
                said.output.clear();
            }
            // Only items within the span come between a model's input and its output.
            if !is_around {
                span.end = span.start;
            }
        }
        let is_later = span.end > span.start;
        let end = match (is_later, is_around) {
            (true, _) => span.end,
            (false, true) => LATEST,
            (false, false) => span.start,
        };
        acts.push((span.start, false, at, true));
        acts.push((end, is_around || is_later, at, false));
    }
    // A span that begins when another ends comes after it.
    acts.sort_by_key(|(at, is_end, ..)| (*at, !is_end));
    acts
}

/// Carries the acts out. Where there are spans of tools within that of a model, the model has returned after them; where there are
/// messages in them, as within the span of an agent, its output repeats some of these.
fn converse(mut told: Vec<Told>, acts: Vec<Act>) -> Conversation {
    let mut conversation = Conversation::default();
    let mut lists: HashMap<usize, List> = HashMap::new();
    for (_, _, at, is_first) in acts {
        let each = &mut told[at];
        if is_first {
            let list = conversation.add(mem::take(&mut each.said.input), List::default());
            lists.insert(at, list);
        } else {
            let list = lists.remove(&at).filter(|_| each.is_tool || !each.repeats);
            conversation.add(mem::take(&mut each.said.output), list.unwrap_or_default());
        }
    }
    conversation
}

/// Returns the ids of the spans around spans for which a condition holds.
fn ids_around(told: &[Told], holds: impl Fn(&Told) -> bool) -> HashSet<Text> {
    let spans = told.iter().map(|each| &each.span);
    let parents: HashMap<&Text, &Text> = spans
        .filter_map(|span| Some((span.id.as_ref()?, span.parent.as_ref()?)))
        .collect();
    let mut around = HashSet::new();
    for each in told.iter().filter(|each| holds(each)) {
        let mut next = each.span.parent.as_ref();
        while let Some(id) = next.filter(|id| !around.contains(*id)) {
            around.insert(id.clone());
            next = parents.get(id).copied();
        }
    }
    around
}
