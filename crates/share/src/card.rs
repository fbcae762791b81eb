//! The dataset card: what a folder holds, for the people and the programs that load it. Of a card that is there, only the block between
//! our markers and our fields at its top change: the rest is the user's.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Display,
    slice,
};

use knowledgepulse_json::Value;

use crate::{
    CARD, Form, MANIFEST, Settings,
    danger::by_danger,
    set::{count_of, rows_of},
};

const BEGIN: &str = "<!-- kp-score: begin. What is between these marks is written anew with each share. -->";
const END: &str = "<!-- kp-score: end -->";

/// How the marks begin, whatever follows.
const MARKS: [&str; 2] = ["<!-- kp-score: begin", "<!-- kp-score: end"];

/// The columns of the sessions, which `datasets` would else guess by the first file: their names, types and meanings. Those of
/// [`Form::Native`] make it load the files as agent traces.
fn columns(form: Form) -> impl Iterator<Item = [&'static str; 3]> {
    let rows = include_str!("columns.tsv").lines();
    rows.filter_map(move |row| {
        let mut cells = row.split('\t');
        (cells.next()? == form.name()).then(|| [0; 3].map(|_| cells.next().unwrap_or_default()))
    })
}

/// Returns the card of a set with these lines in its manifest. Of the card `before` it is somebody's will not to have our block, if it has none
/// though sessions were shared (`was_shared`).
pub(crate) fn card(
    before: &str,
    was_shared: bool,
    lines: &[Value],
    sample: Option<&str>,
    settings: &Settings,
) -> String {
    let chosen = match &*settings.chosen {
        "" => between(before, CHOSEN, ". `").unwrap_or("Sessions that were named"),
        chosen => chosen,
    };
    let block = block(lines, chosen, sample, settings);
    let block = format!("{BEGIN}\n\n{block}\n{END}");
    let fields = fields(lines.len(), settings.form);
    let first = first(settings.form, &block);
    let (first_top, first_body) = parts_of(&first).unwrap_or_default();
    let (top, body) = parts_of(before).unwrap_or((first_top, before));
    let body = match MARKS.map(|mark| body.find(mark)) {
        [Some(begin), Some(end)] if begin < end => {
            let after = body[end..].split_once("-->").map_or("", |(_, after)| after);
            [&body[..begin], &block, after].concat()
        }
        _ if body.trim().is_empty() => first_body.to_owned(),
        _ if was_shared => body.to_owned(),
        _ => format!("{}\n\n{block}\n", body.trim_end()),
    };
    let languages = languages(top, lines);
    format!("---\n{}---\n\n{body}", with_fields(top, &(languages + &fields)))
}

/// Returns whether a card has our block.
pub(crate) fn is_ours(card: &str) -> bool {
    card.contains(MARKS[0])
}

/// Returns the fields at the top of a card, and its body; `None` if it has no fields.
fn parts_of(card: &str) -> Option<(&str, &str)> {
    let (top, body) = card.strip_prefix("---\n")?.split_once("\n---")?;
    Some((top, body.trim_start_matches('\n')))
}

/// Returns the top of a card with our fields; those of others stay as they are, and so do their configurations in ours.
fn with_fields(top: &str, fields: &str) -> String {
    let name_of = |line: &str| {
        let is_name = line.starts_with(|letter: char| !" \t-#]}".contains(letter));
        is_name.then(|| line.split(':').next().unwrap_or_default().to_owned())
    };
    let ours: BTreeSet<_> = fields.lines().filter_map(name_of).collect();
    let (mut kept, mut replaced) = (String::new(), BTreeMap::<_, Vec<&str>>::new());
    let mut name = String::new();
    for line in top.lines() {
        let begins = name_of(line);
        name = begins.clone().unwrap_or(name);
        if line.starts_with('#') || !ours.contains(&name) {
            kept += line;
            kept.push('\n');
        } else if begins.is_none() {
            replaced.entry(name.clone()).or_default().push(line);
        }
    }
    for line in fields.lines() {
        kept += line;
        kept.push('\n');
        let list = name_of(line).and_then(|name| replaced.remove(&name));
        kept += &list.map_or(String::new(), |list| others(&list));
    }
    kept
}

