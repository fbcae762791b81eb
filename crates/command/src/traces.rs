//! Traces for programs: those in files and folders, or of this machine, read on all cores in the background and given in their order.

use std::{
    fs,
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, channel, sync_channel},
    },
    thread,
    time::{Duration, UNIX_EPOCH},
};

use knowledgepulse_formats::{
    FormatName, Given, Known, date,
    reader::OfNoFormat,
    trace::{SESSION, known_of},
};
use knowledgepulse_json::{Text, Value};
use knowledgepulse_trace::facts::{Fact, facts_of};

use crate::{
    error::{Failure, Result},
    files::stop::Stop,
    find::{expand, sessions_of},
    read::{Inputs, Prepare, ReadTrace, Seen, Sink, read},
    score::scored::Place,
    show::messages::Messages,
};

/// How many results may wait for the program.
const MOST_WAITING: usize = 64;

/// How long a program waits for the next results at most.
const PAUSE: Duration = Duration::from_millis(50);

/// What a program reads.
#[derive(Debug, Clone, Default)]
pub struct TracesRequest {
    /// Files and folders; none for the sessions of agents on this machine.
    pub paths: Vec<String>,
    /// Their format; `None` where each record is recognised.
    pub format: Option<FormatName>,
    /// The outcome and domain of traces whose record tells none.
    pub given: Given,
    /// Which of the sessions on this machine are read.
    pub wanted: Wanted,
}

/// Which sessions are read: those for which all hold.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// Those that began then or later, in ISO 8601.
    pub since: Option<String>,
    /// Those of these agents; none for all.
    pub agents: Vec<FormatName>,
    /// Those that worked in folders of this name, in any case.
    pub project: Option<String>,
    /// Not those with these ids, or in these files and folders.
    pub ignored: Vec<String>,
}

impl Wanted {
    /// Returns whether a file may have such a session: what was written last before a time began before it.
    fn may_have(&self, file: &str) -> bool {
        let written = fs::metadata(file).and_then(|stat| stat.modified()).ok();
        let written = written.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let written = written.and_then(|time| date::from_number(time.as_secs_f64() * 1000.0));
        let is_late = |since: &String| written.is_none_or(|time| date::to_iso(time) >= *since);
        self.since.as_ref().is_none_or(is_late)
            && !self.ignored.iter().any(|path| Path::new(file).starts_with(path))
    }

    /// Returns whether a trace is of such a session.
    fn has(&self, trace: &Value, about: &SessionInfo) -> bool {
        let is_late = |since: &String| about.created_at.as_ref().is_none_or(|time| time >= since);
        let is_name = |name: &String| {
            let project = about.project.as_ref();
            project.is_some_and(|project| project.to_lowercase() == name.to_lowercase())
        };
        let imported = trace.at(&["metadata", "imported", SESSION]);
        let ids = [trace.get("id"), imported];
        let mut ids = ids.into_iter().flatten().filter_map(Value::as_str);
        self.since.as_ref().is_none_or(is_late)
            && self.project.as_ref().is_none_or(is_name)
            && !ids.any(|id| self.ignored.iter().any(|ignored| ignored == id))
    }
}

/// What is told of a session beside its trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionInfo {
    /// The format in which it was recorded at first.
    pub agent: String,
    /// The name of the folder that it worked in.
    pub project: Option<String>,
    /// When it began, in ISO 8601.
    pub created_at: Option<String>,
    /// What is observed in it.
    pub facts: Vec<Fact>,
}

impl SessionInfo {
    fn of(trace: &Value, format: FormatName) -> Self {
        let text = |path: &[&str]| trace.at(path).and_then(Value::as_str);
        let folder = text(&["metadata", "imported", "cwd"]).unwrap_or_default();
        let project = folder.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next();
        let time = text(&["metadata", "created_at"]).and_then(date::parse);
        Self {
            agent: text(&["metadata", "imported", "format"])
                .unwrap_or(format.name())
                .into(),
            project: project.filter(|name| !name.is_empty()).map(Into::into),
            created_at: time.map(date::to_iso),
            facts: facts_of(trace),
        }
    }
}

/// A trace that was read.
#[derive(Debug, Clone)]
pub struct TraceRead {
    /// The format that it was converted from, or [`FormatName::Trace`].
    pub format: FormatName,
    /// Which parts of its outcome its record told.
    pub known: Known,
    /// What is told of its session.
    pub about: SessionInfo,
    /// The trace in JSON.
    pub json: String,
}

/// What a record or an input came to.
#[derive(Debug, Clone)]
pub enum TraceResult {
    /// A trace.
    Trace(TraceRead),
    /// Why a record makes no trace.
    Wrong(Text),
    /// Why an input could not be read to its end.
    Unread(String),
}

