//! Calls that models write as text, in the styles of their chat templates: a table of openings, and the shapes of what is within.

use std::{mem, sync::LazyLock};

use knowledgepulse_json::{Object, Text, Value, json_object, parse_str};
use regex::Regex;

use crate::{
    contexts::inside,
    parts::{Call, Part},
    values::{
        elements_of, first_named, first_of, has_list, has_text, input_of, joined_parts, list_at, object_of,
        regex, str_of, text_at,
    },
    words::{is_one, row_where, tags, words},
};

/// What some models write before the names of elements.
const NAMESPACE: &str = "(?:｜DSML｜|longcat_|[a-z]+:)?";

fn element(expression: &str) -> Regex {
    regex(&expression.replace("NS", NAMESPACE))
}

/// Elements around calls.
static ELEMENT: LazyLock<Regex> =
    LazyLock::new(|| element("^<(NS(?:(?i-u:tool_?calls?)|function_?calls?|tool_use|invoke))>"));
static ANY_ELEMENT: LazyLock<Regex> = LazyLock::new(|| {
    element("<NS(?:(?i-u:tool_?calls?)|function_?calls?|tool_use|invoke)(?:>| name=)|<function=")
});

/// The element of a call, with its name in its tag. Kimi's models write elements in characters of their own.
static CALL: LazyLock<Regex> = LazyLock::new(|| {
    element(
        r"^(?:<(?:(NS(?:invoke|function_?call)|function)(?: name)?)|(?:<\|open\|>)?(call) tool)=([^<>]*)(?:<\|sep\|)?>",
    )
});

/// The element of an argument: with its name in its tag, or in an element before it, or of its name.
static ARGUMENT: LazyLock<Regex> = LazyLock::new(|| {
    element(
        r"^<(?:(NSparameter)(?: name)?=([^<>]*)|\|open\|>(argument) key=([^<>]*)<\|sep\||(NSarg_)key>([^<]*)</NSarg_key>[ \n]*<NSarg_value|([0-9A-Za-z_.:/-]+))>",
    )
});

/// Marks between the parts of a call and behind it.
static MARK: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?:function)?<｜tool_sep｜>|<tool_sep>|<[|｜][^<>|｜]*[|｜]>|\[(?:TOOL_CALLS|ARGS)\]|<<function>>|```[a-z]*|</s>",
    )
});

/// Where Mistral's models have the id of a call.
const ID_MARK: &str = "[CALL_ID]";

/// How the beginning of a line looks in a text with a call, in whatever style.
static LIKE: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r#"(?m)^[ \t]*(?:<[|｜/]?(?:[a-zA-Z_｜]+[:｜])?(?:tool|function)[a-z_▁]*call[a-z_▁]*[|｜]?>|<(?:function=|invoke name=|use_mcp_tool>)|\[TOOL_CALLS\]|✿FUNCTION✿|<<function>>|>>>[a-z_]+\n\{|<\|(?:channel|python_tag|tools_prefix|recipient)\|>|<start_function_call>|<execute_(?:ipython|bash)>|```python\ntool_call\(|\{"thought": *"|Action: *[^ \n].*\n+Action Input:)"#,
    )
});

/// A call of the ReAct style, up to its input, and what begins the next passage of such a text.
static ACTION: LazyLock<Regex> =
    LazyLock::new(|| regex(r"(?m)^[ \t]*Action: *([^\n]+)\n+[ \t]*Action Input:"));
static PASSAGE: LazyLock<Regex> =
    LazyLock::new(|| regex(r"(?m)^[ \t]*(?:Observation|Thought|Action|Final Answer):"));

/// How the result of such a call begins.
pub const OBSERVATION: &str = "Observation:";

/// So many elements within each other are read.
const MOST_LEVELS: u8 = 32;

/// The longest name of a tool, in bytes.
const LONGEST_NAME: usize = 128;

/// Returns whether a text has a line that looks like a call.
pub fn is_like_call(text: &str) -> bool {
    text.contains(['<', '[', ':', '`']) && LIKE.is_match(text)
}

/// Returns whether a text may have calls.
pub fn may_have_calls(text: &str) -> bool {
    let has = |kind| words(kind).any(|begin| text.contains(begin));
    has("call") || has("alone") || ANY_ELEMENT.is_match(text)
}

