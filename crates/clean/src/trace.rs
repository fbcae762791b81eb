//! Cleaning a trace: every string of its JSON value, names of fields included.

use std::{
    collections::{HashMap, HashSet},
    fmt::Write as _,
    sync::LazyLock,
};

use knowledgepulse_error::{Call, Error, Result};
use knowledgepulse_json::{Object, Text, Value, write_string};

use crate::{
    Cleaner as Custom, Identities, Options, Redactions, block_of, clean, is_secret, is_secret_name,
    kinds::over_strings,
    structures::{is_opaque, secret_fields},
    text::is_word,
    words::Words,
};

/// Deeper values are refused, because the cleaner calls itself for each level.
const MOST_LEVELS: usize = 256;
/// Traces with more values are a mistake or an attack.
const MOST_VALUES: usize = 10_000_000;
/// Nothing is found in a word of at most this many letters. The shortest word that is redacted is a card number of 13 digits.
const MOST_PLAIN_LETTERS: usize = 12;

const SECRET_TYPE: &str = "password";
const SECRET: &str = "[REDACTED:password]";
/// The name that a value stands under whose structure tells that it is a secret.
static SECRET_NAME: LazyLock<Text> = LazyLock::new(|| SECRET_TYPE.into());
/// A cookie is found by the name of its header, so it is cleaned with that name before it.
const COOKIE: &str = "Cookie: ";
/// Names of the two fields of a pair: `{ name: 'X-Api-Key', value: '…' }`.
static PAIR_NAMES: Words = Words::new("name key header field");
static PAIR_VALUES: Words = Words::new("value val values");
/// Types of JSON Schema. An object whose `type` is one of them describes a field.
static SCHEMA_TYPES: Words = Words::new("array boolean integer null number object string");

/// Strings that stay as they are: names by which others know a trace, and words of the schema.
enum Kept {
    /// The string stays.
    Whole,
    /// Some fields of an object, or of the elements of an array, stay.
    Fields(&'static [(&'static str, Kept)]),
}

const KEPT: Kept = Kept::Fields(&[
    ("@context", Kept::Whole),
    ("@type", Kept::Whole),
    ("id", Kept::Whole),
    ("source_skill", Kept::Whole),
    (
        "metadata",
        Kept::Fields(&[
            ("created_at", Kept::Whole),
            ("task_domain", Kept::Whole),
            ("visibility", Kept::Whole),
            ("privacy_level", Kept::Whole),
        ]),
    ),
    ("steps", Kept::Fields(&[("type", Kept::Whole)])),
    (
        "knowledge_graph_delta",
        Kept::Fields(&[
            ("entities", Kept::Fields(&[("type", Kept::Whole)])),
            ("relationships", Kept::Fields(&[("valid_from", Kept::Whole)])),
        ]),
    ),
]);

type Fields = &'static [(&'static str, Kept)];

impl Kept {
    /// Returns the fields that stay; `None` where a string would stay, because nothing is known of another value in its place.
    fn fields(&self) -> Option<Fields> {
        match self {
            Self::Whole => None,
            Self::Fields(fields) => Some(fields),
        }
    }
}

/// Cleans every string of a trace except those that identify it. With `strict`, strings and numbers under the name of a secret are
/// replaced too.
///
/// # Errors
/// [`Error::TraceTooLarge`] if the trace is nested deeper than 256 levels or has more than ten million values;
/// [`Error::Aborted`] if the call was cancelled.
pub fn clean_trace(trace: Value, options: Options, call: &Call) -> Result<(Value, Redactions)> {
    let mut identities = Identities::default();
    if options.strict && options.identifiers {
        learn(&trace, &mut identities, call);
    }
    clean_kept(&trace, options, call, KEPT.fields(), None, &identities)
}

/// Learns identities from a value.
pub(crate) fn learn(value: &Value, identities: &mut Identities, call: &Call) {
    // What is left to read, the next one last.
    let mut left: Vec<(Option<&Text>, &Value)> = vec![(None, value)];
    while let Some((name, value)) = left.pop()
        && !call.is_cancelled()
    {
        match value {
            Value::String(text) => identities.learn_field(name, text),
            Value::Array(elements) => left.extend(elements.iter().rev().map(|element| (name, element))),
            Value::Object(fields) => {
                left.extend(fields.iter().rev().map(|(name, value)| (Some(name), value)));
                fields.keys().for_each(|name| identities.learn_name(name));
            }
            _ => {}
        }
    }
}

