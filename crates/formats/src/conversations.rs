//! The messages of a conversation, wherever a record of a chat API, of its log or of a data set has them.

use std::{borrow::Cow, collections::HashMap, iter};

use crate::{date, langchain, messages::role_by, prelude::*, written};

/// The role of the first message of a list in JSON is within so many bytes, if the content does not come before.
const ROLE_WITHIN: usize = 64 * 1024;

type Messages<'a> = Vec<Cow<'a, Value>>;

/// Returns whether a text begins as a list of messages does in JSON, or as Python prints it.
fn begins_messages(text: &Text) -> bool {
    let first = text.trim_start().strip_prefix('[').map(str::trim_start);
    first.is_some_and(|first| {
        let within = first.get(..ROLE_WITHIN).unwrap_or(first);
        first.starts_with('{') && ["\"role\"", "'role'"].iter().any(|name| within.contains(name))
    })
}

/// Returns the messages of a list if the first of them is one.
fn checked(messages: Messages) -> Option<Messages> {
    let is_one = messages.first().is_some_and(|first| is_message(first));
    is_one.then_some(messages)
}

/// Returns the messages of pairs of a role and a text, which LangChain takes for messages; `None` for another list.
pub fn pairs_in(list: &[Value]) -> Option<Vec<Value>> {
    let message = |pair: &Value| match list_of(Some(pair)) {
        [role, content] => Some(message_by(role_by(str_of(Some(role))?)?, content.clone())),
        _ => None,
    };
    let messages: Option<Vec<_>> = list.iter().map(message).collect();
    messages.filter(|messages| !messages.is_empty())
}

/// Returns the messages in a field of a record, which may be JSON in a text, as data sets have them.
fn list_in<'a>(record: &'a Object, name: &str) -> Option<Messages<'a>> {
    match record.get(name)? {
        Value::Array(list) if matches!(list.first(), Some(Value::String(_))) => from_texts(list),
        Value::Array(list) => {
            if let Some(pairs) = pairs_in(list) {
                return Some(pairs.into_iter().map(Cow::Owned).collect());
            }
            let within = |name: &str| list.iter().map(|envelope| envelope.get(name)).collect();
            let messages = words("envelope").find_map(|name| -> Option<Vec<&Value>> {
                let messages: Option<Vec<_>> = within(name);
                messages.filter(|all| !all.is_empty() && all.iter().all(|message| is_message(message)))
            });
            if let Some(messages) = messages.filter(|_| !list.iter().any(is_message)) {
                return Some(messages.into_iter().map(Cow::Borrowed).collect());
            }
            // No other format has these for anything else.
            let is_alone = !matches!(name, "trajectory" | "history");
            list.first().map_or(is_alone, is_message).then(|| borrowed(list))
        }
        Value::Object(lists) => by_rows(lists).or_else(|| {
            let mut steps = by_numbers(lists)?;
            // A prediction of DSPy has the texts of its answer behind them.
            let at = record.keys().position(|field| *field == name)?;
            let behind = record
                .iter()
                .skip(at + 1)
                .filter(|(_, value)| value.as_text().is_some());
            let said: Object = behind.map(|(name, text)| (name.clone(), text.clone())).collect();
            steps.extend((!said.is_empty()).then(|| Cow::Owned(reply_by(&said))));
            Some(steps)
        }),
        Value::String(text) if begins_messages(text) => match written::literal(text.trim())? {
            (Value::Array(list), "") => checked(list.into_iter().map(Cow::Owned).collect()),
            _ => None,
        },
        _ => None,
    }
}

/// Returns a message of an agent: what it said, its calls, each a name and arguments, and their results in the same order.
fn turn_of(
    said: Value,
    calls: impl IntoIterator<Item = (Text, Value)>,
    results: impl IntoIterator<Item = (Value, bool)>,
) -> Cow<'static, Value> {
    let calls = calls.into_iter().map(|(name, input)| {
        let kind = "tool_use".into();
        object([("type", kind), ("name", name.into()), ("input", input)])
    });
    let results = results.into_iter().map(|(content, failed)| {
        let kind = "tool_result".into();
        object([
            ("type", kind),
            ("content", content),
            ("is_error", failed.then_some(true).into()),
        ])
    });
    let said = elements_of(Some(&said)).iter().filter(|part| !part.is_null());
    let content = said.cloned().chain(calls).chain(results);
    Cow::Owned(message_by("assistant", content.collect()))
}