/// Returns the configurations of a list that are not ours, without their indent.
fn others(list: &[&str]) -> String {
    let indent = list[0].len() - list[0].trim_start().len();
    let lines: Vec<_> = list
        .iter()
        .map(|line| line.get(indent..).unwrap_or_default())
        .collect();
    let items = lines.chunk_by(|_, next| !next.starts_with('-'));
    let is_others = |item: &&[&str]| {
        let fields = item.iter().map(|line| line.trim_start_matches(['-', ' ']));
        let mut names = fields.filter_map(|field| field.strip_prefix("config_name:"));
        let name = names.next().and_then(|name| name.split(" #").next());
        name.is_some_and(|name| !CONFIGS.contains(&name.trim().trim_matches(['"', '\''])))
    };
    items
        .filter(is_others)
        .flatten()
        .map(|line| format!("{line}\n"))
        .collect()
}

/// The names of our configurations.
const CONFIGS: [&str; 2] = ["default", "manifest"];

/// Returns the fields that depend on the data.
fn fields(count: usize, form: Form) -> String {
    let size = [(1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K")];
    let size = size.iter().find(|(most, _)| count < *most);
    let size = size.map_or("100K<n<1M", |(_, size)| size);
    let data = form.file().unwrap_or(match form {
        Form::Atif => "sessions/**/*.json",
        _ => "sessions/**/*.jsonl",
    });
    let columns = columns(form).map(|[name, kind, _]| format!("  - name: {name}\n    {kind}\n"));
    format!(
        "size_categories:\n- {size}\nconfigs:\n- config_name: default\n  data_files: \"{data}\"\n- config_name: manifest\n  \
         data_files: {MANIFEST}\ndataset_info:\n- config_name: default\n  features:\n{}",
        columns.collect::<String>()
    )
}

/// Returns the field with the languages of a tenth of the sessions or more, unless the card has one.
fn languages(top: &str, lines: &[Value]) -> String {
    if top.lines().any(|line| line.starts_with("language:")) {
        return String::new();
    }
    let mut counts = counts(lines, "language");
    let all: u64 = counts.values().sum();
    counts.retain(|_, count| *count * 10 >= all);
    let codes = counts.keys().map(|code| format!("- {code}\n"));
    let codes: String = codes.collect();
    told(!codes.is_empty(), || format!("language:\n{codes}"))
}

/// Returns a new card. But for the block, and the fields that depend on the data, it is the user's from then on.
fn first(form: Form, block: &str) -> String {
    format!(
        include_str!("first.md"),
        tags = told(form == Form::Native, || "- agent-traces\n".into()),
        title = "Sessions of AI agents",
        manifest = MANIFEST,
        card = CARD,
        block = block,
    )
}

/// Returns what is told if something is so.
fn told(is_so: bool, words: impl FnOnce() -> String) -> String {
    if is_so { words() } else { String::new() }
}

/// The fields of the manifest whose texts the card counts, and those whose figures it adds up, with their titles.
const TEXTS: [(&str, &str); 7] = [
    ("sessions of", "agent"),
    ("model", "model"),
    ("project", "project"),
    ("users write", "language"),
    ("tools", "tools"),
    ("observed:", "facts"),
    ("outcome told by the", "outcome_from"),
];
const FIGURES: [(&str, &str); 9] = [
    ("turns of users", "user_turns"),
    ("tokens (bytes / 4)", "tokens"),
    ("calls of tools", "calls"),
    ("calls that failed", "failed_calls"),
    ("calls without a result", "calls_without_result"),
    ("pictures, left out", "pictures"),
    ("end with an answer", "ends_with_answer"),
    ("succeeded", "success"),
    (
        "places that look like names or addresses, told in `review`",
        "review",
    ),
];

/// Returns how many lines have each text in a field, or each name in a list.
fn counts<'v>(lines: &'v [Value], field: &str) -> BTreeMap<&'v str, u64> {
    let mut counts = BTreeMap::new();
    let values = lines.iter().filter_map(|line| line.get(field));
    let texts = values.flat_map(|value| value.as_array().unwrap_or(slice::from_ref(value)));
    for text in texts.filter_map(|value| value.get("name").unwrap_or(value).as_str()) {
        *counts.entry(text).or_default() += 1;
    }
    counts
}

fn table<N: Display, V: Display>(head: [&str; 2], rows: impl IntoIterator<Item = (N, V)>) -> String {
    let rows = rows.into_iter();
    let rows = rows.map(|(name, value)| format!("| {name} | {value} |\n"));
    format!(
        "| {} | {} |\n| --- | ---: |\n{}",
        head[0],
        head[1],
        rows.collect::<String>()
    )
}