/// Cleans a JSON value as a cleaner wants it, which knows where each finding is. Returns the value and the clean one, in which strings
/// that stay are null.
pub(crate) fn clean_json(value: Value, options: Options, custom: &mut Custom) -> Result<(Value, Value)> {
    let is_trace = |value: &Value| value.get("@type").and_then(Value::as_str) == Some("ReasoningTrace");
    let elements = value.as_array().unwrap_or_default();
    let kept = is_trace(&value) || !elements.is_empty() && elements.iter().all(is_trace);
    let fields = KEPT.fields().filter(|_| kept);
    clean_all_but(fields, value, options, custom)
}

/// Does the same for a trace, also for one that does not say that it is one.
pub(crate) fn clean_json_of_trace(
    value: Value,
    options: Options,
    custom: &mut Custom,
) -> Result<(Value, Value)> {
    clean_all_but(KEPT.fields(), value, options, custom)
}

fn clean_all_but(
    fields: Option<Fields>,
    value: Value,
    options: Options,
    custom: &mut Custom,
) -> Result<(Value, Value)> {
    let identities = custom.take_identities();
    let cleaned = clean_kept(
        &value,
        options,
        &Call::default(),
        fields,
        Some(custom),
        &identities,
    );
    custom.set_identities(identities);
    let clean = cleaned?.0;
    Ok((value, clean))
}

fn clean_kept(
    value: &Value,
    options: Options,
    call: &Call,
    kept: Option<Fields>,
    custom: Option<&mut Custom>,
    identities: &Identities,
) -> Result<(Value, Redactions)> {
    let mut cleaner = Cleaner {
        options,
        call,
        outer: Vec::new(),
        secret_names: HashMap::new(),
        path: Vec::new(),
        values: 0,
        secrets: 0,
        redactions: Redactions::default(),
        custom,
        identities,
    };
    let clean = cleaner.value(value, kept.map(Kept::Fields).as_ref())?;
    if cleaner.secrets > 0 {
        cleaner.redactions.add(SECRET_TYPE, cleaner.secrets);
    }
    if call.complete() {
        Ok((clean, cleaner.redactions))
    } else {
        Err(Error::Aborted)
    }
}

/// Puts the strings that stay into a clean value, in place of null.
#[must_use]
pub fn with_strings(value: Value, clean: Value) -> Value {
    match (value, clean) {
        (value @ Value::String(_), Value::Null) => value,
        (Value::Array(values), Value::Array(clean)) => {
            let pairs = values.into_iter().zip(clean);
            Value::Array(pairs.map(|(value, clean)| with_strings(value, clean)).collect())
        }
        (Value::Object(values), Value::Object(clean)) => {
            let pairs = values.iter().zip(clean.iter());
            let fields = pairs.map(|((_, value), (name, clean))| {
                (name.clone(), with_strings(value.clone(), clean.clone()))
            });
            Value::Object(fields.collect())
        }
        (_, clean) => clean,
    }
}

/// A part of the path of a value: its place among its siblings, and its name; `None` of an element.
type Key<'n> = (usize, Option<&'n Text>);

struct Cleaner<'n> {
    options: Options,
    call: &'n Call,
    /// The names of secrets and of cookies that the current value stands under.
    outer: Vec<&'n Text>,
    secret_names: HashMap<&'n Text, bool>,
    path: Vec<Key<'n>>,
    values: usize,
    /// How many values were replaced because of the name that they stand under.
    secrets: usize,
    redactions: Redactions,
    /// A cleaner with settings of its user.
    custom: Option<&'n mut Custom>,
    /// The names to be replaced.
    identities: &'n Identities,
}

impl<'n> Cleaner<'n> {
    fn container(&mut self, value: &'n Value, kept: Option<Fields>) -> Result<Value> {
        // Each level but the first has a key.
        if self.path.len() == MOST_LEVELS {
            let path = path_of(&self.path);
            let problem = format!("is nested deeper than {MOST_LEVELS} levels, at {path}");
            return Err(Error::TraceTooLarge { problem });
        }
        match value {
            Value::Array(elements) => Ok(self.array(elements, kept)?.into()),
            Value::Object(object) => Ok(self.object(object, kept)?.into()),
            other => Ok(other.clone()),
        }
    }

