//! Cleaning a trace: every string of its JSON value, names of fields included.

use std::{
    collections::{HashMap, HashSet},
    fmt::Write as _,
    sync::LazyLock,
};

use knowledgepulse_error::{Code, Error, Result};
use knowledgepulse_json::{Object, Text, Value, write_string};

use crate::{
    cleaner::Cleaner,
    identity::Identities,
    kinds::over_strings,
    names::{is_secret, is_secret_name},
    providers,
    random::{is_id, is_random},
    seen::Seen,
    siblings::secrets_of,
    structures::is_opaque,
    text::{MARKER, block_of, is_word},
    words::Words,
};

/// Deeper values are refused, because the cleaner calls itself for each level.
pub(crate) const MOST_LEVELS: usize = 256;
/// Nothing is found in a word of at most this many letters. The shortest word that is redacted is a card number of 13 digits.
const MOST_PLAIN_LETTERS: usize = 12;

const SECRET_TYPE: &str = "password";
/// The name that a value stands under whose structure tells that it is a secret.
static SECRET_NAME: LazyLock<Text> = LazyLock::new(|| SECRET_TYPE.into());
/// Types of JSON Schema. An object whose `type` is one of them describes a field.
static SCHEMA_TYPES: Words = Words::new("array boolean integer null number object string");

/// The names above the strings of a trace that stay: by which others know it, and words of the schema.
const KEPT: &[&[&str]] = &[
    &["@context"],
    &["@type"],
    &["id"],
    &["source_skill"],
    &["metadata", "created_at"],
    &["metadata", "task_domain"],
    &["metadata", "visibility"],
    &["metadata", "privacy_level"],
    &["steps", "type"],
    &["knowledge_graph_delta", "entities", "type"],
    &["knowledge_graph_delta", "relationships", "valid_from"],
];

/// Names of fields by which formats link their records. An id under them stays.
static LINKS: Words = Words::of("trace.links");

impl Cleaner {
    /// Cleans every string of a JSON value; in a trace, all except those that identify it. UUIDs stay, except under the name of a secret.
    ///
    /// # Errors
    /// [`knowledgepulse_error::Error::OutOfRange`] if the value is nested deeper than 256 levels.
    pub fn clean_json(&mut self, value: &Value) -> Result<Value> {
        let is_trace = |value: &Value| value.get("@type").and_then(Value::as_str) == Some("ReasoningTrace");
        let elements = value.as_array().unwrap_or_default();
        let keeps = is_trace(value) || !elements.is_empty() && elements.iter().all(is_trace);
        clean(value, self, keeps)
    }

    /// Cleans a trace by itself, with its identities if they are wanted.
    ///
    /// # Errors
    /// The errors of [`Cleaner::clean_json`].
    pub fn clean_trace(&mut self, value: &Value) -> Result<Value> {
        if self.options.strict && self.options.identifiers {
            let mut identities = Identities::default();
            identities.learn_json(value);
            self.set_identities(identities);
        }
        clean(value, self, true)
    }
}

/// Cleans a JSON value, in which the strings of [`KEPT`] stay if it `keeps` them.
///
/// # Errors
/// [`Error::OutOfRange`] if the value is nested deeper than 256 levels.
fn clean(value: &Value, cleaner: &mut Cleaner, keeps: bool) -> Result<Value> {
    let mut walk = Walk {
        cleaner,
        keeps,
        outer: Vec::new(),
        path: Vec::new(),
    };
    walk.value(value)
}

/// A part of the path of a value: its place among its siblings, and its name; `None` of an element.
pub(crate) type Key<'n> = (usize, Option<&'n Text>);

struct Walk<'n> {
    cleaner: &'n mut Cleaner,
    keeps: bool,
    /// The names of secrets that the current value stands under.
    outer: Vec<&'n Text>,
    path: Vec<Key<'n>>,
}

