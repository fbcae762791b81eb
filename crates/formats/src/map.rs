//! Records of any other format, read by a map: a JSON object that says where their messages, calls and results are.
//! `docs/formats.md` describes its keys, paths and tests.

use std::{borrow::Cow, path};

use crate::{prelude::*, spans::said::parsed};

/// What a role may mean.
const ROLES: &[&str] = &["system", "user", "assistant", "reasoning", "tool", "skip"];

/// The keys of the object `result` in a map.
const OF_RESULT: &[&str] = &["id", "text", "failed"];

/// The keys of the object `call` in a map.
const OF_CALL: &[&str] = &["id", "name", "input", "result", "failed"];

/// The keys of a map.
#[rustfmt::skip]
const KEYS: &[&str] = &[
    "messages", "id", "task", "time", "reward", "success", "role", "roles", "text", "reasoning", "calls", "call", "result",
];

/// The problem of a map.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.at("the map"))]
pub struct MapError {
    /// The key with its path in the map; `None` for the map itself.
    pub key: Option<String>,
    /// The problem.
    pub problem: String,
}

impl MapError {
    /// Adds to the problem its place in the file or the option that holds the map.
    #[must_use]
    pub fn at(&self, place: &str) -> String {
        let key = self.key.as_ref().map(|key| format!(".{key}"));
        format!("{place}{} {}", key.unwrap_or_default(), self.problem)
    }

    fn new(key: &str, problem: impl Into<String>) -> Self {
        Self {
            key: (!key.is_empty()).then(|| key.to_owned()),
            problem: problem.into(),
        }
    }
}

/// Where the parts of a conversation are in records of a format.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Map {
    /// By their keys, as `call.name`.
    paths: Vec<(String, Path)>,
    tests: Vec<(String, Test)>,
    roles: Vec<(Text, &'static str)>,
}

/// Returns what a role means: itself, if it is one of a chat.
fn role_named(name: Option<&str>) -> Option<&'static str> {
    let mut roles = ROLES.iter();
    roles.find(|role| Some(**role) == name).copied()
}

/// Where a value is.
#[derive(Debug, Clone, Default, PartialEq)]
struct Path {
    names: Vec<String>,
    written: String,
}

impl Path {
    fn parse(written: &str) -> Self {
        let unescaped = |name: &str| name.replace("~1", "/").replace("~0", "~");
        let names = match written.strip_prefix('/') {
            Some(pointer) => pointer.split('/').map(unescaped).collect(),
            None if written.is_empty() => Vec::new(),
            None => written.split('.').map(str::to_owned).collect(),
        };
        let written = written.to_owned();
        Self { names, written }
    }

    /// Returns the values that are there, without `null`.
    fn find(&self, value: &Value) -> Vec<Value> {
        let mut found = vec![value.clone()];
        for name in &self.names {
            let values = found.iter().filter_map(|value| parsed(Some(value)));
            found = values
                .flat_map(|value| members(value.into_owned(), name))
                .collect();
        }
        found.retain(|value| !value.is_null());
        found
    }

    fn first(&self, value: &Value) -> Option<Value> {
        self.find(value).into_iter().next()
    }

    /// Returns the values that are there, lists taken apart.
    fn list(&self, value: &Value) -> Vec<Value> {
        let elements = |value: Value| match parsed(Some(&value)).map(Cow::into_owned) {
            Some(Value::Array(list)) => list,
            _ => vec![value],
        };
        self.find(value).into_iter().flat_map(elements).collect()
    }
}

/// Returns the element or the field of a name, which stands for all of them if it is `*`.
fn members(value: Value, name: &str) -> Vec<Value> {
    match value {
        Value::Array(list) if name == "*" => list,
        Value::Object(object) if name == "*" => object.into_iter().map(|(_, value)| value).collect(),
        Value::Object(mut object) => object.remove(name).into_iter().collect(),
        Value::Array(list) => {
            let index = name.parse().unwrap_or(list.len());
            list.into_iter().skip(index).take(1).collect()
        }
        _ => Vec::new(),
    }
}

/// Whether something holds of a record, a call or a result.
#[derive(Debug, Clone, PartialEq)]
struct Test {
    at: Path,
    is: Option<Vec<Value>>,
}

impl Test {
    /// Returns whether the test holds. A path alone holds if it finds a value that is neither false, 0 nor empty.
    fn of(&self, value: &Value) -> Option<bool> {
        let found = self.at.first(value)?;
        Some(match &self.is {
            Some(values) => values.contains(&found),
            None => truth_of(Some(&found)).unwrap_or_else(|| match numeric_of(Some(&found)) {
                Some(number) => number != 0.0,
                None => found.as_text().is_none_or(|text| !text.is_empty()),
            }),
        })
    }
}