/// Returns the messages of a trajectory of DSPy, whose fields have the numbers of its steps in their names.
fn by_numbers(steps: &Object) -> Option<Messages<'static>> {
    let turn = |at: usize| {
        let of = |name: &str| steps.get(&format!("{name}_{at}")).cloned().unwrap_or_default();
        let call = (string_of(Some(&of("tool_name")))?.clone(), of("tool_args"));
        Some(turn_of(of("thought"), [call], [(of("observation"), false)]))
    };
    let messages: Messages = (0..).map_while(turn).collect();
    (!messages.is_empty()).then_some(messages)
}

/// Returns the messages of a tree whose nodes name their parents, by a name or a place: those of the branch to the current leaf, or to the
/// last node. `None` for a record without such nodes.
fn by_parents(record: &Object) -> Option<Messages<'_>> {
    let id = "id uuid messageId message/id";
    let parent = "parent parentId parent_message_uuid parentMessageId";
    let tree = |[nodes, leaf]: &[&str; 2]| {
        let nodes = in_path(record, nodes)?;
        let all = || object_of(Some(nodes)).values().chain(list_of(Some(nodes)));
        let has_parent = all().any(|node| first_at(node, parent).is_some());
        has_parent.then(|| (all().collect::<Vec<_>>(), str_of(in_path(record, leaf))))
    };
    let (nodes, leaf) = tags("tree").iter().find_map(tree)?;
    let named = nodes.iter().map(|one| (str_of(first_at(*one, id)), *one));
    let named: HashMap<_, _> = named.collect();
    let before = |node: &&Value| match first_at(*node, parent)? {
        Value::String(name) => named.get(&Some(name.as_str())).copied(),
        place => nodes.get(numeric_of(Some(place))? as usize).copied(),
    };
    // Without a leaf, messages of which several have no parent are no tree.
    let roots = nodes.iter().filter(|node| before(node).is_none());
    (leaf.is_some() || named.contains_key(&None) || roots.count() < 2).then_some(())?;
    let current = named.get(&leaf).filter(|_| leaf.is_some());
    let current = current.or(nodes.last()).copied();
    let branch = iter::successors(current, before).take(nodes.len());
    let messages = branch.map(|node| node.get("message").unwrap_or(node));
    let messages = messages.filter(|message| !message.is_null());
    let mut messages: Messages = messages.map(Cow::Borrowed).collect();
    messages.reverse();
    checked(messages)
}

/// Returns the messages of a history of browser-use: steps with the actions of the model and their results.
fn by_actions(steps: &[Value]) -> Option<Messages<'static>> {
    const SAID: [&str; 3] = ["evaluation_previous_goal", "memory", "next_goal"];
    let is_step = |step: &Value| has_all(step, &["model_output", "result", "state"]);
    let turn = |step: &Value| {
        let output = fields_of(step, "model_output");
        let thinking = text_at(output, "thinking").into_iter();
        let thinking = thinking.map(|text| object([("type", "thinking".into()), ("thinking", text.into())]));
        let said = joined(SAID.iter().filter_map(|name| text_at(output, name)), "\n");
        let said = object([("type", "text".into()), ("text", said.into())]);
        let thought: Vec<Value> = thinking.chain([said]).collect();
        let action = |action: &Value| {
            let mut fields = object_of(Some(action)).iter().filter(|(_, args)| !args.is_null());
            fields.next().map(|(name, args)| (name.clone(), args.clone()))
        };
        let calls = list_at(output, "action").iter().filter_map(action);
        let result = |result: &Value| {
            let told = first_of(result, &["error", "extracted_content"]).cloned();
            (told.unwrap_or_default(), is_given(result.get("error")))
        };
        turn_of(thought.into(), calls, list_at(step, "result").iter().map(result))
    };
    let is_one = steps.first().is_some_and(is_step);
    is_one.then(|| steps.iter().map(turn).collect())
}