impl<'n> Walk<'n> {
    fn value(&mut self, value: &'n Value) -> Result<Value> {
        const LEAST_CARD: usize = 13;
        // Each level but the first has a key.
        if self.path.len() == MOST_LEVELS && matches!(value, Value::Array(_) | Value::Object(_)) {
            let path = path_of(&self.path);
            let problem = format!("trace is nested deeper than {MOST_LEVELS} levels, at trace{path}");
            return Err(Error::OutOfRange(Code::InvalidTrace, problem));
        }
        let text = match value {
            Value::Array(elements) => return Ok(self.array(elements)?.into()),
            Value::Object(object) => return Ok(self.object(object)?.into()),
            Value::String(text) => text,
            Value::Digits(digits) => digits,
            Value::Number(number) => &Text::from(knowledgepulse_json::number(*number)),
            other => return Ok(other.clone()),
        };
        // Of a payment card; an id may be as long.
        let is_id = matches!(self.path.last(), Some((_, Some(name))) if name.as_bytes().to_ascii_lowercase().ends_with(b"id"));
        let is_long = text.len() >= LEAST_CARD && text.bytes().all(|digit| digit.is_ascii_digit()) && !is_id;
        let is_searched = value.as_text().is_some() || self.cleaner.options.strict && is_long;
        let mut outer = self.outer.iter();
        let clean = if outer.any(|name| is_secret(name.as_bytes(), text.as_bytes())) {
            self.marker(text, SECRET_TYPE)
        } else if !is_searched || self.is_kept(text) {
            None
        } else {
            self.text(text)
        };
        Ok(clean.map_or_else(|| value.clone(), Value::String))
    }

    fn array(&mut self, elements: &'n [Value]) -> Result<Vec<Value>> {
        let strict = self.cleaner.options.strict;
        // A header and its value in a list of headers: `[['X-Api-Key', '…']]`. The second of two names is no value.
        let is_element = strict && matches!(self.path.last(), Some((_, None)));
        let pair_name = match elements {
            [Value::String(name), Value::String(value)] if is_element && !is_name(value) => {
                Some(name).filter(|name| is_secret_name(name.as_bytes()))
            }
            _ => None,
        };
        let secrets = if strict {
            over_strings(elements)
        } else {
            Vec::new()
        };
        let mut copy = Vec::with_capacity(elements.len());
        for (index, element) in elements.iter().enumerate() {
            let key = (index, None);
            let clean = match (element.as_text(), secrets.get(index)) {
                (Some(text), Some(Some(name))) => self.at(key, |walk| {
                    let marker = walk.marker(text, name);
                    marker.map_or_else(|| element.clone(), Value::String)
                }),
                _ => self.child(key, element, pair_name.filter(|_| index == 1))?,
            };
            copy.push(clean);
        }
        Ok(copy)
    }

    fn object(&mut self, object: &'n Object) -> Result<Object> {
        let strict = self.cleaner.options.strict;
        let secrets = if strict { secrets_among(object) } else { Vec::new() };
        let mut copy = Vec::with_capacity(object.len());
        let mut is_renamed = false;
        for (place, (name, value)) in object.iter().enumerate() {
            let key = (place, Some(name));
            if strict && (is_opaque(object, name, value) || self.is_link(name, value)) {
                copy.push((name.clone(), value.clone()));
                continue;
            }
            let under = if secrets.get(place) == Some(&true) {
                Some(&*SECRET_NAME)
            } else {
                Some(name).filter(|name| strict && hides(name, value))
            };
            let clean = self.child(key, value, under)?;
            let clean_name = self.at(key, |walk| walk.text(name));
            is_renamed |= clean_name.is_some();
            copy.push((clean_name.unwrap_or_else(|| name.clone()), clean));
        }
        if is_renamed {
            number_doubles(&mut copy);
        }
        Ok(copy.into_iter().collect())
    }

    /// Cleans a field or an element. `under` is the name of a secret that it stands under from there on.
    fn child(&mut self, key: Key<'n>, value: &'n Value, under: Option<&'n Text>) -> Result<Value> {
        let outer = self.outer.len();
        self.outer.extend(under);
        let clean = self.at(key, |walk| walk.value(value));
        self.outer.truncate(outer);
        clean
    }

