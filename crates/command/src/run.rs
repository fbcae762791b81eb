//! One run of the command: from its options to its exit code.

use std::{
    collections::BTreeSet,
    fs::Metadata,
    io::{IsTerminal, Read},
    sync::mpsc::{Receiver, TryRecvError, channel, sync_channel},
    thread,
    time::Instant,
};

use knowledgepulse_clean::clean_pii;
use knowledgepulse_formats::{date, reader::Item};
use knowledgepulse_index::{memory::Basis, method::Method};
use knowledgepulse_json::{Text, Value, parse};
use knowledgepulse_score::{
    Scorer,
    engine::{Engine, EngineKind, Status},
    weights::Profiles,
};

use crate::{
    breakdown::value_of,
    domains::{BUILT_IN, closest_to},
    error::{Exit, Failure, Result},
    file_identity::{is_same_file, metadata_of, total_size},
    host::{Host, NotScored, StoreRequest},
    known::KnownNovelties,
    messages::Messages,
    options::{KnownTraces, Options, name_of},
    output_file::{OutputFile, StandardOutput},
    pieces::{Piece, Pipeline, Scoring, Work},
    ranking::Ranking,
    reading::{Event, Reading},
    report::{self, Report, ReportOptions},
    rows::Rows,
    run_memory::RunMemory,
    scored::{Judged, Place, Scored},
    splice::set_metadata,
    start::Stop,
    summary::{About, Embedder, Figures, MemoryFile, Summary, Written, render_summary},
    temporary::{RunLock, require_room_for},
    weights::{NamedProfiles, read_weights},
};

/// How many bad lines are named, unless all are asked for.
const MOST_NAMED: u64 = 20;

/// How many batches of records may wait to be scored.
const MOST_WAITING_BATCHES: usize = 4;

/// Why a run is not complete that could not open or read an input.
const UNREAD: &str = "not all of the input could be read";

/// What every run has, before its scorer.
pub(crate) struct Run<'h> {
    options: Options,
    host: &'h dyn Host,
    messages: Messages,
    stop: Stop,
    summary: Summary,
    embedder: Embedder,
    /// What the summary says of the memory, if that outlives the run.
    memory_file: Option<MemoryFile>,
    memory: Option<RunMemory>,
    /// How many traces the run has added to the memory.
    added: u64,
    /// How many inputs could not be read to their ends.
    unread: u64,
    /// Why the store has ended the run.
    store_failure: Option<String>,
    stdout: StandardOutput,
    rows: Option<Rows>,
    outputs: Outputs,
    report: Option<Report>,
    /// Where traces wait until it is known which are the best.
    ranking: Option<Ranking>,
    /// What is known of `--out`, if it is an input too, before that is read.
    replaced: Option<Metadata>,
    threshold: f64,
    started: Instant,
    /// Domains that `--weights` has a profile for, of which no trace was scored yet.
    unused_profiles: BTreeSet<String>,
    /// Keeps other runs from the file of the memory.
    _lock: Option<RunLock>,
}

/// The files that a run writes, and where each goes if not all of the input was read; `None` for nowhere.
#[derive(Default)]
struct Outputs {
    out: Option<Output>,
    dropped: Option<Output>,
    report: Option<Output>,
}

struct Output {
    file: OutputFile,
    partial: Option<String>,
}

impl Outputs {
    fn all(&self) -> impl Iterator<Item = &Output> {
        [&self.out, &self.dropped, &self.report].into_iter().flatten()
    }

    fn all_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut Output> {
        [&mut self.out, &mut self.dropped, &mut self.report]
            .into_iter()
            .flatten()
    }
}

/// Scores everything.
pub(crate) fn run(options: Options, host: &dyn Host, messages: &Messages, stop: Stop) -> Result<Exit> {
    let (mut run, mut pipeline) = Run::prepare(options, host, messages.clone(), stop)?;
    let result = run.score(&mut pipeline).and_then(|()| run.finish(&pipeline));
    run.messages.stop_progress();
    result
}

