//! The report of traces that a page has.

use std::collections::HashSet;

use napi::Env;
use napi_derive::napi;

use knowledgepulse_command::{
    desk::{ReportOptions, Run, given::GivenTraces},
    scored::Place,
};
use knowledgepulse_error::Error;
use knowledgepulse_formats::{FormatName, Known, date};
use knowledgepulse_index::method::Method;

use crate::{
    engine::ENGINE,
    error::{Result, throw},
    formats::NativeKnown,
};

/// Where a record is: in which file, on which line from 1, and at which position in an array from 0.
#[napi(object, object_to_js = false, use_nullable = true)]
pub struct NativePlace {
    pub file: String,
    pub line: u32,
    pub index: Option<u32>,
}

impl From<NativePlace> for Place {
    fn from(place: NativePlace) -> Self {
        Self {
            source: place.file,
            line: place.line.into(),
            index: place.index.map(Into::into),
        }
    }
}

/// The traces of a report, which are scored as they are added.
#[napi]
pub struct NativeReport {
    traces: GivenTraces<'static>,
    method: Method,
}

#[napi]
impl NativeReport {
    /// Begins a report of traces that are compared by this method. `began` is when the page was opened, in ISO 8601.
    #[napi(constructor, catch_unwind)]
    pub fn new(env: &Env, method: String, began: String) -> Result<Self> {
        let method = Method::from_name(&method)
            .ok_or_else(|| throw(env, &Error::Internal(format!("there is no method {method:?}"))))?;
        Ok(Self {
            traces: GivenTraces::new(&ENGINE, method, began),
            method,
        })
    }

    /// Scores a trace of JSON. Returns whether it is valid; the report names an invalid one as an error.
    #[napi(catch_unwind)]
    #[allow(clippy::needless_pass_by_value)] // Values that JavaScript hands over are owned.
    pub fn add(
        &mut self,
        env: &Env,
        place: NativePlace,
        format: String,
        known: NativeKnown,
        trace: String,
    ) -> Result<bool> {
        let format = FormatName::from_name(&format)
            .ok_or_else(|| throw(env, &Error::Internal(format!("there is no format {format:?}"))))?;
        let known = Known {
            success: known.success,
            confidence: known.confidence,
        };
        Ok(self.traces.add(place.into(), format, known, &trace))
    }

    /// Adds a record that could not be read.
    #[napi(catch_unwind)]
    pub fn add_error(&mut self, place: NativePlace, message: String) {
        self.traces.add_error(place.into(), message.into());
    }

    /// Returns the figures as the page shows them: `Report` of report/data.d.ts in JSON, without a selection. The traces at the positions
    /// `chosen` come first.
    #[napi(catch_unwind)]
    pub fn figures(
        &self,
        sources: Vec<String>,
        dtype: Option<String>,
        seconds: f64,
        chosen: Vec<u32>,
    ) -> String {
        let options = ReportOptions {
            threshold: None,
            sources,
            novelty: self.method,
            dtype,
            version: env!("CARGO_PKG_VERSION").into(),
        };
        let chosen: HashSet<_> = chosen.into_iter().map(|at| at as usize).collect();
        let run = Run {
            finished_at: date::now(),
            seconds,
            interrupted: false,
        };
        self.traces.figures(options, &chosen, &run).to_json()
    }
}