fn wrong_kind(key: &str, expected: &str, value: &Value) -> MapError {
    MapError::new(key, format!("must be {expected}, got {}", value.kind()))
}

fn path_of(value: &Value, key: &str) -> Result<Path, MapError> {
    match value.as_str() {
        Some(written) => Ok(Path::parse(written)),
        None => Err(wrong_kind(key, "a path, which is a string", value)),
    }
}

fn object_of<'a>(value: &'a Value, key: &str) -> Result<&'a Object, MapError> {
    value
        .as_object()
        .ok_or_else(|| wrong_kind(key, "an object", value))
}

fn test_of(value: &Value, key: &str) -> Result<Test, MapError> {
    let Value::Object(test) = value else {
        let at = path_of(value, key)?;
        return Ok(Test { at, is: None });
    };
    if let Some(other) = test.keys().find(|name| *name != "at" && *name != "is") {
        let problem = "is not known: a test has `at` and `is`";
        return Err(MapError::new(&format!("{key}.{other}"), problem));
    }
    let at = path_of(test.get("at").unwrap_or(&Value::Null), &format!("{key}.at"))?;
    let is = match test.get("is") {
        Some(Value::Array(values)) => values.clone(),
        Some(value) => vec![value.clone()],
        None => return Err(MapError::new(&format!("{key}.is"), "is missing")),
    };
    Ok(Test { at, is: Some(is) })
}

fn roles_of(names: &Object) -> Result<Vec<(Text, &'static str)>, MapError> {
    let role = |(name, role): (&Text, &Value)| match role_named(role.as_str()) {
        Some(role) => Ok((name.clone(), role)),
        None => {
            let key = format!("roles.{name}");
            let problem = format!("must be one of {}", ROLES.join(", "));
            Err(MapError::new(&key, problem))
        }
    };
    names.iter().map(role).collect()
}

impl Map {
    /// Reads a map.
    ///
    /// # Errors
    /// If it is no object, has no `messages`, or has a key that is not known or whose value is of another kind.
    pub fn from_value(value: &Value) -> Result<Self, MapError> {
        let object = object_of(value, "")?;
        if !object.contains("messages") {
            let problem = "is missing: the path of a record's messages";
            return Err(MapError::new("messages", problem));
        }
        let mut map = Self::default();
        map.read_keys(object, "", KEYS)?;
        if map.path("calls").is_some() && map.path("call.name").is_none() {
            let problem = "is missing: the path of a tool's name in one of `calls`";
            return Err(MapError::new("call.name", problem));
        }
        Ok(map)
    }

    /// Reads the keys of an object, whose own key is `within`, and refuses unknown ones.
    fn read_keys(&mut self, object: &Object, within: &str, known: &[&str]) -> Result<(), MapError> {
        for (name, value) in object {
            let key = format!("{within}{name}");
            match (name.as_str(), within) {
                (name, _) if !known.contains(&name) => {
                    let problem = format!("is not known: there are {}", known.join(", "));
                    return Err(MapError::new(&key, problem));
                }
                ("success" | "failed", _) => self.tests.push((key.clone(), test_of(value, &key)?)),
                ("roles", _) => self.roles = roles_of(object_of(value, &key)?)?,
                ("call", _) => self.read_keys(object_of(value, &key)?, "call.", OF_CALL)?,
                ("result", "") => self.read_keys(object_of(value, &key)?, "result.", OF_RESULT)?,
                _ => self.paths.push((key.clone(), path_of(value, &key)?)),
            }
        }
        Ok(())
    }

    fn path(&self, key: &str) -> Option<&Path> {
        let path = self.paths.iter().find(|(name, _)| *name == key);
        path.map(|(_, path)| path)
    }

    /// Returns the first value at the path of a key.
    fn find(&self, key: &str, value: &Value) -> Option<Value> {
        self.path(key)?.first(value)
    }

    /// Returns whether the test of a key holds; `None` without one, or if it finds nothing.
    fn test(&self, key: &str, value: &Value) -> Option<bool> {
        let (_, test) = self.tests.iter().find(|(name, _)| *name == key)?;
        test.of(value)
    }