/// Returns the messages of a list of Agent Data Protocol, whose elements name their classes.
fn by_classes(list: &[Value]) -> Option<Messages<'static>> {
    let class = |element: &Value| text_at(element, "class_");
    list.first().and_then(class)?;
    let turn = |element: &Value| {
        let of = |name: &str| element.get(name).cloned();
        let code = || object([("code", of("content").into())]);
        let (role, said, tool, args) = match class(element).as_deref() {
            Some("api_action") => ("assistant", "description", of("function"), of("kwargs")),
            Some("code_action") => ("assistant", "description", of("language"), Some(code())),
            Some("message_action") => ("assistant", "content", None, None),
            _ if str_of(element.get("source")) == Some("user") => ("user", "content", None, None),
            _ => ("tool", "content", None, None),
        };
        let id = of("tool_call_id");
        let fields = [
            ("role", Some(role.into())),
            ("content", of(said)),
            ("reasoning_content", of("reasoning_content")),
            ("tool_call_id", id.clone()),
            (
                "tool_call",
                tool.map(|name| some_object([("id", id), ("name", Some(name)), ("arguments", args)])),
            ),
        ];
        Cow::Owned(some_object(fields))
    };
    Some(list.iter().map(turn).collect())
}

/// Returns the messages of a list that has each in a JSON text.
fn from_texts(list: &[Value]) -> Option<Messages<'_>> {
    let parsed = |text: &Value| parse_str(text.as_str()?).ok().map(Cow::Owned);
    checked(list.iter().map(parsed).collect::<Option<_>>()?)
}

/// Returns the messages of a table that has a list for each field, as tables of data sets have lists of structures.
fn by_rows(lists: &Object) -> Option<Messages<'_>> {
    let rows = list_at(lists, "role").len().max(list_at(lists, "from").len());
    let is_even = lists.values().all(|list| list_of(Some(list)).len() == rows);
    let row = |at: usize| {
        let cells = lists
            .iter()
            .map(|(name, list)| (name.clone(), list_of(Some(list))[at].clone()));
        Value::Object(cells.filter(|(_, cell)| !cell.is_null()).collect())
    };
    let messages = (rows > 0 && is_even).then(|| (0..rows).map(row).map(Cow::Owned).collect::<Messages>())?;
    messages
        .iter()
        .all(|message| is_message(message))
        .then_some(messages)
}

/// Returns a row of a log in the usual shape, where its sides are JSON in texts, or its messages have the fields of DSPy in their texts;
/// `None` for another row.
pub fn usual_row(row: &Value) -> Option<Value> {
    let record = row.as_object()?;
    // A chat store of LlamaIndex, or the memory around it, has a list for each conversation.
    let mut lists = object_of(first_at(row, "store chat_store/store")).values();
    if let (true, Some(list), None) = (is(row, "llama-index-store"), lists.next(), lists.next()) {
        let messages = Some(list).filter(|list| list_of(Some(list)).first().is_some_and(is_message));
        return messages.map(|list| object([("messages", list.clone())]));
    }
    let said = list_at(record, "outputs").first();
    if let Some((messages, reply)) = said.and_then(|said| by_fields(list_at(record, "messages"), said)) {
        let mut row = record.clone();
        row.insert("messages", messages);
        row.insert("response", reply);
        return Some(row.into());
    }
    // The next request of Responses has as a message what is a text in this one.
    let request = fields_of(record, "request");
    if let (Some(text @ Value::String(_)), Some(_)) = (request.get("input"), response_of(row)) {
        let mut request = request.clone();
        request.insert("input", vec![message_by("user", text.clone())]);
        let mut row = record.clone();
        row.insert("request", request);
        return Some(row.into());
    }
    // Events of PostHog, or their properties.
    let logged = Some(fields_of(record, "properties")).filter(|_| has_text(record, "event"));
    let get = |name: &str| logged.unwrap_or(record).get(name).cloned();
    if let Some(messages) = get("$ai_input") {
        let reply = some_object([("output", get("$ai_output_choices"))]);
        let [model, run] = ["$ai_model", "$ai_trace_id"].map(get);
        let sides = [
            ("messages", Some(messages)),
            ("response", Some(reply)),
            ("model", model),
            ("run_id", run),
        ];
        return Some(some_object(sides));
    }
    let side = |name: &str| {
        let text = record.get(name)?.as_str()?;
        let side = text.starts_with(['{', '[']).then(|| parse_str(text).ok())?;
        Some((name.into(), side?))
    };
    let sides: Vec<_> = words("asked").chain(words("replied")).filter_map(side).collect();
    if sides.is_empty() || messages_of(record).is_some() {
        return None;
    }
    let row: Object = record.clone().into_iter().chain(sides).collect();
    messages_of(&row).is_some().then(|| row.into())
}

