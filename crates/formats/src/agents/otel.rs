//! Spans of OpenTelemetry in OTLP JSON, as the Collector's file exporter, Grafana Tempo and Jaeger write them, and records of its logs.
//! `spans` reads their attributes.

use base64::{Engine, engine::general_purpose::STANDARD};

use crate::{
    agents::platforms::{Platform, attributes_of, nanoseconds_of, unwrapped},
    prelude::*,
};

pub static FORMAT: Format = Format::new("otel", Kind::Spans, decode)
    .also(|record| PRINTED.recognises(record) || !lists_of(record).is_empty());

/// Spans in OTLP, and those that a program prints itself.
const SPANS: Platform = Platform("otel");
const PRINTED: Platform = Platform("otel-printed");

fn decode(record: &Value, say: &mut Events) -> Result<Decoded, Wrong> {
    if PRINTED.recognises(record) {
        return PRINTED.decode(record, say);
    }
    let lists = lists_of(record);
    if lists.is_empty() {
        let problem = "it has no resourceSpans, no resourceLogs and no batches";
        return Err(Wrong::from(problem));
    }
    let mut outcome = Ok(Decoded::GoesOn);
    for resource in lists.into_iter().flatten() {
        let attributes = attributes_of(fields_of(resource, "resource").get("attributes"));
        let scopes = || words("scope").flat_map(|name| list_at(resource, name));
        let spans = scopes().flat_map(|scope| list_at(scope, "spans"));
        let logs = scopes().flat_map(|scope| list_at(scope, "logRecords"));
        let logs = logs.filter_map(|record| Some((record, span_of_log(record)?)));
        for (record, span) in spans.map(|span| (span, SPANS.span_of(span, None))).chain(logs) {
            let run = trace_id_of(record.get("traceId"));
            if run.is_none() {
                // The first problem; the other spans are read.
                outcome = outcome.and(Err(Wrong::from("a span has no traceId")));
                continue;
            }
            say.begin_in_run(run, None);
            say.add(What::Span(Box::new(span)));
            let service = text_at(&attributes, "service.name").map(Fact::Framework);
            say.add_all(service.map(What::Fact));
        }
    }
    if say.list.is_empty() && has_list(record, "resourceLogs") && outcome.is_ok() {
        let problem = "no record of its resourceLogs is of a model or an agent";
        return Err(Wrong::from(problem));
    }
    outcome
}

/// Returns the lists of resources in a record: of OTLP, of Grafana Tempo (`batches`, or a `trace` in version 2 of its API), of Jaeger's
/// API (`result`), or in `data`.
fn lists_of(record: &Value) -> Vec<&[Value]> {
    let inner = ["trace", "result", "data"]
        .into_iter()
        .filter_map(|name| record.get(name));
    let holders = [record].into_iter().chain(inner);
    let lists = holders.flat_map(|holder| {
        let has_scopes = |batch: &Value| words("scope").any(|name| batch.get(name).is_some());
        let batches = list_at(holder, "batches");
        let named = ["resourceSpans", "resourceLogs"].into_iter();
        let named = named.filter_map(|name| holder.get(name)?.as_array());
        named.chain(batches.iter().any(has_scopes).then_some(batches))
    });
    lists.collect()
}

/// Returns the span that a record of a log stands for; `None` for one of another program, or of no trace.
fn span_of_log(record: &Value) -> Option<Span> {
    let attributes = attributes_of(record.get("attributes"));
    let name = text_at(record, "eventName").or_else(|| text_at(&attributes, "event.name"))?;
    if !name.as_bytes().starts_with(b"gen_ai.") || text_at(record, "traceId").is_none() {
        return None;
    }
    let mut event = attributes.clone();
    if let Some(body) = unwrapped(record.get("body")) {
        event.insert("gen_ai.event.content", body);
    }
    let time = nanoseconds_of(record.get("timeUnixNano").or(record.get("observedTimeUnixNano")));
    Some(Span {
        start: time,
        end: time,
        attributes,
        events: vec![(name, event)],
        is_log: true,
        ..SPANS.span_of(record, None)
    })
}

/// Returns the id of a trace, in the hexadecimal digits of OTLP JSON where it has the length of one; Tempo writes it in
/// base64.
fn trace_id_of(id: Option<&Value>) -> Option<Text> {
    let id = string_of(id)?;
    let bytes = STANDARD.decode(id.as_bytes()).ok();
    let of_base64 = bytes.and_then(|bytes| Some(u128::from_be_bytes(bytes.try_into().ok()?)));
    let lower = || (id.len() == 32).then(|| id.to_lowercase());
    let of_base64 = of_base64.map(|number| format!("{number:032x}").into());
    Some(of_base64.or_else(lower).unwrap_or_else(|| id.clone()))
}
