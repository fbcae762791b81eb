//! Cleaning a trace: every string of its JSON value, names of fields included.
//!
//! The cleaner works on nodes: a list of the trace's objects and arrays, in which an object inside another one is a reference. An
//! object that JavaScript has in many places is one node, and is cleaned once for each set of secret names that it stands under.
//! A node's field is a scalar, or an array that stands for something else: `[3]` for the node at 3, `[]` for `undefined`, and `["NaN"]`
//! for a number that JSON does not have.

use std::{
    collections::{HashMap, HashSet},
    fmt::Write as _,
    mem,
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
/// Traces with more values are a mistake or an attack: one shared object can stand for any number of them.
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
    let (mut nodes, redactions) = clean_nodes(&nodes_of(trace), options, call)?;
    Ok((joined(&mut nodes, 0), redactions))
}

/// Cleans a trace that is given as nodes (see the module), the first of which is the trace itself.
///
/// # Errors
/// As [`clean_trace`].
pub fn clean_nodes(nodes: &[Value], options: Options, call: &Call) -> Result<(Vec<Value>, Redactions)> {
    let mut identities = Identities::default();
    if options.strict && options.identifiers {
        learn(nodes, &mut identities, call);
    }
    clean_kept(nodes, options, call, KEPT.fields(), None, &identities)
}

