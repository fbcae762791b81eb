//! Reads a [`Trace`] from what holds it: a value of JSON or of JavaScript. The fields, their order and the errors are the same for both.

use std::fmt::Arguments;

use knowledgepulse_error::{Code, Error, Result, javascript_number};

use crate::{
    Name, Step, Trace,
    label::{Label, MAX_LABEL_BYTES},
    text::MOST_UNITS,
};

/// A value of any type in what holds a trace. `at` is its path, which is formatted only for an error.
pub trait Source: Copy {
    /// Returns the type of the value as `typeof` names it, but `null` and `array`.
    fn kind(self) -> &'static str;

    /// Returns a property of an object.
    ///
    /// # Errors
    /// [`Error::WrongType`] if reading it throws.
    fn get(self, key: &'static str, at: Arguments) -> Result<Self>;

    /// Returns the length of an array; `None` for another value.
    ///
    /// # Errors
    /// [`Error::WrongType`] if it cannot be read, [`Error::OutOfRange`] if no array has such a length.
    fn length(self, at: Arguments) -> Result<Option<usize>>;

    /// Returns an element of an array.
    ///
    /// # Errors
    /// [`Error::WrongType`] if reading it throws.
    fn element(self, index: usize, at: Arguments) -> Result<Self>;

    /// Returns a boolean.
    fn boolean(self) -> bool;

    /// Returns a number.
    fn number(self) -> f64;

    /// Returns how many UTF-16 code units a string has.
    fn units(self) -> usize;

    /// Replaces `units` by the first `count` of a string.
    fn copy_units(self, count: usize, units: &mut Vec<u16>);

    /// Returns a string as a name.
    fn name(self) -> Name {
        let mut units = Vec::new();
        self.copy_units(self.units(), &mut units);
        Name(units)
    }
}

/// The part of a trace's text to read.
pub enum Texts<'t> {
    /// None, because nothing is compared. The trace gets no label.
    None,
    /// The part that a function needs: it gets the beginning of each text in turn and whether that is all, and returns how many of its UTF-16
    /// code units it needs; `None` for a longer beginning.
    Needed(&'t mut dyn FnMut(&[u16], bool) -> Option<usize>),
    /// All, up to [`MOST_UNITS`].
    Whole,
}

/// How many code units of a text are copied before asking whether they are enough. For most traces one copy is.
const FIRST_UNITS: usize = 16 * 1024;

/// Reads a trace.
///
/// # Errors
/// [`Error::WrongType`] or [`Error::OutOfRange`], with the path of the first field that is wrong.
pub fn read<S: Source>(trace: S, texts: Texts) -> Result<Trace> {
    let mut reader = Reader {
        texts,
        left: Some(MOST_UNITS),
        units: Vec::new(),
    };
    let of = format_args!("trace");
    let trace = require(trace, "an object", of)?;
    let label = reader.label(trace)?;
    let task = get(trace, "task", "an object", of)?;
    let objective = get(task, "objective", "a string", format_args!("{of}.task"))?;
    let objective = reader.text(objective);
    let steps = reader.steps(trace)?;
    let metadata = get(trace, "metadata", "an object", of)?;
    let of_metadata = format_args!("{of}.metadata");
    let success = get(metadata, "success", "a boolean", of_metadata)?;
    let domain = get_optional(metadata, "task_domain", "a string", of_metadata)?;
    let outcome = get(trace, "outcome", "an object", of)?;
    let of_outcome = format_args!("{of}.outcome");
    let confidence = get(outcome, "confidence", "a number", of_outcome)?.number();
    // A range does not contain NaN, so this also refuses NaN.
    if !(0.0..=1.0).contains(&confidence) {
        let found = javascript_number(confidence);
        let problem = format!("{of_outcome}.confidence must be a finite number in [0, 1], got {found}");
        return Err(Error::OutOfRange(Code::InvalidTrace, problem));
    }
    Ok(Trace {
        objective,
        steps,
        success: success.boolean(),
        task_domain: domain.map(|domain| String::from_utf16_lossy(&domain.name().0)),
        confidence,
        label,
        text_cut: reader.left.is_none(),
    })
}

/// Returns code units as a text, with U+FFFD for lone surrogates. ASCII, as most texts are, is copied at once.
fn string_of(units: &[u16]) -> String {
    let ascii = |unit: &u16| u8::try_from(*unit).ok().filter(u8::is_ascii).unwrap_or(u8::MAX);
    String::from_utf8(units.iter().map(ascii).collect()).unwrap_or_else(|_| String::from_utf16_lossy(units))
}

struct Reader<'t> {
    texts: Texts<'t>,
    /// How many units may still be read of the whole text; `None` once text was left out.
    left: Option<usize>,
    units: Vec<u16>,
}

