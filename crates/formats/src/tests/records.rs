use knowledgepulse_json::{Value, parse_str};

use crate::{
    agents::FormatName,
    conversations::{messages_of, usual_row},
    reader::{Content, Settings, TraceReader, of_no_format},
    records::{Record, Records},
};

/// Returns a line for each record of a text that comes in pieces of this size: where it is, and its value or the problem.
fn found(text: &str, size: usize, limit: u64) -> Vec<String> {
    let mut records = Records::new(limit);
    let mut found = Vec::new();
    for piece in text.as_bytes().chunks(size) {
        records.push(piece).unwrap();
        found.extend(records.by_ref().map(line_of));
    }
    records.finish().unwrap();
    found.extend(records.map(line_of));
    found
}

fn line_of(record: Record) -> String {
    let line = record.place.line.unwrap_or_default();
    let index = record
        .place
        .index
        .map(|index| format!("[{index}]"))
        .unwrap_or_default();
    let content = record.content.map(|value| value.to_json());
    format!(
        "{line}{index} {}",
        content.unwrap_or_else(|error| format!("! {error}"))
    )
}

const LIMIT: u64 = 1000;

#[test]
fn a_broken_element_of_an_array_costs_itself_alone_where_its_brackets_close() {
    assert_eq!(
        found(
            "[\n  {\n    \"a\": 1,\n  },\n  {\n    \"b\": NaN\n  }\n]\n{}",
            3,
            LIMIT
        ),
        [
            "2[0] ! not JSON: trailing comma at byte 16",
            "5[1] {\"b\":null}",
            "9 {}"
        ]
    );
}

#[test]
fn rows_of_a_table_that_are_too_long_are_let_go_and_those_behind_them_are_read() {
    let long = "x".repeat(50);
    assert_eq!(
        found(&format!("a,b\n\"{long}\n\",1\n2,3"), 5, 40),
        [
            "2 ! longer than 0.00003814697265625 MB".to_owned(),
            "3 {\"a\":\"2\",\"b\":\"3\"}".into()
        ]
    );
}