/// Reads the calls with which a text begins. `None` if it begins with none; `Some(None)` if they cannot be read.
pub fn read(text: &str) -> Option<Option<(Vec<Part>, &str)>> {
    if CALL.is_match(text) {
        return Some(call_of_element(text));
    }
    let opened = row_where("call", |begin| text.starts_with(begin));
    let opened = opened.map(|[begin, end]| (&text[begin.len()..], end.to_owned()));
    let (inner, end) = opened.or_else(|| enclosed(text))?;
    // Some templates end a turn without the end of its call.
    let ended = inner.split_once(&end).filter(|_| !end.is_empty());
    let (body, after) = ended.unwrap_or((inner, ""));
    // GLM's models write the name alone where there are no arguments.
    let is_alone =
        || is_name(body.trim()) && (after.trim().is_empty() || after.trim_start().starts_with('<'));
    let named_alone = || is_alone().then(|| vec![named(body.trim(), Object::new())]);
    Some(calls_in(body).or_else(named_alone).map(|calls| (calls, after)))
}

/// Returns the text behind the tag of an element around calls with which a text begins, and its end.
fn enclosed(text: &str) -> Option<(&str, String)> {
    let found = ELEMENT.captures(text)?;
    Some((&text[found[0].len()..], format!("</{}>", &found[1])))
}

/// Reads a call of one argument with which a text begins, and its result where the text has it.
pub fn alone(text: &str) -> Option<(Vec<Part>, &str)> {
    let [begin, style] = row_where("alone", |begin| text.starts_with(begin))?;
    let mut style = style.split(' ');
    let (body, after) = between(text, [begin, style.next()?])?;
    let tool = style.next()?;
    let body = MARK.replace_all(body, "");
    let args = style.map(|argument| (argument.into(), body.trim().into()));
    let call = named(tool, args.collect());
    let rest = after.trim_start();
    match tags("inner-result").iter().find_map(|tags| between(rest, *tags)) {
        Some((result, after)) => Some((vec![call, Part::observed(result)], after)),
        // Memories of smolagents have such code as a call too.
        None => (rest.is_empty() && begin != "<code>").then(|| (vec![call], "")),
    }
}

/// Returns the calls that a text is made of, in any shape; `None` if it is anything else.
pub fn calls_in(text: &str) -> Option<Vec<Part>> {
    let (mut calls, mut rest) = (Vec::new(), without_marks(text.trim_end()));
    while !rest.is_empty() {
        let (found, after) = shape(rest)?;
        calls.extend(found);
        rest = without_marks(after.trim_start().trim_start_matches([',', ';']));
    }
    (!calls.is_empty()).then_some(calls)
}

/// Returns the calls of a text that is made of nothing else, without an opening: a list as Python writes it, or objects in JSON that have
/// nothing but a name and arguments.
pub fn bare_calls_in(text: &str) -> Option<Vec<Part>> {
    let text = text.trim();
    let text = words("call-head")
        .find_map(|head| text.strip_prefix(head))
        .unwrap_or(text);
    let block = text.trim_start().strip_prefix("```json");
    let fenced = block.and_then(|text| text.trim_end().strip_suffix("```"));
    let text = fenced.unwrap_or(text).trim();
    if !text.starts_with(['[', '{']) || !text.ends_with([']', '}']) {
        return None;
    }
    let python = || literal(text).filter(|(_, after)| after.is_empty());
    let value = parse_str(text).ok().or_else(|| Some(python()?.0))?;
    let is_call = |call: &Value| {
        let fields = object_of(Some(call));
        let has_args = first_named(call, "call-arguments").is_some_and(|args| args.as_object().is_some());
        has_args && Call::of(call).name.is_some() && fields.keys().all(|name| is_one(name, "call-field"))
    };
    elements_of(Some(&value))
        .iter()
        .all(is_call)
        .then(|| calls_of(&value))?
}

/// Returns what a reply of Terminus says: its analysis and its plan, and a call for each of its commands. `None` for another text.
pub fn commands_in(text: &str) -> Option<Vec<Part>> {
    if !text.contains("keystrokes") && !text.contains("\"commands\"") {
        return None;
    }
    let (thoughts, commands) = match text.find('{').and_then(|at| literal(&text[at..])) {
        Some((reply, _)) if has_list(&reply, "commands") => {
            let thoughts = words("terminus-thought")
                .filter_map(|name| text_at(&reply, name))
                .collect();
            let commands = list_at(&reply, "commands").iter();
            let commands = commands.map(|command| object_of(Some(command)).clone());
            (thoughts, commands.collect())
        }
        _ => commands_of_xml(text)?,
    };
    let is_command = |command: &Object| has_text(command, "keystrokes");
    if !commands.iter().all(is_command) || (thoughts.is_empty() && commands.is_empty()) {
        return None;
    }
    let thought = Some(joined_parts(thoughts)).filter(|text| !text.is_empty());
    let thought = thought.map(|text| Part::Thought(Some(text))).into_iter();
    let commands = commands.into_iter().map(|command| named("terminal", command));
    Some(thought.chain(commands).collect())
}

