//! The report of traces that a page has read, which are scored as those of files are.

use std::{collections::HashSet, sync::Arc};

use knowledgepulse_formats::{FormatName, Known};
use knowledgepulse_index::method::Method;
use knowledgepulse_json::{Text, Value, parse_str};
use knowledgepulse_score::{Scorer, engine::Engine, weights::Profiles};

use super::{Report, ReportOptions, Run};
use crate::{
    choose::known::new_memory,
    read::{Prepare, ReadTrace},
    score::{
        Preparation, Prepared, Scoring,
        scored::{Place, Scored},
    },
    show::messages::Messages,
};

/// So many bytes of traces are kept for their steps; later traces are shown without.
const MOST_BYTES: usize = 100_000_000;

/// Traces that were scored, and records that could not be.
pub struct GivenTraces<'e> {
    scoring: Scoring<'e>,
    prepare: Arc<Prepare<Prepared>>,
    messages: Messages,
    /// When the page was opened: a trace whose time is not known gets that of its reading.
    began: String,
    traces: Vec<(Scored, String)>,
    bytes: usize,
    errors: Vec<(Place, Text)>,
}

impl<'e> GivenTraces<'e> {
    /// Returns no traces, which are compared by this method with a new memory. The page was opened at `began`, in ISO 8601.
    pub fn new(engine: &'e Engine, method: Method, began: String) -> Self {
        let scorer = Scorer {
            memory: Some(new_memory(method)),
            profiles: Profiles::default(),
        };
        let scoring = Scoring::new(engine, scorer, true);
        Self {
            prepare: Preparation::prepare_with(&scoring.scorer, true, true),
            scoring,
            messages: Messages::default(),
            began,
            traces: Vec::new(),
            bytes: 0,
            errors: Vec::new(),
        }
    }

    /// Scores a trace of JSON, and waits for its embedding if that is compared. `format` is the one that it was converted from, and `known`
    /// says which parts of its outcome its record told. Returns whether it is valid; an invalid one counts as an error.
    pub fn add(&mut self, place: Place, format: FormatName, known: Known, trace: &str) -> bool {
        match self.score(&place, format, known, trace) {
            Ok((mut scored, text)) => {
                scored.about.when = scored.about.when.filter(|when| *when < self.began);
                self.bytes += text.len();
                let text = if self.bytes > MOST_BYTES {
                    String::new()
                } else {
                    text
                };
                self.traces.push((scored, text));
                true
            }
            Err(reason) => {
                self.add_error(place, reason);
                false
            }
        }
    }

    fn score(
        &mut self,
        place: &Place,
        format: FormatName,
        known: Known,
        trace: &str,
    ) -> Result<(Scored, String), Text> {
        let value = parse_str(trace).map_err(|error| Text::from(error.to_string()))?;
        let prepared = (self.prepare)(ReadTrace {
            format,
            known,
            value,
            text: Some(trace),
            foreign: None,
        })?;
        self.scoring.begin(place.clone(), 0, *prepared);
        let next = self.scoring.next(&self.messages, || Ok(true));
        match next.map_err(|failure| Text::from(failure.message))? {
            Some(finished) => match finished.outcome {
                Ok(scored) => Ok((scored, finished.text)),
                Err((_, reason)) => Err(reason),
            },
            None => Err("the score was lost: this is a bug, please report it".into()),
        }
    }

    /// Adds a record that could not be read.
    pub fn add_error(&mut self, place: Place, reason: Text) {
        self.errors.push((place, reason));
    }

    /// Returns the figures of the report, in which the traces at `chosen` come first.
    pub fn figures(&self, options: ReportOptions, chosen: &HashSet<usize>, run: &Run) -> Value {
        let mut report = Report::new(options);
        for (place, reason) in &self.errors {
            report.add_error(place, reason);
        }
        for (at, (scored, text)) in self.traces.iter().enumerate() {
            report.add_standing(scored, text, u8::from(chosen.contains(&at)));
        }
        report.summary(run)
    }
}