/// How a field begins in texts of DSPy, and what follows the last of them.
const FIELD: [&str; 2] = ["[[ ## ", " ## ]]\n"];
const FIELDS_END: &str = "\n\nRespond with ";

/// Returns the fields in a text of DSPy, which may be JSON.
fn fields_in(text: &str) -> Object {
    if let Ok(Value::Object(fields)) = parse_str(text) {
        return fields;
    }
    let text = text.rsplit_once(FIELDS_END).map_or(text, |(fields, _)| fields);
    let fields = text.split(FIELD[0]).filter_map(|field| {
        let (name, text) = field.split_once(FIELD[1])?;
        Some((name.into(), text.trim().into()))
    });
    fields.collect()
}

/// Returns the reply of a model to DSPy, whose fields are these.
fn reply_by(said: &Object) -> Value {
    let part = |(name, text): (&Text, &Value)| match name.as_str() {
        "completed" | "next_tool_args" => None,
        "reasoning" => Some(object([("thinking", text.clone())])),
        "next_tool_name" => {
            let input = said.get("next_tool_args").cloned().unwrap_or_default();
            Some(object([("name", text.clone()), ("input", input)]))
        }
        _ => Some(object([("text", text.clone())])),
    };
    message_by("assistant", said.iter().filter_map(part).collect())
}

/// Returns what a model was asked by DSPy, with the steps so far, and the next step or the answer.
pub fn by_fields(asked: &[Value], said: &Value) -> Option<(Vec<Value>, Value)> {
    let asked = asked.last()?.get("content");
    let steps = fields_in(str_of(asked).filter(|asked| asked.starts_with(FIELD[0]))?);
    let said = fields_in(str_of(first_of(said, &["text", "content"]).or(Some(said)))?);
    let is_step = |name: &str| name == "trajectory" || name.ends_with(|end: char| end.is_ascii_digit());
    let asked = steps.iter().filter(|(name, _)| !is_step(name));
    let asked = joined(asked.filter_map(|(name, _)| text_at(&steps, name)), "\n\n");
    let steps = by_numbers(&steps)
        .unwrap_or_default()
        .into_iter()
        .map(Cow::into_owned);
    let messages = iter::once(message_by("user", asked.into())).chain(steps);
    Some((messages.collect(), reply_by(&said)))
}

/// Returns the messages of one side of a row for fine-tuning: a list in any form, or a text by somebody of this role.
fn side_of<'a>(record: &'a Object, name: &str, role: &str) -> Option<Messages<'a>> {
    match record.get(name)? {
        text @ Value::String(words) if !begins_messages(words) => {
            let turns = dialogue_in(words).or_else(|| marked_in(words, role));
            Some(turns.unwrap_or_else(|| vec![Cow::Owned(said_by(role, text, record))]))
        }
        Value::Array(list) if list.is_empty() => None,
        _ => list_in(record, name).or_else(|| list_in(fields_of(record, name), "messages")),
    }
}

/// Returns the message of a text that is a side of a row, which may have the calls of the answer beside it.
fn said_by(role: &str, text: &Value, record: &Object) -> Value {
    let calls = words("calls-field").filter_map(|name| Some((name, record.get(name)?.clone())));
    let calls = calls.filter(|_| role == "assistant");
    let fields = [("role", role.into()), ("content", text.clone())];
    object(fields.into_iter().chain(calls))
}