/// Returns the words and the call of a text that ends with its only block, as SWE-agent and mini-SWE-agent have it; `None` for another text.
pub fn block_in(text: &str) -> Option<Vec<Part>> {
    const FENCE: &str = "```";
    let text = text.trim();
    let (words, block) = text.strip_suffix(FENCE)?.split_once(FENCE)?;
    let [_, before] = row_where("shell-agent", |begin| text.starts_with(begin))?;
    let words = words.trim().strip_suffix(before)?;
    let (language, command) = block
        .split_once('\n')
        .filter(|(_, command)| !command.contains(FENCE))?;
    let name = match language.trim() {
        "" => command.split_whitespace().next()?,
        "mswea_bash_command" | "sh" => "bash",
        "py" => "python",
        language => language,
    };
    let args = [("command".into(), command.trim().into())].into_iter().collect();
    is_name(name).then(|| vec![Part::Text(words.trim().into()), named(name, args)])
}

/// Returns the thoughts and the commands of a reply of Terminus in XML.
fn commands_of_xml(text: &str) -> Option<(Vec<Text>, Vec<Object>)> {
    let mut rest = inside(text, "commands")?.1;
    let mut commands = Vec::new();
    while let Some((_, after)) = rest.split_once("<keystrokes") {
        let (keys, after) = after.split_once("</keystrokes>")?;
        let (_, keys) = keys.split_once('>')?;
        commands.push([("keystrokes".into(), keys.into())].into_iter().collect());
        rest = after;
    }
    let thoughts = words("terminus-thought").filter_map(|name| Some(inside(text, name)?.1.trim().into()));
    Some((thoughts.collect(), commands))
}

/// Returns what a text of the ReAct style says: its words, its calls, and the results behind them. `None` for a text without a call.
pub fn react_in<'t>(text: &'t str) -> Option<Vec<Part>> {
    let words = |text: &str| Some(Part::Text(text.trim().into())).filter(|_| !text.trim().is_empty());
    let passage = |text: &'t str| text.split_at(PASSAGE.find(text).map_or(text.len(), |next| next.start()));
    let (mut parts, mut rest) = (Vec::new(), text);
    while let Some(found) = ACTION.captures(rest) {
        let name = found[1].trim();
        if !is_name(name) {
            break;
        }
        parts.extend(words(&rest[..found.get_match().start()]));
        let (input, after) = passage(&rest[found.get_match().end()..]);
        parts.push(Part::called(name, input));
        rest = after;
        while let Some(result) = rest.trim_start().strip_prefix(OBSERVATION) {
            // CrewAI repeats the format behind a failure.
            let result = result.split("\nMoving on then.").next()?;
            let (result, after) = passage(result);
            parts.extend(words(result).map(|_| Part::observed(result)));
            rest = after;
        }
    }
    (!parts.is_empty()).then(|| parts.into_iter().chain(words(rest)).collect())
}

/// Reads one of the shapes of calls, with which a text begins.
fn shape(text: &str) -> Option<(Vec<Part>, &str)> {
    if let Some(call) = call_of_element(text) {
        return Some(call);
    }
    if let Some((inner, end)) = enclosed(text) {
        let (body, after) = inner.split_once(&end)?;
        return Some((calls_in(body)?, after));
    }
    // Claude 2 has the name of a tool and its parameters in elements.
    let servers = ["<server_name>", "<tool_name>", "<name>"];
    if servers.iter().any(|tag| text.starts_with(tag)) {
        return Some((vec![of_server(text)?], ""));
    }
    if text.starts_with(['{', '[']) {
        return read_calls(text);
    }
    let (name, arguments) = text.split_at(text.find('<').unwrap_or(text.len()));
    let arguments = without_marks(arguments);
    if is_name(name.trim()) && ARGUMENT.is_match(arguments) {
        return Some((vec![named(name.trim(), arguments_in(arguments)?)], ""));
    }
    let head = text.strip_prefix("call:").unwrap_or(text);
    let is_function = head.split_once('(').is_some_and(|(name, _)| !name.contains('{'));
    if !is_function {
        return of_head(head);
    }
    read_calls(head)
}

/// Reads the calls of an object, a list or a call with which a text begins.
fn read_calls(text: &str) -> Option<(Vec<Part>, &str)> {
    let (value, after) = literal(text)?;
    Some((calls_of(&value)?, after))
}

