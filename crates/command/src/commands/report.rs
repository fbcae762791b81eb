//! `kp-score report`: a page to look at sessions and to decide which to share.

use clap::Args;
use knowledgepulse_score::select::{Count, Unfit};

use super::{clean::CleaningArgs, sessions::next_command};
use crate::{
    ChoiceArgs, Context, Exit, InputArgs, Messages, Output, Purpose, Result, choose::ToldArgs,
    choose::choose, counted, desk,
};

/// How many sessions are proposed.
const PROPOSED: usize = 20;

/// Write a page to look at sessions, and to decide which to share
#[derive(Debug, Clone, Args)]
#[command(
    before_help = "Example: kp-score report --open               the sessions on this machine",
    next_help_heading = "Page"
)]
pub(crate) struct ReportArgs {
    /// The page, in HTML
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    pub out: String,

    /// Open the page in a browser
    #[arg(long)]
    pub open: bool,

    /// Show the original text, secrets and all; the page says so in red
    #[arg(long)]
    pub raw: bool,

    #[command(flatten)]
    pub told: ToldArgs,
    #[command(flatten)]
    pub input: InputArgs,
    #[command(flatten)]
    pub cleaning: CleaningArgs,
}

/// Chooses sessions as `select` does, and writes the page.
pub(crate) fn run(args: &ReportArgs, run: Context) -> Result<Exit> {
    let messages = run.messages;
    let choice = ChoiceArgs {
        count: Some(Count::Number(PROPOSED)),
        told: args.told.clone(),
        ..ChoiceArgs::default()
    };
    let cleaner = args.cleaning.open()?;
    let outputs = [("out", args.out.as_str())];
    let inputs = args.input.open(&outputs, &args.told.files(), messages)?;
    let page = Output::open(&args.out)?;
    let purpose = Purpose {
        only_new: true,
        ends: true,
        keeps: true,
        ..Purpose::default()
    };
    let set = choose(&inputs, &choice, &purpose, run)?;
    set.refuse_no_session(&args.out)?;
    let command = next_command(&args.input.paths, "shared");
    let how = ((!args.raw).then_some(&cleaner), command);
    desk::write(page, &set, &inputs.sources, how, run)?;
    let left = set.selection.left.iter();
    let subagents = left.filter(|left| left.unfit == Some(Unfit::SubAgent)).count();
    let sessions = counted((set.scored.len() - subagents) as u64, "session");
    let warning = if args.raw {
        ", which is not cleaned: do not pass it on"
    } else {
        ""
    };
    messages.note(format!("wrote {} with {sessions}{warning}", args.out));
    if args.open {
        open(&args.out, messages);
    }
    Ok(set.seen.exit())
}

/// Opens a page in the browser of the system.
pub(crate) fn open(page: &str, messages: &Messages) {
    #[cfg(not(target_family = "wasm"))]
    if let Err(error) = open::that_detached(page) {
        messages.warning(format!("{page} could not be opened: {error}"));
    }
    #[cfg(target_family = "wasm")]
    messages.warning(format!("{page} cannot be opened from here"));
}
