//! Output to standard error: messages, and on a terminal a progress bar below them.

use std::{
    env,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use clap::Args;
use knowledgepulse_json::Text;

use crate::{
    bar::Bar,
    printable::{counted, grouped, printable, rate},
    scored::Place,
};

const BAR_WIDTH: usize = 24;

const CYAN: &str = "\u{1b}[36m";
const DEFAULT_COLOUR: &str = "\u{1b}[39m";

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
#[derive(Debug, Clone, Default)]
pub struct Messages {
    options: Arc<OnceLock<MessageArgs>>,
    hides_bar: Arc<AtomicBool>,
    counts: Arc<Counts>,
    /// Hidden, except between [`start_progress`](Self::start_progress) and [`stop_progress`](Self::stop_progress) on a terminal.
    bar: Bar,
}

impl Messages {
    /// Tells as much as the options say.
    pub(crate) fn set(&self, options: MessageArgs) {
        self.hides_bar
            .store(options.quiet || options.no_progress, Relaxed);
        // They are set once.
        let _ = self.options.set(options);
    }

    /// Draws no bar: rows that scroll by show the progress themselves.
    pub(crate) fn hide_bar(&self) {
        self.hides_bar.store(true, Relaxed);
    }

    /// Returns whether everything is told.
    pub(crate) fn is_verbose(&self) -> bool {
        self.options.get().is_some_and(|options| options.verbose)
    }

    /// Returns whether only failures are told.
    pub(crate) fn is_quiet(&self) -> bool {
        self.options.get().is_some_and(|options| options.quiet)
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

    /// Writes what happened at a place of an input.
    pub fn note_at(&self, place: &Place, reason: &Text) {
        let mut message = Text::from(format!("{place}: "));
        message.push_str(reason);
        self.note(message);
    }

    /// Writes what happened at a place of an input, if everything is told.
    pub(crate) fn detail_at(&self, place: &Place, reason: &Text) {
        if self.is_verbose() {
            self.note_at(place, reason);
        }
    }

    /// Writes lines as they are.
    pub fn text(&self, text: &str) {
        self.bar.write(text);
    }

    fn line(&self, prefix: &str, message: impl Into<Text>) {
        self.text(&format!("{prefix}{}\n", printable(&message.into(), MOST_UNITS)));
    }

    /// Shows the bar, if standard error is a terminal. `total_bytes` is how much there is to read, if that is known.
    pub fn start_progress(&self, total_bytes: Option<u64>) {
        if self.hides_bar.load(Relaxed) {
            return;
        }
        let started = Instant::now();
        let counts = Arc::clone(&self.counts);
        let Counts {
            read_bytes,
            text_bytes,
            done_bytes,
            done,
            progress,
        } = &*counts;
        for count in [read_bytes, text_bytes, done_bytes, done, progress] {
            count.store(0, Relaxed);
        }
        let has_colours = allows_colours();
        self.bar
            .start(move || counts.render(started.elapsed(), total_bytes, has_colours));
    }

    /// Removes the bar, if there is one.
    pub fn stop_progress(&self) {
        self.bar.stop();
    }

    /// Counts bytes that were read from the input, compressed or not.
    pub fn on_read(&self, bytes: u64) {
        self.counts.read_bytes.fetch_add(bytes, Relaxed);
    }

    /// Counts bytes of text that were read, after decompression.
    pub fn on_text(&self, bytes: u64) {
        self.counts.text_bytes.fetch_add(bytes, Relaxed);
    }

    /// Counts a value that was scored or refused, with its bytes of text.
    pub fn on_done(&self, bytes: u64) {
        self.counts.done.fetch_add(1, Relaxed);
        self.counts.done_bytes.fetch_add(bytes, Relaxed);
    }

    /// Marks all text as processed, including the text between values.
    pub fn on_all_done(&self) {
        let text_bytes = self.counts.text_bytes.load(Relaxed);
        self.counts.done_bytes.store(text_bytes, Relaxed);
    }
}

/// Returns whether the user wants colours: see <https://no-color.org>.
pub(crate) fn allows_colours() -> bool {
    env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// So many messages about bad lines are written, unless all are asked for.
const MOST_NAMED: usize = 20;

/// Messages about bad lines: one for all lines of an input that are bad for the same reason.
#[derive(Debug, Default)]
pub(crate) struct BadLines {
    /// The reasons in the current input, each with its first place, and how many lines there are.
    reasons: Vec<(Place, Text, u64)>,
    /// How many messages were written or wait.
    named: usize,
    has_more: bool,
}

impl BadLines {
    /// Adds a bad line. Where everything is told, it gets a message of its own at once.
    pub(crate) fn add(&mut self, place: &Place, reason: &Text, messages: &Messages) {
        if messages.is_verbose() {
            return messages.note_at(place, reason);
        }
        if self
            .reasons
            .first()
            .is_some_and(|(first, ..)| first.source != place.source)
        {
            self.tell(messages);
        }
        match self.reasons.iter_mut().find(|(_, known, _)| known == reason) {
            Some((.., count)) => *count += 1,
            None if self.named < MOST_NAMED => {
                self.named += 1;
                self.reasons.push((place.clone(), reason.clone(), 1));
            }
            None => self.has_more = true,
        }
    }

    /// Writes what is left, after the last line.
    pub(crate) fn end(&mut self, messages: &Messages) {
        self.tell(messages);
        if self.has_more {
            messages.note("further bad lines are only counted; --verbose names them all");
        }
    }

    fn tell(&mut self, messages: &Messages) {
        for (place, mut reason, count) in self.reasons.drain(..) {
            if count > 1 {
                reason.push_str(&format!(" ({} such lines)", grouped(count)));
            }
            messages.note_at(&place, &reason);
        }
    }
}

/// How far the run is.
#[derive(Debug, Default)]
struct Counts {
    read_bytes: AtomicU64,
    text_bytes: AtomicU64,
    done_bytes: AtomicU64,
    done: AtomicU64,
    /// The greatest progress that was drawn, as the bits of a number from 0 to 1, which are in the order of the numbers.
    progress: AtomicU64,
}

#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss
)] // Counts are far below 2^53.
impl Counts {
    /// Returns the line of the bar.
    fn render(&self, elapsed: Duration, total_bytes: Option<u64>, has_colours: bool) -> String {
        let count = |count: &AtomicU64| count.load(Relaxed) as f64;
        let seconds = elapsed.as_secs_f64();
        let traces = counted(self.done.load(Relaxed), "trace");
        let per_second = rate(count(&self.done) / seconds);
        let Some(total_bytes) = total_bytes.filter(|&total| total > 0) else {
            return format!("{traces}  {per_second}/s");
        };
        // Text that was read but waits to be scored does not count.
        let share = (count(&self.done_bytes) / count(&self.text_bytes).max(1.0)).min(1.0);
        let progress = (count(&self.read_bytes) * share / total_bytes as f64).min(1.0);
        // Between the updates of the two counters the quotient may be too great, and would fall again.
        let before = f64::from_bits(self.progress.fetch_max(progress.to_bits(), Relaxed));
        let progress = progress.max(before);
        let left = if progress > 0.0 {
            duration(seconds / progress * (1.0 - progress))
        } else {
            "-:--".into()
        };
        let full = (progress * BAR_WIDTH as f64).round() as usize;
        let (on, off) = if has_colours {
            (CYAN, DEFAULT_COLOUR)
        } else {
            ("", "")
        };
        format!(
            "{on}{}{off}{} {:3} %  {traces}  {per_second}/s  ETA {left}",
            "█".repeat(full),
            "░".repeat(BAR_WIDTH - full),
            (progress * 100.0).floor(),
        )
    }
}

/// Returns a time in hours, if there are any, minutes and seconds.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // It is not negative.
fn duration(seconds: f64) -> String {
    let whole = seconds.ceil() as u64;
    let (hours, minutes, seconds) = (whole / 3600, whole / 60 % 60, whole % 60);
    if hours > 0 {
        format!("{hours}:{minutes:02}:{seconds:02}")
    } else {
        format!("{minutes}:{seconds:02}")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn counts([read, text, done_bytes, done]: [u64; 4]) -> Counts {
        Counts {
            read_bytes: read.into(),
            text_bytes: text.into(),
            done_bytes: done_bytes.into(),
            done: done.into(),
            progress: 0.into(),
        }
    }

    #[test]
    fn render_counts_what_was_read_by_the_share_of_it_that_is_done() {
        let seconds = Duration::from_secs;
        for (figures, elapsed, total, line) in [
            (
                [0, 0, 0, 0],
                seconds(1),
                Some(10),
                "░░░░░░░░░░░░░░░░░░░░░░░░   0 %  0 traces  0.0/s  ETA -:--",
            ),
            (
                [50, 400, 200, 1],
                seconds(2),
                Some(100),
                "██████░░░░░░░░░░░░░░░░░░  25 %  1 trace  0.5/s  ETA 0:06",
            ),
            (
                [100, 400, 400, 9000],
                seconds(4),
                Some(100),
                "████████████████████████ 100 %  9,000 traces  2,250/s  ETA 0:00",
            ),
            ([100, 400, 400, 20], seconds(2), None, "20 traces  10/s"),
            ([100, 400, 400, 20], seconds(2), Some(0), "20 traces  10/s"),
        ] {
            assert_eq!(counts(figures).render(elapsed, total, false), line);
        }
    }

    #[test]
    fn render_colours_the_full_part_of_the_bar() {
        let line = counts([1, 1, 1, 1]).render(Duration::from_secs(1), Some(2), true);
        assert!(line.starts_with("\u{1b}[36m████████████\u{1b}[39m░"), "{line:?}");
    }

    #[test]
    fn render_never_goes_back() {
        let counts = counts([50, 100, 100, 1]);
        for text in [100, 200] {
            counts.text_bytes.store(text, Relaxed);
            let line = counts.render(Duration::from_secs(1), Some(100), false);
            assert!(line.contains(" 50 % "), "{line}");
        }
    }

    #[test]
    fn duration_has_hours_only_if_there_are_any() {
        assert_eq!(
            [0.0, 0.1, 59.5, 3600.0, 36_061.0].map(duration),
            ["0:00", "0:01", "1:00", "1:00:00", "10:01:01"]
        );
    }

    #[test]
    fn on_all_done_takes_all_text_as_done() {
        let messages = Messages::default();
        messages.set(MessageArgs {
            quiet: true,
            ..MessageArgs::default()
        });
        messages.on_read(7);
        messages.on_text(70);
        messages.clone().on_done(60);
        messages.on_all_done();
        let line = messages.counts.render(Duration::from_secs(1), Some(7), false);
        assert!(line.contains("100 %  1 trace "), "{line}");
    }

    proptest! {
        #[test]
        fn render_has_a_bar_of_the_same_width_whatever_was_counted(
            figures in prop::array::uniform4(0..1_u64 << 50),
            total in 1..1_u64 << 50,
            nanoseconds in 0..1_u64 << 60,
        ) {
            let line = counts(figures).render(Duration::from_nanos(nanoseconds), Some(total), false);
            let bar = line.chars().take_while(|character| "█░".contains(*character));
            prop_assert_eq!(bar.count(), BAR_WIDTH);
        }
    }
}