/// The results that come, each with its place. The reading ends when this is dropped.
pub struct Traces(Mutex<Receiver<Next>>);

/// A result, or why nothing can be read.
type Next = Result<(Place, TraceResult)>;

impl Traces {
    /// Begins to read.
    ///
    /// # Errors
    /// If there is no thread to read on.
    pub fn open(request: TracesRequest) -> Result<Self> {
        if cfg!(target_family = "wasm") {
            let (sender, results) = channel();
            Reading(move |next| sender.send(next).is_ok()).run(request);
            return Ok(Self(results.into()));
        }
        let (sender, results) = sync_channel(MOST_WAITING);
        let reading = Reading(move |next| sender.send(next).is_ok());
        let thread = thread::Builder::new().name("kp-score-traces".into());
        thread
            .spawn(move || reading.run(request))
            .map_err(|error| Failure::file(format!("no thread to read on: {error}")))?;
        Ok(Self(results.into()))
    }

    /// Returns the next results, none if they take a while; `None` at the end.
    ///
    /// # Errors
    /// If there is nothing to read.
    pub fn next(&self) -> Result<Option<Vec<(Place, TraceResult)>>> {
        let results = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let first = match results.recv_timeout(PAUSE) {
            Ok(next) => next?,
            Err(RecvTimeoutError::Timeout) => return Ok(Some(Vec::new())),
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
        };
        let more = results.try_iter().take(MOST_WAITING - 1);
        std::iter::once(Ok(first))
            .chain(more)
            .collect::<Result<_>>()
            .map(Some)
    }
}

/// Reads for a program, which takes the results by this function. It returns whether more are wanted.
struct Reading<Send>(Send);

impl<Send: FnMut(Next) -> bool> Reading<Send> {
    fn run(mut self, request: TracesRequest) {
        let messages = Messages::silent();
        let wanted = Arc::new(request.wanted);
        let inputs = if request.paths.is_empty() {
            let is_wanted = |agent| wanted.agents.is_empty() || wanted.agents.contains(&agent);
            let mut inputs = sessions_of(is_wanted, &messages).0;
            inputs.sources.retain(|file| wanted.may_have(file));
            Ok(inputs)
        } else {
            let mut inputs = Inputs {
                sources: request.paths,
                ..Inputs::default()
            };
            expand(&mut inputs, &[], &messages).map(|()| inputs)
        };
        let read = inputs.and_then(|inputs| {
            let inputs = Inputs {
                format: request.format,
                given: request.given,
                ..inputs
            };
            let prepare: Arc<Prepare<Option<TraceRead>>> = Arc::new(move |read| prepared(read, &wanted));
            read(&inputs, prepare, &mut self, &messages, &Stop::default())
        });
        // Where nobody wants more, nobody hears of it.
        if let Err(failure) = read {
            (self.0)(Err(failure));
        }
    }

    fn send(&mut self, place: Place, result: TraceResult) -> Result<()> {
        let is_wanted = (self.0)(Ok((place, result)));
        is_wanted
            .then_some(())
            .ok_or_else(|| Failure::interrupted("nobody reads on"))
    }
}

impl<Send: FnMut(Next) -> bool> Sink<Option<TraceRead>> for Reading<Send> {
    fn take(&mut self, place: Place, _: u64, trace: Option<TraceRead>, _: &mut Seen) -> Result<()> {
        trace.map_or(Ok(()), |trace| self.send(place, TraceResult::Trace(trace)))
    }

    fn on_bad(&mut self, place: &Place, reason: &Text) {
        // The next trace finds out whether more are wanted.
        let _ = self.send(place.clone(), TraceResult::Wrong(reason.clone()));
    }

    fn on_unread(&mut self, source: &str, reason: String, _: &Messages) {
        let place = Place {
            source: source.to_owned(),
            line: 0,
            index: None,
        };
        let _ = self.send(place, TraceResult::Unread(reason));
    }
}

/// Writes a trace as JSON, on any core; nothing of one that is not wanted.
fn prepared(read: ReadTrace, wanted: &Wanted) -> std::result::Result<Option<TraceRead>, Text> {
    let is_object = read.value.as_object().is_some();
    let foreign = read
        .foreign
        .or_else(|| (!is_object).then(|| OfNoFormat::new(&read.value)));
    if let Some(foreign) = foreign {
        return Err(foreign.to_string().into());
    }
    let about = SessionInfo::of(&read.value, read.format);
    Ok(wanted.has(&read.value, &about).then(|| TraceRead {
        about,
        format: read.format,
        known: known_of(&read.value),
        json: read.text.map_or_else(|| read.value.to_json(), ToOwned::to_owned),
    }))
}
