//! Processes the records of a run: a few at a time, begun in order and finished in order.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc,
        mpsc::{Sender, channel},
    },
};

use knowledgepulse_clean::{Redactions, clean_trace};
use knowledgepulse_embed::sufficiency::Sufficiency;
use knowledgepulse_error::Call;
use knowledgepulse_formats::{
    FormatName, Known,
    reader::{Content, Item, OfNoFormat, Unbuilt},
};
use knowledgepulse_index::{
    memory::{Memory, Novelty},
    method::Method,
};
use knowledgepulse_json::{Text, Value};
use knowledgepulse_score::{
    Scorer, Summary,
    engine::{Comparable, ComparedScore, Engine, Request},
};
use knowledgepulse_trace::{
    Trace,
    json::{self, Texts},
    label::Fingerprint,
};
use rayon::prelude::*;

use crate::{
    choosing::{Candidate, Facts},
    host::{NotScored, Outcome, Store},
    known::{KnownNovelties, Lookup},
    options::{Cleaning, KnownTraces},
    review,
    scored::{Place, Scored},
    text::cut,
};

/// The least number of records in flight; with many cores, [`PIECES_PER_CORE`] for each.
const LEAST_PIECES: usize = 64;
const PIECES_PER_CORE: usize = 4;
const MOST_BYTES: u64 = 64 * 1024 * 1024;

/// The longest quotation of a trace in results and a report, in UTF-16 code units.
const EXCERPT_LENGTH: usize = 240;

/// A record whose turn has not come.
pub(crate) struct Piece {
    /// Its size in the input, in bytes.
    pub size: u64,
    /// Where it is.
    pub place: Place,
    /// The state of the record.
    pub work: Work,
}

/// The state of a record.
pub(crate) enum Work {
    /// It is not of a conversation, for this reason.
    WithoutConversation(Text),
    /// The memory knows its trace.
    Known,
    /// It is wrong, for this reason.
    Wrong(Text),
    /// Its trace is being scored.
    Scoring(Box<Scoring>),
}

/// A trace that is being scored.
pub(crate) struct Scoring {
    outcome: Pending,
    fingerprint: Option<Fingerprint>,
    /// The hint for a record of no known format: the user may have meant another one.
    foreign: Option<OfNoFormat>,
    /// Its row in the results, without the score.
    pub about: About,
    /// Its text in JSON for the outputs; empty if nothing is written.
    pub text: String,
    /// The replacements, counted by type.
    pub redactions: Redactions,
    /// In how many places of the clean trace a person should look.
    pub to_review: u64,
    /// The candidate, if a set is chosen.
    pub candidate: Option<Candidate>,
    /// The trace as it was recorded, in JSON, if a store gets it when it is chosen.
    pub recorded: Option<String>,
}

/// The fields of a trace's row beside its score.
pub(crate) struct About {
    pub format: FormatName,
    pub known: Known,
    pub id: Option<Text>,
    pub objective: Text,
    pub domain: Text,
    pub success: bool,
    /// The facts by which a set is chosen.
    pub facts: Facts,
}

impl About {
    pub(crate) fn scored(self, place: Place, breakdown: knowledgepulse_score::Breakdown) -> (Scored, Facts) {
        let scored = Scored {
            place,
            format: self.format,
            known: self.known,
            id: self.id,
            objective: self.objective,
            domain: self.domain,
            success: self.success,
            breakdown,
        };
        (scored, self.facts)
    }
}

/// A score that may still be computed.
enum Pending {
    Ready(Box<Outcome>),
    Waiting(Box<dyn FnOnce() -> Outcome + Send>),
}

impl Scoring {
    /// Returns whether asking for the outcome would wait.
    pub(crate) fn is_waiting(&self) -> bool {
        matches!(self.outcome, Pending::Waiting(_))
    }
}

