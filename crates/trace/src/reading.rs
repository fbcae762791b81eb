//! Reads a [`Trace`] from what holds it: a value of JSON or of JavaScript. The fields, their order and the errors are the same for both.

use std::fmt::Arguments;

use knowledgepulse_error::{Code, Error, javascript_number};

use crate::{
    Name, Step, StepKind, Trace,
    label::{Label, MAX_LABEL_BYTES},
    text::MOST_UNITS,
};

/// What holds a trace, and how its values are read. `at` is the path of a value, which is formatted only for an error.
pub trait Source {
    /// A value, whatever its type.
    type Value: Copy;
    /// An error of the reader.
    type Error;

    /// Makes an error of the reader.
    fn refuse(&self, error: Error) -> Self::Error;

    /// Returns the type of a value as `typeof` names it, but `null` and `array`.
    ///
    /// # Errors
    /// If the value cannot be examined.
    fn kind(&self, value: Self::Value) -> Result<&'static str, Self::Error>;

    /// Returns a property of an object.
    ///
    /// # Errors
    /// If reading it throws.
    fn get(&self, object: Self::Value, key: &'static str, at: Arguments) -> Result<Self::Value, Self::Error>;

    /// Returns the length of an array; `None` for another value.
    ///
    /// # Errors
    /// If it cannot be read, or no array has such a length.
    fn length(&self, value: Self::Value, at: Arguments) -> Result<Option<usize>, Self::Error>;

    /// Returns an element of an array.
    ///
    /// # Errors
    /// If reading it throws.
    fn element(&self, array: Self::Value, index: usize, at: Arguments) -> Result<Self::Value, Self::Error>;

    /// Returns a boolean.
    ///
    /// # Errors
    /// If the value is none.
    fn boolean(&self, value: Self::Value) -> Result<bool, Self::Error>;

    /// Returns a number.
    ///
    /// # Errors
    /// If the value is none.
    fn number(&self, value: Self::Value) -> Result<f64, Self::Error>;

    /// Returns how many UTF-16 code units a string has.
    ///
    /// # Errors
    /// If the value is none.
    fn units_in(&self, string: Self::Value) -> Result<usize, Self::Error>;

    /// Replaces `units` by the first `count` of a string.
    ///
    /// # Errors
    /// If the value is none.
    fn copy_units(&self, string: Self::Value, count: usize, units: &mut Vec<u16>) -> Result<(), Self::Error>;

    /// Returns a string as a name.
    ///
    /// # Errors
    /// If the value is none.
    fn name(&self, string: Self::Value) -> Result<Name, Self::Error> {
        let mut units = Vec::new();
        self.copy_units(string, self.units_in(string)?, &mut units)?;
        Ok(Name(units))
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
/// Those of the source, made of [`Error::WrongType`] or [`Error::OutOfRange`] with the path of the first field that is wrong.
pub fn read<'t, S: Source>(source: &'t S, trace: S::Value, texts: Texts<'t>) -> Result<Trace, S::Error> {
    let mut reader = Reader {
        source,
        texts,
        left: Some(MOST_UNITS),
        units: Vec::new(),
    };
    let of = format_args!("trace");
    let trace = reader.require(trace, "an object", of)?;
    let label = reader.label(trace)?;
    let task = reader.get(trace, "task", "an object", of)?;
    let objective = reader.get(task, "objective", "a string", format_args!("{of}.task"))?;
    let objective = reader.text(objective)?;
    let steps = reader.steps(trace)?;
    let metadata = reader.get(trace, "metadata", "an object", of)?;
    let of_metadata = format_args!("{of}.metadata");
    let success = reader.get(metadata, "success", "a boolean", of_metadata)?;
    let success = source.boolean(success)?;
    let domain = reader.get_optional(metadata, "task_domain", "a string", of_metadata)?;
    let domain = domain.map(|domain| source.name(domain)).transpose()?;
    let outcome = reader.get(trace, "outcome", "an object", of)?;
    let of_outcome = format_args!("{of}.outcome");
    let confidence = reader.get(outcome, "confidence", "a number", of_outcome)?;
    let confidence = source.number(confidence)?;
    // A range does not contain NaN, so this also refuses NaN.
    if !(0.0..=1.0).contains(&confidence) {
        let found = javascript_number(confidence);
        let problem = format!("{of_outcome}.confidence must be a finite number in [0, 1], got {found}");
        return Err(source.refuse(Error::OutOfRange(Code::InvalidTrace, problem)));
    }
    Ok(Trace {
        objective,
        steps,
        success,
        task_domain: domain.map(|Name(units)| String::from_utf16_lossy(&units)),
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

struct Reader<'s, S> {
    source: &'s S,
    texts: Texts<'s>,
    /// How many units may still be read of the whole text; `None` once text was left out.
    left: Option<usize>,
    units: Vec<u16>,
}

impl<S: Source> Reader<'_, S> {
    /// Returns the `id`, by which a memory remembers the trace; `None` for an unusable one, because it has no part in the score.
    fn label(&mut self, trace: S::Value) -> Result<Option<Label>, S::Error> {
        if matches!(self.texts, Texts::None) {
            return Ok(None);
        }
        let id = self.source.get(trace, "id", format_args!("trace.id"))?;
        if self.source.kind(id)? != "string" || self.source.units_in(id)? > MAX_LABEL_BYTES {
            return Ok(None);
        }
        let id = String::from_utf16_lossy(&self.source.name(id)?.0);
        Ok(Some(id).filter(|id| id.len() <= MAX_LABEL_BYTES).map(Label::from))
    }

    /// Reads as much of a part of the compared text as is needed.
    fn text(&mut self, value: S::Value) -> Result<String, S::Error> {
        let (source, units) = (self.source, &mut self.units);
        let length = source.units_in(value)?;
        match (&mut self.texts, self.left) {
            (Texts::None, _) | (Texts::Whole, None) => units.clear(),
            (Texts::Whole, Some(left)) => {
                self.left = left.checked_sub(length);
                source.copy_units(value, length.min(left), units)?;
            }
            (Texts::Needed(needed), _) => {
                let mut size = 0;
                units.clear();
                let needed = loop {
                    if let Some(needed) = needed(units, size == length) {
                        break needed;
                    }
                    size = length.min(FIRST_UNITS.max(4 * size));
                    source.copy_units(value, size, units)?;
                };
                units.truncate(needed);
            }
        }
        Ok(string_of(units))
    }

    fn steps(&mut self, trace: S::Value) -> Result<Vec<Step>, S::Error> {
        let at = format_args!("trace.steps");
        let steps = self.source.get(trace, "steps", at)?;
        let Some(length) = self.source.length(steps, at)? else {
            self.require(steps, "an array", at)?;
            return Ok(Vec::new());
        };
        // A proxy may claim any length, so memory is allocated as the steps are read.
        let mut read = Vec::with_capacity(length.min(1024));
        for index in 0..length {
            read.push(self.step(steps, index)?);
        }
        Ok(read)
    }

    fn step(&mut self, steps: S::Value, index: usize) -> Result<Step, S::Error> {
        let of = format_args!("trace.steps[{index}]");
        let step = self.source.element(steps, index, of)?;
        let step = self.require(step, "an object", of)?;
        let kind = self.get(step, "type", "a string", of)?;
        let kind = StepKind::of(self.source.name(kind)?);
        let content = self.get_optional(step, "content", "a string", of)?;
        let content = content.map(|content| self.text(content)).transpose()?;
        let tool = self.get_optional(step, "tool", "an object", of)?;
        let tool = tool.map(|tool| {
            let name = self.get(tool, "name", "a string", format_args!("{of}.tool"))?;
            self.source.name(name)
        });
        Ok(Step {
            kind,
            content,
            tool: tool.transpose()?,
        })
    }

    /// Returns a property of the object that is at the path `of`.
    fn get(
        &self,
        object: S::Value,
        key: &'static str,
        expected: &'static str,
        of: Arguments,
    ) -> Result<S::Value, S::Error> {
        let at = format_args!("{of}.{key}");
        self.require(self.source.get(object, key, at)?, expected, at)
    }

    /// Returns a property; `None` for `null` and `undefined`.
    fn get_optional(
        &self,
        object: S::Value,
        key: &'static str,
        expected: &'static str,
        of: Arguments,
    ) -> Result<Option<S::Value>, S::Error> {
        let at = format_args!("{of}.{key}");
        let value = self.source.get(object, key, at)?;
        let found = self.source.kind(value)?;
        if matches!(found, "null" | "undefined") {
            return Ok(None);
        }
        self.check(found, expected, at)?;
        Ok(Some(value))
    }

    /// Requires a value to be of a kind, which `expected` names with its article.
    fn require(&self, value: S::Value, expected: &'static str, at: Arguments) -> Result<S::Value, S::Error> {
        self.check(self.source.kind(value)?, expected, at)?;
        Ok(value)
    }

    fn check(&self, found: &'static str, expected: &'static str, at: Arguments) -> Result<(), S::Error> {
        if expected.split_once(' ').is_some_and(|(_, kind)| kind == found) {
            return Ok(());
        }
        Err(self.source.refuse(Error::WrongType(
            Code::InvalidTrace,
            format!("{at} must be {expected}, got {found}"),
        )))
    }
}