/// How the turns of a dialogue in one text begin, as the first data sets of preferences and of calls have them.
#[rustfmt::skip]
const TURNS: [(&str, &str); 5] = [
    ("\n\nHuman:", "user"), ("\n\nAssistant:", "assistant"), ("\n\nUSER:", "user"), ("\n\nASSISTANT:", "assistant"),
    ("\n\nFUNCTION RESPONSE:", "tool"),
];

/// Returns the turns of a dialogue in one text; `None` for another text.
fn dialogue_in(text: &str) -> Option<Messages<'static>> {
    let (mut messages, mut rest) = (Messages::new(), text);
    while let Some((begin, role)) = TURNS.iter().find(|(begin, _)| rest.starts_with(begin)) {
        let words = &rest[begin.len()..];
        let ends = TURNS.iter().filter_map(|(begin, _)| words.find(begin));
        let (words, after) = words.split_at(ends.min().unwrap_or(words.len()));
        messages.push(Cow::Owned(message_by(role, words.trim().into())));
        rest = after;
    }
    (messages.len() > 1).then_some(messages)
}

/// Returns the turns of a text that a chat template has made, which may begin within a turn of this role; `None` for another text. Only a
/// user's is one alone.
fn marked_in(text: &str, role: &str) -> Option<Messages<'static>> {
    let template = tags("template").iter().find(|[begin, _]| text.contains(begin))?;
    let (head_end, end) = template[1].split_once(' ').unwrap_or(("\n", template[1]));
    let (first, turns) = text.split_once(template[0])?;
    let turns = turns
        .split(template[0])
        .filter_map(|turn| turn.split_once(head_end).map(|(role, words)| (role, words, turn)));
    let turns = [(role, first, "")].into_iter().chain(turns);
    let message = |(head, words, whole): (&str, &str, &str)| {
        // The heads of gpt-oss say more than who speaks.
        let role = head.trim().split([' ', '<']).next()?;
        let words = words.trim_end().trim_end_matches(end).trim();
        let role = role.strip_prefix("functions.").map_or(role, |_| "tool");
        let whole = [template[0], whole].concat();
        let content = if head.trim() == role { words } else { &whole };
        (!words.is_empty() && !role.is_empty()).then(|| Cow::Owned(message_by(role, content.into())))
    };
    let messages: Messages = turns.filter_map(message).collect();
    (messages.len() > 1 || role == "user").then_some(messages)
}

/// Returns the messages of a state or a result of the OpenAI Agents SDK: what the agent was given, and its items.
fn state_of(record: &Object) -> Option<Messages<'_>> {
    let given = first_named(record, "run-input")?;
    let items = words("run-items").find_map(|name| record.get(name).filter(|list| is_truthy(Some(list))));
    let has_items = items.is_some() || given != record.get("input").unwrap_or(&Value::Null);
    has_items.then(|| [input_of(Some(given)), borrowed(list_of(items))].concat())
}

/// Returns whether a message is a turn of the user, and no result.
pub fn is_asked(message: &Value) -> bool {
    let is_answer = |part: &Part| match part {
        Part::Text(text) => text.starts_with(written::OBSERVATION),
        part => matches!(part, Part::Result { .. }),
    };
    let content = first_of(message, &["content", "parts", "blocks"]);
    role_of(message) == "user" && !parts_of(content).iter().any(is_answer)
}

/// Returns the messages of a result or a step of the AI SDK: what its request asked, and the replies of its steps, each of which has those
/// of the steps before too until version 7.
fn replied_in(record: &Object) -> Option<Messages<'_>> {
    let steps = list_at(record, "steps").iter().map(|step| object_of(Some(step)));
    let steps: Vec<_> = steps.collect();
    let steps = if steps.is_empty() { vec![record] } else { steps };
    let mut said: &[Value] = &[];
    let mut all = borrowed(list_at(record, "initialResponseMessages"));
    for step in &steps {
        let own = list_of(in_path(*step, "response/messages"));
        all.extend(borrowed(own.strip_prefix(said).unwrap_or(own)));
        said = own;
    }
    all.first().filter(|first| is_message(first))?;
    let body = parsed(in_path(*steps.first()?, "request/body"));
    let asked = messages_of(object_of(body.as_deref())).unwrap_or_default();
    // The request of a later step has the reply until then.
    let end = asked.iter().rposition(|message| is_asked(message));
    let asked = asked.into_iter().take(end.map_or(0, |at| at + 1));
    let asked = asked.map(|message| Cow::Owned(message.into_owned()));
    Some(asked.chain(all).collect())
}

