//! Prepares a run before its first trace: the embedder, the memory, the outputs.

use std::{fs::Metadata, sync::mpsc::channel};

use knowledgepulse_index::method::Method;
use knowledgepulse_score::{
    Scorer,
    engine::{Engine, EngineKind, Status},
    weights::Profiles,
};

use super::{Output, Outputs, Run};
use crate::{
    choosing::Choosing,
    domains::{built_in, closest_to},
    error::{Failure, Result},
    file_identity::{is_same_file, metadata_of},
    host::{Host, StoreRequest},
    known::KnownNovelties,
    messages::{BadLines, Messages},
    options::{Cleaning, KnownTraces, Options, name_of},
    output_file::{OutputFile, StandardOutput},
    pieces::Pipeline,
    ranking::Ranking,
    report::{Report, ReportOptions},
    review::Review,
    rows::Rows,
    run_memory::RunMemory,
    start::Stop,
    summary::{Embedder, MemoryFile, Summary},
    temporary::{RunLock, require_room_for},
    weights::{NamedProfiles, read_map, read_weights},
};

impl<'h> Run<'h> {
    pub(super) fn prepare(
        options: Options,
        host: &'h dyn Host,
        messages: Messages,
        stop: Stop,
    ) -> Result<(Self, Pipeline<'h>)> {
        if options.explain && options.format.is_none() && options.out.is_none() && options.dropped.is_none() {
            messages.warning("--explain has no effect without --format or --out; a report explains anyway");
        }
        let weights = options.weights.as_deref().map(read_weights).transpose()?;
        let NamedProfiles {
            profiles,
            names,
            json,
        } = weights.unwrap_or_default();
        let map = options.map.as_deref().map(read_map).transpose()?;
        let mut run = Self {
            map,
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
            source: String::new(),
            unread: 0,
            store_failure: None,
            stdout: StandardOutput::new(),
            rows: None,
            outputs: Outputs::default(),
            report: None,
            ranking: None,
            choosing: None,
            to_share: Vec::new(),
            review: Review::default(),
            bad_lines: BadLines::default(),
            coverage: None,
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
        // They are words of the trace as it was recorded, which may be personal data.
        pipeline.explains =
            run.options.clean.is_none() && (run.options.explain || run.options.report.is_some());
        let known = run.memory.as_ref().filter(|_| run.options.memory.is_some());
        run.choosing = Choosing::of(&run.options, known)?;
        pipeline.is_choosing = run.choosing.is_some();
        pipeline.is_written =
            run.options.out.is_some() || run.options.dropped.is_some() || run.options.report.is_some();
        run.open_outputs()?;
        Ok((run, pipeline))
    }

    fn scorer(&self, profiles: Profiles) -> Scorer {
        let memory = self.memory.as_ref().filter(|_| self.options.embedder);
        // The chosen traces alone join a memory that outlives the run.
        let is_kept = self.options.select.is_some() && self.options.memory.is_some();
        let copy = memory.filter(|_| is_kept).and_then(RunMemory::copy);
        Scorer {
            memory: copy.as_ref().or(memory).map(RunMemory::share),
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
                .chain(built_in())
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
        if !options.needs_embedder() {
            // Of words alone there is no reason to tell.
            let reason = (options.novelty != Method::Lexical).then_some("--no-embedder");
            self.embedder = Embedder::none(reason);
            return Ok(Status::default());
        }
        let choice = &options.embedder_choice;
        let engine = self.host.engine();
        self.host.configure(choice)?;
        let status = status_of(engine);
        if let Some(failure) = &status.failure {
            // A user who names an embedder does not want scores without it.
            let is_asked =
                choice.dtype.is_some() || choice.engine.is_some() || choice.model_directory.is_some();
            let reason = &failure.reason;
            if is_asked || options.memory.is_some() || options.store.is_some() || options.select.is_some() {
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

    /// Loads the memory of earlier runs; creates a memory if there is no file.
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
        // Beside a store, a memory holds the words or embeddings to choose by.
        if self.memory.is_none() && (self.options.store.is_none() || self.options.select.is_some()) {
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
        if options.top.is_some() || options.select.is_some() {
            self.ranking = Some(Ranking::new()?);
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
                .chain(options.map.as_deref())
                .chain(options.weights.as_deref())
                .chain(options.labels.as_deref());
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
                threshold: (options.splits && options.select.is_none()).then_some(options.threshold),
                sources: options
                    .sources
                    .iter()
                    .map(|source| name_of(source).to_owned())
                    .collect(),
                novelty: options.novelty,
                dtype: self.embedder.dtype().map(str::to_owned),
                version: self.host.version().to_owned(),
                clean: options.clean.map(Cleaning::options),
            }));
        }
        self.outputs = outputs;
        if let Some(format) = options.format {
            let rows = Rows::new(format, options.explain, options.splits && self.ranking.is_none());
            let begin = rows.begin();
            self.rows = Some(rows);
            self.print(begin.as_bytes())?;
        }
        Ok(())
    }
}

/// Returns the state of `--out`, if it is an input too.
fn replaced(options: &Options) -> Option<Metadata> {
    let out = options.out.as_ref()?;
    let is_read = options.sources.iter().any(|source| is_same_file(source, out));
    metadata_of(out).filter(|_| is_read)
}

/// Loads the embedder, and returns the result.
fn status_of(engine: &Engine) -> Status {
    let (sender, receiver) = channel();
    engine.status(Box::new(move |status| drop(sender.send(status))));
    receiver.recv().unwrap_or_default()
}

/// Returns the host and the database of a URL; the password stays where it is.
fn place_in(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let path = rest.find('/').unwrap_or(rest.len());
    let start = rest[..path].rfind('@').map_or(0, |at| at + 1);
    rest[start..].split('?').next().unwrap_or_default()
}
