//! The command line: its syntax, its meaning, and its contradictions.

use std::{collections::BTreeMap, io::IsTerminal};

use knowledgepulse_formats::{FormatName, Given};
use knowledgepulse_index::method::Method;
use knowledgepulse_score::{engine::EngineChoice, select::Count};
use lexopt::Arg;

use crate::{
    error::{Failure, Result},
    file_identity::is_same_file,
};

/// The name of standard input among the files.
pub const STDIN: &str = "-";

/// Scores of at least this are kept unless `--threshold` says otherwise. Only the summary and the results tell then.
const DEFAULT_THRESHOLD: f64 = 0.75;

const MOST_THREADS: f64 = 1024.0;
/// The largest whole number that JSON keeps exactly.
const MOST_COUNT: f64 = 9_007_199_254_740_991.0;

const NOTHING_TO_READ: &str = "there is nothing to read: name files, or pipe traces into it";

/// The format of the results on standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A table for people.
    Table,
    /// One JSON object with all results and the summary.
    Json,
    /// A JSON object on a line for each trace.
    JsonLines,
    /// Comma-separated values with a header.
    Csv,
}

const FORMATS: [(&str, Format); 4] = [
    ("table", Format::Table),
    ("json", Format::Json),
    ("jsonl", Format::JsonLines),
    ("csv", Format::Csv),
];

/// The treatment of a trace that the memory holds with the same id and contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KnownTraces {
    /// It is left out.
    #[default]
    Skip,
    /// It gets the novelty of its earlier score.
    Score,
    /// It is compared again.
    Again,
}

const KNOWN: [(&str, KnownTraces); 3] = [
    ("skip", KnownTraces::Skip),
    ("score", KnownTraces::Score),
    ("again", KnownTraces::Again),
];

/// How personal data and secrets are replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cleaning {
    /// The SDK's level: `aggregated`, `federated` or `private`.
    pub level: &'static str,
    /// Whether kinds are replaced that the SDK does not know.
    pub strict: bool,
}

/// The levels of cleaning; the first one is the default.
pub(crate) const LEVELS: [&str; 3] = ["aggregated", "federated", "private"];

impl Cleaning {
    /// Returns the cleaner's options.
    pub fn options(self) -> knowledgepulse_clean::Options {
        knowledgepulse_clean::Options {
            identifiers: self.level != "private",
            strict: self.strict,
        }
    }
}

const DTYPES: [&str; 2] = ["fp32", "q8"];
const ANSWERS: [(&str, bool); 2] = [("yes", true), ("no", false)];

/// Which embedder is wanted; `None` where the choice is left open.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EmbedderChoice {
    /// The data type of the model's weights.
    pub dtype: Option<&'static str>,
    /// The engine.
    pub engine: Option<EngineChoice>,
    /// The directory of the model.
    pub model_directory: Option<String>,
    /// How many threads one inference computes on.
    pub threads: Option<usize>,
}

