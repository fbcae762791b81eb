//! Output to standard error: messages, and on a terminal a progress bar below them.

use std::{
    io::{self, Read, Write},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use clap::Args;
use indicatif::{ProgressBar, ProgressBarIter, ProgressDrawTarget, ProgressFinish, ProgressStyle};
use knowledgepulse_json::Text;

use crate::{Waiting, printable};

/// How often the progress bar is drawn.
const REDRAW: Duration = Duration::from_millis(100);

/// A longer line is cut, in UTF-16 code units: an error may quote a trace.
const MOST_UNITS: usize = 500;

/// What is told on standard error.
#[derive(Debug, Clone, Copy, Default, Args)]
#[command(next_help_heading = "Messages")]
pub(crate) struct MessageArgs {
    /// Tell only what ends the run
    #[arg(long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,

    /// Name every bad line, and the model and engine
    #[arg(long, global = true)]
    pub verbose: bool,

    /// Draw no progress bar
    #[arg(long, global = true)]
    pub no_progress: bool,
}

/// Writes messages and draws the progress bar, from any thread. Clones share the bar. Drops text that cannot be written: the
/// reader may have closed standard error.
#[derive(Debug, Clone)]
pub struct Messages {
    is_silent: bool,
    options: Arc<Mutex<MessageArgs>>,
    /// Hidden, except between [`start_progress`](Self::start_progress) and [`stop_progress`](Self::stop_progress) on a terminal.
    bar: ProgressBar,
}

impl Default for Messages {
    fn default() -> Self {
        Self {
            is_silent: false,
            options: Arc::default(),
            bar: ProgressBar::hidden().with_finish(ProgressFinish::AndClear),
        }
    }
}

impl Messages {
    /// Returns messages that nobody sees, for programs.
    pub(crate) fn silent() -> Self {
        Self {
            is_silent: true,
            ..Self::default()
        }
    }

    /// Tells as much as the options say.
    pub(crate) fn set(&self, options: MessageArgs) {
        *self.options() = options;
    }

    /// Draws no bar: rows that scroll by show the progress themselves.
    pub(crate) fn hide_bar(&self) {
        self.options().no_progress = true;
    }

    fn options(&self) -> MutexGuard<'_, MessageArgs> {
        self.options.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether everything is told.
    pub(crate) fn is_verbose(&self) -> bool {
        self.options().verbose
    }

    /// Returns whether only failures are told.
    pub(crate) fn is_quiet(&self) -> bool {
        self.options().quiet
    }

    /// Writes an error that ends the run or a part of it.
    pub fn failure(&self, message: impl Into<Text>) {
        self.line("kp-score: ", message);
    }

    /// Writes a warning.
    pub fn warning(&self, message: impl Into<Text>) {
        if !self.is_quiet() {
            self.line("kp-score: warning: ", message);
        }
    }

    /// Writes a line without the program's name.
    pub fn note(&self, message: impl Into<Text>) {
        if !self.is_quiet() {
            self.line("", message);
        }
    }

    /// Writes lines as they are, above the bar.
    pub fn text(&self, text: &str) {
        if !self.is_silent {
            let write = || Waiting(io::stderr()).write_all(text.as_bytes());
            drop(self.bar.suspend(write));
        }
    }

    fn line(&self, prefix: &str, message: impl Into<Text>) {
        self.text(&format!("{prefix}{}\n", printable(&message.into(), MOST_UNITS)));
    }

    /// Draws the bar, if standard error is a terminal: how much of `total_bytes` was read, if that is known. In WebAssembly there is no
    /// thread that could draw it.
    pub fn start_progress(&self, total_bytes: Option<u64>) {
        let is_hidden = self.is_silent || self.is_quiet() || self.options().no_progress;
        if cfg!(target_family = "wasm") || is_hidden {
            return;
        }
        let template = match total_bytes {
            None | Some(0) => "{binary_bytes} read, {binary_bytes_per_sec}",
            Some(_) => "{bar:24.cyan} {percent:>3} %  {binary_bytes_per_sec}  ETA {eta_precise}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.bar.set_style(style.progress_chars("█░"));
        }
        self.bar.reset();
        self.bar.set_length(total_bytes.unwrap_or_default());
        self.bar.set_draw_target(ProgressDrawTarget::stderr());
        self.bar.enable_steady_tick(REDRAW);
    }

    /// Removes the bar, if there is one.
    pub fn stop_progress(&self) {
        // The last state may not have been drawn yet.
        self.bar.force_draw();
        self.bar.finish_and_clear();
        self.bar.set_draw_target(ProgressDrawTarget::hidden());
    }

    /// Counts bytes that were read from the input.
    pub(crate) fn on_read(&self, bytes: u64) {
        self.bar.inc(bytes);
    }

    /// Counts all bytes that are read from an input, compressed or not.
    pub(crate) fn counted<R: Read>(&self, input: R) -> ProgressBarIter<R> {
        self.bar.wrap_read(input)
    }
}
