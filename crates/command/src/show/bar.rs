//! The line of progress at the bottom of a terminal.

use std::io::{self, Write};

use crate::Waiting;

pub(crate) use self::terminal::Bar;

/// Writes to standard error. Drops text that cannot be written: the reader may have closed it.
fn write(text: &str) {
    let _ = Waiting(io::stderr()).write_all(text.as_bytes());
}

#[cfg(not(target_family = "wasm"))]
mod terminal {
    use std::time::Duration;

    use indicatif::{ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressStyle};

    use super::super::messages::allows_colours;

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
        /// Writes above the line.
        pub(crate) fn write(&self, text: &str) {
            self.0.suspend(|| super::write(text));
        }

        /// Draws the line, if standard error is a terminal: how much of `total_bytes` was read, if that is known.
        pub(crate) fn start(&self, total_bytes: Option<u64>) {
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
}

/// Without threads nothing could draw the line.
#[cfg(target_family = "wasm")]
mod terminal {
    #[derive(Debug, Clone, Default)]
    pub(crate) struct Bar;

    impl Bar {
        pub(crate) fn write(&self, text: &str) {
            super::write(text);
        }

        pub(crate) fn start(&self, _: Option<u64>) {}

        pub(crate) fn on_read(&self, _: u64) {}

        pub(crate) fn stop(&self) {}
    }
}