/// The parsed arguments.
#[derive(Debug, Clone)]
#[allow(clippy::struct_excessive_bools)] // They are independent switches of the command line.
pub struct Options {
    /// The inputs: paths, or [`STDIN`].
    pub(crate) sources: Vec<String>,
    /// The format of the inputs; `None` where each record is recognised.
    pub(crate) from: Option<FormatName>,
    pub(crate) map: Option<String>,
    /// The given outcome and domain of traces of other formats.
    pub(crate) given: Given,
    /// Whether the inputs are read and nothing is scored.
    pub(crate) dry_run: bool,
    /// Whether the inputs are two files of results to compare.
    pub(crate) compare: bool,
    /// The mean score below which a run fails.
    pub(crate) fail_under: Option<f64>,
    /// The format of standard output; `None` for the summary alone.
    pub(crate) format: Option<Format>,
    /// Whether results have the parts of each score.
    pub(crate) explain: bool,
    pub(crate) out: Option<String>,
    /// The file of the traces that are not kept.
    pub(crate) dropped: Option<String>,
    pub(crate) report: Option<String>,
    /// Whether `--threshold` or `--top` was given.
    pub(crate) splits: bool,
    /// The least score of traces that are kept, without `--top`.
    pub(crate) threshold: f64,
    /// How many of the best traces are kept.
    pub(crate) top: Option<Count>,
    /// How many traces are chosen, as a set that covers the others.
    pub(crate) select: Option<Count>,
    /// How many traces of the set are reserved for failures of tasks that nobody solved.
    pub(crate) failures: Option<Count>,
    /// The file of outcomes by which traces are chosen.
    pub(crate) labels: Option<String>,
    /// From which reward on a run is a success.
    pub(crate) success_at: f64,
    /// How traces are cleaned; `None` where they are not.
    pub(crate) clean: Option<Cleaning>,
    /// Whether files are replaced even by an incomplete run.
    pub(crate) keep_going: bool,
    pub(crate) memory: Option<String>,
    pub(crate) memory_size: Option<usize>,
    /// Whether the bound may be less than the file holds.
    pub(crate) forget: bool,
    pub(crate) known: KnownTraces,
    pub(crate) store: Option<String>,
    pub(crate) store_table: Option<String>,
    pub(crate) novelty: Method,
    pub(crate) weights: Option<String>,
    pub(crate) embedder: bool,
    /// Which embedder.
    pub embedder_choice: EmbedderChoice,
    /// Whether only errors that end the run are printed.
    pub(crate) quiet: bool,
    pub(crate) verbose: bool,
    pub(crate) progress: bool,
}

impl Options {
    /// Returns whether the run embeds texts.
    pub fn needs_embedder(&self) -> bool {
        // Words need none.
        self.embedder && self.novelty != Method::Lexical && !self.dry_run && !self.compare
    }
}

/// The command that the arguments ask for.
#[derive(Debug, Clone)]
pub enum Request {
    /// The help.
    Help,
    /// The version.
    Version,
    /// A run.
    Run(Box<Options>),
}

impl Options {
    /// Returns the files that are written to, with the names of their options.
    pub fn outputs(&self) -> impl Iterator<Item = (&'static str, &str)> {
        [
            ("out", &self.out),
            ("dropped", &self.dropped),
            ("report", &self.report),
            ("memory", &self.memory),
        ]
        .into_iter()
        .filter_map(|(name, file)| Some((name, file.as_deref()?)))
    }
}

/// Reads the arguments, without the name of the program.
///
/// # Errors
/// With [`Exit::Usage`](crate::error::Exit::Usage), if they make no sense.
pub fn read_options(arguments: &[String]) -> Result<Request> {
    read(arguments).map_err(|message| Failure::usage(format!("{message}; see kp-score --help")))
}

/// The problem of the arguments, in words.
type Wrong = String;

/// The options with a value, and the options without.
const WITH_VALUE: &str = "confidence domain dropped dtype engine fail-under format from known labels map memory memory-size \
    model-dir novelty out quota report select store store-table success success-at threads threshold top weights";
const FLAGS: &str = "clean-strict compare dry-run explain forget help keep-going no-embedder no-progress quiet verbose version";
/// Takes a value only if the next argument is one of [`LEVELS`].
const CLEAN: &str = "clean";

/// The values of the options. Of a repeated option, the last one counts.
#[derive(Default)]
struct Values {
    values: BTreeMap<&'static str, String>,
    sources: Vec<String>,
}

