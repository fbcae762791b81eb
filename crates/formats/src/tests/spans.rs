//! Properties of spans, whose conversation is told in parts and again and again.

use std::fmt::Write;

use knowledgepulse_json::{Value, parse_str};
use proptest::{collection::vec, prelude::*};
use serde_json::{Value as Json, json};

use crate::{
    Place,
    reader::{Content, Run, Settings, TraceReader},
    records::Record,
    values::{in_path, list_of, str_of},
};

/// A span that begins and ends at this time, with attributes that are JSON unless they are text.
fn span(start: usize, values: &[(&str, Json)]) -> Json {
    let attributes = values.iter().map(|(key, value)| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        json!({"key": key, "value": {"stringValue": text}})
    });
    let time = start.to_string();
    json!({"traceId": "t", "startTimeUnixNano": time, "endTimeUnixNano": time, "attributes": attributes.collect::<Vec<_>>()})
}

/// Returns the results of records, each as it is told in JSON.
fn read(records: &[Json]) -> Vec<Content> {
    let mut reader = TraceReader::new(Settings::default());
    let mut items = Vec::new();
    for record in records {
        items.extend(reader.read(Record {
            place: Place::default(),
            content: Ok(parse_str(&record.to_string()).unwrap()),
        }));
    }
    items.extend(reader.end());
    let items = items.into_iter().flat_map(Run::build);
    items.map(|item| item.content).collect()
}

fn batch(spans: &[Json]) -> Json {
    json!({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})
}

/// Returns the objective and the contents of the steps of the only trace of spans, a line each with its type.
fn told(spans: &[Json]) -> String {
    let [Content::Read(trace)] = &read(&[batch(spans)])[..] else {
        panic!("not one trace");
    };
    let objective = trace.get("task").and_then(|task| str_of(task.get("objective")));
    let mut told = format!("{}\n", objective.unwrap_or_default());
    for step in list_of(trace.get("steps")) {
        let [kind, content] = ["type", "content"].map(|name| str_of(step.get(name)).unwrap_or_default());
        writeln!(told, "{kind} {content}").unwrap();
    }
    told
}

fn said(role: &str, content: &str) -> Json {
    json!({"role": role, "parts": [{"type": "text", "content": content}]})
}

#[test]
fn a_failed_span_without_a_result_has_the_message_of_its_exception() {
    let tool = json!({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "open"});
    let tool = tool.as_object().unwrap().iter();
    let tool: Vec<_> = tool.map(|(name, value)| (name.as_str(), value.clone())).collect();
    let mut failed = span(2, &tool);
    failed["status"] = json!({"code": 2});
    let message = json!([{"key": "exception.message", "value": {"stringValue": "motor broken"}}]);
    failed["events"] = json!([{"name": "exception", "attributes": message}]);
    let asked = span(1, &[("gen_ai.input.messages", json!([said("user", "Open it")]))]);
    assert_eq!(
        told(&[asked, failed]),
        "Open it\ntool_call open\nerror_recovery motor broken\n"
    );
}

