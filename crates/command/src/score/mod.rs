//! Prepares traces on all cores, and has them scored by the engine: a few at a time, begun and finished in order.

pub mod scored;

use std::{
    collections::VecDeque,
    path::PathBuf,
    sync::{
        Arc,
        mpsc::{Receiver, TryRecvError, channel},
    },
};

use knowledgepulse_embed::sufficiency::Sufficiency;
use knowledgepulse_formats::{
    date,
    reader::OfNoFormat,
    trace::{SESSION, known_of, project_of},
};
use knowledgepulse_index::{memory::Memory, method::Method};
use knowledgepulse_json::{Text, Value, cut};
use knowledgepulse_score::{
    Breakdown, ScoreInput, Scorer,
    engine::{Comparable, Engine, EngineKind, Request, Status},
    select::{SelectOutcome as Ending, Unfit},
};
use knowledgepulse_trace::{
    Trace,
    facts::facts_of,
    json::{self, Texts},
    label::Label,
};

use crate::{
    choose::labels::ids_of,
    error::Failure,
    filter::agent_of,
    host::Host,
    read::{Prepare, ReadTrace},
    score::scored::{Place, RunInfo, Scored, TraceInfo},
    show::messages::Messages,
};

/// The least number of traces in flight; with many cores, [`TRACES_PER_CORE`] for each.
const LEAST_TRACES: usize = 64;
const TRACES_PER_CORE: usize = 4;
const MOST_BYTES: u64 = 64 * 1024 * 1024;

/// The longest quotation of a trace in results and a report, in UTF-16 code units.
const EXCERPT_LENGTH: usize = 240;

/// Where a reader notes the agent of a trace.
const AGENT: [&str; 3] = ["metadata", "imported", "format"];

/// The facts about a trace by which a set is chosen.
pub(crate) struct Facts {
    pub outcome: Ending,
    pub unfit: Option<Unfit>,
    /// The ids that its format gave, beside that of the trace.
    pub ids: Vec<Text>,
    /// The log's name for its session.
    pub session: Option<Text>,
    /// When it began, as its trace has it.
    pub created_at: Option<Text>,
    /// Whether it is the session of a sub-agent.
    pub is_subagent: bool,
}

impl Facts {
    /// Reads the facts of a trace; `known` tells whether its record said how it ended.
    fn of(trace: &Trace, value: &Value, known: bool) -> Self {
        let agent = agent_of(value).unwrap_or_default();
        Self {
            outcome: Ending::of(trace, known && known_of(value).success).of_agent(agent),
            unfit: Unfit::of(trace),
            ids: ids_of(value),
            session: value
                .at(&["metadata", "imported", SESSION])
                .and_then(Value::as_text)
                .cloned(),
            created_at: value
                .at(&["metadata", "created_at"])
                .and_then(Value::as_text)
                .cloned(),
            is_subagent: value.at(&["metadata", "imported", "is_subagent"]) == Some(&true.into()),
        }
    }
}

/// Loads the model, if traces are compared by it.
///
/// # Errors
/// If there is none, with the way out.
pub(crate) fn load_embedder(
    method: Method,
    host: &dyn Host,
    messages: &Messages,
) -> crate::error::Result<Status> {
    if method == Method::Lexical {
        return Ok(Status::default());
    }
    host.configure()?;
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
        let path = |path: &Option<PathBuf>| {
            path.as_ref()
                .map_or("null".into(), |path| path.display().to_string())
        };
        messages.note(format!("model: {}", path(&status.model_directory)));
        let engine = match status.engine {
            Some(EngineKind::OnnxRuntime) => path(&status.runtime_path),
            _ => format!("built in, {}", status.kernel.as_deref().unwrap_or("null")),
        };
        messages.note(format!("engine: {engine}"));
    }
    Ok(status)
}

/// How traces are prepared for scoring.
pub(crate) struct Preparation {
    scorer: Arc<Scorer>,
    /// Whether the JSON of a trace is needed, because it is written.
    needs_text: bool,
    /// Whether the words that a novelty rests on are shown.
    explains: bool,
    /// When the run began: a trace whose time is not known gets that of its reading.
    began: String,
}

