//! Where the results of a run go: a table or rows on standard output, the files of `--out` and `--report`, and the figures.

use std::time::Instant;

use knowledgepulse_json::{Value, json_object};
use knowledgepulse_score::engine::Status;
use knowledgepulse_share::metadata_of;

use crate::{
    Context, Exit, Format, Output, Result, Scored, Seen, Table, counted, filter::LeftOut,
    show::rows::embedder_value, show::rows::json_row,
};

/// What stands before the first row of an object of JSON.
const JSON_BEGINS: &str = "{\"results\":[";

/// The results of a run, while it goes on.
pub(crate) struct Results<'r> {
    start: Instant,
    format: Option<Format>,
    /// The rows of a table, which comes as a whole at the end.
    table: Table,
    /// Whether rows have the parts of each score.
    explains: bool,
    /// How many results there are so far.
    count: u64,
    /// The file with its name.
    out: Option<(Output, &'r str)>,
    stdout: Output,
    run: Context<'r>,
    /// Of how many traces nobody knows whether the agent succeeded.
    pub unknown: u64,
    /// The embedder, if there was one.
    pub embedder: Option<Status>,
    /// Tells the set that was chosen.
    pub chosen: Option<String>,
}

impl<'r> Results<'r> {
    /// Opens the results: on standard output in a format, or nothing; and in the file `out`.
    pub(crate) fn open(
        format: Option<Format>,
        explains: bool,
        out: Option<&'r str>,
        table: Table,
        run: Context<'r>,
    ) -> Result<Self> {
        Ok(Self {
            start: Instant::now(),
            format,
            table,
            explains,
            count: 0,
            out: out.map(|out| Result::Ok((Output::open(out)?, out))).transpose()?,
            stdout: Output::standard(),
            run,
            unknown: 0,
            embedder: None,
            chosen: None,
        })
    }

    /// Shows and writes what `trace` reads; `selection` says why it was chosen, and `end` for whom it stands in a table.
    pub(crate) fn add(
        &mut self,
        scored: &Scored,
        trace: impl FnOnce() -> Result<Value>,
        selection: Option<&Value>,
        end: String,
    ) -> Result<()> {
        self.count += 1;
        let row = || json_row(scored, self.explains, selection);
        let text = match self.format {
            Some(Format::Json) if self.count == 1 => format!("{JSON_BEGINS}\n{}", row()),
            Some(Format::Json) => format!(",\n{}", row()),
            Some(Format::JsonLines) => row() + "\n",
            Some(Format::Table) => {
                self.table.add(scored, end);
                String::new()
            }
            None => String::new(),
        };
        // A reader sees rows as they come. Without anything else to write, results reach no one once it is gone.
        let is_read = self.stdout.write(text.as_bytes())? && self.stdout.flush()?;
        if !is_read && self.out.is_none() {
            self.run.stop.end_reading();
        }
        if let Some((out, _)) = &mut self.out {
            out.write(with_score(trace()?, scored, selection).as_bytes())?;
        }
        Ok(())
    }

    /// Completes the file, unless not all of the input was read; then only a pipe or a device has its bytes. Tells the figures, and what is
    /// wrong. `traces` is how many there were. Returns the exit code.
    pub(crate) fn finish(mut self, traces: u64, seen: &Seen) -> Result<Exit> {
        let lack = seen.why_incomplete(self.run.stop);
        let is_nothing = traces == 0;
        let (mut left, mut written) = (String::new(), None);
        let has_file = self.out.is_some();
        if let Some((out, name)) = self.out.take().filter(|_| !is_nothing) {
            if lack.is_none() || out.is_written_directly() {
                out.publish()?;
                written = Some((name, self.count));
            } else {
                left = format!("; {name} is as it was");
            }
        }
        let end = match self.format {
            Some(Format::Json) => {
                let begin = if self.count == 0 { JSON_BEGINS } else { "" };
                let figures = self.figures(traces, seen, written).to_json();
                format!("{begin}\n],\"summary\":{figures}}}\n")
            }
            _ => self.table.render(),
        };
        self.stdout.write(end.as_bytes())?;
        self.stdout.flush()?;
        // Why there was nothing was told, or is told below.
        let all = traces + seen.bad + seen.without_conversation;
        if !self.run.messages.is_quiet() && all > 0 {
            let summary = self.summary(traces, seen, written);
            match self.format.is_some() {
                true => self.run.messages.text(&summary),
                false => Output::print(&summary)?,
            }
        }
        if is_nothing && has_file {
            self.run
                .messages
                .failure("nothing was scored, so no file was written");
        } else if let Some(lack) = lack {
            // Unreadable inputs were named when they were met.
            if seen.unread == 0 || !left.is_empty() {
                self.run.messages.failure(format!("{lack}{left}"));
            }
        } else if is_nothing && seen.bad == 0 {
            self.run.messages.warning(seen.why_nothing());
        }
        Ok(match is_nothing && has_file {
            _ if self.run.stop.is_interrupted() => Exit::Interrupted,
            true => Exit::File,
            false => seen.exit(),
        })
    }

    /// Returns the figures for programs; `written` is the file that was written, and how many traces it has.
    fn figures(&self, traces: u64, seen: &Seen, written: Option<(&str, u64)>) -> Value {
        json_object! {
            "scored": traces,
            "bad": seen.bad,
            "withoutConversation": seen.without_conversation,
            "ignored": LeftOut::ignored(&seen.left_out),
            "seconds": self.start.elapsed().as_secs_f64(),
            "embedder": self.embedder.as_ref().map(embedder_value),
            "written": written.map(|(file, traces)| json_object! { "file": file, "traces": traces }),
        }
    }

    /// Returns the figures for people.
    fn summary(&self, traces: u64, seen: &Seen, written: Option<(&str, u64)>) -> String {
        let (noun, done) = match self.table.has_scores {
            true => ("trace", "scored"),
            false => ("session", "read"),
        };
        let seconds = self.start.elapsed().as_secs_f64();
        let mut text = format!("{} {done} in {seconds:.1} s", counted(traces, noun));
        if seen.bad > 0 {
            text = format!("{text}; {}", counted(seen.bad, "bad line"));
        }
        text.push('\n');
        let some = |count: u64| (count > 0).then(|| counted(count, noun));
        let unknown = some(self.unknown).map(|count| format!("not known of {count}: scored as failed"));
        let skipped = some(seen.without_conversation);
        let skipped = skipped.map(|count| format!("{count} without a conversation: see --verbose"));
        let written = written.map(|(file, traces)| format!("{file}: {}", counted(traces, "trace")));
        let lines = [
            ("chosen", self.chosen.clone()),
            ("outcome", unknown),
            ("skipped", skipped),
            ("written", written),
        ];
        let lines = lines.into_iter().filter_map(|(name, words)| Some((name, words?)));
        text.extend(lines.map(|(name, words)| format!("  {name:10}{words}\n")));
        text
    }
}

/// Returns a trace, in JSON on a line, with its score and why it was chosen.
fn with_score(mut trace: Value, scored: &Scored, selection: Option<&Value>) -> String {
    if let Some(metadata) = metadata_of(&mut trace) {
        metadata.insert("quality_score", scored.breakdown.score);
        if let Some(selection) = selection {
            metadata.insert("selection", selection.clone());
        }
    }
    trace.to_json() + "\n"
}
