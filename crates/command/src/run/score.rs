//! From the records of the inputs to rows, traces with their scores and figures.

use std::{
    io::IsTerminal,
    ops::ControlFlow,
    sync::{
        Arc,
        mpsc::{Receiver, TryRecvError, sync_channel},
    },
    thread,
};

use knowledgepulse_clean::clean_pii;
use knowledgepulse_error::guarded;
use knowledgepulse_index::memory::Basis;
use knowledgepulse_json::{Text, Value};

use super::{Output, Run};
use crate::{
    breakdown::value_of,
    error::{Failure, Result},
    file_identity::total_size,
    host::NotScored,
    pieces::{Finished, Piece, Pipeline, Prepared, Scoring, Work},
    reading::{Event, Reading},
    scored::{Judged, Place},
    splice::set_metadata,
    values::IntoValue,
};

/// How many batches of records may wait to be scored.
const MOST_WAITING_BATCHES: usize = 4;

impl Run<'_> {
    /// Writes to standard output. Without files to write, the results reach no one once the reader is gone.
    pub(super) fn print(&mut self, text: &[u8]) -> Result<()> {
        if !self.stdout.write(text)? && self.options.outputs().next().is_none() {
            self.stop.end_reading();
        }
        Ok(())
    }

    pub(super) fn score(&mut self, pipeline: &mut Pipeline) -> Result<()> {
        let options = &self.options;
        let shows_rows = self.rows.is_some() && self.ranking.is_none() && std::io::stdout().is_terminal();
        // Rows that scroll by show the progress themselves.
        if options.progress && !options.quiet && !shows_rows {
            self.messages.start_progress(total_size(&options.sources));
        }
        self.summary.begin();
        if cfg!(target_family = "wasm") {
            self.score_on_this_thread(pipeline)?;
        } else {
            let events = self.read(pipeline)?;
            while let Some(event) = self.next_event(&events, pipeline)? {
                if self.take(event, pipeline)?.is_break() {
                    break;
                }
            }
        }
        while self.settle(pipeline)? {}
        self.bad_lines.end(&self.messages);
        self.messages.on_all_done();
        Ok(())
    }

    /// Scores the records as they are read, if there are no threads.
    fn score_on_this_thread(&mut self, pipeline: &mut Pipeline) -> Result<()> {
        let mut result = Ok(());
        let reading = self.reading(pipeline);
        let _ = reading.run(&mut |event| {
            self.take(event, pipeline).unwrap_or_else(|failure| {
                result = Err(failure);
                ControlFlow::Break(())
            })
        });
        result
    }

    fn reading(&self, pipeline: &Pipeline) -> Reading {
        Reading {
            sources: self.options.sources.clone(),
            format: self.options.from,
            map: self.map.clone(),
            given: self.options.given.clone(),
            messages: self.messages.clone(),
            preparation: Arc::new(pipeline.preparation()),
        }
    }

    /// Handles an event of reading. Returns whether more events are wanted.
    fn take(&mut self, event: Event, pipeline: &mut Pipeline) -> Result<ControlFlow<()>> {
        match event {
            Event::Begin(name) => self.source = name,
            Event::Items(items) => self.begin(items, pipeline)?,
            Event::Failed(reason) => {
                self.unread += 1;
                let source = &self.source;
                self.messages.failure(format!("cannot read {source}: {reason}"));
            }
            Event::End | Event::Interrupted => return Ok(ControlFlow::Break(())),
        }
        Ok(self.stop.flow())
    }

    /// Returns the reading thread's next event, and finishes records until then. `None` if the run is to end.
    fn next_event(&mut self, events: &Receiver<Event>, pipeline: &mut Pipeline) -> Result<Option<Event>> {
        while !self.stop.is_set() {
            match events.try_recv() {
                Ok(event) => return Ok(Some(event)),
                Err(TryRecvError::Disconnected) => break,
                Err(TryRecvError::Empty) => {}
            }
            if !self.settle(pipeline)? {
                self.stdout.flush()?;
                return Ok(events.recv().ok());
            }
        }
        Ok(None)
    }

    /// Reads the inputs on another thread.
    fn read(&self, pipeline: &Pipeline) -> Result<Receiver<Event>> {
        let (sender, receiver) = sync_channel(MOST_WAITING_BATCHES);
        self.stop.wakes(sender.clone());
        let reading = self.reading(pipeline);
        thread::Builder::new()
            .name("kp-score-reading".into())
            .spawn(move || {
                // The receiver is gone when nothing more is wanted.
                let mut send = |event| match sender.send(event) {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(_) => ControlFlow::Break(()),
                };
                if let Err(panic) = guarded(|| Ok(reading.run(&mut send))) {
                    let _ = send(Event::Failed(panic.to_string()));
                    let _ = send(Event::End);
                }
            })
            .map_err(|error| Failure::file(format!("no thread to read on: {error}")))?;
        Ok(receiver)
    }

    fn begin(&mut self, items: Vec<Prepared>, pipeline: &mut Pipeline) -> Result<()> {
        for prepared in items {
            // Interrupted, the input may end in the middle of a trace.
            if self.stop.is_set() {
                break;
            }
            let place = prepared.place(&self.source);
            let mut next = (place, prepared);
            while let Some(repeated) = pipeline.begin(next.0, next.1) {
                next = repeated;
                self.settle(pipeline)?;
            }
            while pipeline.is_full() {
                self.settle(pipeline)?;
            }
        }
        Ok(())
    }

    /// Finishes the record whose turn it is; returns whether there was one.
    fn settle(&mut self, pipeline: &mut Pipeline) -> Result<bool> {
        if pipeline.is_next_waiting() {
            self.stdout.flush()?;
        }
        let Some(Piece { size, place, work }) = pipeline.next() else {
            return Ok(false);
        };
        self.messages.on_done(size);
        match work {
            Work::Known => self.summary.counts.known_traces += 1,
            Work::Wrong(reason) => self.add_bad(&place, &reason),
            Work::WithoutConversation(reason) => {
                self.summary.counts.without_conversation += 1;
                if self.options.verbose {
                    self.messages.note_at(&place, &self.cleaned(&reason));
                }
            }
            Work::Scoring(scoring) => self.settle_scoring(place, *scoring, pipeline)?,
        }
        Ok(true)
    }

    fn settle_scoring(&mut self, place: Place, scoring: Scoring, pipeline: &Pipeline) -> Result<()> {
        let Finished {
            outcome,
            about,
            text,
            redactions,
            to_review,
            candidate,
            recorded,
        } = scoring.finish();
        if let Some(warning) = pipeline.engine.take_warning() {
            let reason = warning.reason;
            self.messages.warning(format!(
                "The embedder does not work, so traces are scored with a novelty of 0.5: {reason}"
            ));
        }
        let mut breakdown = match outcome {
            Ok(breakdown) => breakdown,
            Err(NotScored::Trace(reason)) => {
                self.add_bad(&place, &reason.into());
                return Ok(());
            }
            Err(NotScored::Store(reason)) => {
                // The run cannot go on without its store; the scores so far are still written.
                let failure = format!("{reason}: the rest was not scored");
                self.store_failure.get_or_insert(failure);
                self.stop.end_reading();
                return Ok(());
            }
        };
        if !pipeline.explains
            && let Some(nearest) = &mut breakdown.novelty.nearest
        {
            nearest.words = None;
        }
        self.summary.add_redactions(&redactions);
        self.review.add_trace(&place, to_review);
        if !matches!(breakdown.novelty.basis, Basis::Given | Basis::NoEmbedder) {
            self.added += 1;
        }
        let (scored, facts) = about.scored(place, breakdown);
        if let (Some(choosing), Some(candidate)) = (&mut self.choosing, candidate) {
            choosing.add(&scored, facts, candidate)?;
            if let (Some(_), Some(nearest)) = (&pipeline.store, &scored.breakdown.novelty.nearest) {
                choosing.set_covered(nearest.similarity);
            }
        }
        match &mut self.ranking {
            Some(ranking) => {
                let record = Value::from(vec![scored.to_value(), text.into(), recorded.into_value()]);
                ranking.add(scored.breakdown.score, record.to_json().as_bytes())
            }
            None => {
                let kept = scored.breakdown.score >= self.threshold;
                let judged = Judged {
                    scored,
                    kept,
                    selection: None,
                };
                self.record(&judged, &text)?;
                self.write_trace(&judged, &text)
            }
        }
    }

    /// Counts a record that makes no trace, and names it unless there were many.
    fn add_bad(&mut self, place: &Place, reason: &Text) {
        let reason = self.cleaned(reason);
        self.summary.counts.bad += 1;
        self.bad_lines
            .add(place, &reason, self.options.verbose, &self.messages);
        if let Some(report) = &mut self.report {
            report.add_error(place, &reason);
        }
    }

    /// Returns a reason as it may be shown: it may name properties.
    fn cleaned(&self, reason: &Text) -> Text {
        let Some(cleaning) = self.options.clean else {
            return reason.clone();
        };
        let units: Vec<u16> = reason.units().collect();
        let (cleaned, _) = clean_pii(&units, cleaning.options());
        cleaned.map_or_else(|| reason.clone(), |units| Text::from_units(&units))
    }

    /// Counts a trace, and shows it unless it waits for its rank.
    pub(super) fn record(&mut self, judged: &Judged, text: &str) -> Result<()> {
        if judged.scored.breakdown.novelty.basis == Basis::Given {
            self.summary.counts.known_traces += 1;
        }
        if let Some(report) = &mut self.report {
            report.add(&judged.scored, text);
        }
        self.summary.add(judged);
        if !self.unused_profiles.is_empty() {
            let domain = judged.scored.domain.to_string_lossy();
            self.unused_profiles.retain(|unused| *unused != domain);
        }
        if let Some(rows) = &mut self.rows {
            let row = rows.row(judged);
            self.print(row.as_bytes())?;
        }
        Ok(())
    }

    /// Writes a trace to the file that it belongs to.
    pub(super) fn write_trace(&mut self, judged: &Judged, text: &str) -> Result<()> {
        let is_kept = !self.options.splits || judged.kept;
        let output = if is_kept {
            &mut self.outputs.out
        } else {
            &mut self.outputs.dropped
        };
        let Some(Output { file, .. }) = output else {
            return Ok(());
        };
        let breakdown = &judged.scored.breakdown;
        // Without one, that of an earlier score would stay beside this one.
        let explanation = self.options.explain.then(|| value_of(breakdown));
        let mut values = vec![
            ("quality_score", Some(breakdown.score.into())),
            ("score_breakdown", explanation),
        ];
        if judged.selection.is_some() {
            values.push(("selection", judged.selection.clone()));
        }
        let mut line = set_metadata(text, &values);
        line.push('\n');
        file.traces = file.traces.map(|traces| traces + 1);
        file.write(line.as_bytes())
    }
}
