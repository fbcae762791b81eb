//! Units that a registry of KnowledgePulse accepts.

use knowledgepulse_formats::date;
use knowledgepulse_json::{Text, Value, json_object};

use super::{text_at, with_some};

const CONTEXT: &str = "https://openknowledgepulse.org/schema/v1";
const STEP_TYPES: [&str; 4] = ["thought", "tool_call", "observation", "error_recovery"];
const VISIBILITIES: [&str; 3] = ["private", "org", "network"];
const LEVELS: [&str; 3] = ["aggregated", "federated", "private"];

/// Why a trace is no unit.
pub(crate) type Refusal = &'static str;

/// Returns a clean trace as a unit with an outcome: the fields of the schema that are valid, and no others.
///
/// # Errors
/// If a field that the registry requires cannot be made valid.
pub(crate) fn unit_of(trace: &Value, (success, confidence): (bool, f64)) -> Result<Value, Refusal> {
    let objective = trace.at(&["task", "objective"]).and_then(Value::as_text);
    let objective = objective.filter(|text| !text.is_empty());
    let id = trace.get("id").and_then(Value::as_str);
    let id = id.filter(|id| id.starts_with("kp:trace:"));
    let steps = trace.get("steps").and_then(Value::as_array).unwrap_or_default();
    if steps.is_empty() {
        return Err("it has no steps");
    }
    let steps = steps.iter().enumerate().map(|(at, step)| step_of(at, step));
    let steps = steps.collect::<Result<Vec<_>, Refusal>>()?;
    let summary = text_at(trace, &["outcome", "result_summary"]).unwrap_or_default();
    let schema = trace
        .at(&["task", "input_schema"])
        .filter(|schema| schema.as_object().is_some());
    let skill = trace.get("source_skill").filter(|skill| skill.as_str().is_some());
    let task = with_some([
        (
            "objective",
            Some(objective.ok_or("it has no objective")?.clone().into()),
        ),
        ("input_schema", schema.cloned()),
    ]);
    let outcome = json_object! { "result_summary": summary, "confidence": confidence.clamp(0.0, 1.0) };
    Ok(with_some([
        ("@context", Some(CONTEXT.into())),
        ("@type", Some("ReasoningTrace".into())),
        (
            "id",
            Some(id.ok_or("its id does not begin with kp:trace:")?.into()),
        ),
        ("metadata", Some(metadata_of(trace, success))),
        ("task", Some(task)),
        ("steps", Some(steps.into())),
        ("outcome", Some(outcome)),
        ("source_skill", skill.cloned()),
    ]))
}

fn metadata_of(trace: &Value, success: bool) -> Value {
    let text = |name| text_at(trace, &["metadata", name]);
    let one_of = |name, values: &[&str]| text(name).filter(|text| values.contains(&text.as_str()));
    let time = text("created_at").and_then(|time| date::parse(&time));
    let quality = trace
        .at(&["metadata", "quality_score"])
        .and_then(Value::as_number);
    // A reader of logs calls every trace private; whoever shares one means the network.
    let is_imported = trace.at(&["metadata", "imported"]).is_some();
    let visibility = one_of("visibility", &VISIBILITIES).filter(|_| !is_imported);
    let or = |text: Option<Text>, usual: &str| Some(text.unwrap_or_else(|| usual.into()).into());
    with_some([
        (
            "created_at",
            Some(time.map_or_else(date::now, date::to_iso).into()),
        ),
        ("agent_id", text("agent_id").map(Value::from)),
        ("framework", text("framework").map(Value::from)),
        ("task_domain", or(text("task_domain"), "default")),
        ("success", Some(success.into())),
        (
            "quality_score",
            Some(quality.unwrap_or_default().clamp(0.0, 1.0).into()),
        ),
        ("visibility", or(visibility, "network")),
        (
            "privacy_level",
            or(one_of("privacy_level", &LEVELS), "aggregated"),
        ),
    ])
}

#[allow(clippy::cast_precision_loss)] // No trace has so many steps.
fn step_of(at: usize, step: &Value) -> Result<Value, Refusal> {
    let kind = step.get("type").and_then(Value::as_str);
    let kind = kind.filter(|kind| STEP_TYPES.contains(kind));
    let kind = kind.ok_or("a step has a type that the registry does not know")?;
    let id = step.get("step_id").and_then(Value::as_number);
    let id = id.filter(|id| id.fract() == 0.0 && *id >= 0.0);
    let field = |name: &str, is_right: fn(&Value) -> bool| step.get(name).filter(|it| is_right(it)).cloned();
    let is_text = |value: &Value| value.as_text().is_some();
    let text = |path: &[&str]| step.at(path).and_then(Value::as_text).cloned().map(Value::from);
    let tool = text(&["tool", "name"]).map(|name| {
        with_some([
            ("name", Some(name)),
            ("mcp_server", text(&["tool", "mcp_server"])),
        ])
    });
    Ok(with_some([
        ("step_id", Some(id.unwrap_or(at as f64).into())),
        ("type", Some(kind.into())),
        ("content", field("content", is_text)),
        ("input", field("input", |value| value.as_object().is_some())),
        ("output_summary", field("output_summary", is_text)),
        (
            "latency_ms",
            field("latency_ms", |value| value.as_number().is_some()),
        ),
        ("tool", tool),
    ]))
}