fn named(name: &str, args: Object) -> Part {
    Part::Call(Call::named(name, args))
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= LONGEST_NAME
        && text
            .chars()
            .all(|character| character.is_alphanumeric() || "_-.:/".contains(character))
}

/// Returns the text between a tag, with which the given text begins, and its end, and the rest.
pub fn between<'t>(text: &'t str, [begin, end]: [&str; 2]) -> Option<(&'t str, &'t str)> {
    text.strip_prefix(begin)?.split_once(end)
}

/// Returns a text without the white space and the marks with which it begins.
fn without_marks(text: &str) -> &str {
    let mut rest = text.trim_start();
    while let Some(mark) = MARK.find(rest).filter(|mark| mark.start() == 0) {
        rest = rest[mark.end()..].trim_start();
    }
    rest
}

/// Returns the calls in an object or a list of JSON; `None` if one has no name. Apertus has the name as the only field.
fn calls_of(value: &Value) -> Option<Vec<Part>> {
    let alone = |value: &Value| match object_of(Some(value)).iter().collect::<Vec<_>>()[..] {
        [(name, Value::Object(args))] if is_name(name) => Some(named(name, args.clone())),
        _ => None,
    };
    let call_in = |value: &Value| match Call::of(value) {
        call if call.name.is_some() => Some(Part::Call(call)),
        _ => alone(value),
    };
    elements_of(Some(value)).iter().map(call_in).collect()
}

/// Reads the call of an element with which a text begins.
fn call_of_element(text: &str) -> Option<(Vec<Part>, &str)> {
    let (tag, arguments, after) = split_element(text, &CALL)?;
    Some((vec![named(unquoted(tag), arguments_in(arguments)?)], after))
}

/// Splits an element with which a text begins: its name, with what its tag has behind it, its body, and the text behind it.
fn split_element<'t>(text: &'t str, begin: &Regex) -> Option<(&'t str, &'t str, &'t str)> {
    let found = begin.captures(text)?;
    let mut groups = found.iter().skip(1).flatten().map(|group| group.as_str());
    let tag = groups.next()?;
    let end = match tag {
        tag if tag.ends_with("arg_") => format!("</{tag}value>"),
        tag if !text[1..].starts_with(tag) => format!("<|close|>{tag}<|sep|>"),
        tag => format!("</{tag}>"),
    };
    let (body, after) = text[found[0].len()..].split_once(&end)?;
    Some((groups.next().unwrap_or(tag), body, after))
}

/// Returns the arguments in a text: in elements, or an object in JSON. `None` if it is anything else.
fn arguments_in(text: &str) -> Option<Object> {
    let object = Some(text.trim()).filter(|text| text.starts_with('{'));
    if let Some((Value::Object(args), "")) = object.and_then(literal) {
        return Some(args);
    }
    let args: Object = elements_in(text, MOST_LEVELS).into_iter().collect();
    (!args.is_empty() || text.trim().is_empty()).then_some(args)
}

/// Returns the names and the values of the elements that a text has. MiniMax' models write values of values as elements, and lists as `item`s.
fn elements_in(text: &str, levels: u8) -> Vec<(Text, Value)> {
    let (mut elements, mut rest) = (Vec::new(), text);
    while let Some((tag, value, after)) = split_element(rest.trim_start(), &ARGUMENT) {
        let value = value.trim_matches('\n');
        let kind = tag.split_once(" type=").map(|(_, kind)| kind != "\"string\"");
        let is_json = kind.unwrap_or_else(|| tag.ends_with("string=\"false\""));
        let json = is_json.then(|| parse_str(value).ok()).flatten();
        let own = tag.strip_prefix("minimax:");
        let has_inner = levels > 0 && value.trim_start().starts_with("<minimax:");
        let inner = has_inner.then(|| elements_in(value, levels - 1));
        let value = match inner.filter(|inner| !inner.is_empty()) {
            Some(inner) if inner.iter().all(|(name, _)| *name == "item") => {
                inner.into_iter().map(|(_, value)| value).collect()
            }
            Some(inner) => Value::Object(inner.into_iter().collect()),
            None => json.unwrap_or_else(|| value.into()),
        };
        elements.push((own.unwrap_or(unquoted(tag.trim())).into(), value));
        rest = after;
    }
    elements
}

/// Returns a name without the quotes around it, and without attributes behind it.
fn unquoted(name: &str) -> &str {
    let quoted = name.strip_prefix('"').and_then(|name| name.split('"').next());
    quoted.unwrap_or(name)
}