impl Values {
    fn parse(arguments: &[String]) -> std::result::Result<Self, Wrong> {
        let mut parser = lexopt::Parser::from_args(arguments);
        let mut found = Self::default();
        while let Some(argument) = parser.next().map_err(|error| error.to_string())? {
            let given = match argument {
                Arg::Value(source) => {
                    found.sources.push(text(source));
                    continue;
                }
                Arg::Short('h') => "help".to_owned(),
                Arg::Short(letter) => return Err(format!("Unknown option '-{letter}'")),
                Arg::Long(name) => name.to_owned(),
            };
            let named = |names: &'static str| names.split_whitespace().find(|name| *name == given);
            if let Some(name) = named(FLAGS) {
                if parser.optional_value().is_some() {
                    return Err(format!("Option '--{name}' does not take an argument"));
                }
                found.values.insert(name, String::new());
            } else if let Some(name) = named(WITH_VALUE).or(named(CLEAN)) {
                let value = match parser.optional_value() {
                    Some(value) => text(value),
                    None => next_value(&mut parser, name)?,
                };
                if value.is_empty() {
                    return Err(format!("--{name} must not be empty"));
                }
                found.values.insert(name, value);
            } else {
                return Err(format!("Unknown option '--{given}'"));
            }
        }
        Ok(found)
    }

    fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    fn owned(&self, name: &str) -> Option<String> {
        self.get(name).map(str::to_owned)
    }

    /// Returns the given value if the option allows it.
    fn one_of<T: Copy>(&self, name: &str, allowed: &[(&str, T)]) -> std::result::Result<Option<T>, Wrong> {
        let Some(given) = self.get(name) else {
            return Ok(None);
        };
        match allowed.iter().find(|(allowed, _)| *allowed == given) {
            Some((_, value)) => Ok(Some(*value)),
            None => Err(format!(
                "--{name} must be {}, got '{given}'",
                or(allowed.iter().map(|(name, _)| *name))
            )),
        }
    }

    fn number(
        &self,
        name: &str,
        is_allowed: fn(f64) -> bool,
        expected: &str,
    ) -> std::result::Result<Option<f64>, Wrong> {
        let Some(given) = self.get(name) else {
            return Ok(None);
        };
        match given.trim().parse().ok().filter(|&value| is_allowed(value)) {
            Some(value) => Ok(Some(value)),
            None => Err(format!("--{name} must be {expected}, got '{given}'")),
        }
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // It is a whole number.
    fn count(
        &self,
        name: &str,
        is_allowed: fn(f64) -> bool,
        expected: &str,
    ) -> std::result::Result<Option<usize>, Wrong> {
        Ok(self
            .number(name, is_allowed, expected)?
            .map(|count| count as usize))
    }
}

/// Returns an argument, which was a string before it was parsed.
pub(crate) fn text(argument: std::ffi::OsString) -> String {
    argument.to_string_lossy().into_owned()
}

/// Returns the argument behind an option that takes one.
fn next_value(parser: &mut lexopt::Parser, name: &str) -> std::result::Result<String, Wrong> {
    let next = parser.try_raw_args().and_then(|rest| {
        rest.as_slice()
            .first()
            .map(|next| next.to_string_lossy().into_owned())
    });
    if name == CLEAN {
        if !LEVELS.iter().any(|level| Some(*level) == next.as_deref()) {
            return Ok(LEVELS[0].to_owned());
        }
        return parser.value().map(text).map_err(|error| error.to_string());
    }
    match next {
        None => Err(format!("Option '--{name} <value>' argument missing")),
        Some(next) if next.starts_with('-') && next != STDIN => Err(format!(
            "--{name} needs a value; one that begins with a hyphen is written --{name}=VALUE"
        )),
        Some(_) => parser.value().map(text).map_err(|error| error.to_string()),
    }
}

/// Returns the words with commas and an `or`.
fn or<'w>(words: impl Iterator<Item = &'w str>) -> String {
    let words: Vec<_> = words.collect();
    match words.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => words.concat(),
    }
}

fn is_score(value: f64) -> bool {
    (0.0..=1.0).contains(&value)
}

fn is_count(value: f64) -> bool {
    value.fract() == 0.0 && (1.0..=MOST_COUNT).contains(&value)
}

fn is_thread_count(value: f64) -> bool {
    is_count(value) && value <= MOST_THREADS
}