    /// Does something at a child of the current value.
    fn at<T>(&mut self, key: Key<'n>, act: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(key);
        let done = act(self);
        self.path.pop();
        done
    }

    /// Returns whether the current string stays.
    fn is_kept(&mut self, text: &Text) -> bool {
        let names = || self.path.iter().filter_map(|(_, name)| *name);
        let is_field = matches!(self.path.last(), Some((_, Some(_))));
        let is_kept = || KEPT.iter().any(|kept| names().eq(kept.iter()));
        let Cleaner { seen, options, .. } = &mut *self.cleaner;
        self.keeps && is_field && is_kept() && (!options.strict || has_form_of_id(seen, text, 0))
    }

    /// Returns whether a field has the id by which a format links its records, or of another thing: the name of one, and a value of its form that
    /// is no key and has no name of somebody in it.
    fn is_link(&mut self, name: &Text, value: &Value) -> bool {
        let Some(text) = value.as_text() else { return false };
        let ends = [&b"Id"[..], b"ID", b"_id", b"-id", b"uuid", b"Uuid", b"UUID"];
        let bytes = name.as_bytes();
        let is_listed = LINKS.has(bytes);
        let is_named = || is_listed || ends.iter().any(|end| bytes.ends_with(end));
        let names_thing = || is_named() && !is_secret_name(bytes);
        is_listed && self.outer.is_empty() && has_form_of_id(&mut self.cleaner.seen, text, 2)
            || names_thing()
                && is_drawn_id(text.as_bytes())
                && !self.cleaner.identities.may_be_in(text.as_bytes())
    }

    /// Returns the marker of a value that is replaced whole.
    fn marker(&mut self, value: &Text, name: &'static str) -> Option<Text> {
        let marker = self.cleaner.replace_value(value, name)?;
        self.place();
        Some(marker.as_str().into())
    }

    /// Says where the newest findings are.
    fn place(&mut self) {
        let places: Vec<_> = self.path.iter().map(|(place, _)| *place).collect();
        let path = path_of(&self.path);
        self.cleaner.place(&places, &path);
    }

    /// Cleans a text. Returns `None` if there is nothing to replace.
    fn text(&mut self, text: &Text) -> Option<Text> {
        let bytes = text.as_bytes();
        let is_plain = bytes.len() <= MOST_PLAIN_LETTERS && bytes.iter().copied().all(is_word);
        if is_plain && !self.cleaner.identities.may_be_in(bytes) {
            return None;
        }
        if self.cleaner.options.strict && block_of(text) < text.len() {
            return self.long_text(text);
        }
        let clean = self.cleaner.clean_part(text)?;
        self.place();
        Some(clean)
    }

    /// Cleans a text block by block.
    fn long_text(&mut self, text: &str) -> Option<Text> {
        let (mut cleaned, mut rest, mut is_changed) = (String::with_capacity(text.len()), text, false);
        while !rest.is_empty() {
            let (block, after) = rest.split_at(block_of(rest));
            let clean = self.text(&block.into());
            is_changed |= clean.is_some();
            cleaned.push_str(&clean.unwrap_or_else(|| block.into()));
            rest = after;
        }
        is_changed.then(|| cleaned.into())
    }
}

/// Returns whether a text looks like an id, with this many digits at least, and is no key.
fn has_form_of_id(seen: &mut Seen, text: &Text, digits: usize) -> bool {
    let bytes = text.as_bytes();
    let is_of_id = |byte: &u8| byte.is_ascii_alphanumeric() || b"._:/+|-".contains(byte);
    bytes.len() <= 256
        && bytes.iter().all(is_of_id)
        && bytes.iter().filter(|byte| byte.is_ascii_digit()).count() >= digits
        && (is_id(bytes) || !seen.has_secret(text))
}

