//! The arguments of `kp-score clean`.

use std::{
    collections::HashSet,
    fmt::Display,
    fs,
    path::{MAIN_SEPARATOR, MAIN_SEPARATOR_STR, Path, PathBuf},
};

use clap::{ArgAction, Args};
use knowledgepulse_clean::{CleanOptions as Wanted, Cleaner, Identities, InvalidExpression};
use knowledgepulse_formats::run::runs;
use knowledgepulse_share::{FreeNames, logs::is_database};

use crate::{
    Failure, Filter, Inputs, Messages, Output, Result, STDIN, State, find::files_below, name_of, one_of,
    target_of, traces::each,
};

/// How much is replaced: the SDK's levels.
const LEVELS: [(&str, bool); 3] = [("aggregated", true), ("federated", true), ("private", false)];

/// Replace secrets, personal data and the identities of each file
#[derive(Debug, Clone, Args)]
#[command(before_help = "Example: kp-score clean sessions/*.jsonl --out clean/")]
pub(crate) struct CleanArgs {
    /// Files and folders [default: standard input; with --check the sessions on this machine]
    #[arg(value_name = "PATH")]
    paths: Vec<String>,

    /// The clean file; for several files or a folder, a folder that ends with /
    #[arg(long, value_name = "PATH")]
    pub out: Option<String>,

    /// Write nothing: list the places, and exit with 4 if there are any
    #[arg(long, conflicts_with = "out")]
    pub check: bool,

    /// With --check: json lists the places in JSON
    #[arg(long = "format", value_name = "FORMAT", requires = "check", action = ArgAction::Set, default_value = "text",
        hide_default_value = true, value_parser = one_of([("text", false), ("json", true)]))]
    pub json: bool,

    #[command(flatten)]
    pub cleaning: CleaningArgs,

    #[command(flatten)]
    pub filter: Filter,
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
    identifiers: bool,
}

impl CleaningArgs {
    /// Returns the cleaner.
    pub(crate) fn open(&self) -> Result<Cleaner> {
        let mut cleaner = Cleaner::new(Wanted {
            identifiers: self.identifiers,
            strict: true,
        });
        for file in &self.allow {
            each_line(file, |line| allow(&mut cleaner, line))?;
        }
        for file in &self.rules {
            each_line(file, |line| add_rule(&mut cleaner, line))?;
        }
        Ok(cleaner)
    }
}

/// Takes the lines of a file that say something.
fn each_line(file: &str, mut take: impl FnMut(&str) -> Added) -> Result<()> {
    let text = fs::read_to_string(file).map_err(|error| Failure::read(file, &error))?;
    for (number, line) in (1..).zip(text.lines().map(str::trim)) {
        if !line.is_empty() && !line.starts_with('#') {
            let refused = |InvalidExpression(problem)| Failure::usage(format!("{file}:{number}: {problem}"));
            take(line).map_err(refused)?;
        }
    }
    Ok(())
}

/// Whether a line was taken.
type Added = std::result::Result<(), InvalidExpression>;

/// Lets a value stay, or what an expression between slashes matches.
fn allow(cleaner: &mut Cleaner, line: &str) -> Added {
    match line.strip_prefix('/').and_then(|rest| rest.strip_suffix('/')) {
        Some(expression) => cleaner.allow_expression(expression)?,
        None => cleaner.allow(line),
    }
    Ok(())
}

/// Adds a rule: `name: expression`.
fn add_rule(cleaner: &mut Cleaner, line: &str) -> Added {
    let (name, expression) = line.split_once(':').unwrap_or_default();
    let (name, expression) = (name.trim_end(), expression.trim_start());
    let is_of_name = |letter: u8| letter.is_ascii_alphanumeric() || letter == b'_';
    if name.is_empty() || expression.is_empty() || !name.bytes().all(is_of_name) {
        let problem = "a line is NAME: EXPRESSION, and a name has letters, digits and _";
        return Err(InvalidExpression(problem.into()));
    }
    cleaner.add_rule(name, expression)
}

fn wrong(message: impl Display) -> Failure {
    Failure::usage(format!("{message}; see kp-score clean --help"))
}

fn is_folder(out: &str) -> bool {
    out.ends_with('/') || Path::new(out).is_dir()
}