/// A record that was read, and cleaned where that is asked for.
pub(crate) struct Prepared {
    /// Its size in the input, in bytes.
    pub size: u64,
    /// The line on which it begins, from 1.
    pub line: Option<u64>,
    /// The position in the array that it is an element of, from 0.
    pub index: Option<u64>,
    /// The trace, or the verdict on a record without one.
    pub content: PreparedTrace,
}

/// A trace that is to be scored.
pub(crate) struct Unscored {
    /// Its id and fingerprint, if the memory may know it.
    fingerprint: Option<Fingerprint>,
    /// Its text as it was recorded, for a store.
    recorded: Option<String>,
    foreign: Option<OfNoFormat>,
    summary: Summary,
    about: About,
    text: String,
    redactions: Redactions,
    to_review: u64,
}

impl Prepared {
    /// Returns the format of its trace, or the verdict on a record without one.
    pub(crate) fn outcome(&self) -> std::result::Result<FormatName, &Work> {
        self.content.as_ref().map(|unscored| unscored.about.format)
    }

    /// Returns the fingerprint of its trace, if the memory may know it.
    fn fingerprint(&self) -> Option<Fingerprint> {
        self.content.as_ref().ok()?.fingerprint
    }

    /// Returns where it is in an input.
    pub(crate) fn place(&self, source: &str) -> Place {
        Place {
            source: source.to_owned(),
            line: self.line.unwrap_or_default(),
            index: self.index,
        }
    }
}

/// A record on its way to be prepared.
pub(crate) enum Unprepared {
    /// It was read from its input.
    Read(Unbuilt),
    /// It was prepared already.
    Prepared(Prepared),
}

/// A value of an input in the task that parsed it.
pub(crate) enum Taken {
    /// It was a trace by itself, of this format, and is prepared already.
    Trace(FormatName, PreparedTrace),
    /// Another value, its text, and its format.
    Other(Value, Option<String>, Option<FormatName>),
}

/// A trace that is to be scored, or the verdict on a record without one.
pub(crate) type PreparedTrace = std::result::Result<Box<Unscored>, Work>;

/// The settings that preparing a record depends on.
pub(crate) struct Preparation {
    scorer: Arc<Scorer>,
    /// The traces that the memory held when it was loaded; `None` if known traces are scored again.
    held: Option<Arc<HashMap<Fingerprint, f64>>>,
    skips_known: bool,
    clean: Option<Cleaning>,
    /// Whether traces are needed as they were recorded: a store compares them.
    is_recorded: bool,
    is_written: bool,
    /// Whether the words that a novelty rests on are shown.
    explains: bool,
}

impl Preparation {
    /// Returns a preparation that reads traces alone.
    pub(crate) fn new(scorer: Arc<Scorer>) -> Self {
        Self {
            scorer,
            held: None,
            skips_known: false,
            clean: None,
            is_recorded: false,
            is_written: false,
            explains: false,
        }
    }

    /// Prepares records on all cores.
    pub(crate) fn prepare_all(&self, items: Vec<Unprepared>) -> Vec<Prepared> {
        let prepared = items.into_par_iter().map(|item| match item {
            Unprepared::Read(item) => self.prepare(item.build()),
            Unprepared::Prepared(prepared) => prepared,
        });
        prepared.collect()
    }

    fn prepare(&self, item: Item) -> Prepared {
        Prepared {
            size: item.size,
            line: item.line,
            index: item.index,
            content: self.prepare_content(item.format, item.content, None),
        }
    }

    /// Prepares what a record came to. `text` is that of a trace of this package, if `content` has none.
    pub(crate) fn prepare_content(
        &self,
        format: Option<FormatName>,
        content: Content,
        text: Option<&str>,
    ) -> PreparedTrace {
        match content {
            Content::Wrong(reason) => Err(Work::Wrong(reason)),
            Content::Skipped(reason) => Err(Work::WithoutConversation(reason)),
            Content::Converted(trace, known) => self.prepare_trace(format, trace, None, known),
            Content::Plain(value, own) => {
                let known = Known {
                    success: true,
                    confidence: true,
                };
                self.prepare_trace(format, value, own.as_deref().or(text), known)
            }
        }
    }