#[test]
fn a_blob_in_a_message_of_a_span_is_named_by_its_kind() {
    let blob =
        json!({"type": "blob", "mime_type": "image/png", "modality": "image", "content": "iVBORw0KGgo="});
    let mut asked = said("user", "What is it?");
    asked["parts"].as_array_mut().unwrap().push(blob);
    let values = [
        ("gen_ai.input.messages", json!([asked])),
        ("gen_ai.output.messages", json!([said("assistant", "A beetle.")])),
    ];
    assert_eq!(
        told(&[span(1, &values)]),
        "What is it?\n[image]\nthought A beetle.\n"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// A model is given all that was before. The last span has all; of each other turn, some spans or their sides may be missing.
    #[test]
    fn each_step_is_there_once_whatever_spans_lack(lost in vec(any::<[bool; 4]>(), 1..6), has_ids: bool) {
        let mut history = vec![said("user", "Go")];
        let (mut spans, mut expected) = (Vec::new(), "Go\n".to_owned());
        for (at, [no_input, no_output, no_model, no_tool]) in lost.iter().enumerate() {
            let id = has_ids.then(|| at.to_string());
            let thought = format!("I call {at}.");
            let result = format!("result {at}");
            let call = json!({"type": "tool_call", "id": id, "name": "f", "arguments": {"number": at}});
            let output = json!({"role": "assistant", "parts": [{"type": "text", "content": thought}, call]});
            let mut values = Vec::new();
            if !no_input {
                values.push(("gen_ai.input.messages", json!(history)));
            }
            if !no_output {
                values.push(("gen_ai.output.messages", json!([output])));
            }
            if !no_model {
                spans.push(span(10 * at + 1, &values));
            }
            // Without ids, a span of a tool is of the first call that has none: they are all there, or none is.
            if !(if has_ids { *no_tool } else { lost[0][3] }) {
                let mut values = vec![
                    ("gen_ai.operation.name", json!("execute_tool")),
                    ("gen_ai.tool.name", json!("f")),
                    ("gen_ai.tool.call.arguments", json!({"number": at})),
                    ("gen_ai.tool.call.result", json!(result)),
                ];
                values.extend(id.clone().map(|id| ("gen_ai.tool.call.id", json!(id))));
                spans.push(span(10 * at + 2, &values));
            }
            history.push(output);
            let answer = json!({"type": "tool_call_response", "id": id, "response": result});
            history.push(json!({"role": "tool", "parts": [answer]}));
            writeln!(expected, "thought {thought}\ntool_call f\nnumber: {at}\nobservation {result}").unwrap();
        }
        let output = json!([said("assistant", "Done")]);
        spans.push(span(1000, &[("gen_ai.input.messages", json!(history)), ("gen_ai.output.messages", output)]));
        prop_assert_eq!(told(&spans), expected + "thought Done\n");
    }

    #[test]
    fn a_message_that_is_said_twice_is_there_twice(turns in vec(("(yes|no)", "(go on|stop)"), 1..8), is_reversed: bool) {
        let (mut history, mut spans, mut expected) = (Vec::new(), Vec::new(), String::new());
        for (at, (answer, order)) in turns.iter().enumerate() {
            let kind = if at == 0 { "" } else { "observation " };
            writeln!(expected, "{kind}{order}\nthought {answer}").unwrap();
            history.push(said("user", order));
            let input = json!(history);
            let mut output = said("assistant", answer);
            history.push(output.clone());
            output["finish_reason"] = "stop".into();
            spans.push(span(at + 1, &[("gen_ai.input.messages", input), ("gen_ai.output.messages", json!([output]))]));
        }
        if is_reversed {
            spans.reverse();
        }
        prop_assert_eq!(told(&spans), expected);
    }
}

/// A list between the two that has nothing in common with them keeps them from being compared.
#[test]
fn an_input_that_goes_on_with_another_is_read_as_if_it_were_alone() {
    let user = |content: &str| json!({"role": "user", "content": content}).to_string();
    let (a, b) = (user("a"), user("b"));
    let mut lists = [
        "[]",
        "[1]",
        "[12]",
        "[1 ]",
        "[1 ,2]",
        "[1,]",
        "[,1]",
        r#"["]"]"#,
        r#"["]","a"]"#,
        r#"{"a":[]}"#,
    ]
    .map(str::to_owned)
    .to_vec();
    lists.extend([
        format!("[{a}]"),
        format!("[{a}]x"),
        format!("[{a},{b}]"),
        format!("[{a},]"),
    ]);
    let contents = |lists: [&str; 3]| {
        let values = |list: &str| [("gen_ai.input.messages", list.into())];
        let spans = lists
            .iter()
            .enumerate()
            .map(|(at, list)| span(at + 1, &values(list)));
        let found = read(&[batch(&spans.collect::<Vec<_>>())]);
        let texts = found.into_iter().map(|content| match content {
            Content::Read(trace) => {
                let left_out = trace
                    .get("metadata")
                    .and_then(|metadata| metadata.get("imported")?.get("left_out"));
                let task = trace.get("task").and_then(|task| task.get("objective"));
                let mut texts: Vec<_> = list_of(trace.get("steps"))
                    .iter()
                    .map(|step| step.get("content"))
                    .collect();
                texts.push(task);
                let mut texts: Vec<_> = texts.into_iter().map(|text| text.map(Value::to_json)).collect();
                texts.sort();
                format!("{texts:?} {left_out:?}")
            }
            content => format!("{content:?}"),
        });
        texts.collect::<Vec<_>>()
    };
    for first in &lists {
        for second in &lists {
            let between = "[0]";
            assert_eq!(
                contents([first, second, between]),
                contents([first, between, second]),
                "{first} {second}"
            );
        }
    }
}

#[test]
fn a_span_without_an_id_costs_no_other() {
    let good = span(1, &[("input.value", json!("Hello"))]);
    let found = read(&[batch(&[json!({}), good])]);
    let [Content::Wrong(reason), Content::Read(..)] = &found[..] else {
        panic!("{found:?}");
    };
    assert_eq!(reason, "not otel: a span has no traceId");
}

/// Version 1 of its instrumentation has all messages of a span in one attribute, and other names for a tool's input and output.
#[test]
fn events_of_pydantic_ai_in_one_attribute_become_steps() {
    let call = json!({"id": "1", "function": {"name": "f", "arguments": r#"{"number":0}"#}});
    let events = json!([
        {"event.name": "gen_ai.system.message", "role": "system", "content": "Be brief"},
        {"event.name": "gen_ai.user.message", "role": "user", "content": "Go"},
        {"event.name": "gen_ai.choice", "index": 0, "message": {"role": "assistant", "tool_calls": [call]}},
    ]);
    let tool = [
        ("gen_ai.tool.name", json!("f")),
        ("gen_ai.tool.call.id", json!("1")),
        ("tool_arguments", json!({"number": 0})),
        ("tool_response", json!("result")),
    ];
    let spans = [span(1, &[("events", events)]), span(2, &tool)];
    assert_eq!(told(&spans), "Go\ntool_call f\nnumber: 0\nobservation result\n");
}

/// Google ADK names a call and its result anew in the span of the tool and in each list.
#[test]
fn calls_whose_ids_differ_are_one_if_their_arguments_are() {
    let call = |id: &str, number: usize| json!({"role": "assistant", "parts": [{"type": "tool_call", "id": id, "name": "f", "arguments": {"number": number}}]});
    let result = |text: &str| json!({"role": "user", "parts": [{"type": "tool_call_response", "id": "b0", "response": {"result": text}}]});
    let model = |at: usize, input: &[Json], output: Json| {
        let attributes = [
            ("gen_ai.input.messages", json!(input)),
            ("gen_ai.output.messages", json!([output])),
        ];
        span(at, &attributes)
    };
    let tool = |at: usize, id: &str, number: usize, text: &str| {
        let attributes = [
            ("gen_ai.operation.name", json!("execute_tool")),
            ("gen_ai.tool.name", json!("f")),
            ("gen_ai.tool.call.id", json!(id)),
            ("gen_ai.tool.call.arguments", json!({ "number": number })),
            ("gen_ai.tool.call.result", json!({ "result": text })),
        ];
        span(at, &attributes)
    };
    let listed = [
        said("user", "Go"),
        call("b1", 1),
        result("one"),
        call("b0", 2),
        result("two"),
    ];
    let spans = [
        model(1, &listed[..1], listed[1].clone()),
        tool(2, "adk-1", 1, "one"),
        model(3, &listed[..3], listed[3].clone()),
        tool(4, "adk-2", 2, "two"),
        model(5, &listed, said("assistant", "Done")),
    ];
    let steps = |number: usize, text: &str| {
        format!("tool_call f\nnumber: {number}\nobservation {{\"result\":\"{text}\"}}\n")
    };
    let expected = format!("Go\n{}{}thought Done\n", steps(1, "one"), steps(2, "two"));
    assert_eq!(told(&spans), expected);
}

/// Grafana Tempo and Jaeger have the resources elsewhere, and Tempo writes ids in Base64.
#[test]
fn spans_are_found_wherever_an_exporter_puts_them() {
    let said = [("gen_ai.output.messages", json!([said("assistant", "Done")]))];
    let mut span = span(1, &said);
    span["traceId"] = "5b8efff798038103d269b633813fc60c".into();
    let trace_of = |record: Json| match &read(&[record])[..] {
        [Content::Read(trace)] => trace.to_json(),
        found => panic!("{found:?}"),
    };
    let expected = trace_of(batch(&[span.clone()]));
    let mut in_base64 = span.clone();
    in_base64["traceId"] = "W47/95gDgQPSabYzgT/GDA==".into();
    let resources = |span: &Json| json!([{"scopeSpans": [{"spans": [span]}]}]);
    for record in [
        json!({"batches": resources(&span)}),
        json!({"batches": resources(&in_base64)}),
        json!({"resourceSpans": [{"instrumentationLibrarySpans": [{"spans": [span]}]}]}),
        json!({"trace": {"resourceSpans": resources(&span)}, "status": "complete"}),
        json!({"trace": {"batches": resources(&span)}}),
        json!({"result": {"resourceSpans": resources(&span)}}),
        json!({"data": {"resourceSpans": resources(&span)}}),
    ] {
        assert_eq!(trace_of(record.clone()), expected, "{record}");
    }
}

#[test]
fn a_trace_of_mlflow_says_which_tool_failed_and_how_people_judge_it() {
    let span = |start: usize, kind: &str, code: &str, input: Json, output: Json| {
        let mut attributes =
            json!({"mlflow.spanType": json!(kind).to_string(), "mlflow.spanInputs": input.to_string()});
        if !output.is_null() {
            attributes["mlflow.spanOutputs"] = output.to_string().into();
        }
        let times = start..start + 1;
        json!({"trace_id": "t", "span_id": start.to_string(), "name": "stock", "status": {"code": code, "message": ""},
            "start_time_unix_nano": times.start, "end_time_unix_nano": times.end, "attributes": attributes})
    };
    let asked = json!({"role": "user", "content": "Is there any?"});
    let function = json!({"name": "stock", "arguments": "{}"});
    let called =
        json!({"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": function}]});
    let result = json!({"role": "tool", "tool_call_id": "a", "content": "It is nowhere."});
    let reply = |message: &Json| json!({"choices": [{"message": message}]});
    let spans = [
        span(
            1,
            "CHAT_MODEL",
            "STATUS_CODE_OK",
            json!({"messages": [asked]}),
            reply(&called),
        ),
        span(3, "TOOL", "STATUS_CODE_ERROR", json!({}), Json::Null),
        span(
            5,
            "CHAT_MODEL",
            "STATUS_CODE_OK",
            json!({"messages": [asked, called, result]}),
            reply(&json!({"role": "assistant", "content": "No."})),
        ),
    ];
    let assessment = json!({"assessment_name": "correctness", "feedback": {"value": false}});
    let trace = json!({"info": {"assessments": [assessment]}, "data": {"spans": spans}});
    let [Content::Read(trace)] = &read(&[trace])[..] else {
        panic!("not one trace");
    };
    let failed = list_of(trace.get("steps"))
        .iter()
        .find(|step| str_of(step.get("type")) == Some("error_recovery"));
    assert_eq!(
        failed.and_then(|step| str_of(step.get("content"))),
        Some("It is nowhere.")
    );
    let reward = in_path(trace, "metadata/imported/reward");
    assert_eq!(reward.and_then(Value::as_number), Some(0.0));
}