impl Preparation {
    /// Returns the function that prepares a trace on any core.
    pub(crate) fn prepare_with(
        scorer: &Arc<Scorer>,
        needs_text: bool,
        explains: bool,
    ) -> Arc<Prepare<Prepared>> {
        let preparation = Self {
            scorer: Arc::clone(scorer),
            needs_text,
            explains,
            began: date::now(),
        };
        Arc::new(move |trace: ReadTrace<'_>| preparation.prepare(trace))
    }

    fn prepare(&self, read: ReadTrace) -> Result<Prepared, Text> {
        let ReadTrace {
            format,
            known,
            value,
            text,
            foreign,
        } = read;
        let trace = self
            .read(&value)
            .map_err(|error| wrong(error.to_string(), foreign.as_ref()))?;
        let facts = Facts::of(&trace, &value, known.success);
        let agent = value.at(&AGENT).and_then(Value::as_text);
        let when = value.at(&["metadata", "created_at"]).and_then(Value::as_str);
        let steps = value.get("steps").and_then(Value::as_array);
        let about = TraceInfo {
            format,
            agent: agent.map_or_else(|| format.name().into(), |agent| cut(agent, EXCERPT_LENGTH).into()),
            project: project_of(&value).map(|name| cut(name, EXCERPT_LENGTH).into()),
            when: when
                .and_then(date::parse)
                .map(date::to_iso)
                .filter(|when| *when < self.began),
            steps: steps.map_or(0, |steps| steps.len() as u64),
            turns: facts.outcome.signs.turns as u64,
            facts: facts_of(&value),
            success: facts.outcome.success,
            has_confidence: known.confidence,
            id: value.get("id").and_then(Value::as_text).cloned(),
            objective: value
                .at(&["task", "objective"])
                .and_then(Value::as_text)
                .map(|objective| cut(objective, EXCERPT_LENGTH).into())
                .unwrap_or_default(),
            domain: trace.metadata.task_domain.as_deref().unwrap_or("default").into(),
            run: RunInfo::of(&value),
        };
        let text = self
            .needs_text
            .then(|| text.map_or_else(|| value.to_json(), str::to_owned));
        let input = self.scorer.input_of(trace).with_words(self.explains);
        let candidate = Candidate {
            foreign,
            label: input.label.clone(),
            about,
            facts,
            text: text.unwrap_or_default(),
        };
        Ok(Box::new((candidate, input)))
    }

    /// Reads a trace, and the text that a comparison needs.
    fn read(&self, value: &Value) -> knowledgepulse_error::Result<Trace> {
        let mut sufficiency = Sufficiency::default();
        let mut needed = |units: &[u16]| sufficiency.read(units);
        let texts = match self.scorer.memory.as_ref().map(Memory::method) {
            None => Texts::None,
            Some(Method::Prefix) => Texts::Needed(&mut needed),
            Some(_) => Texts::Whole,
        };
        json::read(value, texts)
    }
}

/// A trace that is to be scored.
pub(crate) type Prepared = Box<(Candidate, ScoreInput)>;

/// What is known of a trace before its score.
pub(crate) struct Candidate {
    /// The hint for a record of no known format: the user may have meant another one.
    foreign: Option<OfNoFormat>,
    /// Its key in a memory.
    pub label: Option<Label>,
    about: TraceInfo,
    facts: Facts,
    /// Its JSON, if that is needed.
    text: String,
}

/// A trace in flight.
struct InFlight {
    place: Place,
    size: u64,
    candidate: Candidate,
    reply: Receiver<Reply>,
}

/// A score, and the compared parts of its trace.
type Reply = (knowledgepulse_error::Result<Breakdown>, Option<Comparable>);

/// A trace that was scored, or not.
pub(crate) struct Finished {
    /// The trace with its score, or where it is, and why it has none.
    pub outcome: Result<Scored, (Place, Text)>,
    pub facts: Facts,
    pub text: String,
    /// Its key in a memory.
    pub label: Option<Label>,
    /// Its words, and its embedding where that is compared.
    pub compared: Option<Comparable>,
}

/// The traces in flight.
pub(crate) struct Scoring<'h> {
    engine: &'h Engine,
    pub scorer: Arc<Scorer>,
    /// Whether the words that a novelty rests on are shown.
    explains: bool,
    traces: VecDeque<InFlight>,
    most_traces: usize,
    bytes: u64,
}