/// Returns the messages of a row for fine-tuning: a prompt and its completion, or the chosen one of two answers.
fn pair_of(record: &Object) -> Option<Messages<'_>> {
    let chat = text_at(record, "chat").map(|chat| format!("\n\n{chat}"));
    let chat = chat.and_then(|chat| dialogue_in(&chat));
    if let Some(dialogue) = chat.or_else(|| marked_in(&text_at(record, "text")?, "")) {
        return Some(dialogue);
    }
    if let (Some(instruction), Some(output)) = (text_at(record, "instruction"), record.get("output")) {
        let input = text_at(record, "input").into_iter();
        let asked: Value = joined([instruction].into_iter().chain(input), "\n\n").into();
        let pairs = list_at(record, "history").iter();
        let before = pairs.flat_map(|pair| list_of(Some(pair)));
        let roles = ["user", "assistant"].into_iter().cycle();
        let said = before.chain([&asked, output]).zip(roles);
        let message = |(text, role): (&Value, &str)| Cow::Owned(message_by(role, text.clone()));
        return Some(said.map(message).collect());
    }
    let (name, mut answer) =
        words("answer").find_map(|name| Some((name, side_of(record, name, "assistant")?)))?;
    // Records of anything have an input and an output in words.
    let is_plain = |side: &Messages| side.len() == 1 && matches!(side[0], Cow::Owned(_));
    let mut prompts = words("asked-side").filter_map(|name| Some((name, side_of(record, name, "user")?)));
    let is_prompt = |(prompt, side): &(&str, Messages)| {
        *prompt == "prompt" || !is_plain(side) || !matches!(name, "response" | "output")
    };
    let Some((_, prompt)) = prompts.find(is_prompt) else {
        // Without a prompt, only a list has the question too.
        let is_whole = name == "chosen" && answer.len() > 1;
        return is_whole.then_some(answer);
    };
    // Some have the prompt in the answers too.
    if answer.starts_with(&prompt) {
        answer.drain(..prompt.len());
    }
    // llm has the results of the calls before beside the prompt.
    let results = list_at(record, "tool_results").to_vec();
    let results = (!results.is_empty()).then(|| Cow::Owned(message_by("tool", results.into())));
    Some([results.into_iter().collect(), prompt, answer].concat())
}

/// Returns whether a run of a team is that of one of its members, which another run has begun.
pub fn is_of_member(run: &impl Fields) -> bool {
    is_given(run.field("parent_run_id"))
}

