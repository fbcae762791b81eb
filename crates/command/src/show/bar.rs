//! The line of progress at the bottom of a terminal.

use std::{
    io::{self, Write},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressStyle};

use crate::{Waiting, allows_colours};

const REDRAW: Duration = Duration::from_millis(100);

/// A line that is drawn again and again, from when it is started. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Bar(ProgressBar);

impl Default for Bar {
    fn default() -> Self {
        Self(ProgressBar::hidden().with_finish(ProgressFinish::AndClear))
    }
}

impl Bar {
    /// Writes above the line, to standard error. Drops text that cannot be written: the reader may have closed it.
    pub(crate) fn write(&self, text: &str) {
        let write = || Waiting(io::stderr()).write_all(text.as_bytes());
        drop(self.0.suspend(write));
    }

    /// Draws the line, if standard error is a terminal: how much of `total_bytes` was read, if that is known. In WebAssembly there is no
    /// thread that could draw it.
    pub(crate) fn start(&self, total_bytes: Option<u64>) {
        if cfg!(target_family = "wasm") {
            return;
        }
        let template = match total_bytes {
            None | Some(0) => "{binary_bytes} read, {binary_bytes_per_sec}",
            Some(_) if allows_colours() => {
                "{bar:24.cyan} {percent:>3} %  {binary_bytes_per_sec}  ETA {eta_precise}"
            }
            Some(_) => "{bar:24} {percent:>3} %  {binary_bytes_per_sec}  ETA {eta_precise}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.0.set_style(style.progress_chars("█░"));
        }
        self.0.reset();
        self.0.set_length(total_bytes.unwrap_or_default());
        self.0.set_draw_target(ProgressDrawTarget::stderr());
        self.0.enable_steady_tick(REDRAW);
    }

    /// Counts bytes that were read.
    pub(crate) fn on_read(&self, bytes: u64) {
        self.0.inc(bytes);
    }

    /// Removes the line, if there is one.
    pub(crate) fn stop(&self) {
        // The last state may not have been drawn yet.
        self.0.force_draw();
        self.0.finish_and_clear();
        self.0.set_draw_target(ProgressDrawTarget::hidden());
    }
}
