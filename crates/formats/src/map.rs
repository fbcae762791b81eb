//! Records of any other format, read by a map: a JSON object that says where their messages, calls and results are.
//!
//! | key                                               | what it names                                                            |
//! | ------------------------------------------------- | ------------------------------------------------------------------------ |
//! | `messages`                                        | the messages of a record; the only key that must be there                |
//! | `id`, `task`, `time`, `reward`                    | in a record                                                              |
//! | `success`                                         | in a record, a path or a test                                            |
//! | `role`, `text`, `reasoning`, `calls`              | in a message; without `role`, all messages are the agent's               |
//! | `roles`                                           | by the words of the format: `system`, `user`, `assistant`, `reasoning`, `tool` or `skip` |
//! | `call.id`, `call.name`, `call.input`              | in a call                                                                |
//! | `call.result`, `call.failed`                      | in a call, where its result is there too                                 |
//! | `result.id`, `result.text`, `result.failed`       | in a message with the role `tool`; without `result.text`, `text`         |
//!
//! A path has names with dots between them (`run.steps`), or is a JSON Pointer (`/run/steps`). `*` is every element or member, and the empty
//! path the value itself. A text on the way is read as JSON. A test, `{"at": PATH, "is": VALUE}`, holds if the path finds the value, or
//! one of a list of them.

use std::fmt;

use knowledgepulse_json::{Object, Text, Value};