impl<'h> Scoring<'h> {
    pub(crate) fn new(engine: &'h Engine, scorer: Scorer, explains: bool) -> Self {
        Self {
            engine,
            scorer: Arc::new(scorer),
            explains,
            traces: VecDeque::new(),
            most_traces: LEAST_TRACES.max(TRACES_PER_CORE * rayon::current_num_threads()),
            bytes: 0,
        }
    }

    /// Returns whether the next trace must wait until another one is finished.
    pub(crate) fn is_full(&self) -> bool {
        self.traces.len() >= self.most_traces || self.bytes > MOST_BYTES
    }

    /// Begins a trace.
    pub(crate) fn begin(&mut self, place: Place, size: u64, (candidate, input): (Candidate, ScoreInput)) {
        let reply = self.score(input);
        self.bytes += size;
        self.traces.push_back(InFlight {
            place,
            size,
            candidate,
            reply,
        });
    }

    fn score(&self, input: ScoreInput) -> Receiver<Reply> {
        let request = Request {
            input,
            memory: self.scorer.memory.clone(),
            remember: true,
            explained: self.explains,
            call: None,
        };
        let (sender, receiver) = channel();
        self.engine.score_and_keep(
            request,
            Box::new(move |scored| {
                let reply = match scored {
                    Ok((breakdown, compared)) => (Ok(breakdown), compared),
                    Err(error) => (Err(error), None),
                };
                // The receiver is gone only if the run has failed.
                drop(sender.send(reply));
            }),
        );
        receiver
    }

    /// Finishes the trace whose turn is next; `None` if none waits. Calls `wait` before it waits for a score.
    ///
    /// # Errors
    /// Those of `wait`.
    pub(crate) fn next(
        &mut self,
        messages: &Messages,
        wait: impl FnOnce() -> crate::error::Result<bool>,
    ) -> crate::error::Result<Option<Finished>> {
        let Some(InFlight {
            place,
            size,
            candidate,
            reply,
        }) = self.traces.pop_front()
        else {
            return Ok(None);
        };
        self.bytes -= size;
        let received = match reply.try_recv() {
            Err(TryRecvError::Empty) => {
                wait()?;
                reply.recv().ok()
            }
            received => received.ok(),
        };
        let (outcome, compared) = match received {
            Some((outcome, compared)) => (outcome.map_err(|error| error.to_string()), compared),
            None => (
                Err("the score was lost: this is a bug, please report it".into()),
                None,
            ),
        };
        messages.on_done();
        if let Some(warning) = self.engine.take_warning() {
            let reason = warning.reason;
            messages.warning(format!(
                "the embedder does not work, so traces are scored with a novelty of 0.5: {reason}"
            ));
        }
        let Candidate {
            foreign,
            label,
            about,
            facts,
            text,
        } = candidate;
        let outcome = match outcome {
            Ok(breakdown) => Ok(Scored {
                place,
                about,
                breakdown,
            }),
            Err(reason) => Err((place, wrong(reason, foreign.as_ref()))),
        };
        Ok(Some(Finished {
            outcome,
            facts,
            text,
            label,
            compared,
        }))
    }
}

/// Returns the problem of a trace, and the formats that the record could have meant.
fn wrong(reason: String, foreign: Option<&OfNoFormat>) -> Text {
    match foreign {
        Some(foreign) => format!("{reason}, and it is {foreign}").into(),
        None => reason.into(),
    }
}
