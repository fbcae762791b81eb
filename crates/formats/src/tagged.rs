//! Reasoning, calls and results that open models write in their texts, as chat templates and prompts have them.

use knowledgepulse_json::{Value, parse_str};

use crate::{
    contexts::inside,
    parts::{Call, Part, parts_in, parts_of},
    values::{elements_of, first_of, has_text, list_of, object_of},
    words::{row_where, tags, words},
    written::{
        alone, bare_calls_in, between, block_in, calls_in, commands_in, may_have_calls, react_in, read,
    },
};

/// The tag of most reasoning, whose beginning may be in the prompt.
const THOUGHT: [&str; 2] = ["<think>", "</think>"];

/// What those of smolagents and Kimi's models are given before a result: the id of its call follows.
const NAMED: [&str; 2] = ["Call id: ", "## Return of "];

/// Where gpt-oss says whose words follow, and where these end.
const MESSAGE: &str = "<|message|>";
const ENDS: [&str; 5] = ["<|end|>", "<|call|>", "<|return|>", "<|start|>", "<|channel|>"];

/// What Solar's models are given before a result, behind the name of its tool.
const RESULT_MARK: &str = "<|tool_response:result|>";

/// What memories of smolagents have before calls.
const CALLING: &str = "Calling tools:";

/// A text with so many tags that cannot be read goes on as plain text, because each of them is read up to the end of the text.
const MOST_BROKEN: usize = 16;

/// What stands at a `<` in a text.
pub enum Tag<'t> {
    /// A tag that stands for these parts, and the text behind its end.
    Parts(Vec<Part>, &'t str),
    /// A tag that cannot be read.
    Broken,
    /// Plain text.
    None,
}

/// Splits a text into parts. `read` gets the plain text before a `<`, a `[` or a backtick, since the tag before, and the text from there.
pub fn split<'t>(text: &'t str, read: impl Fn(&str, &'t str) -> Tag<'t>) -> Pieces {
    let (mut parts, mut rest, mut broken) = (Pieces::default(), text, 0);
    while broken < MOST_BROKEN
        && let Some(start) = rest.find(['<', '[', '`'])
    {
        let (before, tagged) = rest.split_at(start);
        parts.plain.push_str(before);
        let tag = read(&parts.plain, tagged);
        if let Tag::Parts(list, after) = tag {
            parts.flush();
            parts.list.extend(list);
            rest = after;
        } else {
            broken += usize::from(matches!(tag, Tag::Broken));
            parts.plain.push_str(&tagged[..1]);
            rest = &tagged[1..];
        }
    }
    parts.plain.push_str(rest);
    parts
}

/// Returns the parts of a content by somebody of this role: what is in tags of its text, or else what it holds.
pub fn parts_by(role: &str, content: Option<&Value>) -> Vec<Part> {
    let text = content.and_then(Value::as_str);
    // Memories of smolagents have a list of one part.
    let only = || match list_of(content) {
        [part] => part.get("text")?.as_str(),
        _ => text,
    };
    let tagged = match role {
        "assistant" => text.and_then(parts_of_model),
        "user" => text.and_then(|text| parts_of_results(text, &["result"])),
        "calls" => only().and_then(|text| {
            let calls = text.strip_prefix(CALLING).unwrap_or(text);
            calls_in(calls).or_else(|| parts_of_model(text))
        }),
        "tool" => only().and_then(|text| {
            let observed = || words("observed").find_map(|head| text.strip_prefix(head));
            let channels = || text.contains(MESSAGE).then(|| parts_of_channels(text))?;
            parts_of_results(text, &["result", "tool-result"])
                .or_else(channels)
                .or_else(|| listed_results(text))
                .or_else(|| Some(vec![Part::Text(observed()?.trim().into())]))
        }),
        _ => None,
    };
    tagged.unwrap_or_else(|| parts_of(content))
}

/// Returns the result of a call that the first line of a text names.
fn named_result(text: &str) -> Option<Vec<Part>> {
    let named = NAMED.iter().find_map(|head| text.strip_prefix(head));
    let (id, body) = named?.split_once('\n')?;
    let [id, body] = [id, body].map(|text| text.trim().into());
    Some(vec![Part::result(Some(&id), Some(&body), None)])
}

