//! Prepares traces on all cores, and has them scored by the engine: a batch at a time, begun and finished in order.

pub mod scored;

use std::sync::{
    Arc,
    mpsc::{Receiver, channel},
};

use knowledgepulse_embed::sufficiency::Sufficiency;
use knowledgepulse_formats::{FormatName, reader::of_no_format};
use knowledgepulse_index::{memory::Memory, method::Method};
use knowledgepulse_json::{Text, Value};
use knowledgepulse_score::{
    ScoreInput, Scorer,
    engine::{Comparable, ComparedScore, Status},
    select::{SelectOutcome, Unfit},
    weights::Profiles,
};
use knowledgepulse_share::{SessionNames, begin};
use knowledgepulse_trace::{
    label::Label,
    reading::{self, Texts},
};

use crate::{
    Context, Failure, Inputs, Item, Scored, Seen, State, TraceInfo, agent_of, choose::labels::ids_of,
    read::read,
};

/// Loads the model, if traces are compared by it.
///
/// # Errors
/// If there is none, with the way out.
pub(crate) fn load_embedder(
    method: Method,
    Context { host, messages, .. }: Context,
) -> crate::error::Result<Status> {
    if method == Method::Lexical {
        return Ok(Status::default());
    }
    host.configure();
    let (sender, receiver) = channel();
    host.engine()
        .status(Box::new(move |status| drop(sender.send(status))));
    let status = receiver.recv().unwrap_or_default();
    if let Some(failure) = &status.failure {
        let (method, reason) = (method.name(), &failure.reason);
        return Err(Failure::file(format!(
            "--novelty {method} needs the model, and lexical needs none: {reason}"
        )));
    }
    if messages.is_verbose() {
        for (name, path) in [
            ("model", &status.model_directory),
            ("ONNX Runtime", &status.runtime_path),
        ] {
            if let Some(path) = path {
                messages.note(format!("{name}: {}", path.display()));
            }
        }
    }
    Ok(status)
}

/// How traces are scored.
pub(crate) struct Scoring<'h> {
    pub run: Context<'h>,
    pub scorer: Arc<Scorer>,
    /// Whether traces are written.
    pub writes: bool,
    /// Whether the words that a novelty rests on are shown.
    pub explains: bool,
}

/// What is needed of a trace to choose a set, beside its score.
pub(crate) struct Candidate {
    pub outcome: SelectOutcome,
    pub unfit: Option<Unfit>,
    /// The ids that its format gave, beside that of the trace.
    pub ids: Vec<Text>,
    /// By what a set that was shared knows its session.
    pub names: SessionNames,
    /// Its key in a memory.
    pub label: Option<Label>,
    /// It itself, if it is written.
    pub trace: Value,
    /// Its words, and its embedding where that is compared.
    pub compared: Option<Comparable>,
}

/// A trace that is to be scored.
type Prepared = Box<(TraceInfo, Candidate, ScoreInput)>;

/// Takes a scored trace, in the order of the input.
pub(crate) type OnScored<'t> = dyn FnMut(Scored, Candidate) -> crate::error::Result<()> + 't;

/// Reads inputs and scores their traces, which are prepared on all cores. The engine has a batch at a time, begun and finished in order.
///
/// # Errors
/// Those of `on_scored`.
pub(crate) fn score(
    inputs: &Inputs,
    scoring: &Scoring,
    on_scored: &mut OnScored,
) -> crate::error::Result<Seen> {
    let prepare = |format, about, trace| prepared(format, about, trace, scoring);
    let mut take = |items: Vec<Item<Prepared>>, seen: &mut Seen| {
        let begun = items.into_iter().filter_map(|item| {
            let State::Read(prepared) = item.state else {
                return None;
            };
            let (about, candidate, input) = *prepared;
            let reply = begin(
                scoring.run.host.engine(),
                &scoring.scorer,
                input,
                scoring.explains,
            );
            Some((item.place, about, candidate, reply))
        });
        let begun: Vec<_> = begun.collect();
        for (place, about, mut candidate, reply) in begun {
            match scoring.wait(&reply) {
                Ok((breakdown, compared)) => {
                    candidate.compared = compared;
                    let scored = Scored {
                        place,
                        about,
                        breakdown,
                        text: 0,
                    };
                    on_scored(scored, candidate)?;
                }
                Err(reason) => seen.add_bad(&place, &reason.into(), scoring.run.messages),
            }
        }
        Ok(())
    };
    read(inputs, &prepare, &mut take, scoring.run)
}

impl<'h> Scoring<'h> {
    /// Returns how traces are scored beside a memory, which remembers them.
    pub(crate) fn beside(memory: Memory, run: Context<'h>, writes: bool, explains: bool) -> Self {
        let scorer = Arc::new(Scorer {
            memory: Some(memory),
            profiles: Profiles::default(),
        });
        Self {
            run,
            scorer,
            writes,
            explains,
        }
    }

    /// Waits for the score of a trace, or the reason why it has none.
    fn wait(
        &self,
        reply: &Receiver<knowledgepulse_error::Result<ComparedScore>>,
    ) -> Result<ComparedScore, String> {
        let received = reply.recv().ok();
        if let Some(warning) = self.run.host.engine().take_warning() {
            let reason = warning.reason;
            self.run.messages.warning(format!(
                "the embedder does not work, so traces are scored with a novelty of 0.5: {reason}"
            ));
        }
        let lost = || Err("the score was lost: this is a bug, please report it".into());
        received.map_or_else(lost, |scored| scored.map_err(|error| error.to_string()))
    }
}

/// Prepares a trace on any core: reads it, with the text that a comparison needs, and its words.
fn prepared(
    format: Option<FormatName>,
    about: TraceInfo,
    value: Value,
    scoring: &Scoring,
) -> Result<Prepared, Text> {
    let mut sufficiency = Sufficiency::default();
    let mut needed = |units: &[u16], is_whole| sufficiency.needed(units, is_whole);
    let texts = match scoring.scorer.memory.as_ref().map(Memory::method) {
        None => Texts::None,
        Some(Method::Prefix) => Texts::Needed(&mut needed),
        Some(_) => Texts::Whole,
    };
    let trace = reading::read(Some(&value), texts).map_err(|error| match value.as_object() {
        // The user may have meant another format.
        Some(_) if format.is_none() => Text::from(format!("{error}, and it is {}", of_no_format(&value))),
        _ => error.to_string().into(),
    })?;
    let outcome = SelectOutcome::of(&trace, about.success.is_some());
    let outcome = outcome.of_agent(agent_of(&value).unwrap_or_default());
    let unfit = Unfit::of(&trace);
    let input = scoring.scorer.input_of(trace).with_words(scoring.explains);
    let candidate = Candidate {
        outcome,
        unfit,
        ids: ids_of(&value),
        names: SessionNames::of(&value),
        label: input.label.clone(),
        trace: if scoring.writes { value } else { Value::Null },
        compared: None,
    };
    Ok(Box::new((about, candidate, input)))
}
