//! The inference thread and its lanes.

use std::{
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
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
    load::{BoxedLane, Loaded, Options, load, threads},
    queue::{InOrder, Queue},
};

/// How many calls must wait before lanes of ONNX Runtime are opened: opening them takes as long as embedding a few texts.
const BACKLOG: usize = 6;

/// Each lane of ONNX Runtime has its own repacked half of the weights; with more threads than this, lanes get several.
const MOST_LANES: usize = 4;

/// More threads would wait for the memory: to compare and remember a trace takes two fifths of the work.
const MOST_WORD_THREADS: usize = 4;

/// Lanes that had nothing to do for so long are closed, which returns their memory.
const LANE_PATIENCE: Duration = Duration::from_secs(10);

/// A year, where there is nothing to close: the platforms' limits for waiting are not much higher.
const NO_HURRY: Duration = Duration::from_secs(365 * 24 * 3600);

/// What the inference thread, or the threads that find words, work with.
pub(super) struct Worker {
    options: Options,
    queue: Arc<Queue<Job>>,
    shared: Arc<Shared>,
    /// The order of the calls, where nothing is embedded.
    in_order: InOrder<Settlement>,
}

impl Worker {
    pub(super) fn new(options: Options, queue: Arc<Queue<Job>>, shared: Arc<Shared>) -> Self {
        Self {
            options,
            queue,
            shared,
            in_order: InOrder::new(0),
        }
    }

    /// How many threads find words.
    pub(super) fn word_threads(&self) -> usize {
        threads(&self.options).min(MOST_WORD_THREADS)
    }

    /// The inference thread's life. It ends only with the process.
    pub(super) fn work(&self) {
        os::stand_back();
        let Some((loaded, mut lane)) = load(&self.options, &self.shared) else {
            return self.settle_all();
        };
        let count = self.lanes_of(&loaded.embedder);
        // From how many calls on lanes are opened, and down to how many they go on.
        let (begin, least) = if loaded.embedder.network().pass_tokens() > 0 {
            (count, count)
        } else {
            (BACKLOG, 1)
        };
        let mut lanes = Vec::new();
        // What loading has freed is returned as soon as nobody waits.
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
            // One at a time where passes are not shared, also where the lanes could not be opened.
            let room = loaded.embedder.network().pass_tokens();
            let (_, jobs) = self.take_for_a_pass(&loaded.embedder, room, usize::MAX);
            for settlement in embed_together(&loaded, &mut *lane, jobs) {
                self.settle(settlement);
            }
        }
    }

    /// The life of a thread without an embedder, of which several may take turns.
    pub(super) fn settle_all(&self) {
        loop {
            let (number, job) = self.queue.wait();
            let settlement = job.without_embedder();
            self.in_order
                .finish(number, settlement, |settlement| self.settle(settlement));
        }
    }

    /// How many texts, or passes of short ones, are embedded side by side. Lanes of the built-in engine share the weights and need no
    /// barrier, so each thread has one.
    fn lanes_of(&self, embedder: &Embedder) -> usize {
        let threads = threads(&self.options);
        if embedder.network().pass_tokens() > 0 {
            threads
        } else {
            threads.min(MOST_LANES)
        }
    }

    /// Opens the lanes that are missing. Without them, because memory or threads are short, it takes longer.
    fn open_lanes(&self, embedder: &Embedder, lanes: &mut Vec<BoxedLane>, count: usize) {
        let threads = threads(&self.options);
        while lanes.len() < count {
            match guarded(|| embedder.network().open_lane(threads / count)) {
                Ok(lane) => lanes.push(lane),
                Err(_) => break,
            }
        }
    }

    /// Works through the queue until fewer than `least` jobs wait, with one thread for each lane.
    fn work_side_by_side(&self, loaded: &Loaded, lanes: &mut [BoxedLane], least: usize) {
        let in_order = InOrder::new(self.queue.next_number());
        // Half of what all threads share: one thread is as busy with it, and more is left that the others can share.
        let room = loaded.embedder.network().pass_tokens() / 2;
        let idle = AtomicUsize::new(lanes.len());
        thread::scope(|scope| {
            for lane in lanes {
                let work = || {
                    // Moves the lane in: it is this thread's alone.
                    let lane = lane;
                    let mut is_first = true;
                    loop {
                        let waiting = self.queue.len();
                        // The last ones are done sooner by all threads together.
                        if waiting < least && !mem::take(&mut is_first) {
                            return;
                        }
                        // Of many short texts, a lane leaves as many to each of the others that have none.
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
                // Fewer threads take longer; none leave the work to the caller.
                let _ = thread::Builder::new().spawn_scoped(scope, work);
            }
        });
    }

    /// Takes jobs whose texts share a pass of `room` tokens, at most so many, with their numbers; one job where passes are not shared, and none if none waits.
    fn take_for_a_pass(&self, embedder: &Embedder, room: usize, most: usize) -> (Vec<u64>, Vec<Prepared>) {
        let mut tokens = 0;
        let (mut numbers, mut jobs) = (Vec::new(), Vec::new());
        while let Some((number, job)) = self.queue.take() {
            let job = job.prepare(embedder);
            tokens += job.tokens();
            numbers.push(number);
            jobs.push(job);
            // The last one may not fit: then the encoder makes two passes.
            if tokens >= room || jobs.len() >= most {
                break;
            }
        }
        (numbers, jobs)
    }

    /// Does what must be done in order. A reply that panics must not end the thread.
    fn settle(&self, settlement: Settlement) {
        runtime::hold_at_exit();
        let _ = catch_unwind(AssertUnwindSafe(|| settlement(&self.shared)));
    }
}