impl<'h> Run<'h> {
    fn prepare(
        options: Options,
        host: &'h dyn Host,
        messages: Messages,
        stop: Stop,
    ) -> Result<(Self, Pipeline<'h>)> {
        if options.explain && options.format.is_none() && options.out.is_none() && options.dropped.is_none() {
            messages.warning(
                "--explain adds to --format and --out, and neither is there; a report explains anyway",
            );
        }
        let weights = options.weights.as_deref().map(read_weights).transpose()?;
        let NamedProfiles {
            profiles,
            names,
            json,
        } = weights.unwrap_or_default();
        let mut run = Self {
            replaced: replaced(&options),
            threshold: options.threshold,
            unused_profiles: names.iter().filter(|name| *name != "default").cloned().collect(),
            options,
            host,
            messages,
            stop,
            summary: Summary::new(),
            embedder: Embedder::none(None),
            memory_file: None,
            memory: None,
            added: 0,
            unread: 0,
            store_failure: None,
            stdout: StandardOutput::new(),
            rows: None,
            outputs: Outputs::default(),
            report: None,
            ranking: None,
            started: Instant::now(),
            _lock: None,
        };
        let status = run.load_embedder()?;
        run.load_memory(&status)?;
        let scorer = run.scorer(profiles);
        let mut pipeline = Pipeline::new(host.engine(), scorer);
        run.connect(&mut pipeline, json)?;
        run.warn_of_domain(&names);
        if let (Some(_), Some(memory)) = (&run.options.memory, &run.memory)
            && run.options.known != KnownTraces::Again
        {
            pipeline.known = Some(KnownNovelties::of(memory));
        }
        pipeline.known_traces = run.options.known;
        pipeline.clean = run.options.clean;
        pipeline.is_written = run.options.out.is_some() || run.options.dropped.is_some();
        run.open_outputs()?;
        Ok((run, pipeline))
    }

    fn scorer(&self, profiles: Profiles) -> Scorer {
        let memory = self.memory.as_ref().filter(|_| self.options.embedder);
        Scorer {
            memory: memory.map(RunMemory::share),
            profiles,
        }
    }

    /// Warns of a `--domain` that has no weights and is close to one that has.
    fn warn_of_domain(&self, profiles: &[String]) {
        let Some(domain) = &self.options.given.domain else {
            return;
        };
        let known = || {
            ["default"]
                .into_iter()
                .chain(BUILT_IN)
                .chain(profiles.iter().map(String::as_str))
        };
        if known().any(|name| name == domain) {
            return;
        }
        if let Some(closest) = closest_to(domain, known()) {
            self.messages.warning(format!(
                "--domain {domain} has no weights of its own, so those of default are used; did you mean {closest}?"
            ));
        }
    }

    fn load_embedder(&mut self) -> Result<Status> {
        let options = &self.options;
        if options.novelty == Method::Lexical {
            // Words need none, so there is no reason to tell.
            return Ok(Status::default());
        }
        if !options.embedder {
            self.embedder = Embedder::none(Some("--no-embedder"));
            return Ok(Status::default());
        }
        let choice = &options.embedder_choice;
        let engine = self.host.engine();
        self.host.configure(choice)?;
        let status = status_of(engine);
        if let Some(failure) = &status.failure {
            // Whoever asked for one does not want scores without it.
            let is_asked =
                choice.dtype.is_some() || choice.engine.is_some() || choice.model_directory.is_some();
            let reason = &failure.reason;
            if is_asked || options.memory.is_some() || options.store.is_some() {
                return Err(Failure::file(format!("there is no embedder: {reason}")));
            }
            self.messages.warning(format!(
                "there is no embedder, so novelty is 0.5 throughout (--novelty lexical needs none): {reason}"
            ));
        }
        if options.verbose {
            let path = |path: &Option<std::path::PathBuf>| match path {
                Some(path) => path.display().to_string(),
                None => "null".into(),
            };
            self.messages
                .note(format!("model: {}", path(&status.model_directory)));
            let engine = match status.engine {
                Some(EngineKind::OnnxRuntime) => path(&status.runtime_path),
                _ => format!("built in, {}", status.kernel.as_deref().unwrap_or("null")),
            };
            self.messages.note(format!("engine: {engine}"));
        }
        self.embedder = Embedder::of(&status);
        Ok(status)
    }

