//! Where the results of a run go: a table or rows on standard output, the files of `--out` and `--report`, and the figures.

use knowledgepulse_json::Value;

use super::metadata::set_metadata;
use crate::{
    error::{Exit, Result},
    files::{file_identity::Output, output_file::StandardOutput, outputs::Outputs, stop::Stop},
    read::Seen,
    score::scored::Scored,
    show::{
        breakdown::value_of,
        messages::Messages,
        rows::{Format, Rows, explanation},
        summary::{RunInfo, Summary, Written},
        table::Table,
    },
};

/// What a command shows and writes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    /// The format on standard output; `None` for a table, or nothing beside a file.
    pub format: Option<Format>,
    /// Whether the parts of each score are shown and written.
    pub explains: bool,
    pub out: Option<&'a str>,
    pub report: Option<&'a str>,
}

impl<'a> Wanted<'a> {
    /// Returns the files with their options.
    pub(crate) fn files(&self) -> Vec<Output<'a>> {
        let files = [("out", self.out), ("report", self.report)];
        files
            .into_iter()
            .filter_map(|(name, file)| Some((name, file?)))
            .collect()
    }

    /// Returns the format on standard output; `None` for nothing.
    pub(crate) fn format(&self) -> Option<Format> {
        self.format.or(self.files().is_empty().then_some(Format::Table))
    }
}

/// The results of a run, while it goes on.
pub(crate) struct Results<'r> {
    rows: Option<Rows>,
    explains: bool,
    table: Option<Table>,
    pub outputs: Outputs,
    pub stdout: StandardOutput,
    messages: &'r Messages,
    stop: &'r Stop,
}

impl<'r> Results<'r> {
    /// Opens the files.
    pub(crate) fn open(wanted: Wanted, table: Table, messages: &'r Messages, stop: &'r Stop) -> Result<Self> {
        let format = wanted.format();
        Ok(Self {
            rows: format.map(|format| Rows::new(format, wanted.explains)),
            explains: wanted.explains,
            table: (format == Some(Format::Table)).then_some(table),
            outputs: Outputs::open(&wanted.files())?,
            stdout: StandardOutput::new(),
            messages,
            stop,
        })
    }

    /// Writes what stands before the first row.
    pub(crate) fn begin(&mut self) -> Result<()> {
        let begin = self.rows.as_ref().map(Rows::begin);
        self.print(&begin.unwrap_or_default())
    }

    /// Shows and writes a trace; `selection` says why it was chosen, and `end` for whom it stands.
    pub(crate) fn add(
        &mut self,
        scored: &Scored,
        text: &str,
        selection: Option<&Value>,
        end: String,
    ) -> Result<()> {
        if let Some(table) = &mut self.table {
            let below = self.explains.then(|| explanation(&scored.breakdown));
            table.add(scored, end, below.unwrap_or_default());
        }
        let row = self.rows.as_mut().map(|rows| rows.row(scored, selection));
        self.print(&row.unwrap_or_default())?;
        if text.is_empty() || self.outputs.is_empty() {
            return Ok(());
        }
        self.outputs
            .write_trace(&with_score(text, scored, self.explains, selection))
    }

    /// Writes to standard output. Without anything else to write, results reach no one once the reader is gone.
    fn print(&mut self, text: &str) -> Result<()> {
        if !self.stdout.write(text.as_bytes())? && self.outputs.is_empty() {
            self.stop.end_reading();
        }
        Ok(())
    }

    /// Completes the files, unless the run is incomplete. Returns the files that were written.
    pub(crate) fn publish(&mut self, summary: &Summary, is_complete: bool) -> Result<Vec<Written>> {
        if summary.scored() == 0 {
            return Ok(Vec::new());
        }
        self.outputs.publish(is_complete)
    }

    /// Tells the figures, and why the run is not as it should be: `lack` says why it has not seen all of its input. Returns the exit code.
    pub(crate) fn finish(
        mut self,
        summary: &Summary,
        seen: &Seen,
        about: &RunInfo,
        lack: Option<&str>,
    ) -> Result<Exit> {
        if let Some(table) = self.table.take() {
            let table = table.render(&summary.sorted_scores());
            self.stdout.write(table.as_bytes())?;
        }
        if let Some(rows) = &self.rows {
            let end = rows.end(|| summary.to_value(seen, about));
            self.stdout.write(end.as_bytes())?;
            self.stdout.flush()?;
        }
        // Why there was nothing was told, or is told below.
        let all = summary.scored() + seen.bad + seen.without_conversation;
        if !self.messages.is_quiet() && all > 0 {
            let figures = summary.render(seen, about);
            match self.rows {
                Some(_) => self.messages.text(&figures),
                None => {
                    self.stdout.write(figures.as_bytes())?;
                    self.stdout.flush()?;
                }
            }
        }
        Ok(self.conclude(summary, seen, lack))
    }

    fn conclude(&self, summary: &Summary, seen: &Seen, lack: Option<&str>) -> Exit {
        let is_nothing = summary.scored() == 0;
        let lacks_files = is_nothing && !self.outputs.is_empty();
        if lacks_files {
            self.messages
                .failure("nothing was scored, so no file was written");
        } else if let Some(lack) = lack {
            let left = self.outputs.left();
            // Unreadable inputs were named when they were met.
            if seen.unread == 0 || !left.is_empty() {
                self.messages.failure(format!("{lack}{left}"));
            }
        } else if is_nothing && seen.bad == 0 {
            self.messages.warning(seen.why_nothing());
        }
        match lack {
            _ if self.stop.is_interrupted() => Exit::Interrupted,
            Some(_) => Exit::File,
            None if lacks_files => Exit::File,
            None if seen.bad > 0 => Exit::BadLines,
            None => Exit::Ok,
        }
    }
}

/// Returns a trace, in JSON on a line, with its score, why it was chosen, and with `explains` the parts of its score.
fn with_score(text: &str, scored: &Scored, explains: bool, selection: Option<&Value>) -> String {
    let breakdown = &scored.breakdown;
    // Without one, that of an earlier score would stay beside this one.
    let explanation = explains.then(|| value_of(breakdown));
    let mut values = vec![
        ("quality_score", Some(breakdown.score.into())),
        ("score_breakdown", explanation),
    ];
    values.extend(selection.map(|selection| ("selection", Some(selection.clone()))));
    set_metadata(text, &values)
}