/// Returns the call of a tool whose name and arguments are in elements, perhaps of a server of the Model Context Protocol.
fn of_server(text: &str) -> Option<Part> {
    let fields = arguments_in(text)?;
    let args = first_of(&fields, &["arguments", "parameters"]);
    let inner = str_of(args).filter(|args| args.trim_start().starts_with('<'));
    let inner = inner.and_then(arguments_in).map(Value::from);
    Some(Part::Call(Call {
        server: text_at(&fields, "server_name"),
        ..Call::named(
            text_at(&fields, "tool_name").or_else(|| text_at(&fields, "name"))?,
            input_of(inner.as_ref().or(args)),
        )
    }))
}

/// Returns a call whose name stands before an object in JSON, and the text behind it.
fn of_head(text: &str) -> Option<(Vec<Part>, &str)> {
    let (head, _) = text.split_once('{')?;
    let (args, after) = literal(&text[head.len()..])?;
    let (head, id) = head
        .split_once(ID_MARK)
        .map_or((head, None), |(head, id)| (head, Some(id)));
    let clean = |text: &str| {
        let text = MARK.replace_all(text, "\n");
        text.lines()
            .map(str::trim)
            .rfind(|line| !line.is_empty())
            .map(str::to_owned)
    };
    let name = clean(head).filter(|name| is_name(name))?;
    // Kimi's models count their calls: `functions.NAME:0` is the id.
    let counted = name
        .strip_prefix("functions.")
        .and_then(|name| name.rsplit_once(':'));
    let counted = counted.map(|(own, _)| own.to_owned());
    let id = id
        .and_then(clean)
        .or_else(|| counted.as_ref().map(|_| name.clone()));
    let call = Call {
        id: id.map(Text::from),
        ..Call::named(counted.unwrap_or(name), input_of(Some(&args)))
    };
    Some((vec![Part::Call(call)], after))
}

/// What stands around a text: in JSON, in Python, and in the calls of Gemma's models.
const QUOTES: [&str; 4] = ["\"", "'", "<escape>", "<|\"|>"];

/// How a list of calls and a call end, whose arguments are in the second object of JSON.
const END_OF_LIST: [&str; 2] = ["]", "]"];
const END_OF_CALL: [&str; 2] = [")", "}}"];

/// A text, the head of a call, a mark or a word.
static TOKEN: LazyLock<Regex> = LazyLock::new(|| {
    let word = r#"[^ \t\r\n,:=\[\](){}"']"#;
    let text = r#"(?s:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|<escape>.*?<escape>|<\|"\|>.*?<\|"\|>)"#;
    regex(&format!(
        r"^[ \t\r\n]*(?:{text}|{word}(?:[ :]?{word})* *\(|[\[\](){{}},:=]|{word}+)"
    ))
});

/// Returns the object, the list or the call with which a text begins, in JSON or as Python and Gemma's models write it, and the text behind
/// it. A call, `NAME(KEY=VALUE, …)`, is an object with a name and arguments.
pub fn literal(text: &str) -> Option<(Value, &str)> {
    // In JSON; by what is open, how it ends there and here; the last word, which may be a name.
    let (mut json, mut open, mut word) = (String::new(), Vec::<[&str; 2]>::new(), 0..0);
    let mut rest = text;
    loop {
        let found = TOKEN.find(rest)?;
        rest = &rest[found.end()..];
        let before = mem::take(&mut word);
        match (found.as_str().trim_start(), open.last().copied()) {
            ("{", _) => {
                json.push('{');
                open.push(["}", "}"]);
            }
            (list @ ("[" | "("), _) => {
                json.push('[');
                open.push(if list == "[" { END_OF_LIST } else { [")", "]"] });
            }
            (token, Some([end, closing])) if token == end => {
                json.truncate(json.strip_suffix(',').unwrap_or(&json).len());
                json.push_str(closing);
                open.pop();
                if open.is_empty() {
                    return Some((parse_str(&json).ok()?, rest));
                }
            }
            (",", Some(_)) => json.push(','),
            (":", Some(["}", _])) | ("=", Some(END_OF_CALL)) => {
                if !before.is_empty() {
                    let name = Value::from(&json[before.clone()]).to_json();
                    json.replace_range(before, &name);
                }
                json.push(':');
            }
            (head, None | Some(END_OF_LIST)) if open.len() < 2 && head.ends_with('(') => {
                let name = called_by(head)?.into();
                json.push_str(&json_object! { "name": Value::String(name) }.to_json());
                json.pop();
                json.push_str(",\"arguments\":{");
                open.push(END_OF_CALL);
            }
            (token, Some(_)) => {
                let start = json.len();
                let quote = QUOTES.into_iter().find(|quote| token.starts_with(quote));
                match (quote, token) {
                    (Some(quote), _) => json.push_str(&quoted(token, quote)?),
                    (None, "True" | "False") => json.push_str(&token.to_ascii_lowercase()),
                    (None, "None") => json.push_str("null"),
                    _ => json.push_str(token),
                }
                word = start..if quote.is_some() { start } else { json.len() };
            }
            _ => return None,
        }
    }
}