/// Returns the parts of a model's text; `None` for a text without reasoning and calls.
fn parts_of_model(text: &str) -> Option<Vec<Part>> {
    // MiniMax' models write a mark before each tag, which stands for a namespace.
    let [end, begin] = ["]<]minimax[>[</", "]<]minimax[>[<"];
    let marked = text.contains(begin).then(|| text.replace(end, "</minimax:"));
    let marked = marked.map(|text| text.replace(begin, "<minimax:"));
    let text = marked.as_deref().unwrap_or(text);
    if text.contains("Action Input:")
        && let Some(parts) = react_in(text)
    {
        return Some(parts);
    }
    if !text.contains(['<', '[', '`', '{']) {
        return None;
    }
    if text.contains(MESSAGE) {
        return parts_of_channels(text);
    }
    let ended = words("end-of-turn").find_map(|end| text.trim_end().strip_suffix(end));
    let plain = ended.map(|text| vec![Part::Text(text.trim().into())]);
    let text = ended.unwrap_or(text).trim_end();
    let [begin, end] = THOUGHT;
    // Models that reason do so before a reply of Terminus.
    let reasoned = text.split_once(end).and_then(|(body, reply)| {
        let body = body.trim().trim_start_matches(begin);
        Some([thoughts(body), commands_in(reply)?].concat())
    });
    if let Some(parts) = reasoned
        .or_else(|| commands_in(text))
        .or_else(|| bare_calls_in(text))
        .or_else(|| block_in(text))
    {
        return Some(parts);
    }
    let begins = ["\n[", "\nAction:", "\n```json"];
    let last = |text: &str| begins.iter().filter_map(|begin| text.rfind(begin)).max();
    let ends_with_calls = text.trim_end().ends_with([']', '}', '`']) && last(text).is_some();
    if !ends_with_calls
        && !tags("thought")
            .as_flattened()
            .iter()
            .any(|tag| text.contains(tag))
        && !may_have_calls(text)
        && !text.contains(FOLDED)
    {
        return plain;
    }
    let (first, rest) = match text.split_once(end) {
        Some((body, after)) if !body.contains(begin) => (thoughts(body), after),
        _ => (Vec::new(), text),
    };
    let mut parts = split(rest, |before, tagged| {
        if let Some((parts, after)) = alone_in_line(before, tagged).or_else(|| folded(tagged)) {
            return Tag::Parts(parts, after);
        }
        if let Some([begin, end]) = row_where("thought", |begin| tagged.starts_with(begin)) {
            let inner = &tagged[begin.len()..];
            let (body, after) = inner.split_once(end).unwrap_or((inner, ""));
            return Tag::Parts(thoughts(body), after);
        }
        // A whole turn may have the results behind its calls.
        let result = || tags("result").iter().find_map(|tags| between(tagged, *tags));
        if let Some((body, after)) = before.trim().is_empty().then(result).flatten() {
            return Tag::Parts(results_in(body.trim()), after);
        }
        match read(tagged) {
            None => Tag::None,
            Some(None) => Tag::Broken,
            Some(Some((calls, after))) => Tag::Parts(calls, after),
        }
    });
    parts.list.splice(0..0, first);
    // The text ends with calls, perhaps.
    let at = last(&parts.plain).unwrap_or_default();
    if let Some(calls) = bare_calls_in(&parts.plain[at..]) {
        parts.plain.truncate(at);
        parts.flush();
        parts.list.extend(calls);
    }
    parts.finish().or(plain)
}

/// How texts of Open WebUI begin that are folded.
const FOLDED: &str = "<details type=\"";

/// Reads what Open WebUI has folded, with which a text begins: reasoning, or a call, whose arguments and result are attributes.
fn folded(text: &str) -> Option<(Vec<Part>, &str)> {
    let (body, after) = between(text, [FOLDED, "</details>"])?;
    let (head, words) = body.split_once('>')?;
    let value = |name: &str| {
        let (_, value) = head.split_once(&format!(" {name}=\""))?;
        let mut value = value.split('"').next()?.to_owned();
        for [entity, character] in tags("entity") {
            value = value.replace(entity, character);
        }
        Some(parse_str(&value).unwrap_or_else(|_| value.into()))
    };
    let id = value("id");
    let Some(name) = value("name") else {
        let words = words.split_once("</summary>").map_or(words, |(_, words)| words);
        return Some((vec![Part::thinking(&words.replace("\n> ", "\n"))], after));
    };
    let call = Part::call(id.as_ref(), Some(&name), value("arguments").as_ref());
    let result = value("result").map(|result| Part::result(id.as_ref(), Some(&result), None));
    Some(([call].into_iter().chain(result).collect(), after))
}