    /// Loads what is remembered from earlier runs; a new memory if that is nothing.
    fn load_memory(&mut self, status: &Status) -> Result<()> {
        let (novelty, most) = (self.options.novelty, self.options.memory_size);
        if let Some(file) = &self.options.memory {
            require_room_for(file)?;
            self._lock = Some(RunLock::of(file, &self.host.machine())?);
            let mut held = RunMemory::load(file, novelty, None, status)?;
            let before = held.as_ref().map_or(0, RunMemory::len);
            if let (Some(memory), Some(most)) = (&held, most)
                && most != memory.most()
            {
                if before > most && !self.options.forget {
                    let surplus = before - most;
                    return Err(Failure::usage(format!(
                        "{file} holds {before} traces, and --memory-size {most} would forget the {surplus} oldest; \
                         --forget allows that"
                    )));
                }
                held = RunMemory::load(file, novelty, Some(most), status)?;
            }
            self.memory_file = Some(MemoryFile {
                file: file.clone(),
                before: before as u64,
                after: None,
                forgotten: Some(0),
            });
            self.memory = held;
        }
        if self.memory.is_none() && self.options.store.is_none() {
            self.memory = Some(RunMemory::new(novelty, most));
        }
        Ok(())
    }

    fn connect(&mut self, pipeline: &mut Pipeline, weights: Option<String>) -> Result<()> {
        let Some(url) = &self.options.store else {
            return Ok(());
        };
        let store = self.host.connect(&StoreRequest {
            url: url.clone(),
            table: self.options.store_table.clone(),
            most_traces: self.options.memory_size,
            novelty: self.options.novelty,
            weights,
        })?;
        self.memory_file = Some(MemoryFile {
            file: format!("postgres://{}", place_in(url)),
            before: store.size().unwrap_or_default(),
            after: None,
            forgotten: None,
        });
        pipeline.store = Some(store);
        Ok(())
    }

    fn open_outputs(&mut self) -> Result<()> {
        let options = &self.options;
        if let Some(top) = options.top {
            self.ranking = Some(Ranking::new(top)?);
        }
        let open = |name: &Option<String>, traces| {
            let Some(name) = name else { return Ok(None) };
            let file = OutputFile::open(name, traces)?;
            let partial = file.partial();
            Ok(Some(Output { file, partial }))
        };
        let mut outputs = Outputs {
            out: open(&options.out, Some(0))?,
            dropped: open(&options.dropped, Some(0))?,
            report: open(&options.report, None)?,
        };
        for output in outputs.all_mut() {
            // Where another file has that name which this run reads or writes, it goes nowhere.
            let others = options.sources.iter().map(String::as_str);
            let others = others
                .chain(options.outputs().map(|(_, file)| file))
                .chain(options.weights.as_deref());
            output.partial = match output.partial.take() {
                None => Some(output.file.name.clone()),
                Some(partial) => {
                    let is_used = others.into_iter().any(|other| is_same_file(other, &partial));
                    (!is_used).then_some(partial)
                }
            };
        }
        if options.report.is_some() {
            self.report = Some(Report::new(ReportOptions {
                threshold: options.threshold,
                sources: options
                    .sources
                    .iter()
                    .map(|source| name_of(source).to_owned())
                    .collect(),
                novelty: options.novelty,
                dtype: self.embedder.dtype().map(str::to_owned),
                version: self.host.version().to_owned(),
            }));
        }
        self.outputs = outputs;
        if let Some(format) = options.format {
            let rows = Rows::new(format, options.explain, options.splits && options.top.is_none());
            let begin = rows.begin();
            self.rows = Some(rows);
            self.print(begin.as_bytes())?;
        }
        Ok(())
    }

    /// Writes to standard output. Without files to write, the results reach no one once the reader is gone.
    fn print(&mut self, text: &[u8]) -> Result<()> {
        if !self.stdout.write(text)? && self.options.outputs().next().is_none() {
            self.stop.end_reading();
        }
        Ok(())
    }

