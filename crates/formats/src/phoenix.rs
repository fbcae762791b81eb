//! Spans of Arize Phoenix: the rows of its data frames, as `to_json(orient="records")` writes them, and the replies of its
//! API.

use knowledgepulse_json::{Object, Text, Value};

use crate::{
    Wrong,
    otel::told::Told,
    trace::fields_of,
    values::{first_of, list_of, object_of, or, str_of, string_of},
};

/// Returns whether a record is of this format.
pub fn recognises(value: &Value) -> bool {
    is_span(value) || list_of(value.get("data")).first().is_some_and(is_span)
}

fn is_span(value: &Value) -> bool {
    let span = object_of(Some(value));
    trace_of(span).is_some() && span.contains("status_code") && span.contains("start_time")
}

fn context<'a>(span: &'a Object, name: &str) -> Option<&'a Value> {
    let flat = span.get(&format!("context.{name}"));
    flat.or_else(|| fields_of(span, "context").get(name))
}

fn trace_of(span: &Object) -> Option<&Text> {
    string_of(context(span, "trace_id"))
}

/// Returns the spans of a record.
pub fn spans(value: &Value) -> Result<Vec<Told<'_>>, Wrong> {
    let spans = match value.get("data") {
        Some(Value::Array(spans)) if !is_span(value) => &spans[..],
        _ => std::slice::from_ref(value),
    };
    spans.iter().map(|span| span_of(object_of(Some(span)))).collect()
}

fn span_of(span: &Object) -> Result<Told<'static>, Wrong> {
    let trace = trace_of(span).ok_or_else(|| Wrong::new("a span has no context.trace_id"))?;
    let mut told = Told::new(trace.clone(), context(span, "span_id"), span.get("parent_id"));
    told.times(span.get("start_time"), span.get("end_time"));
    match str_of(span.get("status_code")) {
        Some("OK") => told.status(true, None),
        Some("ERROR") => told.status(false, span.get("status_message")),
        _ => {}
    }
    // The attributes repeat it, mostly.
    told.attribute("openinference.span.kind", span.get("span_kind"));
    for (name, value) in span {
        if name == "attributes" {
            told.flattened(&Text::default(), value);
        } else if let Some(name) = name.as_str().and_then(|name| name.strip_prefix("attributes.")) {
            told.flattened(&name.into(), value);
        }
    }
    let annotations = or(span.get("annotations"), span.get("span_annotations"));
    for annotation in list_of(annotations) {
        let result = or(annotation.get("result"), Some(annotation));
        told.about.score(
            annotation.get("name"),
            first_of(object_of(result), &["score", "label"]),
        );
    }
    Ok(told)
}