    fn prepare_trace(
        &self,
        format: Option<FormatName>,
        value: Value,
        text: Option<&str>,
        known: Known,
    ) -> PreparedTrace {
        let trace = self.read(&value);
        let held = self.held.as_ref().zip(trace.as_ref().ok());
        let fingerprint = held.and_then(|(_, trace)| trace.label.as_ref()?.fingerprint());
        let is_held =
            matches!((held, fingerprint), (Some((held, _)), Some(known)) if held.contains_key(&known));
        // Skipped traces need no cleaning.
        if is_held && self.skips_known {
            return Err(Work::Known);
        }
        // Before it is cleaned of ids.
        let trace = trace.map(|trace| {
            let facts = Facts::of(&trace, &value, known.success);
            (trace, facts)
        });
        let recorded = self.is_recorded.then(|| value.to_json());
        let foreign = (format.is_none() && value.as_object().is_some()).then(|| OfNoFormat::new(&value));
        let (shown, text, redactions) = match self.clean {
            None => (value, text, Redactions::default()),
            // Before it is scored: a trace that cannot be cleaned is not remembered either.
            Some(cleaning) => match clean_trace(value, cleaning.options(), &Call::default()) {
                Ok((trace, redactions)) => (trace, None, redactions),
                Err(error) => return Err(Work::Wrong(error.to_string().into())),
            },
        };
        let (trace, facts) = match trace {
            Ok(trace) => trace,
            Err(error) => return Err(Work::Wrong(wrong(error.to_string(), foreign).into())),
        };
        let to_review = self.clean.map_or(0, |_| review::count_of(&shown));
        let about = About {
            format: format.unwrap_or(FormatName::Trace),
            known,
            id: shown.get("id").and_then(Value::as_text).cloned(),
            objective: excerpt_of(&shown),
            domain: trace.metadata.task_domain.as_deref().unwrap_or("default").into(),
            success: trace.metadata.success,
            facts,
        };
        let text = if self.is_written {
            text.map_or_else(|| shown.to_json(), str::to_owned)
        } else {
            String::new()
        };
        let summary = self.scorer.summarize(trace);
        // The score of a trace that the memory holds needs no words.
        let summary = if is_held {
            summary
        } else {
            summary.with_words(self.explains)
        };
        Ok(Box::new(Unscored {
            fingerprint,
            recorded,
            foreign,
            summary,
            about,
            text,
            redactions,
            to_review,
        }))
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

/// Hands traces to the engine or to a store.
pub(crate) struct Pipeline<'h> {
    pub engine: &'h Engine,
    pub scorer: Arc<Scorer>,
    pub store: Option<Box<dyn Store>>,
    pub known: Option<KnownNovelties>,
    pub known_traces: KnownTraces,
    pub clean: Option<Cleaning>,
    /// Whether the texts of traces are written.
    pub is_written: bool,
    /// Whether the words that a novelty rests on are shown.
    pub explains: bool,
    /// Whether a set of the traces is chosen.
    pub is_choosing: bool,
    pieces: VecDeque<Piece>,
    most_pieces: usize,
    bytes: u64,
}

impl<'h> Pipeline<'h> {
    pub(crate) fn new(engine: &'h Engine, scorer: Scorer) -> Self {
        Self {
            engine,
            scorer: Arc::new(scorer),
            store: None,
            known: None,
            known_traces: KnownTraces::default(),
            clean: None,
            is_written: false,
            explains: false,
            is_choosing: false,
            pieces: VecDeque::new(),
            most_pieces: LEAST_PIECES.max(PIECES_PER_CORE * rayon::current_num_threads()),
            bytes: 0,
        }
    }