/// Returns the messages of a record that is a conversation, in order; `None` for any other record.
pub fn messages_of(record: &Object) -> Option<Messages<'_>> {
    let replied = replied_to(record);
    // An input without a reply is that of a run.
    let asked = words("asked").filter(|name| *name != "input" || !replied.is_empty());
    let asked = asked
        .chain(words("holder"))
        .flat_map(|path| all_in_path(record, path));
    let mut asked = asked.filter_map(|inner| messages_of(inner.as_object()?));
    let own = by_parents(record).or_else(|| words("messages-field").find_map(|name| list_in(record, name)));
    if record.contains("agentName") && has_list(record, "prompt") {
        let [output, history] = ["output", "history"].map(|name| list_at(record, name));
        // An agent outside a network has its output in both.
        let history = history.strip_suffix(output).unwrap_or(history);
        let [prompt, results] = ["prompt", "toolCalls"].map(|name| list_at(record, name));
        return Some([prompt, history, output, results].map(borrowed).concat());
    }
    if let Some(replied) = replied_in(record).filter(|_| own.is_none()) {
        return Some(replied);
    }
    if let Some(asked) = own.or_else(|| asked.next()) {
        // LLaMA-Factory has the chosen answer beside the conversation.
        let chosen = record.get("chosen").filter(|chosen| is_message(chosen));
        let chosen = chosen.map(Cow::Borrowed).into_iter().collect();
        let mut reply = reply_of(record);
        let is_last = |reply: &Value| {
            let last = asked.last().map(|last| (role_of(&**last), last.get("content")));
            last == Some((role_of(reply), reply.get("content")))
        };
        reply.retain(|reply| !is_last(reply));
        let reply = if reply.is_empty() { replied } else { reply };
        return Some([asked, chosen, reply, made_in(record)].concat());
    }
    if let Some(messages) = pair_of(record).or_else(|| state_of(record)) {
        return Some(messages);
    }
    let output = list_of(record.get("output"));
    if output.first().is_some_and(is_message) || str_of(record.get("object")) == Some("response") {
        return Some([input_of(record.get("input")), borrowed(output)].concat());
    }
    // The request may have a text only, where its reply is in another field.
    let requests = words("asked").map(|name| fields_of(record, name).get("input"));
    let mut inputs = [record.get("input")].into_iter().chain(requests);
    let is_text = |input: &Option<&Value>| string_of(*input).is_some() && !replied.is_empty();
    let is_list = |input: &Option<&Value>| list_of(*input).first().is_some_and(is_message);
    if let Some(input) = inputs.find(|input| is_list(input) || is_text(input)) {
        return Some([input_of(input), replied].concat());
    }
    // A reply alone, as in the output of a batch.
    let body = record.get("body").and_then(Value::as_object);
    if let Some(message) = message_of(body.unwrap_or(record)) {
        return Some(vec![Cow::Borrowed(message)]);
    }
    if !replied.is_empty() && !record.contains("input") {
        return Some(replied);
    }
    let steps = by_actions(list_at(record, "history")).or_else(|| by_classes(list_at(record, "content")));
    if steps.is_some() {
        return steps;
    }
    // Runs of a session, which may have the history before them.
    let runs = ["runs", "tasks_output", JOINED]
        .into_iter()
        .flat_map(|name| list_at(record, name));
    let mut said = Messages::new();
    for run in runs
        .filter_map(Value::as_object)
        .filter(|run| !is_of_member(*run))
    {
        said.extend(messages_of(run).unwrap_or_default());
        // CrewAI has the answer beside the messages.
        let last = said.last().and_then(|last| last.get("content"));
        let answer = run.get("raw").filter(|raw| last != Some(*raw)).cloned();
        said.extend(answer.map(|raw| Cow::Owned(message_by("assistant", raw))));
    }
    said.retain(|message| !is_true(&**message, "from_history"));
    if !said.is_empty() {
        return Some(said);
    }
    // The longest list of messages, whatever its name, but of no answer that was turned down.
    let names = record.keys().filter(|name| !is_one(name, "turned-down"));
    let lists = names.filter_map(|name| list_in(record, name));
    let mut list = lists.filter(|list| !list.is_empty()).max_by_key(Vec::len)?;
    // APIs list the newest first.
    list.sort_by_cached_key(|message| date::of(message.get("created_at")));
    Some(list)
}

/// Returns the messages that nodes of a graph of LangGraph have added, as its stream of updates has them, or an agent of a network of
/// AgentKit; empty for another record.
pub fn updates_of(record: &Value) -> Vec<&Value> {
    if is(record, "agentkit-part") {
        let told = ["output", "toolCalls"].into_iter();
        return told.flat_map(|name| list_at(record, name)).collect();
    }
    let nodes = object_of(Some(record));
    let is_node = |(name, value): (&Text, &Value)| {
        !is_one(name, "no-node") && (value.is_null() || value.as_object().is_some())
    };
    let messages = nodes.values().flat_map(|node| elements_of(node.get("messages")));
    let messages: Vec<_> = messages.collect();
    let are_messages = messages.iter().all(|message| langchain::is_message(message));
    // What begins with the user's words and goes on is a whole conversation.
    let first = messages.first().and_then(|first| langchain::unwrapped(first));
    let is_whole = messages.len() > 1 && first.is_some_and(|(role, _)| matches!(role, "user" | "system"));
    if are_messages && !is_whole && nodes.iter().all(is_node) {
        messages
    } else {
        Vec::new()
    }
}