/// Reads a call of one argument, and its result, with which a line begins.
fn alone_in_line<'t>(before: &str, tagged: &'t str) -> Option<(Vec<Part>, &'t str)> {
    let before = before.trim_end_matches([' ', '\t']);
    (before.is_empty() || before.ends_with('\n')).then(|| alone(tagged))?
}

/// Returns the thought that a text is, or several where calls are within it.
fn thoughts(body: &str) -> Vec<Part> {
    let parts = split(body, |before, tagged| match alone_in_line(before, tagged) {
        Some((parts, after)) => Tag::Parts(parts, after),
        None => Tag::None,
    });
    let thought = |part| match part {
        Part::Text(text) => Part::Thought(Some(text)),
        part => part,
    };
    let parts = parts.finish().unwrap_or_else(|| vec![Part::thinking(body)]);
    parts.into_iter().map(thought).collect()
}

/// Returns the parts of a text of gpt-oss, whose channels say what is reasoning, a call, or a message.
fn parts_of_channels(text: &str) -> Option<Vec<Part>> {
    let (mut parts, mut rest) = (Vec::new(), text);
    while let Some((header, after)) = rest.split_once(MESSAGE) {
        let end = ENDS.iter().filter_map(|end| after.find(end)).min();
        let (body, next) = after.split_at(end.unwrap_or(after.len()));
        let body = body.trim();
        let to = header.split_once("to=");
        let to = to.and_then(|(_, to)| to.split([' ', '<']).next());
        let channel = header.rsplit_once("<|channel|>");
        let channel = channel.map_or(header, |(_, channel)| channel);
        parts.push(match to {
            Some("assistant") => Part::observed(body),
            Some(tool) => Part::called(tool.strip_prefix("functions.").unwrap_or(tool), body),
            None if channel.trim_start().starts_with("analysis") => Part::thinking(body),
            None => Part::Text(body.into()),
        });
        rest = next;
    }
    parts.retain(|part| !matches!(part, Part::Text(text) if text.is_empty()));
    (!parts.is_empty()).then_some(parts)
}

/// Returns the results at the beginning of a text, and the text behind them; `None` if it begins otherwise.
fn parts_of_results(text: &str, kinds: &[&str]) -> Option<Vec<Part>> {
    let tags = kinds.iter().flat_map(|kind| tags(kind));
    let (mut parts, mut rest) = (Pieces::default(), without_around(text));
    if let Some(result) = named_result(rest) {
        return Some(result);
    }
    while let Some((body, after)) = tags.clone().find_map(|tags| between(rest, *tags)) {
        parts.list.extend(results_in(body.trim()));
        rest = without_around(after);
    }
    parts.plain.push_str(rest);
    parts.finish()
}

/// Returns the result that a text is, or those that it has in JSON with the ids of their calls.
fn results_in(text: &str) -> Vec<Part> {
    // Claude 2 has the name of the tool before its output.
    let named = inside(text, "stdout").filter(|_| text.starts_with("<tool_name>"));
    let text = named.map_or(text, |(_, told, _)| told.trim());
    // Solar's models have the id of the call and the name of the tool before it, Gemma's the name.
    let text = text.rsplit_once(RESULT_MARK).map_or(text, |(_, result)| result);
    let of_gemma = text.strip_prefix("response:").and_then(calls_in);
    if let Some([Part::Call(Call { args, .. })]) = of_gemma.as_deref() {
        let only = args.get("value").filter(|_| args.len() == 1).cloned();
        return vec![Part::result(
            None,
            Some(&only.unwrap_or(args.clone().into())),
            None,
        )];
    }
    let json = (text.starts_with(['{', '[']) && text.contains("call_id")).then(|| parse_str(text).ok());
    let parts: Vec<_> = elements_of(json.flatten().as_ref())
        .iter()
        .flat_map(parts_in)
        .collect();
    let are_results = parts.iter().all(|part| matches!(part, Part::Result { .. }));
    match parts.is_empty() || !are_results {
        true => vec![Part::observed(text)],
        false => parts,
    }
}

/// Returns a text without what is around several results, where it begins with that.
fn without_around(text: &str) -> &str {
    let text = text.trim_start();
    let rest = words("around").find_map(|tag| text.strip_prefix(tag));
    rest.map_or(text, str::trim_start)
}