/// Returns the number or percentage of an option.
fn top_of(name: &str, text: &str) -> std::result::Result<Count, Wrong> {
    let (digits, is_percent) = text
        .strip_suffix('%')
        .map_or((text, false), |digits| (digits, true));
    let is_plain = digits
        .split('.')
        .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
        && digits.split('.').count() <= 2;
    match digits.parse::<f64>().ok().filter(|_| is_plain) {
        Some(value) if is_percent && value > 0.0 && value <= 100.0 => Ok(Count::Percent(value)),
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // It is a whole number.
        Some(value) if !is_percent && is_count(value) => Ok(Count::Number(value as usize)),
        _ => Err(format!(
            "--{name} must be a whole number of at least 1, or a percentage up to 100%, got '{text}'"
        )),
    }
}

fn quota_of(text: &str) -> std::result::Result<Count, Wrong> {
    match text.split_once('=') {
        Some(("failures", count)) => top_of("quota failures", count),
        _ => Err(format!("--quota must be failures=N or failures=N%, got '{text}'")),
    }
}

/// Options that tell traces to keep from others.
const SPLITTING: [&str; 3] = ["threshold", "top", "select"];

fn read(arguments: &[String]) -> std::result::Result<Request, Wrong> {
    let values = Values::parse(arguments)?;
    if values.has("help") {
        return Ok(Request::Help);
    }
    if values.has("version") {
        return Ok(Request::Version);
    }
    if values.sources.is_empty() && std::io::stdin().is_terminal() {
        return Err(NOTHING_TO_READ.into());
    }
    let options = options_of(&values)?;
    refuse_contradictions(&values, &options)?;
    Ok(Request::Run(Box::new(options)))
}

fn options_of(values: &Values) -> std::result::Result<Options, Wrong> {
    let formats: Vec<_> = FormatName::named()
        .map(|format| (format.name(), format))
        .collect();
    let engines = EngineChoice::ALL.map(|engine| (engine.name(), engine));
    let methods = [Method::Prefix, Method::Lexical, Method::Full].map(|method| (method.name(), method));
    let has_file = ["out", "report", "dropped"]
        .into_iter()
        .any(|name| values.has(name));
    let level = values.one_of(CLEAN, &LEVELS.map(|level| (level, level)))?;
    let strict = values.has("clean-strict");
    let format = values.one_of("format", &FORMATS)?;
    let sources = if values.sources.is_empty() {
        vec![STDIN.to_owned()]
    } else {
        values.sources.clone()
    };
    Ok(Options {
        sources,
        from: values.one_of("from", &formats)?,
        map: values.owned("map"),
        given: Given {
            success: values.one_of("success", &ANSWERS)?,
            confidence: values.number("confidence", is_score, "a number from 0 to 1")?,
            domain: values.owned("domain"),
        },
        dry_run: values.has("dry-run"),
        compare: values.has("compare"),
        fail_under: values.number("fail-under", is_score, "a number from 0 to 1")?,
        format: format.or((!has_file).then_some(Format::Table)),
        explain: values.has("explain"),
        out: values.owned("out"),
        dropped: values.owned("dropped"),
        report: values.owned("report"),
        splits: SPLITTING.into_iter().any(|name| values.has(name)),
        threshold: values
            .number("threshold", is_score, "a number from 0 to 1")?
            .unwrap_or(DEFAULT_THRESHOLD),
        top: values.get("top").map(|text| top_of("top", text)).transpose()?,
        select: values
            .get("select")
            .map(|text| top_of("select", text))
            .transpose()?,
        failures: values.get("quota").map(quota_of).transpose()?,
        labels: values.owned("labels"),
        success_at: values
            .number("success-at", f64::is_finite, "a number")?
            .unwrap_or(1.0),
        clean: (level.is_some() || strict).then_some(Cleaning {
            level: level.unwrap_or(LEVELS[0]),
            strict,
        }),
        keep_going: values.has("keep-going"),
        memory: values.owned("memory"),
        memory_size: values.count("memory-size", is_count, "a whole number of at least 1")?,
        forget: values.has("forget"),
        known: values.one_of("known", &KNOWN)?.unwrap_or_default(),
        store: values.owned("store"),
        store_table: values.owned("store-table"),
        novelty: values
            .one_of("novelty", &methods)?
            .unwrap_or(if values.has("select") {
                Method::Lexical
            } else {
                Method::Prefix
            }),
        weights: values.owned("weights"),
        embedder: !values.has("no-embedder"),
        embedder_choice: EmbedderChoice {
            dtype: values.one_of("dtype", &DTYPES.map(|dtype| (dtype, dtype)))?,
            engine: values.one_of("engine", &engines)?,
            model_directory: values.owned("model-dir"),
            threads: values.count(
                "threads",
                is_thread_count,
                &format!("a whole number from 1 to {MOST_THREADS}"),
            )?,
        },
        quiet: values.has("quiet"),
        verbose: values.has("verbose"),
        progress: !values.has("no-progress"),
    })
}

