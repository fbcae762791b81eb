//! Finishes a run: writes files, prints figures, and reports failures.

use std::io::Read;
use std::mem;

use knowledgepulse_formats::date;
use knowledgepulse_json::{Value, parse};

use super::{Output, Run};
use crate::{
    choosing::Choosing,
    compare::check_mean,
    domains::{built_in, closest_to},
    error::{Exit, Failure, Result},
    file_identity::metadata_of,
    host::NotScored,
    options::{KnownTraces, name_of},
    pieces::Pipeline,
    ranking::Ranking,
    report,
    scored::{Judged, Scored},
    summary::Coverage,
    summary::{About, Figures, Written, render_summary},
};

/// Why a run is not complete that could not open or read an input.
const UNREAD: &str = "not all of the input could be read";

impl Run<'_> {
    /// Finishes the traces that waited until the best were known.
    fn record_best(&mut self) -> Result<()> {
        let Some(ranking) = self.ranking.take() else {
            return Ok(());
        };
        if let Some(choosing) = self.choosing.take() {
            return self.record_chosen(ranking, choosing);
        }
        let Some(top) = self.options.top else {
            return Ok(());
        };
        let mut best = ranking.finish(top)?;
        self.threshold = best.threshold;
        if let Some(report) = &mut self.report {
            report.set_threshold(best.threshold);
        }
        // Their rows come below, in the order of their ranks.
        let rows = self.rows.take();
        best.each(|record, kept| {
            let (judged, text, _) = read_record(record, kept)?;
            self.record(&judged, &text)?;
            self.write_trace(&judged, &text)
        })?;
        let Some(mut rows) = rows else { return Ok(()) };
        self.messages.stop_progress();
        best.best(|record| {
            let (judged, ..) = read_record(record, true)?;
            let row = rows.row(&judged);
            self.print(row.as_bytes())
        })?;
        self.rows = Some(rows);
        Ok(())
    }

    /// Chooses a set of the waiting traces, and writes it in the order of its ranks.
    fn record_chosen(&mut self, ranking: Ranking, mut choosing: Choosing) -> Result<()> {
        let counts = &self.summary.counts;
        // What else the labels may belong to: the rest of the input, bad lines, and traces that were skipped.
        let is_complete = self.why_incomplete().is_none() && counts.bad + counts.known_traces == 0;
        choosing.check_labels(is_complete && !self.options.keep_going, &self.messages)?;
        let selection = choosing.choose(&self.messages, &self.stop)?;
        let mut described = choosing.describe(&selection);
        if let Some(report) = &mut self.report {
            report.set_selection(&selection);
        }
        self.coverage = Some(Coverage::of(&selection));
        let order: Vec<_> = selection.chosen.iter().map(|chosen| chosen.index).collect();
        let mut chosen = ranking.finish_with(order.clone())?;
        // Their rows come below.
        let rows = self.rows.take();
        let mut position = 0;
        chosen.each(|record, kept| {
            let (mut judged, text, _) = read_record(record, kept)?;
            self.record(&judged, &text)?;
            if !kept {
                let selection = mem::take(&mut described[position]);
                // Traces outside of the sample have no entry.
                judged.selection = (!selection.is_null()).then_some(selection);
                self.write_trace(&judged, &text)?;
            }
            position += 1;
            Ok(())
        })?;
        self.rows = rows;
        self.messages.stop_progress();
        let mut order = order.into_iter();
        chosen.best(|record| {
            let (mut judged, text, recorded) = read_record(record, true)?;
            self.to_share.extend(recorded);
            if let Some(position) = order.next() {
                judged.selection = Some(mem::take(&mut described[position]));
                if let (Some(memory), Some(_)) = (&self.memory, &self.options.memory) {
                    choosing.share(position, judged.scored.breakdown.dimensions.novelty, memory)?;
                }
            }
            if let Some(rows) = &mut self.rows {
                let row = rows.row(&judged);
                self.print(row.as_bytes())?;
            }
            self.write_trace(&judged, &text)
        })?;
        self.added = selection.chosen.len() as u64;
        Ok(())
    }

    pub(super) fn finish(&mut self, pipeline: &Pipeline) -> Result<Exit> {
        self.record_best()?;
        let lack = self.why_incomplete();
        let keep_going = self.options.keep_going;
        let problem = self.why_not_write(if keep_going { None } else { lack.as_deref() });
        let is_in_place = lack.is_none() || keep_going;
        let written = match problem {
            None => self.write(is_in_place, pipeline)?,
            Some(_) => Vec::new(),
        };
        self.measure_memory(pipeline);
        let figures = self.figures(written);
        self.messages.stop_progress();
        self.print_figures(&figures)?;
        self.stdout.flush()?;
        if self.options.clean.is_some() && figures.scored > 0 {
            self.review.tell(&self.messages);
        }
        if figures.scored > 0 {
            self.warn_of_no_effect(&figures);
        }
        self.warn_of_nothing(&lack);
        if let Some(problem) = &problem {
            self.messages.failure(problem.as_str());
        }
        if let Some(lack) = &lack {
            let left = match problem {
                None => self.what_became(&figures.about.written),
                Some(_) => String::new(),
            };
            // Unreadable inputs were named when they were met.
            if lack != UNREAD || !left.is_empty() {
                self.messages.failure(format!("{lack}{left}"));
            }
        }
        if self.stop.is_interrupted() && self.store_failure.is_none() {
            return Ok(Exit::Interrupted);
        }
        if lack.is_some() || problem.is_some() {
            return Ok(Exit::File);
        }
        let check = check_mean(&self.options, figures.mean, &self.messages);
        Ok(match check {
            Exit::Ok if self.summary.counts.bad > 0 => Exit::BadLines,
            check => check,
        })
    }

    fn print_figures(&mut self, figures: &Figures) -> Result<()> {
        if let Some(rows) = &self.rows {
            let end = rows.end(&figures.to_value());
            self.stdout.write(end.as_bytes())?;
        }
        let summary = &self.summary;
        let seen = figures.scored
            + summary.counts.bad
            + summary.counts.known_traces
            + summary.counts.without_conversation;
        // Why there was nothing is told below, or was told.
        if self.options.quiet || seen == 0 {
            return Ok(());
        }
        let text = render_summary(figures, self.options.splits, self.options.known);
        if self.rows.is_none() {
            return self.stdout.write(text.as_bytes()).map(drop);
        }
        // Where both go to a terminal, the summary comes below the rows.
        self.stdout.flush()?;
        self.messages.text(&text);
        Ok(())
    }

    /// Why the run has not seen all of its input; `None` if it has.
    fn why_incomplete(&self) -> Option<String> {
        if let Some(failure) = &self.store_failure {
            return Some(failure.clone());
        }
        if self.stop.is_interrupted() {
            return Some("interrupted: the rest was not read".into());
        }
        (self.unread > 0).then(|| UNREAD.into())
    }

    /// Why no file must be replaced, neither the memory, which would not fit the traces that stay without their scores; `None` if
    /// there is no reason. `lack` is why results go to other files anyway.
    fn why_not_write(&self, lack: Option<&str>) -> Option<String> {
        let summary = &self.summary;
        if summary.scored() == 0 {
            // A memory alone is as it should be, and so are files whose traces are all known.
            let is_complete = self.why_incomplete().is_none();
            let is_right =
                self.outputs.all().next().is_none() || is_complete && summary.counts.known_traces > 0;
            return (!is_right).then(|| "nothing was scored, so no file was written".into());
        }
        let (replaced, out) = (self.replaced.as_ref()?, self.options.out.as_ref()?);
        if lack.is_some() {
            return None;
        }
        let now = metadata_of(out);
        let is_unchanged = now.is_some_and(|now| {
            now.len() == replaced.len() && now.modified().ok() == replaced.modified().ok()
        });
        let lost: Vec<_> = [
            (
                self.stop.is_interrupted() || self.store_failure.is_some(),
                "traces that were not read",
            ),
            (self.unread > 0, "parts that could not be read"),
            (summary.counts.bad > 0, "the bad lines"),
            (
                summary.counts.known_traces > 0 && self.options.known == KnownTraces::Skip,
                "the known traces (unless with --known score)",
            ),
            (
                summary.counts.converted + summary.counts.without_conversation > 0,
                "its traces in another format",
            ),
            (!is_unchanged, "lines that were written to it meanwhile"),
        ]
        .into_iter()
        .filter_map(|(is_lost, what)| is_lost.then_some(what))
        .collect();
        let lost = (!lost.is_empty()).then(|| lost.join(" and "))?;
        Some(format!(
            "{out} is left as it was, or it would lose {lost}; write to another file"
        ))
    }

    /// Replaces the outputs, then the memory. Of an incomplete run, writes the outputs beside their places, and no memory. Returns the
    /// files that were written.
    fn write(&mut self, is_in_place: bool, pipeline: &Pipeline) -> Result<Vec<Written>> {
        let scored = self.summary.scored();
        let mut written = Vec::new();
        if scored > 0 {
            self.write_report()?;
            // An output that may replace the input is published after the outputs with the rest of it.
            for output in self.outputs.all_mut().rev() {
                output.file.finish()?;
            }
            for Output { file, partial } in self.outputs.all_mut().rev() {
                let name = if is_in_place {
                    Some(file.name.clone())
                } else {
                    partial.clone()
                };
                if name.is_some() {
                    file.publish(is_in_place)?;
                }
                let traces = file.traces;
                written.extend(name.map(|file| Written { file, traces }));
            }
            written.reverse();
        }
        // Last: a later run would skip traces that the memory has and no file. Where nothing was scored, the bound may be a new one.
        if let (Some(file), Some(memory), true) = (&self.options.memory, &self.memory, is_in_place)
            && scored + self.summary.counts.known_traces > 0
        {
            memory.save(file)?;
            if let Some(about) = &mut self.memory_file {
                let after = memory.len() as u64;
                about.forgotten = Some((about.before + self.added).saturating_sub(after));
                about.after = Some(after);
            }
        }
        if is_in_place {
            self.share(pipeline)?;
        }
        Ok(written)
    }

    /// Adds the chosen traces to the store.
    fn share(&mut self, pipeline: &Pipeline) -> Result<()> {
        let Some(store) = &pipeline.store else {
            return Ok(());
        };
        let to_share = mem::take(&mut self.to_share);
        let all = to_share.len();
        for (shared, trace) in to_share.into_iter().enumerate() {
            store.explain(trace, true)().map_err(|error| {
                let (NotScored::Trace(reason) | NotScored::Store(reason)) = error;
                Failure::file(format!(
                    "{reason}: {shared} of {all} chosen traces joined the store"
                ))
            })?;
        }
        Ok(())
    }

    fn write_report(&mut self) -> Result<()> {
        let figures = self.figures(Vec::new());
        let (Some(report), Some(output)) = (&self.report, &mut self.outputs.report) else {
            return Ok(());
        };
        let page = report.render(
            &report::Run {
                finished_at: date::now(),
                seconds: figures.seconds,
                interrupted: self.stop.is_interrupted(),
                cleaned: self.options.clean.map(|_| figures.cleaned()),
            },
            &report_page(),
        );
        output.file.write(page?.as_bytes())
    }

    /// Finds out how many traces the memory holds: one that was not saved, as many as before.
    fn measure_memory(&mut self, pipeline: &Pipeline) {
        let Some(about) = &mut self.memory_file else {
            return;
        };
        about.after = match &pipeline.store {
            Some(store) => store.size(),
            None => about.after.or(Some(about.before)),
        };
    }

    fn figures(&self, written: Vec<Written>) -> Figures {
        self.summary.figures(About {
            threshold: self.threshold,
            top: self.options.top,
            coverage: self.coverage,
            clean: self.options.clean,
            interrupted: self.stop.is_interrupted(),
            embedder: self.embedder.clone(),
            memory: self.memory_file.clone(),
            written,
        })
    }

    /// Warns of options that were given and changed nothing of some traces, or of all.
    fn warn_of_no_effect(&self, figures: &Figures) {
        let given = &self.options.given;
        let names = [
            (given.success.is_some(), "--success"),
            (given.confidence.is_some(), "--confidence"),
            (given.domain.is_some(), "--domain"),
        ];
        let names: Vec<_> = names
            .into_iter()
            .filter_map(|(is_given, name)| is_given.then_some(name))
            .collect();
        let scored = figures.scored;
        if !names.is_empty() && figures.counts.converted < scored {
            let kept = scored - figures.counts.converted;
            self.messages.warning(format!(
                "{}: without effect on {kept} of {scored} traces, which are ReasoningTraces and keep their own values",
                names.join(", ")
            ));
        }
        let Some(file) = self
            .options
            .weights
            .as_ref()
            .filter(|_| !self.unused_profiles.is_empty())
        else {
            return;
        };
        let domains: Vec<_> = figures
            .domains
            .iter()
            .map(|domain| domain.domain.to_string_lossy())
            .collect();
        let unused: Vec<_> = self
            .unused_profiles
            .iter()
            .map(|unused| {
                let quoted = |name: &str| Value::from(name).to_json();
                let names = built_in().chain(domains.iter().map(|name| &**name));
                let closest =
                    closest_to(unused, names).map(|name| format!(" (did you mean {}?)", quoted(name)));
                format!("{}{}", quoted(unused), closest.unwrap_or_default())
            })
            .collect();
        let unused = unused.join(", ");
        self.messages.warning(format!(
            "{file} has weights for domains that no trace has: {unused}"
        ));
    }

    /// Warns of a run that had nothing to score.
    fn warn_of_nothing(&self, lack: &Option<String>) {
        let summary = &self.summary;
        if summary.scored() > 0 || lack.is_some() {
            return;
        }
        let files: Vec<_> = self
            .outputs
            .all()
            .map(|output| output.file.name.as_str())
            .collect();
        if summary.counts.known_traces > 0 && !files.is_empty() {
            self.messages.warning(format!(
                "all traces are known, so {}; --known score writes them with their earlier scores",
                as_before(&files)
            ));
        } else if summary.counts.known_traces == 0 && summary.counts.bad == 0 {
            let sources: Vec<_> = self
                .options
                .sources
                .iter()
                .map(|source| name_of(source))
                .collect();
            let sources = sources.join(", ");
            self.messages
                .warning(format!("there is no trace in {sources}; see kp-score --help"));
        }
    }

    /// Returns the message about the outputs of an incomplete run.
    fn what_became(&self, written: &[Written]) -> String {
        // A pipe or a device keeps the bytes that were written to it.
        let replaceable = self
            .outputs
            .all()
            .filter(|output| output.partial.as_ref() != Some(&output.file.name));
        let files: Vec<_> = replaceable
            .map(|output| output.file.name.as_str())
            .chain(self.options.memory.as_deref())
            .collect();
        if self.options.keep_going || files.is_empty() {
            return String::new();
        }
        let partial: Vec<_> = written.iter().map(|written| written.file.as_str()).collect();
        let result = match &partial[..] {
            [] => "there is no partial result".into(),
            partial => format!("what was scored is in {}", partial.join(", ")),
        };
        format!("; {result}, and {} (see --keep-going)", as_before(&files))
    }
}

/// Returns the page of the report, without its figures.
fn report_page() -> String {
    const COMPRESSED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/report.html.gz"));
    let mut page = String::new();
    // An invalid file is no page, and writing the report says so.
    drop(flate2::bufread::GzDecoder::new(COMPRESSED).read_to_string(&mut page));
    page
}

fn as_before(files: &[&str]) -> String {
    let are = if files.len() == 1 {
        "is as it was"
    } else {
        "are as they were"
    };
    format!("{} {are}", files.join(", "))
}

/// Reads back the traces that waited until the best were known.
fn read_record(record: &[u8], kept: bool) -> Result<(Judged, String, Option<String>)> {
    let read = || {
        let record = parse(record).ok()?;
        let [scored, text, recorded] = record.as_array()? else {
            return None;
        };
        let judged = Judged {
            scored: Scored::from_value(scored)?,
            kept,
            selection: None,
        };
        Some((
            judged,
            text.as_str()?.to_owned(),
            recorded.as_str().map(str::to_owned),
        ))
    };
    read().ok_or_else(|| Failure::file("a trace that waited for the best to be known came back damaged"))
}
