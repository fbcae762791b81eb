//! `kp-score` alone: the sessions that are most worth sharing, and what to type next.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
};

use clap::Args;
use knowledgepulse_json::Value;
use knowledgepulse_os::home_folder;
use knowledgepulse_score::select::{COPY, Chosen, Count, Unfit};

use super::{score::BEST, select::add_chosen};
use crate::{
    ChoiceArgs, Context, Exit, Format, InputArgs, Purpose, Result, Results, Set, Table, choose::choose,
    counted, listed::remember,
};

/// What is looked at.
#[derive(Debug, Clone, Default, Args)]
// The help of score explains them.
#[command(mut_args(|argument| match argument.get_id().as_str() {
    "from" | "success" | "confidence" => argument.hide(true),
    _ => argument,
}))]
pub(crate) struct SessionsArgs {
    /// Show all sessions, not only the first ten
    #[arg(long)]
    pub all: bool,

    /// table, json or jsonl [default: table]
    #[arg(long, value_enum, hide_possible_values = true)]
    pub format: Option<Format>,

    #[command(flatten)]
    pub input: InputArgs,
}

/// Lists the sessions in the order in which they are worth sharing, without copies.
pub(crate) fn run(args: &SessionsArgs, run: Context) -> Result<Exit> {
    let inputs = args.input.open(&[], &[], run.messages)?;
    let choice = ChoiceArgs {
        count: Some(Count::Percent(100.0)),
        ..ChoiceArgs::default()
    };
    let format = args.format.unwrap_or(Format::Table);
    let table = Table::new(false, (!args.all).then_some(BEST));
    let mut results = Results::open(Some(format), false, None, table, run)?;
    let purpose = Purpose {
        only_new: true,
        ..Purpose::default()
    };
    let set = choose(&inputs, &choice, &purpose, run)?;
    add_chosen(&set, &mut results, folded(&set))?;
    let others = others(&set, args.all, format == Format::Table);
    for (index, why) in &others {
        results.add(&set.scored[*index], || Ok(Value::Null), None, (*why).to_owned())?;
    }
    let exit = results.finish(set.scored.len() as u64, &set.seen)?;
    let chosen = set.selection.chosen.iter().map(|chosen| chosen.index);
    let listed: Vec<_> = chosen.chain(others.iter().map(|(index, _)| *index)).collect();
    let is_remembered = remember(&set, &listed, &inputs.sources);
    if !listed.is_empty() && exit != Exit::Interrupted {
        let numbers = (1..=set.selection.chosen.len().min(3)).map(|number| number.to_string());
        let next = match numbers.collect::<Vec<_>>().join(",") {
            _ if !is_remembered => format!("kp-score share 20{} -o shared", quoted_all(&args.input.paths)),
            none if none.is_empty() => "kp-score show 1".to_owned(),
            numbers => format!("kp-score show 1, or kp-score share --pick {numbers} -o shared"),
        };
        run.messages.note(format!("next: {next}"));
    }
    Ok(exit)
}

/// Returns the sessions that are listed after the chosen ones, and what is told of them: those that are not fit to be shared, and with `all`
/// those that are like others, and sub-agents, which in a table stand in the rows of their sessions.
fn others(set: &Set, all: bool, is_table: bool) -> Vec<(usize, &'static str)> {
    let left = set.selection.left.iter().filter_map(|left| match left.unfit {
        Some(Unfit::SubAgent) => (all && !is_table).then_some((left.index, "")),
        Some(unfit) => Some((left.index, unfit.words())),
        None => all.then_some((left.index, "alike")),
    });
    left.collect()
}

/// Returns what says of a chosen session which others are folded into its row.
fn folded(set: &Set) -> impl Fn(&Chosen) -> String {
    let mut sub_agents: HashMap<usize, u64> = HashMap::new();
    for root in set.roots().into_iter().flatten() {
        *sub_agents.entry(root).or_default() += 1;
    }
    let left = set.selection.left.iter().filter(|left| left.unfit.is_some());
    let unfit: HashSet<usize> = left.map(|left| left.index).collect();
    move |chosen| {
        let run = &set.scored[chosen.index].about.run;
        let started = sub_agents.get(&chosen.index).copied().unwrap_or_default();
        let is_copy = |index: usize, similarity: f64| similarity >= COPY && !unfit.contains(&index);
        let alike = chosen.stands_for.iter();
        let alike = alike.filter(|near| is_copy(near.index, near.similarity)).count();
        let ends = [
            (run.parent.is_some(), "sub-agent".to_owned()),
            (started > 0, format!("+{}", counted(started, "sub-agent"))),
            (run.copies == 1, "+1 earlier copy".to_owned()),
            (run.copies > 1, format!("+{} earlier copies", run.copies)),
            (alike > 0, format!("+{alike} alike")),
        ];
        let told = ends.into_iter().filter(|(is_told, _)| *is_told);
        told.map(|(_, words)| words).collect::<Vec<_>>().join(", ")
    }
}

/// Returns the command that shares what a page decides about these paths, as a shell takes them.
pub(crate) fn next_command(paths: &[String], out: &str) -> String {
    let (paths, out) = (quoted_all(paths), quoted(out));
    format!("kp-score share --decisions decisions.jsonl{paths} -o {out}")
}

fn quoted_all(paths: &[String]) -> String {
    paths.iter().map(|path| format!(" {}", quoted(path))).collect()
}

/// Returns a path as a shell takes it for one word.
fn quoted(path: &str) -> String {
    let home = home_folder().filter(|_| !cfg!(windows));
    let below = home.and_then(|home| Path::new(path).strip_prefix(home).ok()?.to_str());
    if let Some(below) = below.filter(|below| !below.is_empty()) {
        return format!("~/{}", quoted_word(below));
    }
    quoted_word(path)
}

fn quoted_word(path: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-~+:@%,=\\".contains(&byte);
    if !path.is_empty() && path.bytes().all(is_plain) {
        return path.to_owned();
    }
    format!("'{}'", path.replace('\'', "'\\''"))
}