impl Reader<'_> {
    /// Returns the `id`, by which a memory remembers the trace; `None` for an unusable one, because it has no part in the score.
    fn label<S: Source>(&self, trace: S) -> Result<Option<Label>> {
        if matches!(self.texts, Texts::None) {
            return Ok(None);
        }
        let id = trace.get("id", format_args!("trace.id"))?;
        if id.kind() != "string" || id.units() > MAX_LABEL_BYTES {
            return Ok(None);
        }
        let id = String::from_utf16_lossy(&id.name().0);
        Ok(Some(id).filter(|id| id.len() <= MAX_LABEL_BYTES).map(Label::from))
    }

    /// Reads as much of a part of the compared text as is needed.
    fn text<S: Source>(&mut self, text: S) -> String {
        let units = &mut self.units;
        let length = text.units();
        match (&mut self.texts, self.left) {
            (Texts::None, _) | (Texts::Whole, None) => units.clear(),
            (Texts::Whole, Some(left)) => {
                self.left = left.checked_sub(length);
                text.copy_units(length.min(left), units);
            }
            (Texts::Needed(needed), _) => {
                let mut size = 0;
                units.clear();
                let needed = loop {
                    if let Some(needed) = needed(units, size == length) {
                        break needed;
                    }
                    size = length.min(FIRST_UNITS.max(4 * size));
                    text.copy_units(size, units);
                };
                units.truncate(needed);
            }
        }
        string_of(units)
    }

    fn steps<S: Source>(&mut self, trace: S) -> Result<Vec<Step>> {
        let at = format_args!("trace.steps");
        let steps = trace.get("steps", at)?;
        let Some(length) = steps.length(at)? else {
            require(steps, "an array", at)?;
            return Ok(Vec::new());
        };
        // A proxy may claim any length, so memory is allocated as the steps are read.
        let mut read = Vec::with_capacity(length.min(1024));
        for index in 0..length {
            read.push(self.step(steps, index)?);
        }
        Ok(read)
    }

    fn step<S: Source>(&mut self, steps: S, index: usize) -> Result<Step> {
        let of = format_args!("trace.steps[{index}]");
        let step = require(steps.element(index, of)?, "an object", of)?;
        let kind = get(step, "type", "a string", of)?.name();
        let content = get_optional(step, "content", "a string", of)?.map(|content| self.text(content));
        let tool = get_optional(step, "tool", "an object", of)?;
        let name = |tool| get(tool, "name", "a string", format_args!("{of}.tool")).map(S::name);
        let tool = tool.map(name).transpose()?;
        Ok(Step { kind, content, tool })
    }
}

/// Returns a property of the object that is at the path `of`.
fn get<S: Source>(object: S, key: &'static str, expected: &'static str, of: Arguments) -> Result<S> {
    let at = format_args!("{of}.{key}");
    require(object.get(key, at)?, expected, at)
}

/// Returns a property; `None` for `null` and `undefined`.
fn get_optional<S: Source>(
    object: S,
    key: &'static str,
    expected: &'static str,
    of: Arguments,
) -> Result<Option<S>> {
    let at = format_args!("{of}.{key}");
    let value = object.get(key, at)?;
    match value.kind() {
        "null" | "undefined" => Ok(None),
        _ => require(value, expected, at).map(Some),
    }
}

/// Requires a value to be of a kind, which `expected` names with its article.
fn require<S: Source>(value: S, expected: &'static str, at: Arguments) -> Result<S> {
    let found = value.kind();
    if expected.split_once(' ').is_some_and(|(_, kind)| kind == found) {
        return Ok(value);
    }
    let problem = format!("{at} must be {expected}, got {found}");
    Err(Error::WrongType(Code::InvalidTrace, problem))
}
