//! `kp-score completions`.

use clap::{Args, Command};
use clap_complete::{Shell, generate};

use crate::{Exit, Output, Result};

const PROGRAM: &str = "kp-score";

/// Print completions for a shell
#[derive(Debug, Clone, Args)]
#[command(
    before_help = "Example: kp-score completions bash > ~/.local/share/bash-completion/completions/kp-score"
)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: Shell,
}

/// Prints the completions of a shell.
pub(crate) fn run(args: &CompletionsArgs, command: &Command) -> Result<Exit> {
    // Without the paths of the list: clap_complete would look for a command behind them.
    let options = command
        .get_arguments()
        .filter(|argument| !argument.is_positional());
    let mut completed = Command::new(PROGRAM)
        .args(options.cloned())
        .subcommands(command.get_subcommands().cloned());
    let mut text = Vec::new();
    generate(args.shell, &mut completed, PROGRAM, &mut text);
    let text = String::from_utf8_lossy(&text);
    let text = match args.shell {
        // clap_complete 4.6 takes the hyphen in the name for a space where it names the options of a command.
        Shell::Bash => text.replace("kp__subcmd__score", "kp__score"),
        // And `*::` of its paths ends the options; `*:` does not.
        Shell::Zsh => text
            .replace(":_kp-score_commands\"", ":{_kp-score_commands; _files}\"")
            .replace("\n'*::paths", "\n'*:paths"),
        _ => text.into_owned(),
    };
    Output::print(&text).map(|()| Exit::Ok)
}
