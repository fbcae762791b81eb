//! The inference thread and its lanes.

use std::{
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use knowledgepulse_embed::{Embedder, runtime};
use knowledgepulse_error::guarded;
use knowledgepulse_os as os;

use super::{
    Shared,
    job::{Job, Prepared, Settlement, embed_together},
    load::{BoxedLane, EngineOptions, Loaded, load},
    queue::{InOrder, Queue},
};

/// The waiting calls from which lanes of ONNX Runtime are opened, which takes as long as embedding a few texts.
const BACKLOG: usize = 6;

/// Each lane of ONNX Runtime has its own repacked half of the weights; with more threads than this, lanes get several.
const MOST_LANES: usize = 4;

/// The most threads that find words. Comparing takes turns and is two fifths of the work, so more threads would wait.
const MOST_WORD_THREADS: usize = 4;

/// The idle time after which lanes are closed, which frees their memory.
const LANE_PATIENCE: Duration = Duration::from_secs(10);

/// A year, if there is nothing to close; platforms limit waiting to little more.
const NO_HURRY: Duration = Duration::from_secs(365 * 24 * 3600);

/// The state of the inference thread, or of the threads that find words.
pub(super) struct Worker {
    options: Arc<EngineOptions>,
    pub(super) queue: Queue<Job>,
    shared: Arc<Shared>,
    /// Whether its calls need the embedder; else their words alone are compared.
    embeds: bool,
    /// The order of the calls, where nothing is embedded.
    in_order: InOrder<Settlement>,
    /// The embedder of [`Worker::work_here`], once it is loaded.
    here: OnceLock<Option<Mutex<(Loaded, BoxedLane)>>>,
}

impl Worker {
    pub(super) fn new(options: Arc<EngineOptions>, shared: Arc<Shared>, embeds: bool) -> Self {
        Self {
            options,
            queue: Queue::default(),
            shared,
            embeds,
            in_order: InOrder::new(0),
            here: OnceLock::new(),
        }
    }

    /// Returns how many threads work: one that embeds, or a few that find words.
    pub(super) fn threads(&self) -> usize {
        match self.embeds {
            _ if cfg!(target_family = "wasm") => 0,
            true => 1,
            false => os::threads(self.options.threads).min(MOST_WORD_THREADS),
        }
    }

    /// Works through the queue on the caller's thread, for WebAssembly.
    pub(super) fn work_here(&self) {
        let load = || load(&self.options, &self.shared).map(Mutex::new);
        let embedder = self
            .embeds
            .then(|| self.here.get_or_init(load).as_ref())
            .flatten();
        while let Some((_, job)) = self.queue.take() {
            let settlements = match embedder {
                None => vec![job.without_embedder()],
                Some(embedder) => {
                    let (loaded, lane) = &mut *embedder.lock().unwrap_or_else(PoisonError::into_inner);
                    embed_together(loaded, &mut **lane, vec![job.prepare(&loaded.embedder)])
                }
            };
            settlements
                .into_iter()
                .for_each(|settlement| self.settle(settlement));
        }
    }

    /// The loop of a thread, which ends only with the process.
    pub(super) fn work(&self) {
        if !self.embeds {
            return self.settle_all();
        }
        os::stand_back();
        let Some((loaded, mut lane)) = load(&self.options, &self.shared) else {
            return self.settle_all();
        };
        let count = self.lanes_of(&loaded.embedder);
        // The waiting calls from which lanes are opened, and below which they stop.
        let (begin, least) = if loaded.embedder.network().pass_tokens() > 0 {
            (count, count)
        } else {
            (BACKLOG, 1)
        };
        let mut lanes = Vec::new();
        // Returns the memory that loading has freed once no call waits.
        let mut patience = Duration::ZERO;
        loop {
            let backlog = self.queue.wait_for_backlog(patience);
            if backlog == 0 {
                lanes.clear();
                os::return_freed_memory();
                patience = NO_HURRY;
            } else if count > 1 && backlog >= begin {
                self.open_lanes(&loaded.embedder, &mut lanes, count);
                self.work_side_by_side(&loaded, &mut lanes, least);
                patience = LANE_PATIENCE;
            }
            // One at a time without shared passes, or if no lanes could be opened.
            let room = loaded.embedder.network().pass_tokens();
            let (_, jobs) = self.take_for_a_pass(&loaded.embedder, room, usize::MAX);
            for settlement in embed_together(&loaded, &mut *lane, jobs) {
                self.settle(settlement);
            }
        }
    }

    /// The loop of a thread without an embedder. Several threads may run it.
    fn settle_all(&self) {
        loop {
            let (number, job) = self.queue.wait();
            let settlement = job.without_embedder();
            self.in_order
                .finish(number, settlement, |settlement| self.settle(settlement));
        }
    }

    /// Returns the number of lanes. Lanes of the built-in engine share the weights and need no barrier, so each thread has one.
    pub(super) fn lanes_of(&self, embedder: &Embedder) -> usize {
        let threads = os::threads(self.options.threads);
        if embedder.network().pass_tokens() > 0 {
            threads
        } else {
            threads.min(MOST_LANES)
        }
    }

    /// Opens the missing lanes. If memory or threads are short, works with fewer.
    pub(super) fn open_lanes(&self, embedder: &Embedder, lanes: &mut Vec<BoxedLane>, count: usize) {
        let threads = os::threads(self.options.threads);
        while lanes.len() < count {
            match guarded(|| embedder.network().open_lane(threads / count)) {
                Ok(lane) => lanes.push(lane),
                Err(_) => break,
            }
        }
    }

    /// Works through the queue until fewer than `least` jobs wait, with one thread for each lane.
    pub(super) fn work_side_by_side(&self, loaded: &Loaded, lanes: &mut [BoxedLane], least: usize) {
        let in_order = InOrder::new(self.queue.next_number());
        // Half of a shared pass: it keeps one thread busy, and leaves more for the others.
        let room = loaded.embedder.network().pass_tokens() / 2;
        let idle = AtomicUsize::new(lanes.len());
        thread::scope(|scope| {
            for lane in lanes {
                let work = || {
                    // Moves the lane in: it is this thread's alone.
                    let lane = lane;
                    let mut is_first = true;
                    loop {
                        let waiting = self.queue.wait_for_backlog(Duration::ZERO);
                        // All threads together finish the last ones sooner.
                        if waiting < least && !mem::take(&mut is_first) {
                            return;
                        }
                        // Leaves as many short texts to each idle lane.
                        let part = waiting.div_ceil(idle.load(Ordering::Relaxed).max(1)).max(1);
                        let (numbers, jobs) = self.take_for_a_pass(&loaded.embedder, room, part);
                        if jobs.is_empty() {
                            return;
                        }
                        idle.fetch_sub(1, Ordering::Relaxed);
                        let settlements = embed_together(loaded, &mut **lane, jobs);
                        idle.fetch_add(1, Ordering::Relaxed);
                        for (number, settlement) in numbers.into_iter().zip(settlements) {
                            in_order.finish(number, settlement, |settlement| self.settle(settlement));
                        }
                    }
                };
                // With fewer threads it takes longer; without any, the caller works.
                let _ = thread::Builder::new().spawn_scoped(scope, work);
            }
        });
    }

    /// Takes at most `most` waiting jobs for a shared pass of `room` tokens, with their numbers; one job without shared passes.
    pub(super) fn take_for_a_pass(
        &self,
        embedder: &Embedder,
        room: usize,
        most: usize,
    ) -> (Vec<u64>, Vec<Prepared>) {
        let mut tokens = 0;
        let (mut numbers, mut jobs) = (Vec::new(), Vec::new());
        while let Some((number, job)) = self.queue.take() {
            let job = job.prepare(embedder);
            tokens += job.tokens();
            numbers.push(number);
            jobs.push(job);
            // If the last one does not fit, the encoder makes two passes.
            if tokens >= room || jobs.len() >= most {
                break;
            }
        }
        (numbers, jobs)
    }

    /// Settles a call in order. A reply that panics must not end the thread.
    fn settle(&self, settlement: Settlement) {
        runtime::hold_at_exit();
        let _ = catch_unwind(AssertUnwindSafe(|| settlement(&self.shared)));
    }
}