/// Returns the tool of the head of a call. Those that Llama's models know are called by a method.
fn called_by(head: &str) -> Option<&str> {
    let name = head.strip_suffix('(')?.trim_end();
    let is_one = is_name(&name.replace(' ', "_"))
        && name.starts_with(|first: char| first.is_alphabetic() || first == '_');
    is_one.then(|| name.strip_suffix(".call").unwrap_or(name))
}

/// Returns a text between quotes in JSON.
fn quoted(token: &str, quote: &str) -> Option<String> {
    let text = token.strip_prefix(quote)?.strip_suffix(quote)?;
    if quote.len() > 1 {
        return Some(Value::from(text).to_json());
    }
    let (mut json, mut characters) = (String::from('"'), text.chars());
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next()? {
                '\'' => json.push('\''),
                'x' => json.push_str("\\u00"),
                next => json.extend(['\\', next]),
            },
            '"' => json.push_str("\\\""),
            '\n' => json.push_str("\\n"),
            character => json.push(character),
        }
    }
    json.push('"');
    Some(json)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the calls of a text as lines: the id, the name, and the arguments in JSON.
    fn lines(parts: Option<Vec<Part>>) -> Vec<String> {
        let line = |part| match part {
            Part::Call(Call {
                id,
                name,
                args,
                server,
            }) => {
                let named = [server, id, name]
                    .into_iter()
                    .flatten()
                    .map(|text| text.to_string());
                format!(
                    "{} {}",
                    named.collect::<Vec<_>>().join(" "),
                    Value::from(args).to_json()
                )
            }
            part => panic!("{part:?}"),
        };
        parts.into_iter().flatten().map(line).collect()
    }

    #[test]
    fn read_takes_the_calls_of_each_style_to_their_end() {
        let stock = r#"stock {"sku":"B-12"}"#;
        for (text, calls) in [
            (
                "<tool_call>\n{\"name\":\"stock\",\"arguments\":{\"sku\":\"B-12\"}}\n</tool_call>!",
                &[stock][..],
            ),
            (
                "<tool_call>stock\n<arg_key>sku</arg_key>\n<arg_value>B-12</arg_value>\n</tool_call>!",
                &[stock],
            ),
            (
                "<tool_call>stock<arg_key>sku</arg_key><arg_value>B-12</arg_value></tool_call>!",
                &[stock],
            ),
            ("<tool_call>stock\n</tool_call>", &["stock {}"]),
            (
                "<tool_call>\n<function=stock>\n<parameter=sku>\nB-12\n</parameter>\n</function>\n</tool_call>!",
                &[stock],
            ),
            ("<function=stock>{\"sku\": \"B-12\"}</function>!", &[stock]),
            (
                "<tool_calls>\n{\"name\":\"stock\",\"arguments\":{\"sku\":\"B-12\"}}\n{\"name\":\"list\",\"arguments\":{}}\n</tool_calls>!",
                &[stock, "list {}"],
            ),
            (
                "<minimax:tool_call>\n<invoke name=\"stock\">\n<parameter name=\"sku\">B-12</parameter>\n</invoke>\n<invoke name=\"list\">\n</invoke>\n</minimax:tool_call>!",
                &[stock, "list {}"],
            ),
            (
                "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"stock\">\n<｜DSML｜parameter name=\"sku\" string=\"true\">3</｜DSML｜parameter>\n<｜DSML｜parameter name=\"n\" string=\"false\">3</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>!",
                &[r#"stock {"sku":"3","n":3}"#],
            ),
            (
                "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>stock<｜tool▁sep｜>{\"sku\":\"B-12\"}<｜tool▁call▁end｜><｜tool▁call▁begin｜>list<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>!",
                &[stock, "list {}"],
            ),
            (
                "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>stock\n```json\n{\"sku\":\"B-12\"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>!",
                &[stock],
            ),
            (
                "<|tool_calls_section_begin|><|tool_call_begin|>functions.stock:0<|tool_call_argument_begin|>{\"sku\":\"B-12\"}<|tool_call_end|><|tool_call_begin|>functions.list:1<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>!",
                &[
                    r#"functions.stock:0 stock {"sku":"B-12"}"#,
                    "functions.list:1 list {}",
                ],
            ),
            (
                "[TOOL_CALLS]stock[ARGS]{\"sku\":\"B-12\"}[TOOL_CALLS]list[ARGS]{}",
                &[stock, "list {}"],
            ),
            (
                "[TOOL_CALLS]stock[CALL_ID]a1[ARGS]{\"sku\":\"B-12\"}</s>",
                &[r#"a1 stock {"sku":"B-12"}"#],
            ),
            (
                "[TOOL_CALLS] [{\"name\":\"stock\",\"arguments\":{\"sku\":\"B-12\"},\"id\":\"a1\"}]",
                &[r#"a1 stock {"sku":"B-12"}"#],
            ),
            (
                "<|python_start|>[stock(sku='B-12'), list()]<|python_end|>!",
                &[stock, "list {}"],
            ),
            (
                "<|python_tag|>{\"name\":\"stock\",\"parameters\":{\"sku\":\"B-12\"}}",
                &[stock],
            ),
            ("```tool_code\nstock(sku=\"B-12\")\n```!", &[stock]),
            (
                "<|tools_prefix|>[{\"stock\": {\"sku\": \"B-12\"}}, {\"list\": {}}]<|tools_suffix|>!",
                &[stock, "list {}"],
            ),
            (
                "<start_function_call>call:stock{sku:<escape>B-12<escape>,n:3,at:{x:[1]}}<end_function_call>!",
                &[r#"stock {"sku":"B-12","n":3,"at":{"x":[1]}}"#],
            ),
            (
                "<|tool_call>call:stock{sku:<|\"|>a, b: \"c\"<|\"|>}<tool_call|>!",
                &[r#"stock {"sku":"a, b: \"c\""}"#],
            ),
            (
                "<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name=\"stock\"><steptml:parameter name=\"sku\">B-12</steptml:parameter></steptml:invoke><｜tool_call_end｜><｜tool_calls_end｜>!",
                &[stock],
            ),
            (
                "<function_calls>\n<invoke>\n<tool_name>stock</tool_name>\n<parameters>\n<sku>B-12</sku>\n<at>0</at>\n</parameters>\n</invoke>\n</function_calls>!",
                &[r#"stock {"sku":"B-12","at":"0"}"#],
            ),
            (
                "<|open|>tools<|sep|><|open|>call tool=\"stock\" index=\"1\"<|sep|><|open|>argument key=\"sku\" type=\"string\"<|sep|>12<|close|>argument<|sep|><|open|>argument key=\"n\" type=\"number\"<|sep|>3<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>!",
                &[r#"stock {"sku":"12","n":3}"#],
            ),
            (
                "<xai:function_call name=\"stock\">\n<parameter name=\"sku\">B-12</parameter>\n</xai:function_call>!",
                &[stock],
            ),
            (
                "<function=stock>\n<parameter=sku>\n<xsl:param name=\"a\"/><f:function/></parameter>\n</function>!",
                &[r#"stock {"sku":"<xsl:param name=\"a\"/><f:function/>"}"#],
            ),
            (
                "<minimax:tool_call>\n<minimax:invoke name=\"stock\"><minimax:sku><b>12</b></minimax:sku><minimax:at><minimax:x><minimax:item>1</minimax:item></minimax:x></minimax:at></minimax:invoke>\n</minimax:tool_call>!",
                &[r#"stock {"sku":"<b>12</b>","at":{"x":["1"]}}"#],
            ),
            (
                "<function_call> {\"name\": \"stock\", \"arguments\": '{\"sku\": \"B-12\"}'} </function_call>!",
                &[stock],
            ),
            (
                "<new:tool_call>{\"name\":\"stock\",\"arguments\":{\"sku\":\"B-12\"}}</new:tool_call>!",
                &[stock],
            ),
            (
                "<|START_ACTION|>[{\"tool_call_id\":\"0\",\"tool_name\":\"stock\",\"parameters\":{\"sku\":\"B-12\"}}]<|END_ACTION|>!",
                &[r#"0 stock {"sku":"B-12"}"#],
            ),
            (
                "<use_mcp_tool>\n<server_name>shop</server_name>\n<tool_name>stock</tool_name>\n<arguments>\n{\"sku\":\"B-12\"}\n</arguments>\n</use_mcp_tool>!",
                &[r#"shop stock {"sku":"B-12"}"#],
            ),
        ] {
            let (parts, after) = read(text).flatten().unwrap_or_else(|| panic!("{text}"));
            assert_eq!(lines(Some(parts)), calls, "{text}");
            assert_eq!(after, if text.ends_with('!') { "!" } else { "" }, "{text}");
        }
    }

    #[test]
    fn read_takes_no_call_whose_arguments_it_cannot_read() {
        for text in [
            "<function=stock>B-12</function>",
            "<tool_call><invoke name=\"stock\">sku: B-12</invoke></tool_call>",
        ] {
            assert_eq!(read(text), Some(None), "{text}");
        }
    }

    #[test]
    fn alone_reads_a_call_of_one_argument_with_its_result_or_at_the_end() {
        let search = [r#"search {"query":"tides"}"#];
        let (parts, after) = alone("<search> tides </search>\n\n<information>high</information> So").unwrap();
        assert_eq!(lines(Some(parts[..1].to_vec())), search);
        assert_eq!(parts[1], Part::result(None, Some(&"high".into()), None));
        assert_eq!(after, " So");
        let (parts, _) = alone("<search>tides</search>").unwrap();
        assert_eq!(lines(Some(parts)), search);
        for text in [
            "<search>tides</search> is a tag",
            "<code>npm i</code>",
            "<search>tides",
        ] {
            assert_eq!(alone(text), None, "{text}");
        }
    }

    #[test]
    fn block_in_reads_the_only_block_at_the_end_of_a_text_with_a_thought() {
        for (text, call) in [
            (
                "THOUGHT: I look.\n\n```bash\nls -a\n```",
                Some(r#"bash {"command":"ls -a"}"#),
            ),
            (
                "DISCUSSION\nI look.\n\n```\nopen a.py\n```\n",
                Some(r#"open {"command":"open a.py"}"#),
            ),
            (
                "Thought: I look.\nCode:\n```py\nprint(1)\n```",
                Some(r#"python {"command":"print(1)"}"#),
            ),
            ("Thought: It is so.\n```py\nprint(1)\n```", None),
            ("THOUGHT: Either.\n```bash\na\n```\n```bash\nb\n```", None),
            ("THOUGHT: Run\n```bash\na\n```\nnow.", None),
            ("I look.\n```bash\nls\n```", None),
        ] {
            let calls = block_in(text).map(|parts| lines(Some(parts[1..].to_vec())));
            assert_eq!(calls, call.map(|call| vec![call.to_owned()]), "{text}");
        }
    }

    #[test]
    fn bare_calls_in_reads_texts_of_nothing_but_calls() {
        for (text, calls) in [
            (
                r#"[Tide Table(port="Husum", at=[1, (2, None)], who='it\'s "a"'), b.c(x=True)]"#,
                &[
                    r#"Tide Table {"port":"Husum","at":[1,[2,null]],"who":"it's \"a\""}"#,
                    r#"b.c {"x":true}"#,
                ][..],
            ),
            (r#"{"name": "a", "parameters": {"x": 1}}"#, &[r#"a {"x":1}"#]),
            ("```json\n[{\"name\": \"a\", \"arguments\": {}}]\n```", &["a {}"]),
            (r#"functools[{"name": "a", "arguments": {}}]"#, &["a {}"]),
            (
                r#"[{"name": "a", "arguments": {}}, {"name": "b", "arguments": {}}]"#,
                &["a {}", "b {}"],
            ),
            (r#"{"name": "a", "parameters": {}, "age": 5}"#, &[]),
            (r#"{"name": "a"}"#, &[]),
            ("[see a(b)]", &[]),
            ("[a(x=1)] is a call", &[]),
            ("[1, 2]", &[]),
            ("[]", &[]),
        ] {
            assert_eq!(lines(bare_calls_in(text)), calls, "{text}");
        }
    }

    #[test]
    fn is_like_call_holds_for_lines_that_begin_as_calls_do() {
        for (text, is_like) in [
            ("I look.\n<|tool_call|>stock:B-12", true),
            ("<new:tool_call>stock</new:tool_call>", true),
            ("Action: search\nAction Input: tides", true),
            ("stock\n```python\ntool_call(sku='B-12')\n```", true),
            ("{\"thought\": \"Hm.\", \"tool_calls\": []}", true),
            ("✿FUNCTION✿: search\n✿ARGS✿: {}", true),
            (">>>search\n{\"query\": \"tides\"}", true),
            (">>> search(1)\n2", false),
            ("Write <tool_call> to call a tool.", false),
            ("Action: none", false),
            ("[1](a)", false),
        ] {
            assert_eq!(is_like_call(text), is_like, "{text}");
        }
    }
}
