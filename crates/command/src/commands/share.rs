//! `kp-score share`: a set of sessions, cleaned, in a folder that others load.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{self, IsTerminal},
    path::{self, Path},
    time::Duration,
};

use clap::Args;
use console::truncate_str;
use knowledgepulse_error::Error;
use knowledgepulse_formats::FormatName;
use knowledgepulse_json::Value;
use knowledgepulse_share::{
    self as share, Entry, FOUND_FROM, Folder, Form, MANIFEST, Manifest, Quality, Session, Settings,
    TOLD_CONFIDENCE, USUAL_ROOM,
    logs::{WholeFiles, add_subagents, is_database},
    share, told_apart,
};

use super::{clean::CleaningArgs, sessions::next_command};
use crate::{
    ChoiceArgs, Context, Exit, Failure, InputArgs, Inputs, MOST_UNITS, Messages, Output, Purpose, Result,
    STDIN, Scored, Set, VERSION, choose::choose, choose::decisions::Decisions, counted, desk, duration,
    listed::files_of_all, listed::listed, named::with_subagents, new_memory, one_of, printable, tell_places,
    told,
};

/// So long ago a session of this machine was written to last, unless `--settled` says otherwise: half of one would be shared.
const SETTLED: Duration = Duration::from_secs(30 * 60);

/// Add sessions, cleaned, to a folder that you may publish and others load
#[derive(Debug, Clone, Args)]
#[command(
    before_help = "Example: kp-score share 20 -o shared/           of the sessions on this machine",
    next_help_heading = "Folder",
    // The help of score and of select explains them.
    mut_arg("confidence", |argument| argument.hide(true)),
    mut_arg("failures", |argument| argument.hide(true))
)]
pub(crate) struct ShareArgs {
    /// The folder: a new one, or one to add to; what is not ours in it stays
    #[arg(short, long, value_name = "FOLDER")]
    pub out: String,

    /// native, messages, atif, knowledgepulse [default: native, or the folder's]
    #[arg(long = "as", value_name = "FORM", hide_possible_values = true,
        value_parser = one_of(Form::ALL.iter().map(|form| (form.name(), *form))))]
    pub form: Option<Form>,

    /// Take a session out of the folder: its id or file in manifest.jsonl
    #[arg(long, value_name = "ID")]
    pub remove: Vec<String>,

    /// Leave files that were written to so lately [default: 30m on this machine]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub settled: Option<Duration>,

    /// Write without asking
    #[arg(long)]
    pub yes: bool,

    /// Share the sessions that decisions.jsonl of a report keeps, instead of N
    #[arg(long, value_name = "FILE")]
    pub decisions: Option<String>,

    /// Share these numbers of the last list of kp-score instead of N: 1,3,7
    #[arg(long, value_name = "N,N", value_delimiter = ',', conflicts_with = "decisions")]
    pub pick: Vec<usize>,

    /// Print every place that a person should look at
    #[arg(long)]
    pub review: bool,

    /// Write a page to decide at, in HTML, of clean text
    #[arg(long, value_name = "FILE")]
    pub report: Option<String>,

    #[command(flatten)]
    pub choice: ChoiceArgs,
    #[command(flatten)]
    pub input: InputArgs,
    #[command(flatten)]
    pub cleaning: CleaningArgs,
}