    fn score(&mut self, pipeline: &mut Pipeline) -> Result<()> {
        let options = &self.options;
        let shows_rows = self.rows.is_some() && self.ranking.is_none() && std::io::stdout().is_terminal();
        // Rows that scroll by show the progress themselves.
        if options.progress && !options.quiet && !shows_rows {
            self.messages.start_progress(total_size(&options.sources));
        }
        self.started = Instant::now();
        self.summary.begin();
        let events = self.read()?;
        let mut source = String::new();
        while let Some(event) = self.next_event(&events, pipeline)? {
            match event {
                Event::Begin(name) => source = name,
                Event::Items(items) => self.begin(&source, items, pipeline)?,
                Event::Failed(reason) => {
                    self.unread += 1;
                    self.messages.failure(format!("cannot read {source}: {reason}"));
                }
                Event::End | Event::Interrupted => break,
            }
        }
        while self.settle(pipeline)? {}
        self.messages.on_all_done();
        Ok(())
    }

    /// What the reading thread tells next; finishes records until it does. `None` if the run is to end.
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
    fn read(&self) -> Result<Receiver<Event>> {
        let (sender, receiver) = sync_channel(MOST_WAITING_BATCHES);
        self.stop.wakes(sender.clone());
        let reading = Reading {
            sources: self.options.sources.clone(),
            format: self.options.from,
            given: self.options.given.clone(),
            messages: self.messages.clone(),
        };
        thread::Builder::new()
            .name("kp-score-reading".into())
            .spawn(move || reading.run(&sender))
            .map_err(|error| Failure::file(format!("no thread to read on: {error}")))?;
        Ok(receiver)
    }

    fn begin(&mut self, source: &str, items: Vec<Item>, pipeline: &mut Pipeline) -> Result<()> {
        for item in items {
            // Interrupted, the input may end in the middle of a trace.
            if self.stop.is_set() {
                break;
            }
            let place = Place {
                source: source.to_owned(),
                line: item.line.unwrap_or_default(),
                index: item.index,
            };
            let mut next = (place, item);
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
            Work::Known => self.summary.known_traces += 1,
            Work::Wrong(reason) => self.add_bad(&place, &reason),
            Work::WithoutConversation(reason) => {
                self.summary.without_conversation += 1;
                if self.options.verbose {
                    self.name(&place, &reason);
                }
            }
            Work::Scoring(scoring) => self.settle_scoring(place, *scoring, pipeline)?,
        }
        Ok(true)
    }