/// Returns several results that are a list in JSON, each with the name of its tool.
fn listed_results(text: &str) -> Option<Vec<Part>> {
    let is_list = text.trim_start().starts_with('[');
    let list = is_list.then(|| parse_str(text).ok())??;
    let result = |result: &Value| {
        let has_both = has_text(result, "name") && object_of(Some(result)).len() == 2;
        let content = first_of(result, &["results", "result", "content"]).filter(|_| has_both)?;
        Some(Part::result(None, Some(content), None))
    };
    let results: Option<Vec<_>> = list_of(Some(&list)).iter().map(result).collect();
    results.filter(|results| results.len() > 1)
}

/// The parts of a text, and the plain text behind them.
#[derive(Default)]
pub struct Pieces {
    list: Vec<Part>,
    plain: String,
}

impl Pieces {
    /// Ends the text before a tag.
    fn flush(&mut self) {
        let text = self.plain.trim();
        if !text.is_empty() {
            self.list.push(Part::Text(text.into()));
        }
        self.plain.clear();
    }

    /// Returns the parts.
    pub fn into_list(mut self) -> Vec<Part> {
        self.flush();
        self.list
    }

    /// Returns the parts, if a tag was among them.
    fn finish(self) -> Option<Vec<Part>> {
        (!self.list.is_empty()).then(|| self.into_list())
    }
}

#[cfg(test)]
mod tests {
    use knowledgepulse_json::object;

    use super::*;

    fn thought(text: &str) -> Part {
        Part::Thought(Some(text.into()))
    }

    fn call(args: Value) -> Part {
        Part::call(None, Some(&"ls".into()), Some(&args))
    }

    #[test]
    fn parts_of_model_splits_reasoning_calls_and_text() {
        let text = || Part::Text("a < b".into());
        let no_args = || call(Value::Null);
        for (written, expected) in [
            ("<think>Hm.</think>\na < b", Some(vec![thought("Hm."), text()])),
            ("Hm.\n</think>\n\na < b", Some(vec![thought("Hm."), text()])),
            ("<think>Hm.", Some(vec![thought("Hm.")])),
            (
                "<think>\nHm {.\n</think>\n{\"analysis\": \"a < b\", \"commands\": []}",
                Some(vec![thought("Hm {."), thought("a < b")]),
            ),
            (
                "a < b\n<tool_call>\n{\"name\":\"ls\",\"arguments\":{}}\n</tool_call>",
                Some(vec![text(), no_args()]),
            ),
            (
                "<tool_call>{'name': 'ls', 'arguments': {}}</tool_call>",
                Some(vec![no_args()]),
            ),
            (
                "<function=ls><parameter=path>\na\n</parameter></function>",
                Some(vec![call(object([("path", "a".into())]))]),
            ),
            ("<tool_call>ls</tool_call>", Some(vec![no_args()])),
            (
                "<tool_call>ls</tool_call>\n<tool_response>\nc\n</tool_response>\na < b",
                Some(vec![no_args(), Part::observed("c"), text()]),
            ),
            ("Write <tool_call>ls</tool_call> to call it.", None),
            ("a < b\n[ls()]", Some(vec![text(), no_args()])),
            ("a < b\n[see (x)]", None),
            (
                "a < b]<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name=\"ls\">]<]minimax[>[</invoke>\n]<]minimax[>[</tool_call>",
                Some(vec![text(), no_args()]),
            ),
            (
                "a < b\nAction:\n{\"name\": \"ls\", \"arguments\": {}}",
                Some(vec![text(), no_args()]),
            ),
            (
                "a < b\n```json\n{\"name\": \"ls\", \"arguments\": {}}\n```",
                Some(vec![text(), no_args()]),
            ),
            ("a < b\n```json\n{\"name\": \"ls\"}\n```", None),
            (
                "Thought: a < b\nAction: ls\nAction Input: {}\nObservation: c\nThought: d\nFinal Answer: e",
                Some(vec![
                    Part::Text("Thought: a < b".into()),
                    no_args(),
                    Part::result(None, Some(&"c".into()), None),
                    Part::Text("Thought: d\nFinal Answer: e".into()),
                ]),
            ),
            (
                "Action: ls\nAction Input: {}\nObservation:",
                Some(vec![no_args()]),
            ),
            (
                "<<function>>ls()<<function>>ls()",
                Some(vec![no_args(), no_args()]),
            ),
            ("Action: the action to take\nAction Input: its input", None),
            ("[ls()]<|eot|>", Some(vec![no_args()])),
            (
                "<tool_call>ls</tool_call><｜end▁of▁sentence｜>",
                Some(vec![no_args()]),
            ),
            ("ls\n```python\nls()\n```", None),
            (
                "<think>Hm.</think>\n<action>ls</action>",
                Some(vec![
                    thought("Hm."),
                    Part::Call(Call::named(
                        "action",
                        [("action".into(), "ls".into())].into_iter().collect(),
                    )),
                ]),
            ),
            ("a < b<|endoftext|>", Some(vec![text()])),
            ("<tool_call>{\"name\":\"ls\"", None),
            ("a < b", None),
        ] {
            assert_eq!(parts_of_model(written), expected, "{written}");
        }
    }

