//! `kp-score completions` and the man page.

use clap::{Args, Command};
use clap_complete::{Shell, generate};

use crate::{
    error::{Exit, Failure, Result},
    files::output_file::StandardOutput,
};

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
pub(crate) fn run(args: &CompletionsArgs, mut command: Command) -> Result<Exit> {
    let mut text = Vec::new();
    generate(args.shell, &mut command, "kp-score", &mut text);
    StandardOutput::print(&text).map(|()| Exit::Ok)
}

/// Prints the page of the manual: that of the command, and of each of its commands.
pub(crate) fn manual(command: Command) -> Result<Exit> {
    let mut text = Vec::new();
    let mut commands: Vec<_> = command
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .cloned()
        .collect();
    commands.insert(0, command);
    for command in commands {
        let rendered = clap_mangen::Man::new(command).render(&mut text);
        rendered.map_err(|error| Failure::file(error.to_string()))?;
    }
    StandardOutput::print(&text).map(|()| Exit::Ok)
}
