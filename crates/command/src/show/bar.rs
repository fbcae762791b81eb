//! The line of progress at the bottom of a terminal.

use std::io::{self, Write};

use crate::waiting::Waiting;

pub(crate) use self::terminal::Bar;

/// Writes to standard error. Drops text that cannot be written: the reader may have closed it.
fn write(text: &str) {
    let _ = Waiting(io::stderr()).write_all(text.as_bytes());
}

#[cfg(not(target_family = "wasm"))]
mod terminal {
    use std::{fmt, time::Duration};

    use indicatif::{ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressStyle};

    const REDRAW: Duration = Duration::from_millis(100);

    const HIDE_CURSOR: &str = "\u{1b}[?25l";
    const SHOW_CURSOR: &str = "\u{1b}[?25h";

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

        /// Draws the text that `render` returns, if standard error is a terminal.
        pub(crate) fn start(&self, render: impl Fn() -> String + Clone + Send + Sync + 'static) {
            self.0.set_draw_target(ProgressDrawTarget::stderr());
            if self.0.is_hidden() {
                return;
            }
            let style =
                ProgressStyle::with_template("{progress}").unwrap_or_else(|_| ProgressStyle::default_bar());
            let draw = move |_: &_, line: &mut dyn fmt::Write| {
                let _ = line.write_str(&render());
            };
            self.0.set_style(style.with_key("progress", draw));
            self.write(HIDE_CURSOR);
            self.0.enable_steady_tick(REDRAW);
        }

        /// Removes the line, if there is one.
        pub(crate) fn stop(&self) {
            if self.0.is_hidden() {
                return;
            }
            // The last state may not have been drawn yet.
            self.0.force_draw();
            self.0.finish_and_clear();
            self.0.set_draw_target(ProgressDrawTarget::hidden());
            self.write(SHOW_CURSOR);
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

        pub(crate) fn start(&self, _: impl Fn() -> String + Clone + Send + Sync + 'static) {}

        pub(crate) fn stop(&self) {}
    }
}