    fn settle_scoring(&mut self, place: Place, scoring: Scoring, pipeline: &Pipeline) -> Result<()> {
        let (outcome, about, text, redactions) = scoring.finish();
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
                // Without its store there is no going on; what was scored is still written.
                self.store_failure.get_or_insert(reason);
                self.stop.end_reading();
                return Ok(());
            }
        };
        if self.options.clean.is_some()
            && let Some(nearest) = &mut breakdown.novelty.nearest
        {
            // They are words of the trace as it was recorded, which may be personal data.
            nearest.words = None;
        }
        self.summary.add_redactions(&redactions);
        if !matches!(breakdown.novelty.basis, Basis::Given | Basis::NoEmbedder) {
            self.added += 1;
        }
        let scored = about.scored(place, breakdown);
        match &mut self.ranking {
            Some(ranking) => {
                let record = Value::from(vec![scored.to_value(), text.into()]);
                ranking.add(scored.breakdown.score, record.to_json().as_bytes())
            }
            None => {
                let kept = scored.breakdown.score >= self.threshold;
                self.record(Judged { scored, kept }, &text)
            }
        }
    }

    /// Names a record that makes no trace.
    fn add_bad(&mut self, place: &Place, reason: &Text) {
        let reason = self.cleaned(reason);
        self.summary.bad += 1;
        let bad = self.summary.bad;
        if self.options.verbose || bad <= MOST_NAMED {
            self.note(place, &reason);
        } else if bad == MOST_NAMED + 1 {
            self.messages
                .note("further bad lines are only counted; --verbose names them all");
        }
        if let Some(report) = &mut self.report {
            report.add_error(place, &reason);
        }
    }

    fn name(&self, place: &Place, reason: &Text) {
        self.note(place, &self.cleaned(reason));
    }

    fn note(&self, place: &Place, reason: &Text) {
        let mut message = Text::from(format!("{place}: "));
        message.push_text(reason);
        self.messages.note(message);
    }

    /// A reason as it may be shown: it may name properties.
    fn cleaned(&self, reason: &Text) -> Text {
        let Some(cleaning) = self.options.clean else {
            return reason.clone();
        };
        let units: Vec<u16> = reason.units().collect();
        let (cleaned, _) = clean_pii(&units, cleaning.options());
        cleaned.map_or_else(|| reason.clone(), |units| Text::from_units(&units))
    }

    fn record(&mut self, judged: Judged, text: &str) -> Result<()> {
        let breakdown = &judged.scored.breakdown;
        if breakdown.novelty.basis == Basis::Given {
            self.summary.known_traces += 1;
        }
        if let Some(report) = &mut self.report {
            report.add(&judged);
        }
        self.summary.add(&judged);
        self.unused_profiles
            .remove(&*judged.scored.domain.to_string_lossy());
        // The best come in the order of their ranks, when all are known.
        if let (Some(rows), None) = (&mut self.rows, &self.ranking) {
            let row = rows.row(&judged);
            self.print(row.as_bytes())?;
        }
        let is_kept = !self.options.splits || judged.kept;
        let output = if is_kept {
            &mut self.outputs.out
        } else {
            &mut self.outputs.dropped
        };
        let Some(Output { file, .. }) = output else {
            return Ok(());
        };
        // Without one, that of an earlier score would stay beside this one.
        let explanation = self.options.explain.then(|| value_of(breakdown));
        let values = [
            ("quality_score", Some(breakdown.score.into())),
            ("score_breakdown", explanation),
        ];
        let mut line = set_metadata(text, &values);
        line.push('\n');
        file.traces = file.traces.map(|traces| traces + 1);
        file.write(line.as_bytes())
    }

    /// Does with all that waited what could not be done before the best were known.
    fn record_best(&mut self) -> Result<()> {
        let Some(ranking) = self.ranking.take() else {
            return Ok(());
        };
        let mut best = ranking.finish()?;
        self.threshold = best.threshold;
        if let Some(report) = &mut self.report {
            report.set_threshold(best.threshold);
        }
        // Their rows come below, in the order of their ranks.
        let rows = self.rows.take();
        best.each(|record, kept| {
            let (scored, text) = read_record(record)?;
            self.record(Judged { scored, kept }, &text)
        })?;
        let Some(mut rows) = rows else { return Ok(()) };
        self.messages.stop_progress();
        best.best(|record| {
            let (scored, _) = read_record(record)?;
            let row = rows.row(&Judged { scored, kept: true });
            self.print(row.as_bytes())
        })?;
        self.rows = Some(rows);
        Ok(())
    }

    fn finish(&mut self, pipeline: &Pipeline) -> Result<Exit> {
        self.record_best()?;
        let lack = self.why_incomplete();
        let keep_going = self.options.keep_going;
        let problem = self.why_not_write(if keep_going { None } else { lack.as_deref() });
        let is_in_place = lack.is_none() || keep_going;
        let written = match problem {
            None => self.write(is_in_place)?,
            Some(_) => Vec::new(),
        };
        self.measure_memory(pipeline);
        let figures = self.figures(written);
        self.messages.stop_progress();
        self.print_figures(&figures)?;
        self.stdout.flush()?;
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
            // What could not be read was named when it was met.
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
        Ok(if self.summary.bad > 0 {
            Exit::BadLines
        } else {
            Exit::Ok
        })
    }

    fn print_figures(&mut self, figures: &Figures) -> Result<()> {
        if let Some(rows) = &self.rows {
            let end = rows.end(&figures.to_value());
            self.stdout.write(end.as_bytes())?;
        }
        let summary = &self.summary;
        let seen = figures.scored + summary.bad + summary.known_traces + summary.without_conversation;
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
            return Some(format!("{failure}: the rest was not scored"));
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
            let is_right = self.outputs.all().next().is_none() || is_complete && summary.known_traces > 0;
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
                "what was not read",
            ),
            (self.unread > 0, "what could not be read"),
            (summary.bad > 0, "the bad lines"),
            (
                summary.known_traces > 0 && self.options.known == KnownTraces::Skip,
                "the known traces (unless with --known score)",
            ),
            (
                summary.converted + summary.without_conversation > 0,
                "what it has in another format",
            ),
            (!is_unchanged, "what was written to it meanwhile"),
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
    fn write(&mut self, is_in_place: bool) -> Result<Vec<Written>> {
        let scored = self.summary.scored();
        let mut written = Vec::new();
        if scored > 0 {
            self.write_report()?;
            // What may replace the input comes after what takes the rest of it.
            for output in self.outputs.all_mut().rev() {
                output.file.finish()?;
            }
            for Output { file, partial } in self.outputs.all_mut().rev() {
                let name = if is_in_place {
                    Some(file.name.clone())
                } else {
                    partial.clone()
                };
                if is_in_place {
                    file.publish()?;
                } else if partial.is_some() {
                    file.publish_partial()?;
                }
                let traces = file.traces;
                written.extend(name.map(|file| Written { file, traces }));
            }
            written.reverse();
        }
        // Last: a later run would skip traces that the memory has and no file. Where nothing was scored, the bound may be a new one.
        if let (Some(file), Some(memory), true) = (&self.options.memory, &self.memory, is_in_place)
            && scored + self.summary.known_traces > 0
        {
            memory.save(file)?;
            if let Some(about) = &mut self.memory_file {
                let after = memory.len() as u64;
                about.forgotten = Some((about.before + self.added).saturating_sub(after));
                about.after = Some(after);
            }
        }
        Ok(written)
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
            &report_page()?,
        );
        let page = page.map_err(|error| Failure::file(error.to_string()))?;
        output.file.write(page.as_bytes())
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
        if !names.is_empty() && figures.converted < scored {
            let kept = scored - figures.converted;
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
                let names = BUILT_IN.into_iter().chain(domains.iter().map(|name| &**name));
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
        if summary.known_traces > 0 && !files.is_empty() {
            self.messages.warning(format!(
                "all traces are known, so {}; --known score writes them with their earlier scores",
                as_before(&files)
            ));
        } else if summary.known_traces == 0 && summary.bad == 0 {
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

    /// What an incomplete run has left.
    fn what_became(&self, written: &[Written]) -> String {
        // A pipe or a device has what was written to it.
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

/// The page of the report, without its figures.
fn report_page() -> Result<String> {
    const COMPRESSED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/report.html.gz"));
    let mut page = String::new();
    let read = flate2::bufread::GzDecoder::new(COMPRESSED).read_to_string(&mut page);
    read.map_err(|_| {
        Failure::file("this program was built without the page of the report: npm run setup makes it")
    })?;
    Ok(page)
}

/// What is known of `--out`, if it is an input too.
fn replaced(options: &Options) -> Option<Metadata> {
    let out = options.out.as_ref()?;
    let is_read = options.sources.iter().any(|source| is_same_file(source, out));
    metadata_of(out).filter(|_| is_read)
}

/// Loads the embedder, and tells what became of it.
fn status_of(engine: &Engine) -> Status {
    let (sender, receiver) = channel();
    engine.status(Box::new(move |status| drop(sender.send(status))));
    receiver.recv().unwrap_or_default()
}

/// The host and the database of a URL; the password stays where it is.
fn place_in(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let path = rest.find('/').unwrap_or(rest.len());
    let start = rest[..path].rfind('@').map_or(0, |at| at + 1);
    rest[start..].split('?').next().unwrap_or_default()
}

fn as_before(files: &[&str]) -> String {
    let are = if files.len() == 1 {
        "is as it was"
    } else {
        "are as they were"
    };
    format!("{} {are}", files.join(", "))
}

/// Reads back what waited for the best to be known.
fn read_record(record: &[u8]) -> Result<(Scored, String)> {
    let read = || {
        let record = parse(record).ok()?;
        let [scored, text] = record.as_array()? else {
            return None;
        };
        Some((Scored::from_value(scored)?, text.as_str()?.to_owned()))
    };
    read().ok_or_else(|| Failure::file("a trace that waited for the best to be known came back damaged"))
}