/// Chooses sessions, cleans them, shows them, asks, and adds them to the folder.
pub(crate) fn run(mut args: ShareArgs, run: Context) -> Result<Exit> {
    let Context { messages, stop, .. } = run;
    let picked = listed(&args.pick)?;
    if args.input.paths.is_empty() {
        args.input.paths = files_of_all(&picked);
    }
    let picked = (!picked.is_empty()).then(|| Decisions {
        name: "--pick".into(),
        kept: picked.into_iter().map(|session| session.id).collect(),
        ..Decisions::default()
    });
    let decided = args.decisions.as_deref().map(Decisions::read).transpose()?;
    let decisions = decided.or(picked);
    if decisions.is_some() {
        args.choice.count = None;
    }
    let (args, out) = (&args, &args.out);
    let is_chosen = args.choice.count.is_some() || decisions.is_some();
    if !is_chosen && args.remove.is_empty() {
        return Err(Failure::usage(
            "share needs a number of sessions to add, --pick N,N, --decisions FILE or --remove ID",
        ));
    }
    let mut cleaner = args.cleaning.open()?;
    if let Some(decisions) = &decisions {
        decisions.strike(&mut cleaner);
    }
    let mut folder = Folder::create(Path::new(out))?;
    let (set, form) = folder.set(args.form)?;
    let removed = removed_of(&set, &args.remove, out, messages)?;
    let reads_stdin = args.input.paths.iter().any(|path| path == STDIN);
    let asks = !args.yes;
    if asks && (reads_stdin || !io::stdin().is_terminal() || !io::stderr().is_terminal()) {
        return Err(Failure::usage(
            "share asks before it writes; without a terminal it needs --yes",
        ));
    }
    let (mut chosen_by, mut exit, mut to_share) = (String::new(), Exit::Ok, Vec::new());
    let mut memory = new_memory(args.choice.novelty);
    let inputs = is_chosen.then(|| inputs_of(args, messages)).transpose()?;
    let is_early = inputs.as_ref().is_some_and(|inputs| inputs.sources.is_empty());
    if let Some(inputs) = inputs.filter(|_| !is_early) {
        let page = args.report.as_deref().map(Output::open).transpose()?;
        let purpose = Purpose {
            folder: Some((Path::new(out), &set)),
            only_new: true,
            ends: true,
            keeps: true,
        };
        let mut chosen = choose(&inputs, &args.choice, &purpose, run)?;
        if stop.is_interrupted() {
            return Err(Error::Aborted.into());
        }
        chosen_by = how(&chosen);
        if let Some(decisions) = &decisions {
            decisions.apply(&mut chosen, messages);
            chosen_by = "Decided by a person".into();
        }
        tell_beside(&chosen, messages);
        if let Some((page, name)) = page.zip(args.report.as_ref()) {
            let how = (Some(&cleaner), next_command(&args.input.paths, out));
            desk::write(page, &chosen, &inputs.sources, how, run)?;
            messages.note(format!("wrote {name}"));
        }
        to_share = sessions(args, (&set, &removed), &chosen, &WholeFiles::of(&inputs.sources));
        exit = chosen.seen.exit();
        memory = chosen.known;
    }
    let settings = Settings {
        form,
        cleaner: &cleaner,
        quality: &Quality::beside(run.host.engine(), memory),
        chosen: chosen_by,
        program: format!("kp-score {VERSION}"),
    };
    let (there, is_changed) = (set.lines().len(), !set.gone().is_empty() || !removed.is_empty());
    let go_on = |_| !stop.is_interrupted();
    let manifest = share(set, &removed, &to_share, &settings, &mut folder, &go_on)?;
    tell_left_out(&manifest, messages);
    if manifest.entries.is_empty() && !is_changed {
        let has_nothing = there == 0 && (to_share.is_empty() || !manifest.left_out.is_empty());
        if has_nothing && !is_early && args.choice.told.known.is_none() {
            return Err(Failure::file(format!(
                "there is nothing to share, so {out} was not written"
            )));
        }
        messages.note(format!("0 sessions are new: {out} stays as it is"));
        return Ok(exit);
    }
    show(&manifest, args.review)?;
    tell_scores(&manifest, messages);
    tell_review(&manifest, args.review, messages);
    let what = changes(&manifest, there, removed.len());
    if asks && !is_agreed(&what, out, messages)? {
        messages.note("nothing was written");
        return Ok(Exit::Ok);
    }
    if stop.is_interrupted() {
        return Err(Error::Aborted.into());
    }
    folder.finish()?;
    let all = counted(manifest.lines().len() as u64, "session");
    messages.note(match there {
        0 => format!(
            "wrote {all} to {out}; look at them, and fill in the licence in its README.md, before you publish it"
        ),
        _ => format!("{out} has {all} now ({what}); look at what is new before you publish it"),
    });
    Ok(exit)
}

/// Says what becomes of the set: how many sessions it has, and how many come, grow and go.
fn changes(manifest: &Manifest, there: usize, removed: usize) -> String {
    let (new, all) = (manifest.entries.len(), manifest.lines().len());
    let grown = (new + there).saturating_sub(all + removed);
    let counts = [
        (there, "there"),
        (new - grown, "to add"),
        (grown, "grown"),
        (removed, "to remove"),
    ];
    let told = counts.iter().filter(|(count, _)| *count > 0);
    let told = told.map(|(count, words)| format!("{count} {words}"));
    told.collect::<Vec<_>>().join(", ")
}