/// Learns identities from a value that is given as nodes.
pub(crate) fn learn(nodes: &[Value], identities: &mut Identities, call: &Call) {
    let root = reference(0);
    // Each node once, in the order of the value. What is left to read, the next one last.
    let mut is_read = vec![false; nodes.len()];
    let mut left: Vec<(Option<&Text>, &Value)> = vec![(None, &root)];
    while let Some((name, value)) = left.pop()
        && !call.is_cancelled()
    {
        if let Value::String(text) = value {
            identities.learn_field(name, text);
        }
        let node = referred(value).filter(|at| is_read.get(*at) == Some(&false));
        let Some(at) = node else { continue };
        is_read[at] = true;
        match &nodes[at] {
            Value::Array(elements) => left.extend(elements.iter().rev().map(|element| (name, element))),
            Value::Object(fields) => {
                left.extend(fields.iter().rev().map(|(name, value)| (Some(name), value)));
                fields.keys().for_each(|name| identities.learn_name(name));
            }
            scalar => left.push((name, scalar)),
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
    let mut nodes = nodes_of(value);
    let cleaned = clean_kept(
        &nodes,
        options,
        &Call::default(),
        fields,
        Some(custom),
        &identities,
    );
    custom.set_identities(identities);
    let mut cleaned = cleaned?.0;
    Ok((joined(&mut nodes, 0), joined(&mut cleaned, 0)))
}

fn clean_kept(
    nodes: &[Value],
    options: Options,
    call: &Call,
    kept: Option<Fields>,
    custom: Option<&mut Custom>,
    identities: &Identities,
) -> Result<(Vec<Value>, Redactions)> {
    let mut cleaner = Cleaner {
        nodes,
        options,
        call,
        cleaned: Vec::with_capacity(nodes.len()),
        copies: HashMap::new(),
        contexts: HashMap::new(),
        context: 0,
        outer: Vec::new(),
        secret_names: HashMap::new(),
        path: Vec::new(),
        values: 0,
        secrets: 0,
        redactions: Redactions::default(),
        custom,
        identities,
    };
    cleaner.node(0, kept)?;
    if cleaner.secrets > 0 {
        cleaner.redactions.add(SECRET_TYPE, cleaner.secrets);
    }
    if call.complete() {
        Ok((cleaner.cleaned, cleaner.redactions))
    } else {
        Err(Error::Aborted)
    }
}

/// Returns the nodes of a value.
pub(crate) fn nodes_of(value: Value) -> Vec<Value> {
    let mut nodes = vec![value];
    let mut at = 0;
    while at < nodes.len() {
        let mut node = mem::take(&mut nodes[at]);
        for child in children(&mut node) {
            if matches!(child, Value::Array(_) | Value::Object(_)) {
                let reference = reference(nodes.len());
                nodes.push(mem::replace(child, reference));
            }
        }
        nodes[at] = node;
        at += 1;
    }
    nodes
}

/// Returns the value of nodes that are each referred to once, and are nested no deeper than [`MOST_LEVELS`].
fn joined(nodes: &mut [Value], at: usize) -> Value {
    let mut node = mem::take(&mut nodes[at]);
    for child in children(&mut node) {
        if let Some(at) = referred(child) {
            *child = joined(nodes, at);
        }
    }
    node
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

fn children(node: &mut Value) -> Box<dyn Iterator<Item = &mut Value> + '_> {
    match node {
        Value::Array(elements) => Box::new(elements.iter_mut()),
        Value::Object(fields) => Box::new(fields.iter_mut().map(|(_, value)| value)),
        _ => Box::new(std::iter::empty()),
    }
}

#[allow(clippy::cast_precision_loss)] // No list has 2^53 elements.
fn reference(at: usize) -> Value {
    Value::Array(vec![Value::Number(at as f64)])
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // References are whole numbers.
fn referred(child: &Value) -> Option<usize> {
    match child.as_array()? {
        [Value::Number(at)] => Some(*at as usize),
        _ => None,
    }
}

/// A part of the path of a value: its place among its siblings, and its name; `None` of an element.
type Key<'n> = (usize, Option<&'n Text>);

struct Cleaner<'n> {
    nodes: &'n [Value],
    options: Options,
    call: &'n Call,
    /// The clean nodes.
    cleaned: Vec<Value>,
    /// The place of each clean node that is not in the schema, by its place among `nodes` and the names that it stands
    /// under.
    copies: HashMap<(usize, usize), usize>,
    /// Numbers of the lists of names: each list is one name more than another.
    contexts: HashMap<(usize, &'n Text), usize>,
    /// The number of `outer`.
    context: usize,
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
    /// Cleans a node. Returns its place among the clean ones.
    fn node(&mut self, at: usize, kept: Option<Fields>) -> Result<usize> {
        let place = (at, self.context);
        if kept.is_none()
            && let Some(&known) = self.copies.get(&place)
        {
            return Ok(known);
        }
        // Each level but the first has a key.
        if self.path.len() == MOST_LEVELS {
            let path = path_of(&self.path);
            let problem = format!("is nested deeper than {MOST_LEVELS} levels, at {path}");
            return Err(Error::TraceTooLarge { problem });
        }
        let clean = self.cleaned.len();
        self.cleaned.push(Value::Null);
        if kept.is_none() {
            self.copies.insert(place, clean);
        }
        self.cleaned[clean] = match &self.nodes[at] {
            Value::Array(elements) => self.array(elements, kept)?.into(),
            Value::Object(object) => self.object(object, kept)?.into(),
            other => other.clone(),
        };
        Ok(clean)
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
                let clean = self.marker(&text.to_string_lossy(), name);
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
        (is_cookie_name(name) || self.names_secret(name)) && !self.is_schema(value)
    }

    fn is_schema(&self, value: &Value) -> bool {
        let Some(node) = referred(value).and_then(|at| self.nodes.get(at)) else {
            return false;
        };
        let has_value = node
            .get("value")
            .is_some_and(|value| value.as_array() != Some(&[]));
        let kind = node.get("type").and_then(Value::as_str);
        kind.is_some_and(|kind| SCHEMA_TYPES.has(kind.as_bytes())) && !has_value
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
        let outer = (self.context, self.outer.len());
        if let Some(name) = under.filter(|name| !self.outer.contains(name)) {
            let next = self.contexts.len() + 1;
            self.context = *self.contexts.entry((self.context, name)).or_insert(next);
            self.outer.push(name);
        }
        self.path.push(key);
        let clean = self.value(value, kept)?;
        self.path.pop();
        self.context = outer.0;
        self.outer.truncate(outer.1);
        Ok(clean)
    }

    fn value(&mut self, value: &'n Value, kept: Option<&Kept>) -> Result<Value> {
        if let Some(at) = referred(value) {
            return self.node(at, kept.and_then(Kept::fields)).map(reference);
        }
        let clean = match value {
            Value::String(text) if self.is_secret(&text.to_string_lossy()) => {
                self.secret(&text.to_string_lossy())
            }
            Value::String(text) if self.outer.iter().any(|name| is_cookie_name(name)) => {
                self.text(text, COOKIE)
            }
            Value::String(_) if matches!(kept, Some(Kept::Whole)) => None,
            Value::String(text) => self.text(text, ""),
            Value::Number(number) if self.is_secret(&knowledgepulse_json::number(*number)) => {
                self.secret(&knowledgepulse_json::number(*number))
            }
            Value::Digits(digits) if self.is_secret(&digits.to_string_lossy()) => {
                self.secret(&digits.to_string_lossy())
            }
            // A number that JSON does not have.
            Value::Array(special) => match special.first().and_then(Value::as_str) {
                Some(number) if self.is_secret(number) => self.secret(number),
                _ => None,
            },
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
        names.any(|name| is_secret(&name.to_string_lossy(), value))
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
        if let Some(long) = text
            .as_str()
            .filter(|text| self.options.strict && block_of(text) < text.len())
        {
            return self.long_text(long, before);
        }
        let units: Vec<u16> = if bytes.is_ascii() {
            let letters = before.bytes().chain(bytes.iter().copied());
            letters.map(u16::from).collect()
        } else {
            before.encode_utf16().chain(text.units()).collect()
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
        Some(Text::from_units(cleaned))
    }

    /// Cleans a text block by block.
    fn long_text(&mut self, text: &str, mut before: &str) -> Option<Text> {
        let (mut cleaned, mut rest, mut is_changed) = (String::new(), text, false);
        while !rest.is_empty() && !self.call.is_cancelled() {
            let (block, after) = rest.split_at(block_of(rest));
            let clean = self.text(&block.into(), before);
            is_changed |= clean.is_some();
            cleaned.push_str(&clean.map_or(block.into(), |clean| clean.to_string_lossy().into_owned()));
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
        *names
            .entry(name)
            .or_insert_with(|| is_secret_name(&name.to_string_lossy()))
    }
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