use crate::{
    Entry, FormatName, FormatReader, Found, Wrong,
    mapping::{Sink, TraceBuilder},
    messages::add_message,
    openai_chat::{add_id, add_time},
    values::{is_given, numeric_of, object_of, string_of, truth_of},
};

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
    messages: Path,
    id: Option<Path>,
    task: Option<Path>,
    time: Option<Path>,
    reward: Option<Path>,
    success: Option<Test>,
    role: Option<Path>,
    roles: Vec<(Text, Role)>,
    text: Option<Path>,
    reasoning: Option<Path>,
    calls: Option<Path>,
    call: CallMap,
    result: ResultMap,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct CallMap {
    id: Option<Path>,
    name: Option<Path>,
    input: Option<Path>,
    result: Option<Path>,
    failed: Option<Test>,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct ResultMap {
    id: Option<Path>,
    text: Option<Path>,
    failed: Option<Test>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Role {
    System,
    User,
    Assistant,
    Reasoning,
    Tool,
    Skip,
}

impl Role {
    const ALL: [(&str, Self); 6] = [
        ("system", Self::System),
        ("user", Self::User),
        ("assistant", Self::Assistant),
        ("reasoning", Self::Reasoning),
        ("tool", Self::Tool),
        ("skip", Self::Skip),
    ];

    fn named(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|(known, _)| *known == name)
            .map(|(_, role)| role)
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Segment {
    Name(Text),
    Every,
}

/// Where a value is.
#[derive(Debug, Clone, Default, PartialEq)]
struct Path {
    segments: Vec<Segment>,
    written: String,
}

impl fmt::Display for Path {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "`{}`", self.written)
    }
}

impl Path {
    fn parse(written: &str) -> Self {
        let segment = |name: String| match name.as_str() {
            "*" => Segment::Every,
            _ => Segment::Name(name.into()),
        };
        let segments = match written.strip_prefix('/') {
            Some(pointer) => {
                let names = pointer.split('/');
                names
                    .map(|name| segment(name.replace("~1", "/").replace("~0", "~")))
                    .collect()
            }
            None if written.is_empty() => Vec::new(),
            None => written.split('.').map(|name| segment(name.to_owned())).collect(),
        };
        Self {
            segments,
            written: written.to_owned(),
        }
    }

    /// Returns the values that are there, without `null`.
    fn find(&self, value: &Value) -> Vec<Value> {
        let mut found = vec![value.clone()];
        for segment in &self.segments {
            found = found
                .into_iter()
                .flat_map(|value| members(parsed(value), segment))
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
        let lists = self.find(value).into_iter().map(|value| match value {
            Value::String(_) => match parsed(value.clone()) {
                list @ Value::Array(_) => list,
                _ => value,
            },
            value => value,
        });
        lists
            .flat_map(|value| match value {
                Value::Array(list) => list,
                value => vec![value],
            })
            .collect()
    }
}

/// Returns the JSON in a text; any other value as it is.
fn parsed(value: Value) -> Value {
    match value.as_text().map(Text::parse) {
        Some(Ok(parsed)) => parsed,
        _ => value,
    }
}

fn members(value: Value, segment: &Segment) -> Vec<Value> {
    match (value, segment) {
        (Value::Array(list), Segment::Every) => list,
        (Value::Object(object), Segment::Every) => object.into_iter().map(|(_, value)| value).collect(),
        (Value::Object(mut object), Segment::Name(name)) => name
            .as_str()
            .and_then(|name| object.remove(name))
            .into_iter()
            .collect(),
        (Value::Array(mut list), Segment::Name(name)) => {
            let index = name.as_str().and_then(|name| name.parse().ok());
            let index = index.filter(|&index: &usize| index < list.len());
            index.map(|index| list.swap_remove(index)).into_iter().collect()
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

/// Takes the keys of an object of a map, and refuses unknown ones.
struct Keys<'a> {
    object: &'a Object,
    within: &'static str,
    known: Vec<&'static str>,
}

impl<'a> Keys<'a> {
    fn of(object: &'a Object, within: &'static str) -> Self {
        let known = Vec::new();
        Self {
            object,
            within,
            known,
        }
    }

    fn key(&self, name: &str) -> String {
        format!("{}{name}", self.within)
    }

    fn get(&mut self, name: &'static str) -> Option<&'a Value> {
        self.known.push(name);
        self.object.get(name)
    }

    fn path(&mut self, name: &'static str) -> Result<Option<Path>, MapError> {
        self.get(name)
            .map(|value| path_of(value, &self.key(name)))
            .transpose()
    }

    fn object(&mut self, name: &'static str) -> Result<&'a Object, MapError> {
        match self.get(name) {
            None => Ok(object_of(None)),
            Some(Value::Object(object)) => Ok(object),
            Some(other) => Err(wrong_kind(&self.key(name), "an object", other)),
        }
    }

    fn test(&mut self, name: &'static str) -> Result<Option<Test>, MapError> {
        let key = self.key(name);
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        let Value::Object(test) = value else {
            let at = path_of(value, &key)?;
            return Ok(Some(Test { at, is: None }));
        };
        if let Some(other) = test.keys().find(|name| *name != "at" && *name != "is") {
            let other = other.to_string_lossy();
            return Err(MapError::new(
                &format!("{key}.{other}"),
                "is not known: a test has `at` and `is`",
            ));
        }
        let at = test.get("at").cloned().unwrap_or_default();
        let at = path_of(&at, &format!("{key}.at"))?;
        let is = match test.get("is") {
            Some(Value::Array(values)) => values.clone(),
            Some(value) => vec![value.clone()],
            None => return Err(MapError::new(&format!("{key}.is"), "is missing")),
        };
        Ok(Some(Test { at, is: Some(is) }))
    }

    fn end(self) -> Result<(), MapError> {
        let other = self
            .object
            .keys()
            .find(|name| !name.as_str().is_some_and(|name| self.known.contains(&name)));
        other.map_or(Ok(()), |name| {
            let known = self.known.join(", ");
            let problem = format!("is not known: there are {known}");
            Err(MapError::new(&self.key(&name.to_string_lossy()), problem))
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

fn roles_of(names: &Object) -> Result<Vec<(Text, Role)>, MapError> {
    let role = |(name, role): (&Text, &Value)| match role.as_str().and_then(Role::named) {
        Some(role) => Ok((name.clone(), role)),
        None => {
            let known = Role::ALL.map(|(name, _)| name).join(", ");
            let key = format!("roles.{}", name.to_string_lossy());
            Err(MapError::new(&key, format!("must be one of {known}")))
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
        let Value::Object(object) = value else {
            return Err(wrong_kind("", "an object", value));
        };
        let mut keys = Keys::of(object, "");
        let messages = keys.path("messages")?;
        let missing = || MapError::new("messages", "is missing: the path of a record's messages");
        let mut map = Self {
            messages: messages.ok_or_else(missing)?,
            id: keys.path("id")?,
            task: keys.path("task")?,
            time: keys.path("time")?,
            reward: keys.path("reward")?,
            success: keys.test("success")?,
            role: keys.path("role")?,
            roles: roles_of(keys.object("roles")?)?,
            text: keys.path("text")?,
            reasoning: keys.path("reasoning")?,
            calls: keys.path("calls")?,
            ..Self::default()
        };
        let mut call = Keys::of(keys.object("call")?, "call.");
        map.call = CallMap {
            id: call.path("id")?,
            name: call.path("name")?,
            input: call.path("input")?,
            result: call.path("result")?,
            failed: call.test("failed")?,
        };
        call.end()?;
        let mut result = Keys::of(keys.object("result")?, "result.");
        map.result = ResultMap {
            id: result.path("id")?,
            text: result.path("text")?,
            failed: result.test("failed")?,
        };
        result.end()?;
        keys.end()?;
        if map.calls.is_some() && map.call.name.is_none() {
            return Err(MapError::new(
                "call.name",
                "is missing: the path of a tool's name in one of `calls`",
            ));
        }
        Ok(map)
    }

    fn role_of(&self, message: &Value) -> Result<Role, Wrong> {
        let Some(path) = &self.role else {
            return Ok(Role::Assistant);
        };
        let role = path.first(message);
        let Some(word) = string_of(role.as_ref()) else {
            return Err(Wrong::new(format!("it has no role at {path}")));
        };
        let named = self
            .roles
            .iter()
            .find(|(name, _)| name == word)
            .map(|(_, role)| *role);
        let known = || word.as_str().and_then(Role::named);
        named
            .or_else(known)
            .ok_or_else(|| Wrong::new("it has a role that `roles` of the map does not name"))
    }

    fn read(&self, entry: &Entry) -> Result<TraceBuilder, Wrong> {
        let record = entry.value;
        let mut builder = TraceBuilder::new(FormatName::Map, entry);
        builder.size = entry.size;
        let in_record = |path: &Option<Path>| path.as_ref().and_then(|path| path.first(record));
        add_id(&mut builder, "id", in_record(&self.id).as_ref());
        add_time(&mut builder, in_record(&self.time).as_ref());
        builder.reward(in_record(&self.reward).as_ref());
        builder.success = self
            .success
            .as_ref()
            .and_then(|test| test.of(record))
            .or(builder.success);
        let task = in_record(&self.task);
        if let Some(task) = &task {
            let task = builder.text_of(Some(task));
            builder.user(task);
        }
        let messages = self.messages.list(record);
        if messages.is_empty() && self.messages.find(record).is_empty() {
            return Err(Wrong::new(format!("it has no messages at {}", self.messages)));
        }
        let mut is_first = task.is_some();
        for (at, message) in messages.iter().enumerate() {
            let place = || format!("messages[{at}]");
            let role = self.role_of(message).map_err(|wrong| wrong.within(&place()))?;
            let text = self.text.as_ref().and_then(|path| path.first(message));
            // The first turn of the user mostly repeats the task.
            if role == Role::User && std::mem::take(&mut is_first) && text == task {
                continue;
            }
            self.add(&mut builder, role, message, text)
                .map_err(|wrong| wrong.within(&place()))?;
        }
        Ok(builder)
    }

    fn add(
        &self,
        builder: &mut TraceBuilder,
        role: Role,
        message: &Value,
        text: Option<Value>,
    ) -> Result<(), Wrong> {
        let find = |path: &Option<Path>, value: &Value| path.as_ref()?.first(value);
        let message_of = |role: &str, text: Option<Value>| {
            let mut fields = Object::new();
            fields.insert("role", role);
            fields.insert("content", text.unwrap_or_default());
            fields
        };
        let result_of = |text, id: Option<Value>, failed: Option<bool>| {
            let mut fields = message_of("tool", text);
            fields.insert("tool_call_id", id.unwrap_or_default());
            if let Some(failed) = failed {
                fields.insert("is_error", failed);
            }
            Value::Object(fields)
        };
        match role {
            Role::Skip => {
                builder.leave_out("skipped message");
                return Ok(());
            }
            Role::System => return add_message(builder, &message_of("system", text).into()),
            Role::User => return add_message(builder, &message_of("user", text).into()),
            Role::Tool => {
                let text = self.result.text.as_ref().map_or(text, |path| path.first(message));
                let failed = self.result.failed.as_ref().and_then(|test| test.of(message));
                return add_message(builder, &result_of(text, find(&self.result.id, message), failed));
            }
            Role::Reasoning => {
                let text = builder.text_of(text.as_ref());
                builder.reasoning(text);
            }
            Role::Assistant => {
                let mut fields = message_of("assistant", text);
                if let Some(reasoning) = find(&self.reasoning, message) {
                    fields.insert("reasoning_content", reasoning);
                }
                add_message(builder, &fields.into())?;
            }
        }
        for call in self.calls.iter().flat_map(|path| path.list(message)) {
            let name = find(&self.call.name, &call);
            if !is_given(name.as_ref()) {
                continue;
            }
            let id = find(&self.call.id, &call);
            let mut fields = Object::new();
            fields.insert("type", "function_call");
            fields.insert("call_id", id.clone().unwrap_or_default());
            fields.insert("name", name.unwrap_or_default());
            fields.insert("arguments", find(&self.call.input, &call).unwrap_or_default());
            add_message(builder, &fields.into())?;
            let text = find(&self.call.result, &call);
            let failed = self.call.failed.as_ref().and_then(|test| test.of(&call));
            if text.is_some() || failed == Some(true) {
                add_message(builder, &result_of(text, id, failed))?;
            }
        }
        Ok(())
    }
}

/// Reads records by a map.
pub(crate) struct Reader(pub Map);

impl FormatReader for Reader {
    fn read(&mut self, entry: &Entry, found: &mut Vec<Found>) -> Result<(), Wrong> {
        found.push(Ok(self.0.read(entry)?));
        Ok(())
    }
}
