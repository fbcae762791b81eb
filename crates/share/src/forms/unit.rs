//! Units that a registry of KnowledgePulse accepts.

use knowledgepulse_formats::date;
use knowledgepulse_json::{Object, Value, object};

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
    let empty = Object::new();
    let metadata = trace.get("metadata").and_then(Value::as_object).unwrap_or(&empty);
    let objective = trace.at(&["task", "objective"]).and_then(Value::as_text);
    let objective = objective
        .filter(|text| !text.is_empty())
        .ok_or("it has no objective")?;
    let id = trace.get("id").and_then(Value::as_str);
    let id = id.filter(|id| id.starts_with("kp:trace:"));
    let steps = trace.get("steps").and_then(Value::as_array).unwrap_or_default();
    if steps.is_empty() {
        return Err("it has no steps");
    }
    let steps = steps.iter().enumerate().map(|(at, step)| step_of(at, step));
    let steps: Vec<Value> = steps.collect::<Result<_, Refusal>>()?;
    let summary = trace.at(&["outcome", "result_summary"]).and_then(Value::as_text);
    let mut task = object([("objective", objective.clone().into())]);
    if let (Value::Object(task), Some(Value::Object(schema))) =
        (&mut task, trace.at(&["task", "input_schema"]))
    {
        task.insert("input_schema", schema.clone());
    }
    let mut unit = vec![
        ("@context", CONTEXT.into()),
        ("@type", "ReasoningTrace".into()),
        ("id", id.ok_or("its id does not begin with kp:trace:")?.into()),
        ("metadata", metadata_of(metadata, success).into()),
        ("task", task),
        ("steps", steps.into()),
        (
            "outcome",
            object([
                ("result_summary", summary.cloned().unwrap_or_default().into()),
                ("confidence", confidence.clamp(0.0, 1.0).into()),
            ]),
        ),
    ];
    if let Some(skill) = trace.get("source_skill").filter(|skill| skill.as_str().is_some()) {
        unit.push(("source_skill", skill.clone()));
    }
    Ok(object(unit))
}

fn metadata_of(metadata: &Object, success: bool) -> Object {
    let text = |name| {
        let text = metadata.get(name).and_then(Value::as_str);
        text.filter(|text| !text.is_empty())
    };
    let one_of = |name, values: &[&str]| text(name).filter(|text| values.contains(text));
    let time = text("created_at").and_then(date::parse);
    let quality = metadata.get("quality_score").and_then(Value::as_number);
    let mut clean = Object::new();
    clean.insert("created_at", time.map_or_else(date::now, date::to_iso));
    for name in ["agent_id", "framework"] {
        if let Some(text) = text(name) {
            clean.insert(name, text);
        }
    }
    clean.insert("task_domain", text("task_domain").unwrap_or("default"));
    clean.insert("success", success);
    clean.insert("quality_score", quality.unwrap_or_default().clamp(0.0, 1.0));
    // A reader of logs calls every trace private; whoever shares one means the network.
    let visibility = one_of("visibility", &VISIBILITIES).filter(|_| !metadata.contains("imported"));
    clean.insert("visibility", visibility.unwrap_or("network"));
    let level = one_of("privacy_level", &LEVELS);
    clean.insert("privacy_level", level.unwrap_or("aggregated"));
    clean
}

#[allow(clippy::cast_precision_loss)] // No trace has so many steps.
fn step_of(at: usize, step: &Value) -> Result<Value, Refusal> {
    let kind = step.get("type").and_then(Value::as_str);
    let kind = kind.filter(|kind| STEP_TYPES.contains(kind));
    let id = step.get("step_id").and_then(Value::as_number);
    let id = id.filter(|id| id.fract() == 0.0 && *id >= 0.0);
    let mut clean = Object::new();
    clean.insert("step_id", id.unwrap_or(at as f64));
    clean.insert(
        "type",
        kind.ok_or("a step has a type that the registry does not know")?,
    );
    let mut keep = |name: &str, is_right: fn(&Value) -> bool| {
        if let Some(value) = step.get(name).filter(|value| is_right(value)) {
            clean.insert(name, value.clone());
        }
    };
    keep("content", |value| value.as_text().is_some());
    keep("input", |value| value.as_object().is_some());
    keep("output_summary", |value| value.as_text().is_some());
    keep("latency_ms", |value| value.as_number().is_some());
    if let Some(name) = step.at(&["tool", "name"]).and_then(Value::as_text) {
        let mut tool = vec![("name", name.clone().into())];
        let server = step.at(&["tool", "mcp_server"]).and_then(Value::as_text);
        tool.extend(server.map(|server| ("mcp_server", server.clone().into())));
        clean.insert("tool", object(tool));
    }
    Ok(clean.into())
}