    #[test]
    fn a_text_of_broken_calls_is_read_in_linear_time_and_stays_text() {
        for tag in ["<tool_call>", "<function=", "<tool_call></tool_call>"] {
            let text = tag.repeat(100_000);
            assert_eq!(parts_of_model(&text), None, "{tag}");
            let parts = parts_of_model(&format!("<think>Hm.</think>{text}"));
            assert_eq!(parts.map(|parts| parts.len()), Some(2), "{tag}");
        }
    }

    #[test]
    fn parts_of_model_reads_the_channels_of_gpt_oss() {
        let text = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary to=functions.ls <|constrain|>json<|message|>{}<|call|>";
        assert_eq!(
            parts_of_model(text),
            Some(vec![thought("Hm."), call(Value::Null)])
        );
        let text = "<|start|>functions.ls to=assistant<|channel|>commentary<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>It is a.<|return|>";
        let result = Part::result(None, Some(&"a".into()), None);
        assert_eq!(
            parts_of_model(text),
            Some(vec![result, Part::Text("It is a.".into())])
        );
    }

    #[test]
    fn parts_by_a_tool_reads_the_results_of_several_calls() {
        let results = [
            Part::result(None, Some(&"1".into()), None),
            Part::result(None, Some(&"2".into()), None),
        ];
        for text in [
            "<｜tool▁outputs▁begin｜><｜tool▁output▁begin｜>1<｜tool▁output▁end｜><｜tool▁output▁begin｜>2<｜tool▁output▁end｜><｜tool▁outputs▁end｜>",
            "<function_results>\n<result>1</result>\n<result>2</result>\n</function_results>",
            "<function_results>\n<result>\n<tool_name>a</tool_name>\n<stdout>\n1\n</stdout>\n</result>\n<result>2</result>\n</function_results>",
            "<response>1</response>\n<response>2</response>",
            r#"[{"name":"a","results":"1"},{"name":"b","results":"2"}]"#,
            r#"<tool_result>1</tool_result><tool_result>2</tool_result>"#,
        ] {
            assert_eq!(parts_by("tool", Some(&text.into())), results, "{text}");
        }
        for text in [
            "<results>\n1\n</results>",
            "<|tool_response>response:a{value:<|\"|>1<|\"|>}<tool_response|>",
            "<|tool_response|><|tool_response:begin|>c<|tool_response:name|>a<|tool_response:result|>1<|tool_response:end|>",
        ] {
            assert_eq!(parts_by("tool", Some(&text.into())), results[..1], "{text}");
        }
        let named = Part::result(Some(&"functions.a:0".into()), Some(&"1".into()), None);
        assert_eq!(
            parts_by("tool", Some(&"## Return of functions.a:0\n1".into())),
            [named]
        );
    }

    #[test]
    fn parts_by_a_calling_role_reads_the_calls_in_a_text_or_its_only_part() {
        let text = Value::from("Calling tools:\n[{'id': 'c', 'function': {'name': 'ls', 'arguments': {}}}]");
        let part = object([("type", "text".into()), ("text", text.clone())]);
        let called = Part::call(Some(&"c".into()), Some(&"ls".into()), None);
        for content in [text, vec![part].into()] {
            assert_eq!(
                parts_by("calls", Some(&content)),
                std::slice::from_ref(&called),
                "{content:?}"
            );
        }
    }

    #[test]
    fn parts_of_results_splits_results_at_the_beginning() {
        let result = |text: &str| Part::result(None, Some(&text.into()), None);
        assert_eq!(
            parts_of_results(
                "<tool_response>\n1\n</tool_response>\n<tool_response>2</tool_response>",
                &["result"]
            ),
            Some(vec![result("1"), result("2")])
        );
        assert_eq!(
            parts_of_results("What is <tool_response>1</tool_response>?", &["result"]),
            None
        );
    }
}