fn refuse_contradictions(values: &Values, options: &Options) -> std::result::Result<(), Wrong> {
    let wrong = |message: &str| Err(message.to_owned());
    let beside_compare = ["compare", "format", "fail-under", "quiet"];
    let other = values.values.keys().find(|name| !beside_compare.contains(*name));
    if let Some(other) = other.filter(|_| options.compare) {
        return Err(format!("--compare and --{other} exclude each other"));
    }
    if options.compare && !matches!(options.format, Some(Format::Table | Format::Json)) {
        return wrong("--compare prints --format table or json");
    }
    if options.dropped.is_some() && !options.splits {
        return wrong("--dropped needs --threshold, --top or --select");
    }
    let splitting: Vec<_> = SPLITTING.into_iter().filter(|name| values.has(name)).collect();
    if let [one, other, ..] = splitting[..] {
        return Err(format!("--{one} and --{other} exclude each other"));
    }
    refuse_choosing(values, options)?;
    if options.from.is_some() && options.map.is_some() {
        return wrong("--from and --map exclude each other: a map is for formats that --from does not name");
    }
    if options.from == Some(FormatName::Trace) {
        let name = ["success", "confidence", "domain"]
            .into_iter()
            .find(|name| values.has(name));
        if let Some(name) = name {
            return Err(format!(
                "--{name} is for other formats, and --from trace reads none"
            ));
        }
    }
    if options.quiet && options.verbose {
        return wrong("--quiet and --verbose exclude each other");
    }
    refuse_unused_embedder(values, options)?;
    if options.memory.is_none() && values.has("known") {
        let reason = match options.store {
            Some(_) => ": a store does not know the contents of earlier traces",
            None => "",
        };
        return Err(format!("--known needs --memory{reason}"));
    }
    if options.forget && (options.memory.is_none() || options.memory_size.is_none()) {
        return wrong("--forget needs --memory and --memory-size");
    }
    if options.store.is_some() && options.memory.is_some() {
        return wrong("--store and --memory exclude each other");
    }
    let is_url = |store: &String| store.starts_with("postgres://") || store.starts_with("postgresql://");
    if options.store.as_ref().is_some_and(|store| !is_url(store)) {
        return wrong("--store must be a URL that begins with postgres://");
    }
    if options.store.is_none() && options.store_table.is_some() {
        return wrong("--store-table needs --store");
    }
    if options.sources.iter().filter(|source| *source == STDIN).count() > 1 {
        return wrong("standard input can be read only once");
    }
    if let Some((name, _)) = options.outputs().find(|(_, file)| *file == STDIN) {
        return Err(format!(
            "--{name} must be a file; for results on standard output there is --format"
        ));
    }
    refuse_same_file(values, options)
}