    fn array(&mut self, elements: &'n [Value], kept: Option<Fields>) -> Result<Vec<Value>> {
        self.count_values(elements.len())?;
        // A header and its value in a list of headers: `[['X-Api-Key', '…']]`. The second of two names is no value.
        let is_element = self.options.strict && matches!(self.path.last(), Some((_, None)));
        let pair_name = match elements {
            [Value::String(name), Value::String(value)] if is_element && !is_name(value) => {
                Some(name).filter(|name| self.names_secret(name))
            }
            _ => None,
        };
        let secrets = if self.options.strict {
            over_strings(elements)
        } else {
            Vec::new()
        };
        let mut copy = Vec::with_capacity(elements.len());
        for (index, element) in elements.iter().enumerate() {
            if let (Some(text), Some(Some(name))) = (element.as_text(), secrets.get(index)) {
                self.path.push((index, None));
                let clean = self.marker(text, name);
                self.path.pop();
                copy.push(clean.map_or_else(|| element.clone(), Value::String));
                continue;
            }
            let name = pair_name.filter(|_| index == 1);
            let kept = kept.map(Kept::Fields);
            copy.push(self.child((index, None), element, kept.as_ref(), name)?);
        }
        Ok(copy)
    }

    fn object(&mut self, object: &'n Object, kept: Option<Fields>) -> Result<Object> {
        self.count_values(object.len())?;
        let strict = self.options.strict;
        let pair_name = if strict && kept.is_none() {
            self.pair_name(object)
        } else {
            None
        };
        let secrets = if strict { secret_fields(object) } else { &[] };
        let mut copy = Vec::with_capacity(object.len());
        let mut is_renamed = false;
        for (place, (name, value)) in object.iter().enumerate() {
            if strict && is_opaque(object, name, value) {
                copy.push((name.clone(), value.clone()));
                continue;
            }
            let fields = kept.unwrap_or_default().iter();
            let kept = fields
                .clone()
                .find(|(field, _)| name == field)
                .map(|(_, kept)| kept);
            let pair_name = pair_name.filter(|_| PAIR_VALUES.has(name.as_bytes()));
            let secret_name = pair_name.unwrap_or(name);
            let is_secret = strict && kept.is_none() && self.hides(secret_name, value);
            let is_of_structure = secrets.iter().any(|field| name == field);
            let under = match (is_of_structure, is_secret) {
                (true, _) => Some(&*SECRET_NAME),
                (_, is_secret) => is_secret.then_some(secret_name),
            };
            let clean = self.child((place, Some(name)), value, kept, under)?;
            self.path.push((place, Some(name)));
            let clean_name = self.text(name, "");
            self.path.pop();
            is_renamed |= clean_name.is_some();
            copy.push((clean_name.unwrap_or_else(|| name.clone()), clean));
        }
        if is_renamed {
            number_doubles(&mut copy);
        }
        Ok(copy.into_iter().collect())
    }

    /// Returns whether a field of this name and value hides a secret or a cookie. The schema of a field does not.
    fn hides(&mut self, name: &'n Text, value: &Value) -> bool {
        (is_cookie_name(name) || self.names_secret(name)) && !is_schema(value)
    }

