//! One run of the command: from its options to its exit code.

mod finish;
mod prepare;
mod score;

use std::fs::Metadata;

use knowledgepulse_formats::map::Map;

use crate::{
    choosing::Choosing,
    dry_run::dry_run,
    error::{Exit, Result},
    host::Host,
    messages::{BadLines, Messages},
    options::Options,
    output_file::{OutputFile, StandardOutput},
    ranking::Ranking,
    report::Report,
    review::Review,
    rows::Rows,
    run_memory::RunMemory,
    start::Stop,
    summary::{Coverage, Embedder, MemoryFile, Summary},
    temporary::RunLock,
    weights::read_map,
};

/// The parts that every run has before its scorer.
pub(crate) struct Run<'h> {
    options: Options,
    host: &'h dyn Host,
    messages: Messages,
    stop: Stop,
    summary: Summary,
    embedder: Embedder,
    /// The summary's line about the memory, if the memory outlives the run.
    memory_file: Option<MemoryFile>,
    memory: Option<RunMemory>,
    /// How many traces the run has added to the memory.
    added: u64,
    /// The name of the input that is being read.
    source: String,
    /// How many inputs could not be read to their ends.
    unread: u64,
    /// Why the store has ended the run.
    store_failure: Option<String>,
    stdout: StandardOutput,
    rows: Option<Rows>,
    outputs: Outputs,
    report: Option<Report>,
    /// The `--map` for the inputs.
    map: Option<Map>,
    /// Where traces wait until it is known which are the best, or are chosen.
    ranking: Option<Ranking>,
    /// Chooses a set of them.
    choosing: Option<Choosing>,
    /// The chosen traces, in JSON, which join a store.
    to_share: Vec<String>,
    /// The places in clean traces where a person should look.
    review: Review,
    bad_lines: BadLines,
    /// The coverage of the chosen set.
    coverage: Option<Coverage>,
    /// The state of `--out` before the run, if it is an input too.
    replaced: Option<Metadata>,
    threshold: f64,
    /// Domains with a profile in `--weights` and without a scored trace so far.
    unused_profiles: Vec<String>,
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
    if options.dry_run {
        let map = options.map.as_deref().map(read_map).transpose()?;
        return dry_run(&options, map, messages, &stop);
    }
    let (mut run, mut pipeline) = Run::prepare(options, host, messages.clone(), stop)?;
    let result = run.score(&mut pipeline).and_then(|()| run.finish(&pipeline));
    run.messages.stop_progress();
    result
}