/// Refuses options that contradict `--select`, or that need it.
fn refuse_choosing(values: &Values, options: &Options) -> std::result::Result<(), Wrong> {
    if options.select.is_none() {
        let name = ["quota", "labels", "success-at"]
            .into_iter()
            .find(|name| values.has(name));
        return name.map_or(Ok(()), |name| Err(format!("--{name} needs --select")));
    }
    if values.has("success-at") && options.labels.is_none() {
        return Err("--success-at needs --labels".into());
    }
    if !options.embedder {
        return Err(
            "--select compares words, and --no-embedder compares nothing: --novelty lexical needs no model"
                .into(),
        );
    }
    match options.novelty {
        Method::Prefix => Err("--select compares words: --novelty lexical or --novelty full".into()),
        _ => Ok(()),
    }
}

/// Refuses options of an embedder or a memory if the run has no embedder or memory.
fn refuse_unused_embedder(values: &Values, options: &Options) -> std::result::Result<(), Wrong> {
    const OF_MODEL: [&str; 4] = ["dtype", "engine", "model-dir", "threads"];
    const OF_COMPARISON: [&str; 4] = ["memory", "memory-size", "store", "novelty"];
    let is_lexical = options.novelty == Method::Lexical;
    if options.embedder && !is_lexical {
        return Ok(());
    }
    let (reason, others) = if is_lexical {
        ("--novelty lexical", &[][..])
    } else {
        ("--no-embedder", &OF_COMPARISON[..])
    };
    match OF_MODEL.iter().chain(others).find(|name| values.has(name)) {
        Some(name) => Err(format!("--{name} and {reason} exclude each other")),
        None => Ok(()),
    }
}

/// Refuses to overwrite another output or something that is read, except by `--out` an input that it loses nothing of.
fn refuse_same_file(values: &Values, options: &Options) -> std::result::Result<(), Wrong> {
    let read = [
        ("weights", &options.weights),
        ("labels", &options.labels),
        ("map", &options.map),
    ];
    let read = read
        .into_iter()
        .filter_map(|(name, file)| Some((name, file.as_deref()?)));
    let files: Vec<_> = options.outputs().chain(read).collect();
    for (at, &(name, file)) in files.iter().enumerate() {
        if let Some((other, _)) = files[..at].iter().find(|(_, other)| is_same_file(other, file)) {
            return Err(format!("--{other} and --{name} must not be the same file"));
        }
        let source = options.sources.iter().find(|source| is_same_file(source, file));
        if let Some(source) = source.filter(|_| name != "out") {
            return Err(format!(
                "--{name} must not be a file of traces: {}",
                name_of(source)
            ));
        }
    }
    let Some(out) = &options.out else { return Ok(()) };
    let mut replaced = options.sources.iter().filter(|source| is_same_file(source, out));
    let Some(source) = replaced.next().map(|source| name_of(source)) else {
        return Ok(());
    };
    if replaced.next().is_some() {
        return Err(format!(
            "--out is read more than once, and would have its traces as often: {source}"
        ));
    }
    if options.clean.is_some() {
        return Err(format!(
            "--out is read too, and would lose the texts that --clean replaces: {source}"
        ));
    }
    if options.splits && options.dropped.is_none() {
        let option = SPLITTING
            .into_iter()
            .find(|name| values.has(name))
            .unwrap_or_default();
        return Err(format!(
            "--out is read too, and would lose the traces that --{option} leaves out: {source}; name a file for them with \
             --dropped, or write to another"
        ));
    }
    Ok(())
}

