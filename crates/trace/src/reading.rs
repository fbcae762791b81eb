//! Reads a [`Trace`] from what holds it: a value of JSON or of JavaScript. The fields, their order and the errors are the same for both.

use std::fmt::Arguments;

use knowledgepulse_error::{Code, Error, javascript_number};

use crate::{Name, Step, StepKind, Trace, label::Label};

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

    /// Returns a string.
    ///
    /// # Errors
    /// If the value is none.
    fn name(&self, value: Self::Value) -> Result<Name, Self::Error>;

    /// Reads as much of a part of the compared text as is needed.
    ///
    /// # Errors
    /// If the value is no string.
    fn text(&mut self, value: Self::Value) -> Result<String, Self::Error>;

    /// Returns whether text was left out that is compared.
    fn is_cut(&self) -> bool;

    /// Returns the `id`, by which a memory remembers the trace; `None` for an unusable one, because it has no part in the score, and where nothing
    /// is remembered.
    ///
    /// # Errors
    /// If the value cannot be examined.
    fn label(&self, trace: Self::Value) -> Result<Option<Label>, Self::Error>;
}

/// Reads a trace.
///
/// # Errors
/// Those of the source, made of [`Error::WrongType`] or [`Error::OutOfRange`] with the path of the first field that is wrong.
pub fn read<S: Source>(source: &mut S, trace: S::Value) -> Result<Trace, S::Error> {
    let mut reader = Reader(source);
    let of = format_args!("trace");
    let trace = reader.require(trace, "an object", of)?;
    let label = reader.0.label(trace)?;
    let task = reader.get(trace, "task", "an object", of)?;
    let objective = reader.get(task, "objective", "a string", format_args!("{of}.task"))?;
    let objective = reader.0.text(objective)?;
    let steps = reader.steps(trace)?;
    let metadata = reader.get(trace, "metadata", "an object", of)?;
    let of_metadata = format_args!("{of}.metadata");
    let success = reader.get(metadata, "success", "a boolean", of_metadata)?;
    let success = reader.0.boolean(success)?;
    let domain = reader.get_optional(metadata, "task_domain", "a string", of_metadata)?;
    let domain = domain.map(|domain| reader.0.name(domain)).transpose()?;
    let outcome = reader.get(trace, "outcome", "an object", of)?;
    let of_outcome = format_args!("{of}.outcome");
    let confidence = reader.get(outcome, "confidence", "a number", of_outcome)?;
    let confidence = reader.0.number(confidence)?;
    // A range does not contain NaN, so this also refuses NaN.
    if !(0.0..=1.0).contains(&confidence) {
        let found = javascript_number(confidence);
        let problem = format!("{of_outcome}.confidence must be a finite number in [0, 1], got {found}");
        return Err(reader.0.refuse(Error::OutOfRange(Code::InvalidTrace, problem)));
    }
    Ok(Trace {
        objective,
        steps,
        success,
        task_domain: domain.map(|Name(units)| String::from_utf16_lossy(&units)),
        confidence,
        label,
        text_cut: reader.0.is_cut(),
    })
}

struct Reader<'s, S>(&'s mut S);

impl<S: Source> Reader<'_, S> {
    fn steps(&mut self, trace: S::Value) -> Result<Vec<Step>, S::Error> {
        let at = format_args!("trace.steps");
        let steps = self.0.get(trace, "steps", at)?;
        let Some(length) = self.0.length(steps, at)? else {
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
        let step = self.0.element(steps, index, of)?;
        let step = self.require(step, "an object", of)?;
        let kind = self.get(step, "type", "a string", of)?;
        let kind = StepKind::of(self.0.name(kind)?);
        let content = self.get_optional(step, "content", "a string", of)?;
        let content = content.map(|content| self.0.text(content)).transpose()?;
        let tool = self.get_optional(step, "tool", "an object", of)?;
        let tool = tool.map(|tool| {
            let name = self.get(tool, "name", "a string", format_args!("{of}.tool"))?;
            self.0.name(name)
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
        self.require(self.0.get(object, key, at)?, expected, at)
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
        let value = self.0.get(object, key, at)?;
        let found = self.0.kind(value)?;
        if matches!(found, "null" | "undefined") {
            return Ok(None);
        }
        self.check(found, expected, at)?;
        Ok(Some(value))
    }

    /// Requires a value to be of a kind, which `expected` names with its article.
    fn require(&self, value: S::Value, expected: &'static str, at: Arguments) -> Result<S::Value, S::Error> {
        self.check(self.0.kind(value)?, expected, at)?;
        Ok(value)
    }

    fn check(&self, found: &'static str, expected: &'static str, at: Arguments) -> Result<(), S::Error> {
        if expected.split_once(' ').is_some_and(|(_, kind)| kind == found) {
            return Ok(());
        }
        Err(self.0.refuse(Error::WrongType(
            Code::InvalidTrace,
            format!("{at} must be {expected}, got {found}"),
        )))
    }
}
