//! The arguments of `kp-score clean`.

use std::{fs, iter, path::Path};

use clap::{ArgAction, Args};
use knowledgepulse_clean::{CleanOptions as Wanted, Cleaner, Identities, InvalidExpression};

use walkdir::WalkDir;

use crate::{
    args::one_of,
    error::{Failure, Result},
    file_identity::{STDIN, is_same_file},
};

/// How much is replaced: the SDK's levels.
const LEVELS: [(&str, bool); 3] = [("aggregated", true), ("federated", true), ("private", false)];

/// Replace secrets, personal data and the identities of each file
#[derive(Debug, Clone, Args)]
#[command(before_help = "Example: kp-score clean sessions/*.jsonl --out clean/ --fail-on secrets")]
pub(crate) struct CleanArgs {
    /// Files; - is standard input
    #[arg(value_name = "PATH")]
    paths: Vec<String>,

    /// The clean file; for several files a folder, which ends with /
    #[arg(long, value_name = "PATH")]
    pub out: Option<String>,

    /// List what was found, in JSON, or in SARIF if FILE ends in .sarif
    #[arg(long, value_name = "FILE")]
    pub findings: Option<String>,

    /// Exit code 4 if such a KIND was found: secrets, identifiers, email …
    #[arg(long, value_name = "KIND,…", value_delimiter = ',')]
    fail_on: Vec<String>,

    /// Write nothing: list the places, and exit with 4 if there are any
    #[arg(long, conflicts_with_all = ["out", "findings"])]
    pub check: bool,

    /// Number what is replaced: one address is [REDACTED:email-1] everywhere
    #[arg(long)]
    pub pseudonyms: bool,

    #[command(flatten)]
    pub cleaning: CleaningArgs,
}

/// What is replaced.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Cleaning")]
pub(crate) struct CleaningArgs {
    /// Values that stay, one a line; /…/ is an expression
    #[arg(long, value_name = "FILE")]
    allow: Vec<String>,

    /// More to replace: lines of NAME: EXPRESSION
    #[arg(long, value_name = "FILE")]
    rules: Vec<String>,

    /// aggregated, federated, or private: keeps identifiers
    #[arg(long = "level", value_name = "LEVEL", action = ArgAction::Set, default_value = "aggregated", hide_possible_values = true,
        value_parser = one_of(LEVELS))]
    pub identifiers: bool,
}

impl CleaningArgs {
    /// Returns the cleaner, and the names of its rules.
    pub(crate) fn open(&self) -> Result<(Cleaner, Vec<String>)> {
        let mut cleaner = Cleaner::new(Wanted {
            identifiers: self.identifiers,
            strict: true,
        });
        for file in &self.allow {
            read_allowed(file, &mut cleaner)?;
        }
        let mut names = Vec::new();
        for file in &self.rules {
            names.extend(read_rules(file, &mut cleaner)?);
        }
        Ok((cleaner, names))
    }
}

/// The arguments with the files that they name.
pub(super) struct Options {
    pub args: CleanArgs,
    /// The inputs: paths, or [`STDIN`].
    pub sources: Vec<String>,
    /// The types that end the run with an exit code of their own; with `--check`, all if none is named.
    pub fail_on: Vec<String>,
    /// The cleaner with its rules, allowed values and pseudonyms.
    pub cleaner: Cleaner,
    /// The file that each source is written to; `None` for standard output.
    pub outputs: Vec<Option<String>>,
}

fn wrong(message: String) -> Failure {
    Failure::usage(format!("{message}; see kp-score clean --help"))
}

/// Names for all types of a sort, beside the types themselves.
const SECRETS: &str = "secrets";
const IDENTIFIERS: &str = "identifiers";

impl CleanArgs {
    /// Reads the files of rules and values.
    pub(super) fn open(self) -> Result<Options> {
        let mut sources = if self.check {
            files_in(&self.paths)?
        } else {
            self.paths.clone()
        };
        if sources.is_empty() {
            sources.push(STDIN.to_owned());
        }
        let (mut cleaner, names) = self.cleaning.open()?;
        if self.pseudonyms {
            cleaner.use_pseudonyms();
        }
        let mut options = Options {
            fail_on: types_of(&self.fail_on, &names).map_err(wrong)?,
            args: self,
            sources,
            cleaner,
            outputs: Vec::new(),
        };
        options.name_outputs(iter::repeat(&Identities::default()))?;
        Ok(options)
    }
}

/// Returns the files that are named, and in place of each folder the files in it.
fn files_in(paths: &[String]) -> Result<Vec<String>> {
    let mut files = Vec::new();
    for path in paths {
        if path == STDIN {
            files.push(path.clone());
            continue;
        }
        for entry in WalkDir::new(path).sort_by_file_name() {
            let entry = entry.map_err(|error| Failure::file(format!("cannot read {path}: {error}")))?;
            if !entry.file_type().is_dir() {
                files.push(entry.path().display().to_string());
            }
        }
    }
    Ok(files)
}