    /// Returns the name in an object of a name and a value, if it is the name of a secret.
    fn pair_name(&mut self, object: &'n Object) -> Option<&'n Text> {
        object.keys().find(|name| PAIR_VALUES.has(name.as_bytes()))?;
        let mut fields = object.iter();
        let (_, name) = fields.find(|(name, _)| PAIR_NAMES.has(name.as_bytes()))?;
        name.as_text().filter(|name| self.names_secret(name))
    }

    /// Cleans a field or an element. `under` is the name of a secret or a cookie that it stands under from there on.
    fn child(
        &mut self,
        key: Key<'n>,
        value: &'n Value,
        kept: Option<&Kept>,
        under: Option<&'n Text>,
    ) -> Result<Value> {
        let outer = self.outer.len();
        if let Some(name) = under.filter(|name| !self.outer.contains(name)) {
            self.outer.push(name);
        }
        self.path.push(key);
        let clean = self.value(value, kept)?;
        self.path.pop();
        self.outer.truncate(outer);
        Ok(clean)
    }

    fn value(&mut self, value: &'n Value, kept: Option<&Kept>) -> Result<Value> {
        let clean = match value {
            Value::Array(_) | Value::Object(_) => {
                return self.container(value, kept.and_then(Kept::fields));
            }
            Value::String(text) if self.is_secret(text) => self.secret(text),
            Value::String(text) if self.outer.iter().any(|name| is_cookie_name(name)) => {
                self.text(text, COOKIE)
            }
            Value::String(_) if matches!(kept, Some(Kept::Whole)) => None,
            Value::String(text) => self.text(text, ""),
            Value::Number(number) if self.is_secret(&knowledgepulse_json::number(*number)) => {
                self.secret(&knowledgepulse_json::number(*number))
            }
            Value::Digits(digits) if self.is_secret(digits) => self.secret(digits),
            _ => None,
        };
        if self.call.is_cancelled() {
            return Err(Error::Aborted);
        }
        Ok(match (clean, value) {
            (Some(clean), _) => Value::String(clean),
            // A cleaner of files has the text already.
            (None, Value::String(_)) if self.custom.is_some() => Value::Null,
            (None, value) => value.clone(),
        })
    }

    fn is_secret(&self, value: &str) -> bool {
        let mut names = self.outer.iter();
        names.any(|name| is_secret(name, value))
    }

    /// Replaces a value that stands under the name of a secret.
    fn secret(&mut self, value: &str) -> Option<Text> {
        if self.custom.is_none() {
            self.secrets += 1;
            return Some(SECRET.into());
        }
        self.marker(value, SECRET_TYPE)
    }

    /// Returns the marker of a value that is replaced whole.
    fn marker(&mut self, value: &str, name: &'static str) -> Option<Text> {
        let marker = match &mut self.custom {
            Some(custom) => custom.replace_value(value, name)?,
            None => {
                self.redactions.add(name, 1);
                format!("[REDACTED:{name}]")
            }
        };
        self.place();
        Some(marker.as_str().into())
    }

    /// Says where the newest findings are.
    fn place(&mut self) {
        if let Some(custom) = &mut self.custom {
            let places: Vec<_> = self.path.iter().map(|(place, _)| *place).collect();
            custom.place(&places, || path_of(&self.path).split_off(ROOT.len()));
        }
    }

    /// Cleans a text with `before` before it, which is not part of the result. Returns `None` if there is nothing to replace.
    fn text(&mut self, text: &Text, before: &str) -> Option<Text> {
        let bytes = text.as_bytes();
        let is_plain = bytes.len() <= MOST_PLAIN_LETTERS && bytes.iter().copied().all(is_word);
        if before.is_empty() && is_plain && !self.identities.may_be_in(bytes) {
            return None;
        }
        if self.options.strict && block_of(text) < text.len() {
            return self.long_text(text, before);
        }
        let units: Vec<u16> = if bytes.is_ascii() {
            let letters = before.bytes().chain(bytes.iter().copied());
            letters.map(u16::from).collect()
        } else {
            before.encode_utf16().chain(text.encode_utf16()).collect()
        };
        let custom = self.custom.as_deref_mut();
        let names = Some(self.identities);
        let cleaned = clean(
            &units,
            self.options,
            &mut self.redactions,
            self.call,
            custom,
            names,
        )?;
        self.place();
        // The header's name stays: it is not part of any match.
        let cleaned = cleaned.get(before.len()..).unwrap_or_default();
        Some(Text::from_utf16_lossy(cleaned))
    }

    /// Cleans a text block by block.
    fn long_text(&mut self, text: &str, mut before: &str) -> Option<Text> {
        let (mut cleaned, mut rest, mut is_changed) = (String::new(), text, false);
        while !rest.is_empty() && !self.call.is_cancelled() {
            let (block, after) = rest.split_at(block_of(rest));
            let clean = self.text(&block.into(), before);
            is_changed |= clean.is_some();
            cleaned.push_str(&clean.unwrap_or_else(|| block.into()));
            (rest, before) = (after, "");
        }
        is_changed.then(|| cleaned.into())
    }

    fn count_values(&mut self, count: usize) -> Result<()> {
        self.values += count;
        if self.values <= MOST_VALUES {
            return Ok(());
        }
        let problem = "has more than 10,000,000 values".into();
        Err(Error::TraceTooLarge { problem })
    }

    fn names_secret(&mut self, name: &'n Text) -> bool {
        let names = &mut self.secret_names;
        *names.entry(name).or_insert_with(|| is_secret_name(name))
    }
}

/// Returns whether a value describes a field instead of having one.
fn is_schema(value: &Value) -> bool {
    let kind = value.get("type").and_then(Value::as_str);
    kind.is_some_and(|kind| SCHEMA_TYPES.has(kind.as_bytes())) && value.get("value").is_none()
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

/// Returns whether a name is `Cookie`, `Set-Cookie` or the like, in any case.
fn is_cookie_name(name: &Text) -> bool {
    let name = name.as_bytes();
    let last = name.rsplit(|letter| *letter == b'-').next().unwrap_or_default();
    last.eq_ignore_ascii_case(b"cookie") || last.eq_ignore_ascii_case(b"cookies")
}

/// Returns whether a value of a pair looks like a name instead.
fn is_name(value: &Text) -> bool {
    let is_of_name = |letter: &u8| letter.is_ascii_alphabetic() || matches!(letter, b'_' | b'.' | b'-');
    !value.is_empty() && value.as_bytes().iter().all(is_of_name)
}

/// The beginning of paths.
const ROOT: &str = "trace";

fn path_of(path: &[Key]) -> String {
    let mut written = String::from(ROOT);
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