#[test]
fn rows_of_a_table_are_read_behind_a_byte_order_mark_and_a_row_of_too_few_cells() {
    let table = "\u{feff}id,\"b.c\"\r\n1,\"{\"\"d\"\":2}\"\r\n3\r\n4,\"5\n6\"\r\n";
    for size in [1, 5, 100] {
        let found = found(table, size, LIMIT);
        assert!(
            found[1].contains("cells in the row: 1, in the header: 2"),
            "{found:?}"
        );
        assert_eq!(found[0], r#"2 {"id":"1","b.c":{"d":2}}"#);
        assert_eq!(found[2], r#"4 {"id":"4","b.c":"5\n6"}"#);
    }
    // Not a header, and not names of their own.
    for text in ["a, b c\n{}", "a,a\n{}", "a\n{}"] {
        assert!(found(text, 3, LIMIT)[0].contains("not JSON"), "{text}");
    }
}

#[test]
fn objects_as_python_prints_them_are_refused_with_a_way_out() {
    for text in [
        "AIMessage(content='Hello.', id='1')",
        "[HumanMessage(content='Hello.', name=None)]",
    ] {
        let found = found(text, 7, LIMIT);
        assert!(found[0].contains("as Python prints it"), "{found:?}");
    }
    assert!(found("Note(a b)", 7, LIMIT)[0].contains("not JSON: "));
}

#[test]
fn of_no_format_names_what_is_known_and_not_read() {
    for (record, what) in [
        (
            r#"{"store":{"a":[]},"class_name":"SimpleChatStore"}"#,
            "a chat store of LlamaIndex",
        ),
        (
            r#"{"state":{"state_data":{}},"workers":{}}"#,
            "a context of LlamaIndex",
        ),
        (
            r#"{"__is_pydantic":true,"value":{},"qualified_name":"a"}"#,
            "an event of LlamaIndex",
        ),
        (
            r#"{"input":"a","output":"b","intermediate_steps":[]}"#,
            "LangChain's AgentExecutor",
        ),
        (
            r#"{"jsonrpc":"2.0","method":"tools/call"}"#,
            "the Model Context Protocol",
        ),
        (
            r#"{"type":"ConversationMemory","runs":[]}"#,
            "a memory of Griptape",
        ),
        (
            r#"{"type":"PromptStack","messages":[{"role":"user","content":[{"artifact":{}}]}]}"#,
            "a stack of prompts of Griptape",
        ),
        (
            r#"{"prompt":[{"role":"user","content":"a"}],"completions":[[{"role":"assistant","content":"b"}]]}"#,
            "several completions",
        ),
        (
            r#"{"messages":[{"messageId":"a","sender":"User","isCreatedByUser":true,"text":"a","children":[{"messageId":"b"}]}]}"#,
            "nested messages",
        ),
        (r#"{"id":"a","inserted_at":"b","mapping":{}}"#, "DeepSeek's page"),
        (r#"{"exportType":"all","state":{"messages":[]}}"#, "LobeChat"),
        (
            r#"{"type":"agent_result","stop_reason":"end_turn","message":{"role":"assistant"}}"#,
            "a result of Strands",
        ),
        ("{}", "its keys are none"),
    ] {
        let value = parse_str(record).unwrap();
        assert!(of_no_format(&value).contains(what), "{record}");
        assert!(!FormatName::OpenaiChat.format().is_of(&value, None), "{record}");
    }
}

#[test]
fn messages_of_follows_parents_where_they_are_of_one_tree() {
    let said = |record: &str| {
        let value = parse_str(record).unwrap();
        let messages = messages_of(value.as_object().unwrap()).unwrap();
        let ids = messages
            .iter()
            .filter_map(|message| message.get("id")?.as_str().map(str::to_owned));
        ids.collect::<String>()
    };
    let message = |id: &str, parent: &str| {
        format!(r#"{{"id":"{id}","parentId":{parent},"role":"user","content":"x"}}"#)
    };
    let [a, b, c] = [("a", "null"), ("b", r#""a""#), ("c", r#""a""#)].map(|(id, parent)| message(id, parent));
    assert_eq!(said(&format!(r#"{{"messages":[{a},{b},{c}]}}"#)), "ac");
    assert_eq!(
        said(&format!(r#"{{"messages":[{a},{b},{c}],"headId":"b"}}"#)),
        "ab"
    );
    let [root, lost] = [message("d", "null"), message("e", r#""z""#)];
    for messages in [[&a, &root, &b], [&a, &b, &lost]] {
        let [first, second, third] = messages;
        assert_eq!(
            said(&format!(r#"{{"messages":[{first},{second},{third}]}}"#)).len(),
            3
        );
    }
}

#[test]
fn usual_row_takes_the_only_conversation_of_a_chat_store_and_leaves_several() {
    let list = r#"[{"role":"user","blocks":[{"block_type":"text","text":"a"}]}]"#;
    let store = |keys: &[&str]| {
        let lists: Vec<_> = keys.iter().map(|key| format!(r#""{key}":{list}"#)).collect();
        format!(
            r#"{{"store":{{{}}},"class_name":"SimpleChatStore"}}"#,
            lists.join(",")
        )
    };
    let memory = |keys| format!(r#"{{"chat_store":{},"chat_store_key":"one"}}"#, store(keys));
    for (record, is_read) in [
        (store(&["one"]), true),
        (memory(&["one"]), true),
        (store(&["one", "two"]), false),
        (memory(&["one", "two"]), false),
        (store(&[]), false),
    ] {
        let value = parse_str(&record).unwrap();
        let row = usual_row(&value);
        let messages = row.as_ref().and_then(|row| row.get("messages"));
        assert_eq!(
            messages.map(|list| list.to_json()),
            is_read.then(|| list.into()),
            "{record}"
        );
        assert!(
            of_no_format(&value).contains("a chat store of LlamaIndex"),
            "{record}"
        );
    }
}

#[test]
fn a_file_of_an_agent_without_a_record_of_a_session_is_skipped() {
    let snapshot = r#"{"type":"file-history-snapshot","messageId":"a","snapshot":{}}"#;
    let turn = r#"{"type":"user","uuid":"b","sessionId":"c","message":{"role":"user","content":"Hello"}}"#;
    let read = |lines: &[&str]| {
        let items = TraceReader::new(Settings::default()).read_all(lines.join("\n").as_bytes());
        let contents = items.unwrap().into_iter().map(|item| item.content);
        contents.collect::<Vec<_>>()
    };
    let skipped = || Content::Skipped("claude-code without a record of a session".into());
    assert_eq!(read(&[snapshot, snapshot]), [skipped()]);
    let found = read(&[snapshot, turn, snapshot]);
    assert!(matches!(found[..], [Content::Read(_)]), "{found:?}");
}

/// Returns the traces of a text.
fn traces_of(text: &str) -> Vec<Value> {
    let items = TraceReader::new(Settings::default()).read_all(text.as_bytes());
    let traces = items.unwrap().into_iter().filter_map(|item| match item.content {
        Content::Read(trace) if item.format.is_some() => Some(trace),
        _ => None,
    });
    traces.collect()
}

#[test]
fn arrays_of_one_message_a_line_are_one_conversation_if_the_speakers_take_turns() {
    let line = |role: &str, text: &str| format!(r#"[{{"role":"{role}","content":"{text}"}}]"#) + "\n";
    let turns = [
        line("user", "Hello"),
        line("assistant", "Hi"),
        line("user", "Bye"),
    ]
    .concat();
    assert_eq!(traces_of(&turns).len(), 1);
    let prompts = [line("user", "Hello"), line("user", "Bye")].concat();
    assert_eq!(traces_of(&prompts).len(), 2);
}

#[test]
fn a_trajectory_of_a_browser_is_not_one_of_swe_agent() {
    let step = r#"{"url":"https://a.example","action":"click 3","observation":"a page","thought":"next"}"#;
    let record = format!(r#"{{"intent":"Find a kettle","trajectory":[{step}]}}"#);
    assert_eq!(FormatName::of(&parse_str(&record).unwrap(), None), None);
    let of_swe_agent = record.replace("\"url\":\"https://a.example\",", "");
    let format = FormatName::of(&parse_str(&of_swe_agent).unwrap(), None);
    assert_eq!(format, Some(FormatName::SweAgent));
}

#[test]
fn a_trace_names_all_models_and_the_steps_before_the_objective() {
    let said = |model: &str| {
        let message = format!(r#"{{"role":"assistant","model":"{model}","content":"Hi"}}"#);
        format!(r#"{{"type":"assistant","uuid":"u{model}","sessionId":"s","message":{message}}}"#) + "\n"
    };
    let asked = r#"{"type":"user","uuid":"u","sessionId":"s","message":{"role":"user","content":"Hello"}}"#;
    let text = [
        &said("a"),
        &said("b"),
        asked,
        "\n",
        &said("<synthetic>"),
        &said("c"),
    ]
    .map(String::from);
    let trace = &traces_of(&text.concat())[0];
    let imported = |name| trace.at(&["metadata", "imported", name]).map(Value::to_json);
    assert_eq!(imported("model").as_deref(), Some(r#""a""#));
    assert_eq!(imported("models").as_deref(), Some(r#"["a","b","c"]"#));
    assert_eq!(imported("steps_before_objective").as_deref(), Some("2"));
}

#[test]
fn a_row_of_a_query_and_the_calls_that_answer_it_has_the_calls() {
    let answers = Value::from(r#"[{"name": "tide", "arguments": {"port": "Oban"}}]"#).to_json();
    let row = format!(r#"{{"id":0,"query":"When is high tide at Oban?","answers":{answers},"tools":"[]"}}"#);
    let trace = &traces_of(&row)[0];
    assert_eq!(
        trace.at(&["task", "objective"]).and_then(Value::as_str),
        Some("When is high tide at Oban?")
    );
    let steps = trace.get("steps").and_then(Value::as_array).unwrap();
    let calls = steps
        .iter()
        .map(|step| step.at(&["tool", "name"]).and_then(Value::as_str));
    assert_eq!(calls.collect::<Vec<_>>(), [Some("tide")]);
}
