//! Groups of options that several commands have.

use std::{path::Path, time::Duration};

use clap::{
    Args,
    builder::{PossibleValuesParser, TypedValueParser},
};
use jiff::{Span, SpanRelativeTo};
use knowledgepulse_formats::{FormatName, Given};
use knowledgepulse_score::select::Count;

use crate::{Failure, Filter, Inputs, Messages, Result, STDIN, Target, is_same_file, name_of};

/// The message where there is nothing to read.
pub(crate) const NOTHING_HERE: &str = "no agent has left sessions on this machine: name files or folders; kp-score formats lists where agents keep them";

/// What is read, and how.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Input")]
pub(crate) struct InputArgs {
    /// Files, folders, - for standard input [default: the sessions on this machine]
    #[arg(value_name = "PATH", help_heading = None::<&str>)]
    pub paths: Vec<String>,

    /// Read the input as this format; `kp-score formats` lists them
    #[arg(long, value_name = "FORMAT", value_parser = one_of(FormatName::ALL.iter().map(|format| (format.name(), *format))), hide_possible_values = true)]
    pub from: Option<FormatName>,

    /// Whether the agents succeeded, where the input does not say
    #[arg(long, value_name = "yes|no", value_parser = one_of([("yes", true), ("no", false)]), hide_possible_values = true)]
    pub success: Option<bool>,

    /// How sure that is, 0 to 1, where the input does not say [default: 0.5]
    #[arg(long, value_name = "N", value_parser = unit)]
    pub confidence: Option<f64>,

    #[command(flatten)]
    pub filter: Filter,
}

impl InputArgs {
    /// Finds the files that are read, as [`Inputs::found`] does. `others` are read too.
    ///
    /// # Errors
    /// If an output is read too, or there is nothing to read.
    pub(crate) fn open(
        &self,
        outputs: &[Target],
        others: &[&Option<String>],
        messages: &Messages,
    ) -> Result<Inputs> {
        if self.paths.iter().filter(|path| *path == STDIN).count() > 1 {
            return Err(Failure::usage("standard input can be read only once"));
        }
        let is_word = |path: &&String| path.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let mut words = self.paths.iter().filter(is_word);
        if let Some(word) = words.find(|word| !Path::new(word).exists()) {
            return Err(Failure::file(format!(
                "there is no file or command {word}: kp-score --help lists the commands, kp-score show N shows a session of the last list"
            )));
        }
        let mut inputs = Inputs::new(self.paths.clone(), self.filter.clone().with_ignored()?);
        inputs.format = self.from;
        inputs.given = Given {
            success: self.success,
            confidence: self.confidence,
        };
        let inputs = inputs.found(outputs, messages)?;
        let read = self.paths.iter().chain(&inputs.sources);
        refuse_same_file(outputs, read.chain(others.iter().copied().flatten()))?;
        let is_nothing = inputs.sources.is_empty() && inputs.left_out.is_empty();
        if is_nothing && self.paths.is_empty() {
            return Err(Failure::file(NOTHING_HERE));
        }
        Ok(inputs)
    }
}

/// Refuses to write to an input, to another output, or to standard output by its name among the inputs.
fn refuse_same_file<'s>(outputs: &[Target], read: impl Iterator<Item = &'s String> + Clone) -> Result<()> {
    for (at, &(name, file)) in outputs.iter().enumerate() {
        // Replaced, a standard stream would lose what the shell has opened it for.
        if file == STDIN || file.starts_with("/dev/std") {
            return Err(Failure::usage(format!(
                "--{name} must be a file; for results on standard output there is --format"
            )));
        }
        if let Some((other, _)) = outputs[..at].iter().find(|(_, other)| is_same_file(other, file)) {
            return Err(Failure::usage(format!(
                "--{other} and --{name} must not be the same file"
            )));
        }
        if let Some(source) = read.clone().find(|source| is_same_file(source, file)) {
            return Err(Failure::usage(format!(
                "--{name} is read too: {}; write to another file",
                name_of(source)
            )));
        }
    }
    Ok(())
}

/// Parses one of these names.
pub(crate) fn one_of<T: Clone + Send + Sync + 'static>(
    values: impl IntoIterator<Item = (&'static str, T)>,
) -> impl TypedValueParser<Value = T> {
    let values: Vec<_> = values.into_iter().collect();
    let names = PossibleValuesParser::new(values.iter().map(|(name, _)| *name));
    names.try_map(move |given| {
        let found = values.iter().find(|(name, _)| *name == given);
        found.map(|(_, value)| value.clone()).ok_or("it is not known")
    })
}

/// Parses a number from 0 to 1.
pub(crate) fn unit(text: &str) -> std::result::Result<f64, String> {
    let number = text.trim().parse().ok();
    let number = number.filter(|number| (0.0..=1.0).contains(number));
    number.ok_or_else(|| "it must be a number from 0 to 1".into())
}

/// Parses a whole number of at least 1.
pub(crate) fn whole(text: &str) -> std::result::Result<usize, String> {
    let number = text.trim().parse().ok().filter(|number| *number >= 1);
    number.ok_or_else(|| "it must be a whole number of at least 1".into())
}

/// Parses a number of traces, or a percentage of all.
pub(crate) fn count(text: &str) -> std::result::Result<Count, String> {
    let is_right = |percent: &f64| *percent > 0.0 && *percent <= 100.0;
    let parsed = match text.strip_suffix('%') {
        Some(digits) => digits.parse().ok().filter(is_right).map(Count::Percent),
        None => whole(text).ok().map(Count::Number),
    };
    parsed.ok_or_else(|| "it must be a whole number of at least 1, or a percentage up to 100%".into())
}

/// Parses how long something takes: `30m`, `2h`, `1d`, or 0.
pub(crate) fn duration(text: &str) -> std::result::Result<Duration, String> {
    let text = if text == "0" { "0s" } else { text };
    let span = text.parse().ok();
    let time = span.and_then(|span: Span| span.to_duration(SpanRelativeTo::days_are_24_hours()).ok());
    time.and_then(|time| Duration::try_from(time).ok())
        .ok_or_else(|| "it must be a time such as 30m, 2h or 0".into())
}
