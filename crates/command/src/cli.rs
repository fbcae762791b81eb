//! The command as a whole: arguments in, exit code out.

use clap::{
    CommandFactory, FromArgMatches, Parser, Subcommand,
    error::{ContextKind, ErrorKind},
};
use knowledgepulse_error::guarded;
use knowledgepulse_index::method::Method;

use crate::{
    Context, Exit, Failure, Messages, Output, Result, Stop, VERSION, commands::clean, commands::completions,
    commands::formats, commands::report, commands::score, commands::select, commands::sessions,
    commands::share, commands::show, host::Host, show::messages::MessageArgs,
};

/// The example stands before the usage.
const TEMPLATE: &str = "{about-with-newline}\n{before-help}{usage-heading} {usage}\n\n{all-args}{after-help}";

const AFTER_HELP: &str = "Columns of the list:
  turns      how often the agent spoke or called
  facts      what was observed, such as tests that passed, and the outcome if it is known
  +1 alike   sessions that go with this one: near-copies, sub-agents, earlier copies
A column that says the same of each session is left out.

Exit code: 0 all is well; 1 some lines are bad, the rest is scored; 2 wrong usage;
3 a file could not be read or written; 4 clean --check has found something;
130 interrupted.";

/// Find, choose and clean sessions of AI agents that are worth sharing
#[derive(Debug, Parser)]
#[command(
    name = "kp-score",
    version = VERSION,
    help_template = TEMPLATE,
    before_help = "Example: kp-score                 the sessions on this machine that are most worth sharing",
    after_help = AFTER_HELP,
    args_conflicts_with_subcommands = true
)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    sessions: sessions::SessionsArgs,
    #[command(flatten)]
    messages: MessageArgs,
}

#[derive(Debug, Subcommand)]
enum Command {
    Show(show::ShowArgs),
    Score(score::ScoreArgs),
    Select(select::SelectArgs),
    Share(share::ShareArgs),
    Report(report::ReportArgs),
    Clean(clean::CleanArgs),
    /// List the formats that are read, and how many files of each are here
    #[command(before_help = "Example: kp-score formats")]
    Formats,
    /// Check the installation of the npm package
    Doctor,
    Completions(completions::CompletionsArgs),
}

/// The doctor examines packages of npm and the addon.
const DOCTOR: &str = "doctor needs Node.js: npx @knowledgepulse/native doctor; --verbose tells the model and the engine of a run";

/// Runs the command with these arguments, without the name of the program. Returns the exit code. A panic, which is a bug, ends the run with
/// a message.
pub fn start(arguments: &[String], host: &dyn Host, messages: &Messages, stop: &Stop) -> Exit {
    let run = Context { host, messages, stop };
    let attempt = || Ok(attempt(arguments, run));
    let result = guarded(attempt).unwrap_or_else(|panic| Err(Failure::file(panic.to_string())));
    messages.stop_progress();
    result.unwrap_or_else(|failure| {
        messages.failure(failure.message);
        failure.exit
    })
}

/// Returns whether a run with these arguments needs the model; not if it does not begin.
pub fn needs_model(arguments: &[String]) -> bool {
    let novelty = match parse(arguments).ok().and_then(|cli| cli.command) {
        Some(Command::Score(args)) => args.novelty,
        Some(Command::Select(args)) => Some(args.choice.novelty),
        Some(Command::Share(args)) => Some(args.choice.novelty),
        _ => None,
    };
    novelty.is_some_and(|novelty| novelty != Method::Lexical)
}

fn command() -> clap::Command {
    Cli::command().mut_subcommands(|command| command.help_template(TEMPLATE))
}

fn parse(arguments: &[String]) -> std::result::Result<Cli, clap::Error> {
    let mut arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let options = ["--decisions", "--pick"];
    let is_decided = |argument: &&str| options.contains(&argument.split('=').next().unwrap_or_default());
    if arguments.first() == Some(&"share") && arguments.iter().any(is_decided) {
        // They say which sessions, so what follows is paths alone.
        arguments.insert(1, "100%");
    }
    let arguments = ["kp-score"].into_iter().chain(arguments);
    let mut matches = command().try_get_matches_from(arguments)?;
    Cli::from_arg_matches_mut(&mut matches)
}

fn attempt(arguments: &[String], run: Context) -> Result<Exit> {
    let messages = run.messages;
    let cli = match parse(arguments) {
        Ok(cli) => cli,
        Err(error) => return answer(&error, messages),
    };
    messages.set(cli.messages);
    match cli.command {
        None => sessions::run(&cli.sessions, run),
        Some(Command::Show(args)) => show::run(&args, messages),
        Some(Command::Score(args)) => score::run(&args, run),
        Some(Command::Select(args)) => select::run(&args, run),
        Some(Command::Share(args)) => share::run(args, run),
        Some(Command::Report(args)) => report::run(&args, run),
        Some(Command::Clean(args)) => clean::run(&args, messages, run.stop),
        Some(Command::Formats) => formats::run(messages),
        Some(Command::Completions(args)) => completions::run(&args, &command()),
        Some(Command::Doctor) => Err(Failure::usage(DOCTOR)),
    }
}

/// Prints the help or the version, or tells what is wrong with the arguments.
fn answer(error: &clap::Error, messages: &Messages) -> Result<Exit> {
    let argument = error.get(ContextKind::InvalidArg).map(ToString::to_string);
    match error.kind() {
        ErrorKind::DisplayVersion => Output::print(&format!("{VERSION}\n"))?,
        ErrorKind::DisplayHelp => Output::print(&error.render().to_string())?,
        // An option of many programs.
        ErrorKind::UnknownArgument if argument.as_deref() == Some("--json") => {
            return Err(Failure::usage(
                "there is no option --json; --format json prints JSON",
            ));
        }
        _ => {
            messages.text(&error.render().to_string());
            return Ok(Exit::Usage);
        }
    }
    Ok(Exit::Ok)
}
