//! Where the results of a run go: a table or rows on standard output, the files of `--out` and `--report`, and the figures.

use knowledgepulse_json::Value;
use knowledgepulse_share::metadata_of;

use crate::{
    Exit, Format, Messages, Output, Result, Scored, Seen, Stop, Summary, Table, show::breakdown::value_of,
    show::rows::Rows,
};

/// The results of a run, while it goes on.
pub(crate) struct Results<'r> {
    rows: Option<Rows>,
    /// Whether the parts of each score are written.
    explains: bool,
    /// The file with its name, and how many traces were written to it.
    out: Option<(Output, &'r str)>,
    written: u64,
    pub stdout: Output,
    messages: &'r Messages,
    stop: &'r Stop,
}

impl<'r> Results<'r> {
    /// Opens the results: on standard output in a format, or nothing; and in the file `out`.
    pub(crate) fn open(
        format: Option<Format>,
        explains: bool,
        out: Option<&'r str>,
        table: Table,
        (messages, stop): (&'r Messages, &'r Stop),
    ) -> Result<Self> {
        Ok(Self {
            rows: format.map(|format| Rows::new(format, explains, table)),
            explains,
            out: out.map(|out| Ok((Output::open(out)?, out))).transpose()?,
            written: 0,
            stdout: Output::standard(),
            messages,
            stop,
        })
    }

    /// Writes what stands before the first row.
    pub(crate) fn begin(&mut self) -> Result<()> {
        let begin = self.rows.as_ref().map(Rows::begin);
        self.print(&begin.unwrap_or_default())?;
        self.stdout.flush().map(drop)
    }

    /// Shows and writes a trace; `selection` says why it was chosen, and `end` for whom it stands.
    pub(crate) fn add(
        &mut self,
        scored: &Scored,
        trace: Value,
        selection: Option<&Value>,
        end: String,
    ) -> Result<()> {
        let row = self.rows.as_mut().map(|rows| rows.row(scored, selection, end));
        self.print(&row.unwrap_or_default())?;
        if let Some((out, _)) = &mut self.out {
            let line = with_score(trace, scored, self.explains, selection);
            out.write(line.as_bytes())?;
            self.written += 1;
        }
        Ok(())
    }

    /// Writes to standard output. Without anything else to write, results reach no one once the reader is gone.
    fn print(&mut self, text: &str) -> Result<()> {
        if !self.stdout.write(text.as_bytes())? && self.out.is_none() {
            self.stop.end_reading();
        }
        Ok(())
    }

    /// Completes the file, unless not all of the input was read; then only a pipe or a device has its bytes. Tells the figures, and what is
    /// wrong. Returns the exit code.
    pub(crate) fn finish(mut self, summary: &mut Summary, seen: &Seen) -> Result<Exit> {
        let lack = seen.why_incomplete(self.stop);
        summary.interrupted = self.stop.is_interrupted();
        let is_nothing = summary.scored() == 0;
        let mut left = String::new();
        let has_file = self.out.is_some();
        if let Some((out, name)) = self.out.take().filter(|_| !is_nothing) {
            if lack.is_none() || out.is_written_directly() {
                out.publish()?;
                summary.written = Some((name.to_owned(), self.written));
            } else {
                left = format!("; {name} is as it was");
            }
        }
        let has_rows = self.rows.is_some();
        if let Some(rows) = self.rows.take() {
            let end = rows.end(summary, seen);
            self.stdout.write(end.as_bytes())?;
            self.stdout.flush()?;
        }
        // Why there was nothing was told, or is told below.
        let all = summary.scored() + seen.bad + seen.without_conversation;
        if !self.messages.is_quiet() && all > 0 {
            let figures = summary.render(seen);
            match has_rows {
                true => self.messages.text(&figures),
                false => Output::print(&figures)?,
            }
        }
        if is_nothing && has_file {
            self.messages
                .failure("nothing was scored, so no file was written");
        } else if let Some(lack) = lack {
            // Unreadable inputs were named when they were met.
            if seen.unread == 0 || !left.is_empty() {
                self.messages.failure(format!("{lack}{left}"));
            }
        } else if is_nothing && seen.bad == 0 {
            self.messages.warning(seen.why_nothing());
        }
        Ok(match is_nothing && has_file {
            _ if self.stop.is_interrupted() => Exit::Interrupted,
            true => Exit::File,
            false => seen.exit(),
        })
    }
}

/// Returns a trace, in JSON on a line, with its score, why it was chosen, and with `explains` the parts of its score.
fn with_score(mut trace: Value, scored: &Scored, explains: bool, selection: Option<&Value>) -> String {
    if let Some(metadata) = metadata_of(&mut trace) {
        metadata.insert("quality_score", scored.breakdown.score);
        // That of an earlier score would stay beside this one.
        metadata.remove("score_breakdown");
        if explains {
            metadata.insert("score_breakdown", value_of(&scored.breakdown));
        }
        if let Some(selection) = selection {
            metadata.insert("selection", selection.clone());
        }
    }
    trace.to_json() + "\n"
}