    /// Returns whether the next record must wait until another one is finished.
    pub(crate) fn is_full(&self) -> bool {
        self.pieces.len() >= self.most_pieces || self.bytes > MOST_BYTES
    }

    /// Returns the record whose turn is next; `None` if no record waits.
    pub(crate) fn next(&mut self) -> Option<Piece> {
        let mut piece = self.pieces.pop_front()?;
        self.bytes -= piece.size;
        if let Work::Scoring(scoring) = &mut piece.work {
            let outcome = scoring.wait();
            if let (Some(known), Some(fingerprint)) = (&mut self.known, scoring.fingerprint) {
                known.finish(
                    fingerprint,
                    outcome.as_ref().ok().map(|breakdown| breakdown.novelty.value),
                );
            }
            scoring.outcome = Pending::Ready(Box::new(outcome));
        }
        Some(piece)
    }

    /// Returns whether the outcome of the next record is still being computed.
    pub(crate) fn is_next_waiting(&self) -> bool {
        matches!(self.pieces.front(), Some(Piece { work: Work::Scoring(scoring), .. }) if scoring.is_waiting())
    }

    /// Returns how the records of this run are prepared.
    pub(crate) fn preparation(&self) -> Preparation {
        Preparation {
            scorer: Arc::clone(&self.scorer),
            held: self.known.as_ref().map(|known| Arc::clone(&known.held)),
            skips_known: self.known_traces == KnownTraces::Skip,
            clean: self.clean,
            is_recorded: self.store.is_some(),
            is_written: self.is_written,
            explains: self.explains,
        }
    }

    /// Begins a record. If it repeats one that is in flight, it must wait for that: then the record comes back.
    pub(crate) fn begin(&mut self, place: Place, prepared: Prepared) -> Option<(Place, Prepared)> {
        let known = self.known.as_ref().zip(prepared.fingerprint());
        let earlier = match known.map(|(known, fingerprint)| known.find(fingerprint)) {
            Some(Lookup::Waiting) => return Some((place, prepared)),
            Some(Lookup::Scored(novelty)) => Some(novelty),
            Some(Lookup::New) | None => None,
        };
        let Prepared { size, content, .. } = prepared;
        let unscored = match content {
            Ok(_) if earlier.is_some() && self.known_traces == KnownTraces::Skip => {
                return self.push(size, place, Work::Known);
            }
            Ok(unscored) => unscored,
            Err(work) => return self.push(size, place, work),
        };
        let Unscored {
            fingerprint,
            recorded,
            foreign,
            summary,
            about,
            text,
            redactions,
            to_review,
        } = *unscored;
        let fingerprint = fingerprint.filter(|_| earlier.is_none());
        if let (Some(known), Some(fingerprint)) = (&mut self.known, fingerprint) {
            known.begin(fingerprint);
        }
        let label = summary.label.clone();
        let (sender, compared) = channel();
        let kept = self.is_choosing.then_some(sender);
        let to_share = recorded.as_ref().filter(|_| self.is_choosing).cloned();
        let outcome = match (&self.store, recorded) {
            (Some(store), Some(recorded)) if earlier.is_none() => {
                if let Some(kept) = kept {
                    self.compare(summary, kept);
                }
                Pending::Waiting(store.explain(recorded, !self.is_choosing))
            }
            _ => self.score(summary, earlier, kept),
        };
        let scoring = Scoring {
            outcome,
            fingerprint,
            foreign,
            about,
            text,
            redactions,
            to_review,
            candidate: self.is_choosing.then_some(Candidate { label, compared }),
            recorded: to_share,
        };
        self.push(size, place, Work::Scoring(Box::new(scoring)))
    }

    /// Lets a record wait for its turn; nothing of it comes back.
    fn push(&mut self, size: u64, place: Place, work: Work) -> Option<(Place, Prepared)> {
        self.bytes += size;
        self.pieces.push_back(Piece { size, place, work });
        None
    }

