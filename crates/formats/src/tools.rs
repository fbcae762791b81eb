//! Definitions of tools that a log records, as OpenAI's chats have them.

use knowledgepulse_json::{Object, Value, json_object, object};

use crate::values::{first_named, list_at, list_of, parsed, text_at};

/// The field of `metadata.imported` with the definitions of tools, where the log has them.
pub const TOOLS: &str = "tools";

/// Returns the definitions in a list of a chat, of spans or of Codex, which may be a text in JSON. Tools of the provider, which have no
/// name, are left out. `None` if there is none.
pub fn tools_of(list: Option<&Value>) -> Option<Value> {
    let list = parsed(list);
    let tools =
        list_of(list.as_deref())
            .iter()
            .flat_map(|tool| match list_at(tool, "functionDeclarations") {
                [] => std::slice::from_ref(tool),
                declared => declared,
            });
    let tools: Vec<Value> = tools.filter_map(tool_of).collect();
    (!tools.is_empty()).then(|| tools.into())
}

fn tool_of(tool: &Value) -> Option<Value> {
    let function = tool.get("function").filter(|inner| inner.as_object().is_some());
    let tool = function.unwrap_or(tool);
    let nothing = || object([("type", "object".into()), ("properties", Object::new().into())]);
    let description = text_at(tool, "description").unwrap_or_default();
    let schema = first_named(tool, "tool-schema").cloned().unwrap_or_else(nothing);
    let function = json_object! {
        "name": text_at(tool, "name")?,
        "description": description,
        "parameters": schema,
    };
    Some(object([("type", "function".into()), ("function", function)]))
}

#[cfg(test)]
mod tests {
    use knowledgepulse_json::parse_str;

    use super::*;

    #[test]
    fn tools_of_a_list_are_those_with_a_name_in_one_shape() {
        let expected = r#"[{"type":"function","function":{"name":"ls","description":"List","parameters":{"type":"object","properties":{"path":{}}}}}]"#;
        let schema = r#"{"type":"object","properties":{"path":{}}}"#;
        let plain = |name: &str| format!(r#"{{"name":"ls","description":"List","{name}":{schema}}}"#);
        for list in [
            format!(r#"[{{"type":"function","function":{}}}]"#, plain("parameters")),
            format!(r#"[{},{{"type":"web_search"}}]"#, plain("input_schema")),
            format!(
                r#"[{{"functionDeclarations":[{}]}}]"#,
                plain("parametersJsonSchema")
            ),
            Value::from(format!("[{}]", plain("inputSchema"))).to_json(),
        ] {
            let tools = tools_of(parse_str(&list).ok().as_ref());
            assert_eq!(
                tools.map(|tools| tools.to_json()).as_deref(),
                Some(expected),
                "{list}"
            );
        }
        for list in ["[]", "7", r#""ls""#, r#"[{"type":"web_search"}]"#] {
            assert_eq!(tools_of(parse_str(list).ok().as_ref()), None, "{list}");
        }
    }
}