/// Returns how the sessions were chosen, as a sentence of the card: those of this run and, of the sessions on this machine, those shared before.
fn how(set: &Set) -> String {
    let sessions = set.scored.iter().filter(|scored| !scored.about.run.is_subagent);
    let new = sessions.clone().count();
    let all = new as u64 + set.published;
    let outcomes = match sessions.filter(|scored| scored.about.success.is_none()).count() {
        0 => "; successes count more than failures".to_owned(),
        unknown if unknown == new => "; no outcome was known, so nothing says that they succeeded".to_owned(),
        unknown => format!("; the outcomes of {unknown} were not known"),
    };
    format!("Of {all} sessions those that differ most from each other{outcomes}")
}

/// Returns the sessions that have grown, and then the chosen ones, with their sub-agents.
fn sessions(
    args: &ShareArgs,
    (set, removed): (&share::Set, &[usize]),
    chosen: &Set,
    files: &WholeFiles,
) -> Vec<Session<'static>> {
    let confidence = args.input.confidence.unwrap_or(TOLD_CONFIDENCE);
    let given = args.input.success.map(|success| (success, confidence));
    let log = |scored: &Scored| {
        let mut log = chosen.log(scored, files);
        log.outcome = log.outcome.or(given.filter(|_| log.format != FormatName::Trace));
        log
    };
    let same = chosen
        .same
        .iter()
        .filter(|(line, _)| !chosen.grown.contains_key(line));
    let there = chosen
        .grown
        .iter()
        .chain(same)
        .filter(|(line, _)| !removed.contains(line));
    let there = there.map(|(line, scored)| (scored.about.run.clone(), set.grown(*line, log(scored))));
    let ranked = (set.last_rank() + 1..).zip(&chosen.selection.chosen);
    let ranked = ranked.map(|(rank, choice)| {
        let scored = &chosen.scored[choice.index];
        let mut session = Session::new(log(scored), rank, choice.reason.name());
        session.stands_for = choice.stands_for.len() as u64;
        (scored.about.run.clone(), session)
    });
    let subagents = chosen.scored.iter().filter(|scored| scored.about.run.is_subagent);
    let subagents = subagents.map(|scored| (scored.about.run.clone(), Session::new(log(scored), 0, "")));
    let mut sessions = with_subagents(there.chain(ranked).chain(subagents).collect());
    // Sub-agents of other sessions have no rank.
    sessions.retain(|session| {
        let has_grown = |at| chosen.grown.contains_key(&at) || set.lacks_one(&session.subagents);
        session.rank > 0 && session.replaces.is_none_or(has_grown)
    });
    sessions
}

/// Returns the lines of the set that are to go: those that `--remove` names, and those that somebody has deleted.
fn removed_of(set: &share::Set, names: &[String], out: &str, messages: &Messages) -> Result<Vec<usize>> {
    let mut removed = BTreeSet::new();
    for name in names {
        // A shell completes the path of a file.
        let path = Path::new(name).strip_prefix(out).ok().and_then(Path::to_str);
        let unknown =
            format!("--remove {name}: not one line of {out}/{MANIFEST} has it as its id, session_id or file");
        removed.insert(
            set.place_of(path.unwrap_or(name))
                .ok_or_else(|| Failure::usage(unknown))?,
        );
    }
    for (at, file) in set.gone() {
        messages.note(format!("{out}/{file} is gone, so it leaves the set"));
        removed.extend(at);
    }
    Ok(removed.into_iter().collect())
}

/// Finds the inputs: the sessions on this machine where no path is named, without what was written to just now, and without the folder itself.
fn inputs_of(args: &ShareArgs, messages: &Messages) -> Result<Inputs> {
    let out = path::absolute(&args.out).unwrap_or_default();
    let is_out = |source: &str| path::absolute(source).is_ok_and(|source| source.starts_with(&out));
    let mut inputs = args.input.open(&[], &args.choice.told.files(), messages)?;
    add_subagents(&mut inputs.sources);
    inputs.sources.retain(|source| source == STDIN || !is_out(source));
    let usual = Some(SETTLED).filter(|_| args.input.paths.is_empty());
    let settled = args.settled.or(usual).unwrap_or_default();
    let is_new = |source: &mut String| is_written_within(source, settled);
    let left = inputs.sources.extract_if(.., is_new).count() as u64;
    if left > 0 {
        messages.note(format!(
            "{} written to just now: left for next time (--settled 0 takes them)",
            counted(left, "file")
        ));
    }
    if inputs.sources.is_empty() && left == 0 {
        let problem = format!("there is nothing to read beside {}", args.out);
        return Err(Failure::file(problem));
    }
    Ok(inputs)
}