/// Returns the types that are named, one by one.
fn types_of(named: &[String], own: &[String]) -> std::result::Result<Vec<String>, String> {
    let known = Cleaner::types();
    let mut types = Vec::new();
    for name in named {
        match name.as_str() {
            SECRETS | IDENTIFIERS => {
                let wanted = known
                    .iter()
                    .filter(|(_, is_identifier)| *is_identifier == (name == IDENTIFIERS));
                types.extend(wanted.map(|(name, _)| (*name).to_owned()));
            }
            _ if own.contains(name) || known.iter().any(|(each, _)| each == name) => types.push(name.clone()),
            _ => {
                let known: Vec<_> = known.iter().map(|(name, _)| *name).collect();
                let known = known.join(", ");
                return Err(format!(
                    "--fail-on must be {SECRETS}, {IDENTIFIERS} or of {known}, got '{name}'"
                ));
            }
        }
    }
    Ok(types)
}

/// Returns the lines of a file that say something, with their numbers.
fn lines_of(file: &str) -> Result<Vec<(usize, String)>> {
    let text = fs::read_to_string(file).map_err(|error| Failure::read(file, &error))?;
    let lines = text.lines().map(str::trim).enumerate();
    let says = |(_, line): &(usize, &str)| !line.is_empty() && !line.starts_with('#');
    Ok(lines
        .filter(says)
        .map(|(at, line)| (at + 1, line.to_owned()))
        .collect())
}

/// Reads values that stay: one a line, or an expression between slashes.
fn read_allowed(file: &str, cleaner: &mut Cleaner) -> Result<()> {
    for (number, line) in lines_of(file)? {
        match line.strip_prefix('/').and_then(|rest| rest.strip_suffix('/')) {
            Some(expression) => cleaner
                .allow_expression(expression)
                .map_err(|error| invalid(file, number, &error))?,
            None => cleaner.allow(&line),
        }
    }
    Ok(())
}

/// Reads rules: `name: expression`, one a line. Returns their names.
fn read_rules(file: &str, cleaner: &mut Cleaner) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for (number, line) in lines_of(file)? {
        let rule = line
            .split_once(':')
            .map(|(name, expression)| (name.trim_end(), expression.trim_start()));
        let is_name = |name: &str| {
            !name.is_empty()
                && name
                    .bytes()
                    .all(|letter| letter.is_ascii_alphanumeric() || letter == b'_')
        };
        let Some((name, expression)) =
            rule.filter(|(name, expression)| is_name(name) && !expression.is_empty())
        else {
            let problem = "a line is NAME: EXPRESSION, and a name has letters, digits and _";
            return Err(invalid(file, number, &InvalidExpression(problem.into())));
        };
        cleaner
            .add_rule(name, expression)
            .map_err(|error| invalid(file, number, &error))?;
        names.push(name.to_owned());
    }
    Ok(names)
}

fn invalid(file: &str, line: usize, InvalidExpression(problem): &InvalidExpression) -> Failure {
    Failure::usage(format!("{file}:{line}: {problem}"))
}

/// Refuses outputs that would replace an input or each other.
fn refuse_same_file(options: &Options) -> std::result::Result<(), String> {
    let has_many = options.sources.len() > 1;
    if has_many && !options.args.check && !options.args.out.as_deref().is_some_and(is_folder) {
        return Err("several files need --out FOLDER/, a folder or a name that ends with /".into());
    }
    if options.sources.iter().filter(|source| *source == STDIN).count() > 1 {
        return Err("standard input can be read only once".into());
    }
    let outputs = options.outputs.iter().flatten().chain(&options.args.findings);
    let outputs: Vec<&String> = outputs.collect();
    for (at, file) in outputs.iter().enumerate() {
        if outputs[..at].iter().any(|other| is_same_file(other, file)) {
            return Err(format!("{file} would be written twice"));
        }
        if options.sources.iter().any(|source| is_same_file(source, file)) {
            return Err(format!(
                "{file} is read too, and would lose the texts that are replaced"
            ));
        }
    }
    Ok(())
}

fn is_folder(out: &str) -> bool {
    out.ends_with('/') || Path::new(out).is_dir()
}

impl Options {
    /// Names the outputs after their sources, without the identities of each.
    ///
    /// # Errors
    /// If an output would replace an input or another output.
    pub(super) fn name_outputs<'i>(
        &mut self,
        identities: impl Iterator<Item = &'i Identities>,
    ) -> Result<()> {
        self.outputs.clear();
        for (source, identities) in self.sources.iter().zip(identities) {
            let output = self.output_of(source, identities).map_err(wrong)?;
            self.outputs.push(output);
        }
        refuse_same_file(self).map_err(wrong)
    }

    /// Returns the file that a source is written to; `None` for standard output.
    fn output_of(
        &self,
        source: &str,
        identities: &Identities,
    ) -> std::result::Result<Option<String>, String> {
        let Some(out) = &self.args.out else {
            return Ok(None);
        };
        if !is_folder(out) {
            return Ok(Some(out.clone()));
        }
        let name = Path::new(source).file_name().and_then(|name| name.to_str());
        let Some(name) = name.filter(|_| source != STDIN) else {
            return Err("standard input has no name, so --out must be a file".into());
        };
        // Compressed with gzip only.
        let name = name.strip_suffix(".zst").unwrap_or(name);
        let clean = identities.clean_name(name);
        let (stem, ending) = clean.split_at(clean.find('.').unwrap_or(clean.len()));
        let numbered = (1..).map(|number| match number {
            1 => clean.clone(),
            _ => format!("{stem} ({number}){ending}"),
        });
        let mut files = numbered.map(|name| Path::new(out).join(name).display().to_string());
        // Names that were different stay so.
        Ok(files.find(|file| clean == name || !self.outputs.contains(&Some(file.clone()))))
    }
}