/// Returns whether a field of this name and value hides a secret. The schema of a field does not.
fn hides(name: &Text, value: &Value) -> bool {
    let has_own = || {
        value
            .as_object()
            .is_some_and(|fields| fields.keys().any(|name| is_secret_name(name.as_bytes())))
    };
    is_secret_name(name.as_bytes()) && !is_schema(value) && !has_own()
}

/// Returns which fields of an object its other fields say to be secret. Objects in them, as Kubernetes has, count as whole.
fn secrets_among(object: &Object) -> Vec<bool> {
    let is_kubernetes = object.get("kind").and_then(Value::as_str) == Some("Secret");
    let texts: Vec<_> = object
        .iter()
        .map(|(name, value)| (name.as_bytes(), text_of(value)))
        .collect();
    let mut secrets = secrets_of(&texts);
    for (secret, (name, _)) in secrets.iter_mut().zip(&texts) {
        *secret |= is_kubernetes && matches!(*name, b"data" | b"stringData");
    }
    secrets
}

/// Returns the text of a value, if a single one.
fn text_of(value: &Value) -> &[u8] {
    match value {
        Value::String(text) | Value::Digits(text) => text.as_bytes(),
        Value::Bool(true) => b"true",
        Value::Array(_) | Value::Object(_) => MARKER,
        _ => b"",
    }
}

/// Returns whether a value is an id with a known prefix or drawn at random, and no key of a provider.
fn is_drawn_id(value: &[u8]) -> bool {
    const MOST_LETTERS: usize = 128;
    value.len() <= MOST_LETTERS
        && value.iter().all(|letter| is_word(*letter) || *letter == b'-')
        && (is_id(value) || is_random(value))
        && providers::keys_in(value).is_empty()
}

/// Returns whether a value describes a field instead of having one, or what a lock file says of a package.
fn is_schema(value: &Value) -> bool {
    let kind = value.get("type").and_then(Value::as_str);
    let is_of_package = ["integrity", "resolved"]
        .iter()
        .any(|name| value.get(name).is_some());
    is_of_package
        || kind.is_some_and(|kind| SCHEMA_TYPES.has(kind.as_bytes())) && value.get("value").is_none()
}

/// Numbers names that are the same once they are redacted: `[REDACTED:email] (2)`.
fn number_doubles(fields: &mut [(Text, Value)]) {
    let mut taken = HashSet::new();
    let mut numbers: HashMap<Text, usize> = HashMap::new();
    for (name, _) in fields {
        let mut free = name.clone();
        while taken.contains(&free) {
            let number = numbers.entry(name.clone()).or_insert(1);
            *number += 1;
            free = name.clone();
            free.push_str(&format!(" ({number})"));
        }
        taken.insert(free.clone());
        *name = free;
    }
}

/// Returns whether a value of a pair looks like a name instead.
fn is_name(value: &Text) -> bool {
    let is_of_name = |letter: &u8| letter.is_ascii_alphabetic() || matches!(letter, b'_' | b'.' | b'-');
    !value.is_empty() && value.as_bytes().iter().all(is_of_name)
}

/// Returns a path as it is written: `.steps[3].input`.
pub(crate) fn path_of(path: &[Key]) -> String {
    let mut written = String::new();
    for key in path {
        // Writing to a string does not fail.
        let _ = match key {
            (index, None) => write!(written, "[{index}]"),
            (_, Some(name)) if is_identifier(name) => write!(written, ".{name}"),
            (_, Some(name)) => {
                let mut quoted = Vec::new();
                write_string(name, &mut quoted);
                write!(written, "[{}]", String::from_utf8_lossy(&quoted))
            }
        };
    }
    written
}

fn is_identifier(name: &Text) -> bool {
    let is_start = |letter: &u8| letter.is_ascii_alphabetic() || matches!(letter, b'_' | b'$');
    let is_of_name = |letter: &u8| is_word(*letter) || *letter == b'$';
    let bytes = name.as_bytes();
    bytes.first().is_some_and(is_start) && bytes.iter().all(is_of_name)
}