impl CleanArgs {
    /// Returns the inputs: the files that are named, and in place of each folder the files in it, but for those in the folder that is written
    /// to, and of these the files of runs of which the filter wants a session. Each is with its path below the folder.
    ///
    /// # Errors
    /// If there are several and the output is no folder, or a file cannot be read.
    pub(super) fn inputs(&self, messages: &Messages) -> Result<Vec<(String, PathBuf)>> {
        let paths = match (self.paths.is_empty(), self.check) {
            (true, true) => {
                let machine = Inputs::new(Vec::new(), self.filter.clone());
                machine.found(&[], messages)?.sources
            }
            (true, false) => vec![STDIN.to_owned()],
            _ => self.paths.clone(),
        };
        let (mut inputs, mut are_several) = (Vec::new(), paths.len() > 1);
        let out = self.out.as_deref().map(target_of);
        let is_left_out = |file: &String| out.as_ref().is_some_and(|out| target_of(file).starts_with(out));
        for path in paths {
            if path == STDIN || !Path::new(&path).is_dir() {
                let name = Path::new(&path).file_name().unwrap_or_default().into();
                inputs.push((path, name));
                continue;
            }
            are_several = true;
            let files = files_below(&path, messages).into_iter();
            inputs.extend(files.filter(|file| !is_left_out(file)).map(|file| {
                let name = Path::new(&file).strip_prefix(&path).unwrap_or(Path::new(&file));
                (file.clone(), name.to_owned())
            }));
        }
        if are_several && !self.check && !self.out.as_deref().is_some_and(is_folder) {
            let problem = "several files need --out FOLDER/, a folder or a name that ends with /";
            return Err(wrong(problem));
        }
        let is_filtered = self.filter != Filter::default();
        for (path, _) in &inputs {
            let metadata = || fs::metadata(path).map_err(|error| Failure::read(path, &error));
            let is_file = path != STDIN && metadata()?.is_file();
            if is_filtered && !is_file {
                let name = name_of(path);
                let problem = format!("{name} can be read only once, so it cannot be filtered");
                return Err(wrong(problem));
            }
            if is_file && !self.check && is_database(Path::new(path)) {
                return Err(Failure::file(format!(
                    "{path} is a database: kp-score share writes its sessions, clean"
                )));
            }
        }
        if is_filtered && !inputs.is_empty() {
            let paths: Vec<_> = inputs.iter().map(|(path, _)| path.clone()).collect();
            let (runs, mut wanted) = (runs(&paths), HashSet::new());
            each(Inputs::new(paths, self.filter.clone()), &mut |item| {
                wanted.extend(matches!(item.state, State::Read(_)).then_some(item.place.source));
                Ok(())
            })?;
            let wanted = runs.into_iter().filter(|run| wanted.contains(&run[0]));
            let wanted: HashSet<_> = wanted.flatten().collect();
            inputs.retain(|(path, _)| wanted.contains(path));
        }
        Ok(inputs)
    }

    /// Opens the output of an input, without the input's identities in its name, and makes the folders above it. `read` has the files that are
    /// read, and `names` those that were written.
    ///
    /// # Errors
    /// If it would replace an input, or cannot be opened.
    pub(super) fn output(
        &self,
        (path, name): &(String, PathBuf),
        identities: &Identities,
        read: &HashSet<PathBuf>,
        names: &mut FreeNames,
    ) -> Result<Output> {
        let Some(out) = &self.out else {
            return Ok(Output::standard());
        };
        let file = match is_folder(out) {
            true => in_folder(out, (path, name), identities, names)?,
            false => out.clone(),
        };
        let is_file = fs::metadata(&file).map_or(true, |file| file.is_file());
        if is_file && read.contains(&target_of(&file)) {
            let problem = format!("{file} is read too, and would lose the texts that are replaced");
            return Err(wrong(problem));
        }
        let folder = Path::new(&file).parent().unwrap_or(Path::new(""));
        let failed = |error| Failure::write(&folder.display().to_string(), &error);
        fs::create_dir_all(folder).map_err(failed)?;
        Output::open(&file)
    }
}

/// Returns the file in a folder that a source is written to.
fn in_folder(
    folder: &str,
    (path, name): (&str, &Path),
    identities: &Identities,
    names: &mut FreeNames,
) -> Result<String> {
    let name = name.to_str().filter(|_| path != STDIN);
    let name = name.ok_or_else(|| wrong("standard input has no name, so --out must be a file"))?;
    // It is written as text.
    let plain = [".gz", ".zst"]
        .iter()
        .find_map(|ending| name.strip_suffix(ending));
    let name = plain.unwrap_or(name);
    let parts = name.split(MAIN_SEPARATOR).map(|part| identities.clean_name(part));
    let clean = parts.collect::<Vec<_>>().join(MAIN_SEPARATOR_STR);
    let file = clean.rfind(MAIN_SEPARATOR).map_or(0, |at| at + 1);
    let (stem, ending) = clean.split_at(clean[file..].find('.').map_or(clean.len(), |at| file + at));
    // Names that were different stay so.
    let numbered = |number| match number {
        1 => clean.clone(),
        _ => format!("{stem} ({number}){ending}"),
    };
    let clean = names.take(numbered, |_| false);
    let file = Path::new(folder).join(clean);
    match file.is_symlink() {
        true => Err(wrong(format!(
            "{} is a link, which leads out of the folder: remove it",
            file.display()
        ))),
        false => Ok(file.display().to_string()),
    }
}

#[cfg(test)]
mod tests {
    #[cfg(unix)]
    use super::*;

    #[cfg(unix)]
    #[test]
    fn in_folder_refuses_a_link_that_leads_out_of_the_folder() {
        let around = tempfile::tempdir().unwrap();
        let folder = around.path().join("clean");
        fs::create_dir(&folder).unwrap();
        fs::write(around.path().join("precious"), "mine").unwrap();
        std::os::unix::fs::symlink(around.path().join("precious"), folder.join("a.jsonl")).unwrap();
        let file = |name: &str| {
            let folder = folder.to_str().unwrap();
            in_folder(
                folder,
                (name, Path::new(name)),
                &Identities::default(),
                &mut FreeNames::default(),
            )
        };
        assert!(
            file("a.jsonl")
                .unwrap_err()
                .message
                .contains("is a link, which leads out of the folder: remove it")
        );
        assert!(file("b.jsonl").unwrap().ends_with("clean/b.jsonl"));
    }
}
