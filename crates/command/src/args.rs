//! Groups of options that several commands have.

use std::time::Duration;

use clap::{
    Args,
    builder::{PossibleValuesParser, TypedValueParser},
};
use knowledgepulse_formats::{FormatName, Given};
use knowledgepulse_index::method::Method;
use knowledgepulse_score::select::Count;

use crate::{
    Failure, Filter, Inputs, Messages, Result, STDIN, Target, expand, is_same_file, name_of, sessions,
};

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

    /// The task_domain of traces from other formats
    #[arg(long, value_name = "NAME")]
    pub domain: Option<String>,

    #[command(flatten)]
    pub filter: Filter,
}

impl InputArgs {
    /// Finds the files: those that are named, the recognised ones in folders except `outputs`, or without a path those of the sessions on
    /// this machine. `others` are read too.
    ///
    /// # Errors
    /// If an output is read too, or a folder has nothing to read.
    pub(crate) fn open(
        &self,
        outputs: &[Target],
        others: &[&Option<String>],
        messages: &Messages,
    ) -> Result<Inputs> {
        if self.paths.iter().filter(|path| *path == STDIN).count() > 1 {
            return Err(Failure::usage("standard input can be read only once"));
        }
        let filter = self.filter.clone().with_ignored()?;
        let mut inputs = match self.paths.is_empty() {
            true => sessions(filter, messages),
            false => Inputs::new(self.paths.clone(), filter),
        };
        inputs.format = self.from;
        inputs.given = Given {
            success: self.success,
            confidence: self.confidence,
            domain: self.domain.clone(),
        };
        let others = others.iter().copied().flatten();
        refuse_same_file(outputs, inputs.sources.iter().chain(others))?;
        if !self.paths.is_empty() {
            inputs = expand(inputs, outputs, messages)?;
        } else if inputs.sources.is_empty() && inputs.left_out.files + inputs.left_out.others == 0 {
            return Err(Failure::file(NOTHING_HERE));
        }
        Ok(inputs)
    }
}

/// Refuses to write to an input, to another output, or to standard output by its name among the inputs.
fn refuse_same_file<'s>(outputs: &[Target], read: impl Iterator<Item = &'s String> + Clone) -> Result<()> {
    for (at, &(name, file)) in outputs.iter().enumerate() {
        if file == STDIN {
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

/// How traces are compared.
pub(crate) fn methods() -> impl TypedValueParser<Value = Method> {
    one_of([Method::Lexical, Method::Prefix, Method::Full].map(|method| (method.name(), method)))
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
    let number = text
        .trim()
        .parse()
        .ok()
        .filter(|number| (0.0..=1.0).contains(number));
    number.ok_or_else(|| "it must be a number from 0 to 1".into())
}

/// Parses a whole number of at least 1.
pub(crate) fn whole(text: &str) -> std::result::Result<usize, String> {
    let number = text.trim().parse().ok().filter(|number| *number >= 1);
    number.ok_or_else(|| "it must be a whole number of at least 1".into())
}

/// Parses a number of traces, or a percentage of all.
pub(crate) fn count(text: &str) -> std::result::Result<Count, String> {
    let percent = text.strip_suffix('%');
    let parsed = match percent {
        Some(digits) => digits.parse().ok().map(Count::Percent),
        None => whole(text).ok().map(Count::Number),
    };
    let is_right =
        |count: &Count| !matches!(count, Count::Percent(percent) if !(*percent > 0.0 && *percent <= 100.0));
    parsed
        .filter(is_right)
        .ok_or_else(|| "it must be a whole number of at least 1, or a percentage up to 100%".into())
}

/// Parses a time: a number and `s`, `m`, `h` or `d`, or 0.
pub(crate) fn duration(text: &str) -> std::result::Result<Duration, String> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let seconds = match &text[digits.len()..] {
        "" if digits == "0" => Some(0),
        "s" => Some(1),
        "m" => Some(60),
        "h" => Some(60 * 60),
        "d" => Some(24 * 60 * 60),
        _ => None,
    };
    let number: Option<u64> = digits.parse().ok();
    let seconds = number
        .zip(seconds)
        .and_then(|(number, seconds)| number.checked_mul(seconds));
    seconds
        .map(Duration::from_secs)
        .ok_or_else(|| "it must be a time such as 30m, 2h or 0".into())
}