/// Returns the name of an input in messages.
pub fn name_of(source: &str) -> &str {
    if source == STDIN { "stdin" } else { source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Exit;

    /// Arguments, and why they make no sense.
    const WRONG: &str = "
--jsn | Unknown option '--jsn'
--out | Option '--out <value>' argument missing
--out= | --out must not be empty
--explain=yes | Option '--explain' does not take an argument
--format xml | --format must be table, json, jsonl or csv, got 'xml'
--threshold 1.5 | --threshold must be a number from 0 to 1, got '1.5'
--threshold high | --threshold must be a number from 0 to 1, got 'high'
--threshold=-0.1 | --threshold must be a number from 0 to 1, got '-0.1'
--threshold -0.1 | --threshold needs a value; one that begins with a hyphen is written --threshold=VALUE
--confidence 2 | --confidence must be a number from 0 to 1, got '2'
--fail-under 2 | --fail-under must be a number from 0 to 1, got '2'
--threads 0 | --threads must be a whole number from 1 to 1024, got '0'
--memory-size 0.5 | --memory-size must be a whole number of at least 1, got '0.5'
--from otel --map m | --from and --map exclude each other: a map is for formats that --from does not name
--success 1 | --success must be yes or no, got '1'
--from trace --success yes | --success is for other formats, and --from trace reads none
--top 0 | --top must be a whole number of at least 1, or a percentage up to 100%, got '0'
--top 101% | --top must be a whole number of at least 1, or a percentage up to 100%, got '101%'
--top 1 --threshold 0.5 | --threshold and --top exclude each other
--dtype fp16 | --dtype must be fp32 or q8, got 'fp16'
--novelty some | --novelty must be prefix, lexical or full, got 'some'
--novelty lexical --dtype q8 | --dtype and --novelty lexical exclude each other
--novelty prefix --no-embedder | --novelty and --no-embedder exclude each other
--novelty full --no-embedder | --novelty and --no-embedder exclude each other
--no-embedder --memory x | --memory and --no-embedder exclude each other
--dropped x | --dropped needs --threshold, --top or --select
--quiet --verbose | --quiet and --verbose exclude each other
- - | standard input can be read only once
--out - | --out must be a file; for results on standard output there is --format
--out x --report ./x | --out and --report must not be the same file
--weights x --out x | --out and --weights must not be the same file
--clean=public | --clean must be aggregated, federated or private, got 'public'
--known skip | --known needs --memory
--known skip --store postgres://h/d | --known needs --memory: a store does not know the contents of earlier traces
--known once --memory m | --known must be skip, score or again, got 'once'
--forget --memory m | --forget needs --memory and --memory-size
--forget --memory-size 5 | --forget needs --memory and --memory-size
--select 2 --top 2 | --top and --select exclude each other
--select 0 | --select must be a whole number of at least 1, or a percentage up to 100%, got '0'
--labels x | --labels needs --select
--quota failures=1 | --quota needs --select
--select 2 --quota half | --quota must be failures=N or failures=N%, got 'half'
--select 2 --success-at 1 | --success-at needs --labels
--select 2 --novelty prefix | --select compares words: --novelty lexical or --novelty full
--select 2 --no-embedder | --select compares words, and --no-embedder compares nothing: --novelty lexical needs no model
--compare --out x | --compare and --out exclude each other
--compare --format csv | --compare prints --format table or json
";

    #[test]
    fn read_options_names_the_formats_where_from_is_none_of_them() {
        let arguments = ["file", "--from", "xml"].map(String::from);
        let message = read_options(&arguments).unwrap_err().message;
        let names: Vec<_> = FormatName::named().map(FormatName::name).collect();
        let (last, others) = names.split_last().unwrap();
        let expected = format!(
            "--from must be {} or {last}, got 'xml'; see kp-score --help",
            others.join(", ")
        );
        assert_eq!(message, expected);
    }

    #[test]
    fn wrong_usage_is_told_with_the_way_out() {
        for (arguments, reason) in WRONG.lines().filter_map(|line| line.split_once(" | ")) {
            // With a source, standard input is not asked for.
            let arguments: Vec<_> = ["file"]
                .into_iter()
                .chain(arguments.split(' '))
                .map(String::from)
                .collect();
            let failure = read_options(&arguments).unwrap_err();
            assert_eq!(failure.message, format!("{reason}; see kp-score --help"));
            assert_eq!(failure.exit, Exit::Usage);
        }
    }
}