/// Returns whether a file that has one session was written to within a time. A database of all sessions always was.
fn is_written_within(file: &str, time: Duration) -> bool {
    let modified = fs::metadata(file).and_then(|metadata| metadata.modified());
    // A time ahead of our clock is that of another machine, and counts as now.
    let is_recent = modified.is_ok_and(|modified| modified.elapsed().unwrap_or_default() < time);
    is_recent && file != STDIN && !is_database(Path::new(file))
}

/// Says how many sessions are no candidates, and why.
fn tell_beside(chosen: &Set, messages: &Messages) {
    let removed = (chosen.removed, "removed from the folder before");
    let beside = [(chosen.published, "shared already"), removed];
    for (count, why) in beside.into_iter().filter(|(count, _)| *count > 0) {
        messages.note(format!("{}: {why}", counted(count, "session")));
    }
}

/// Says how many sessions are left out, for each reason.
fn tell_left_out(manifest: &Manifest, messages: &Messages) {
    let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
    for (_, reason) in &manifest.left_out {
        *reasons.entry(reason).or_default() += 1;
    }
    for (reason, count) in reasons {
        let hint = reason
            .contains("outcome")
            .then_some("; --success or --labels says it");
        let hint = hint.unwrap_or_default();
        messages.note(format!("left out {}: {reason}{hint}", counted(count, "session")));
    }
}

/// Prints what would be shared, and what to look at.
fn show(manifest: &Manifest, review: bool) -> Result<()> {
    let text = |entry: &Entry, name: &str| {
        let text = entry.about.get(name).and_then(Value::as_text).cloned();
        printable(&text.unwrap_or_default(), usize::MAX)
    };
    let mut lines = String::new();
    let entries = &manifest.entries;
    let objectives: Vec<_> = entries.iter().map(|entry| text(entry, "objective")).collect();
    for (entry, objective) in entries.iter().zip(told_apart(&objectives, USUAL_ROOM)) {
        let line = format!(
            "{:<4} {:<12} {:<10.10} {:<15} {}",
            entry.rank,
            text(entry, "agent"),
            text(entry, "created_at"),
            counted(entry.redactions.values().sum(), "redaction"),
            truncate_str(&objective, USUAL_ROOM, "…")
        );
        lines += &format!("{}\n", line.trim_end());
    }
    for (place, around) in manifest.review().filter(|_| review) {
        lines += &format!("{place}: {}\n", printable(&around.into(), MOST_UNITS));
    }
    Output::print(&lines)
}

/// Says how many units agents will find in a registry.
fn tell_scores(manifest: &Manifest, messages: &Messages) {
    let rows = manifest.entries.iter().flat_map(|entry| &entry.rows);
    let scores = rows.filter_map(|row| row.get("quality_score")?.as_number());
    let scores: Vec<_> = scores.collect();
    if let Some(best) = scores.iter().copied().reduce(f64::max) {
        let found = scores.iter().filter(|score| **score >= FOUND_FROM).count();
        messages.note(format!(
            "{found} of {} score {FOUND_FROM:.2} or more, from where on a registry is searched; the best {best:.2}: \
             docs/what-a-score-means.md says why",
            counted(scores.len() as u64, "unit")
        ));
    }
}

/// Says what a person should look at.
fn tell_review(manifest: &Manifest, is_shown: bool, messages: &Messages) {
    let redactions = manifest.redactions();
    if !redactions.is_empty() {
        messages.note(format!("replaced {}", told(&redactions)));
    }
    let hint = if is_shown { "" } else { ": --review prints them" };
    tell_places(manifest.review().count() as u64, hint, messages);
}

/// Asks whether to write.
fn is_agreed(what: &str, folder: &str, messages: &Messages) -> Result<bool> {
    messages.text(&format!("Write to {folder}: {what}? [y/N] "));
    let mut answer = String::new();
    let read = io::stdin().read_line(&mut answer);
    read.map_err(|error| Failure::read("the answer", &error))?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}