    /// Has the engine prepare the parts of a trace that are compared, for `kept`.
    fn compare(&self, summary: Summary, kept: Sender<Option<Comparable>>) {
        let request = Request {
            summary,
            memory: self.scorer.memory.clone(),
            uncompared: Novelty::NEUTRAL,
            remember: false,
            explained: false,
            call: None,
        };
        let reply = move |compared: knowledgepulse_error::Result<_>| {
            // The receiver is gone only if the run has failed.
            drop(kept.send(compared.ok().flatten()));
        };
        self.engine.embed_trace(request, Box::new(reply));
    }

    /// Scores a trace with the engine. The compared words or embedding go to `kept`.
    fn score(
        &self,
        summary: Summary,
        novelty: Option<f64>,
        kept: Option<Sender<Option<Comparable>>>,
    ) -> Pending {
        if let (Some(_), Some(kept)) = (novelty, &kept) {
            // Its score needs no comparison.
            self.compare(summary.clone(), kept.clone());
        }
        let request = Request {
            summary,
            memory: self.scorer.memory.clone().filter(|_| novelty.is_none()),
            uncompared: novelty.map_or(Novelty::NEUTRAL, Novelty::given),
            remember: true,
            explained: self.explains,
            call: None,
        };
        let outcome = |scored: knowledgepulse_error::Result<_>| {
            scored.map_err(|error| NotScored::Trace(error.to_string()))
        };
        if let Some(scored) = self.engine.score_at_once(&request) {
            return Pending::Ready(Box::new(outcome(scored)));
        }
        let (sender, receiver) = channel();
        // The receiver is gone only if the run has failed.
        let reply = move |scored: knowledgepulse_error::Result<ComparedScore>| {
            let (scored, compared) = match scored {
                Ok((breakdown, compared)) => (Ok(breakdown), compared),
                Err(error) => (Err(error), None),
            };
            if let Some(kept) = kept {
                drop(kept.send(compared));
            }
            drop(sender.send(outcome(scored)));
        };
        self.engine.score_and_keep(request, Box::new(reply));
        Pending::Waiting(Box::new(move || receiver.recv().unwrap_or_else(|_| lost())))
    }
}

fn lost() -> Outcome {
    Err(NotScored::Trace(
        "the score was lost: this is a bug, please report it".into(),
    ))
}

impl Scoring {
    fn wait(&mut self) -> Outcome {
        match std::mem::replace(&mut self.outcome, Pending::Ready(Box::new(lost()))) {
            Pending::Ready(outcome) => *outcome,
            Pending::Waiting(wait) => wait(),
        }
    }

    /// Waits for the outcome.
    pub(crate) fn finish(mut self) -> Finished {
        let foreign = self.foreign.take();
        let outcome = self.wait().map_err(|failure| match failure {
            NotScored::Trace(reason) => NotScored::Trace(wrong(reason, foreign)),
            failure => failure,
        });
        Finished {
            outcome,
            about: self.about,
            text: self.text,
            redactions: self.redactions,
            to_review: self.to_review,
            candidate: self.candidate,
            recorded: self.recorded,
        }
    }
}

/// A trace that was scored, or not.
pub(crate) struct Finished {
    pub outcome: Outcome,
    pub about: About,
    pub text: String,
    pub redactions: Redactions,
    pub to_review: u64,
    pub candidate: Option<Candidate>,
    pub recorded: Option<String>,
}

/// Returns the problem of a trace, and the formats that the record could have meant.
fn wrong(reason: String, foreign: Option<OfNoFormat>) -> String {
    match foreign {
        Some(foreign) => format!("{reason}, and it is {foreign}"),
        None => reason,
    }
}

/// Returns the beginning of the objective.
fn excerpt_of(shown: &Value) -> Text {
    let objective = shown
        .get("task")
        .and_then(|task| task.get("objective"))
        .and_then(Value::as_text);
    objective
        .map(|objective| cut(objective, EXCERPT_LENGTH))
        .unwrap_or_default()
}