fn block(lines: &[Value], chosen: &str, sample: Option<&str>, settings: &Settings) -> String {
    let form = settings.form;
    let (count, rows) = (lines.len(), lines.iter().flat_map(rows_of).count());
    let dates = lines.iter().filter_map(|line| line.get("created_at")?.as_str());
    let dates = dates.filter_map(|time| time.get(..10));
    let dates = dates.clone().min().zip(dates.max());
    let texts = TEXTS.iter().flat_map(|(title, field)| {
        let texts = counts(lines, field).into_iter();
        texts.map(move |(text, count)| (format!("{title} {}", escaped(text)), count))
    });
    let figures = FIGURES.iter().map(|(title, field)| {
        let figures = lines.iter().filter_map(|line| line.get(field));
        let figures = figures.map(|figure| match figure {
            Value::Bool(is_so) => u64::from(*is_so),
            Value::Array(places) => places.len() as u64,
            figure => count_of(figure),
        });
        ((*title).to_owned(), figures.sum())
    });
    let known = lines
        .iter()
        .filter(|line| line.get("success").is_some_and(|it| it.as_bool().is_some()));
    let known = ("outcome known".to_owned(), known.count() as u64);
    let meanings =
        columns(form).map(|[name, _, meaning]| (format!("`{}`", name.trim_matches('\'')), meaning));
    let (replaced, markers) = if settings.cleaner.replaces_identifiers() {
        (
            "secrets, e-mail addresses, telephone numbers, IP addresses, and the names of each session's user and machine",
            "`[REDACTED:email-1]` and `user-1`",
        )
    } else {
        ("secrets alone", "`[REDACTED:api_key-1]`")
    };
    let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
    let redactions = lines
        .iter()
        .filter_map(|line| line.get("redactions")?.as_object());
    for (kind, count) in redactions.flatten() {
        *kinds.entry(kind.to_string()).or_default() += count_of(count);
    }
    let kinds = by_danger(&kinds).into_iter().map(|(count, kind)| (kind, count));
    format!(
        include_str!("card.md"),
        sessions = format!("{count} session{}", told(count != 1, || "s".into())),
        rows = told(rows > count, || format!(", {rows} with sub-agents, each a row")),
        dates = dates.map_or(String::new(), |(first, last)| format!(", {first} to {last}")),
        what = what(form),
        facts = table(["", "count"], texts.chain(figures).chain([known])),
        chosen = chosen,
        manifest = MANIFEST,
        sample = sample.map_or(String::new(), |sample| format!("{SAMPLE}{sample}")),
        columns = table(["column", "what it has"], meanings).replace("---:", "---"),
        program = settings.program,
        replaced = replaced,
        markers = markers,
        counts = told(kinds.len() > 0, || table(["", "replaced"], kinds) + "\n"),
        extra = told(form == Form::Native, || " teich".into()),
    )
}

/// Sections of the block that stay where a run has nothing else for them.
const CHOSEN: &str = "## How they were chosen\n\n";
pub(crate) const SAMPLE: &str = "## A sample\n\n";
pub(crate) const COLUMNS: &str = "## Columns\n\n";

/// Returns what is between two texts.
pub(crate) fn between<'t>(text: &'t str, begin: &str, end: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(begin)?;
    rest.split_once(end).map(|(between, _)| between)
}

/// Returns words of the user and of the agent as quotations.
pub(crate) fn quoted(words: &[String; 2]) -> String {
    let quoted = |text: &String| format!("> {}\n", escaped(text).replace('\n', "\n> "));
    let [user, agent] = words.each_ref().map(quoted);
    format!("The user:\n\n{user}\nThe agent:\n\n{agent}\n")
}

/// Returns a text that is no markup.
fn escaped(text: &str) -> String {
    let is_markup = |letter| "\\`*_{}[]<>#|~".contains(letter);
    let escape = |letter| is_markup(letter).then_some('\\').into_iter().chain([letter]);
    text.chars().flat_map(escape).collect()
}

fn what(form: Form) -> &'static str {
    match form {
        Form::Native => {
            "Sessions of Claude Code, Codex, Pi and Droid, and exports of Hermes, are in their own format, others in the Session Trace Simple \
             Format. A session's sub-agents are in the folder of its name."
        }
        Form::Messages => {
            "A line for each session: messages as the chat templates of today's models take them, and the tools, with parameters by the \
             arguments of the calls where the log has none."
        }
        Form::Atif => "Each file is a trajectory in the Agent Trajectory Interchange Format.",
        Form::Knowledgepulse => "A line for each session: a unit for a registry of KnowledgePulse.",
    }
}