/// Returns what an event of one of LangGraph's streams has: a state in its `payload` or its `data`, else the record itself.
pub fn without_event(record: &Value) -> &Value {
    let is_told = |inner: &&Value| {
        is(inner, "langgraph-state")
            || list_at(*inner, "messages")
                .first()
                .is_some_and(langchain::is_message)
    };
    let inner = ["payload", "data"]
        .into_iter()
        .filter_map(|name| record.get(name));
    inner
        .filter(|_| has_text(record, "type") || has_text(record, "event"))
        .find(is_told)
        .unwrap_or(record)
}

/// Returns the values of a state of LangGraph, or of a checkpoint as its savers list them.
pub fn state_in(state: &Value) -> &Object {
    object_of(first_at(state, "values checkpoint/channel_values"))
}

/// Where rows that were joined are.
pub const JOINED: &str = "turns";

/// Returns the name of the response of a model that a row has, by its API of Responses.
pub fn response_of(row: &Value) -> Option<&Value> {
    let response = row.get("response").unwrap_or(row);
    response
        .get("id")
        .filter(|_| str_of(response.get("object")) == Some("response"))
}

pub fn borrowed(list: &[Value]) -> Messages<'_> {
    list.iter().map(Cow::Borrowed).collect()
}

fn input_of(input: Option<&Value>) -> Messages<'_> {
    match input {
        Some(text @ Value::String(_)) => vec![Cow::Owned(message_by("user", text.clone()))],
        input => borrowed(list_of(input)),
    }
}

/// Returns the model's reply: the message of the reply, a message of Anthropic, or items; empty without any of these.
fn reply_of(reply: &Object) -> Messages<'_> {
    if let Some(Value::Object(inner)) = first_at(reply, "body output/outputBodyJson") {
        return reply_of(inner);
    }
    // Genkit and Ollama have it beside the messages.
    let beside = || {
        let message = reply.get("message").filter(|message| is_message(message));
        message.filter(|message| role_of(*message) != "user")
    };
    if let Some(message) = message_of(reply).or_else(beside) {
        return vec![Cow::Borrowed(message)];
    }
    let is_message = str_of(reply.get("type")).is_none_or(|kind| kind == "message");
    let role = str_of(reply.get("role"));
    let is_agent = role == Some("assistant") && reply.contains("content");
    if is_message && (is_agent || role.is_none() && has_list(reply, "content")) {
        let mut reply = reply.clone();
        reply.insert("role", "assistant");
        return vec![Cow::Owned(reply.into())];
    }
    borrowed(list_of(reply.get("output")))
}

/// Returns the model's reply in a row of a log, beside its request; empty without one.
pub fn replied_to(row: &Object) -> Messages<'_> {
    let replies = words("replied").filter_map(|name| row.get(name)?.as_object());
    // Mastra has the messages of the AI SDK's reply in the record, too.
    let replies = replies.filter(|reply| !has_list(*reply, "messages"));
    replies
        .map(reply_of)
        .find(|reply| !reply.is_empty())
        .unwrap_or_default()
}

/// Returns what the agent of a task of A2A has said and made at its end, which its history lacks.
fn made_in(task: &Object) -> Messages<'_> {
    let said = in_path(task, "status/message")
        .filter(|message| is_message(message))
        .map(Cow::Borrowed);
    let parts = list_at(task, "artifacts")
        .iter()
        .filter_map(|made| made.get("parts"));
    let made = parts.map(|parts| Cow::Owned(message_by("assistant", parts.clone())));
    said.into_iter().chain(made).collect()
}

/// Returns the message that a reply has in a field of its own, by its API: Chat Completions, Converse, Google's kit or Gemini;
/// `None` without one.
fn message_of(reply: &Object) -> Option<&Value> {
    let choice = in_path(reply, "choices/0/message").filter(|message| message.as_object().is_some());
    let others = words("reply").filter_map(|path| in_path(reply, path));
    choice.or_else(|| others.into_iter().find(|message| is_message(message)))
}
