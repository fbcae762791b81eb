//! `kp-score completions`.

use clap::{Args, Command};
use clap_complete::{Shell, generate};

use crate::{
    error::{Exit, Result},
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