    fn role_of(&self, message: &Value) -> Result<&'static str, Wrong> {
        let Some(path) = self.path("role") else {
            return Ok("assistant");
        };
        let role = path.first(message);
        let Some(word) = string_of(role.as_ref()) else {
            return Err(Wrong::new(format!("it has no role at `{}`", path.written)));
        };
        let named = self.roles.iter().find(|(name, _)| name == word);
        named
            .map(|(_, role)| *role)
            .or_else(|| role_named(Some(word)))
            .ok_or_else(|| Wrong::new("it has a role that `roles` of the map does not name"))
    }

    fn add(&self, say: &mut Events, role: &str, message: &Value, text: Option<Value>) -> Result<(), Wrong> {
        let result_of = |text, id, failed: Option<bool>| {
            some_object([
                ("role", Some("tool".into())),
                ("content", text),
                ("tool_call_id", id),
                ("is_error", failed.map(Value::Bool)),
            ])
        };
        match role {
            "skip" => {
                say.leave_out("skipped message");
                return Ok(());
            }
            "system" | "user" => return add_said(say, role, text.as_ref()),
            "tool" => {
                let text = match self.path("result.text") {
                    Some(path) => path.first(message),
                    None => text,
                };
                let id = self.find("result.id", message);
                let failed = self.test("result.failed", message);
                return add_message(say, &result_of(text, id, failed));
            }
            "reasoning" => say.say_content(TextKind::Reasoning, text.as_ref()),
            _ => {
                let message = some_object([
                    ("role", Some("assistant".into())),
                    ("content", text),
                    ("reasoning_content", self.find("reasoning", message)),
                ]);
                add_message(say, &message)?;
            }
        }
        for call in self.path("calls").iter().flat_map(|path| path.list(message)) {
            let name = self.find("call.name", &call);
            if !is_given(name.as_ref()) {
                continue;
            }
            let [id, input, text] = ["call.id", "call.input", "call.result"].map(|key| self.find(key, &call));
            say.call(Call::new(id.as_ref(), name.as_ref(), input.as_ref()));
            let failed = self.test("call.failed", &call);
            if text.is_some() || failed == Some(true) {
                add_message(say, &result_of(text, id, failed))?;
            }
        }
        Ok(())
    }
}

impl Adapter for Map {
    /// The caller names the records of a map.
    fn recognises(&self, _record: &Value, _path: Option<&path::Path>) -> bool {
        false
    }

    fn decode(&self, record: &Value, say: &mut Events) -> Result<Decoded, Wrong> {
        say.begin_record(None, milliseconds_of(self.find("time", record).as_ref()).as_ref());
        say.name("id", self.find("id", record).as_ref());
        let reward = self.find("reward", record).map(Fact::Reward);
        let success = self
            .test("success", record)
            .map(|success| Fact::Verdict(success.into()));
        say.add_all(reward.into_iter().chain(success).map(What::Fact));
        let task = self.find("task", record);
        if task.is_some() {
            say.say_content(TextKind::User, task.as_ref());
        }
        let whole = Path::default();
        let path = self.path("messages").unwrap_or(&whole);
        let messages = path.list(record);
        if messages.is_empty() && path.find(record).is_empty() {
            return Err(Wrong::new(format!("it has no messages at `{}`", path.written)));
        }
        let mut is_first = task.is_some();
        for (at, message) in messages.iter().enumerate() {
            let place = || format!("messages[{at}]");
            let role = self.role_of(message).map_err(|wrong| wrong.within(place()))?;
            let text = self.find("text", message);
            // The first turn of the user mostly repeats the task.
            if role == "user" && std::mem::take(&mut is_first) && text == task {
                continue;
            }
            self.add(say, role, message, text)
                .map_err(|wrong| wrong.within(place()))?;
        }
        Ok(Decoded::Whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use knowledgepulse_json::parse;

    #[test]
    fn from_value_names_the_key_and_the_problem() {
        for (map, problem) in [
            ("[]", "m must be an object, got array"),
            ("{}", "m.messages is missing: the path of a record's messages"),
            (
                r#"{"messages":1}"#,
                "m.messages must be a path, which is a string, got number",
            ),
            (
                r#"{"messages":"","roles":{"bot":"robot"}}"#,
                "m.roles.bot must be one of system, user, assistant, reasoning, tool, skip",
            ),
            (
                r#"{"messages":"","call":{"nam":""}}"#,
                "m.call.nam is not known: there are id, name, input, result, failed",
            ),
            (
                r#"{"messages":"","success":{"at":"a"}}"#,
                "m.success.is is missing",
            ),
            (
                r#"{"messages":"","calls":""}"#,
                "m.call.name is missing: the path of a tool's name in one of `calls`",
            ),
        ] {
            let error = Map::from_value(&parse(map.as_bytes()).unwrap()).unwrap_err();
            assert!(error.at("m").contains(problem), "{}", error.at("m"));
        }
    }
}
