//! The inference thread and its lanes.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
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

/// How many calls must wait before lanes are opened: opening them takes as long as embedding a few texts.
const BACKLOG: usize = 6;

/// Each lane has its own repacked half of the weights; with more threads than this, lanes get several.
const MOST_LANES: usize = 4;

/// Lanes that had nothing to do for so long are closed, which returns their memory.
const LANE_PATIENCE: Duration = Duration::from_secs(10);

/// A year, where there is nothing to close: the platforms' limits for waiting are not much higher.
const NO_HURRY: Duration = Duration::from_secs(365 * 24 * 3600);

/// What the inference thread works with.
pub(super) struct Worker {
    options: Options,
    queue: Arc<Queue<Job>>,
    shared: Arc<Shared>,
}

impl Worker {
    pub(super) fn new(options: Options, queue: Arc<Queue<Job>>, shared: Arc<Shared>) -> Self {
        Self {
            options,
            queue,
            shared,
        }
    }

    /// The inference thread's life. It ends only with the process.
    pub(super) fn work(&self) {
        os::stand_back();
        let Some((loaded, mut lane)) = load(&self.options, &self.shared) else {
            return self.settle_all();
        };
        let shares_passes = loaded.embedder.network().pass_tokens() > 0;
        let mut lanes = Vec::new();
        let mut next = None;
        // What loading has freed is returned as soon as nobody waits.
        let mut patience = Duration::ZERO;
        loop {
            let backlog = match next {
                Some(_) => 1,
                None => self.queue.wait_for_backlog(patience),
            };
            if backlog == 0 {
                lanes.clear();
                os::return_freed_memory();
                patience = NO_HURRY;
            } else if backlog >= BACKLOG && !shares_passes {
                self.open_lanes(&loaded.embedder, &mut lanes);
                self.work_side_by_side(&loaded, &mut lanes);
                patience = LANE_PATIENCE;
            }
            // One at a time where passes are not shared, also where the lanes could not be opened.
            let jobs = self.take_for_a_pass(&loaded.embedder, &mut next);
            for settlement in embed_together(&loaded, &mut *lane, jobs) {
                self.settle(settlement);
            }
        }
    }

    /// The life of a thread without an embedder.
    pub(super) fn settle_all(&self) {
        loop {
            let (_, job) = self.queue.wait();
            self.settle(job.without_embedder());
        }
    }

    /// The next jobs whose texts fit a pass, at least one if there is one. What does not fit any more is left in `next`.
    fn take_for_a_pass(&self, embedder: &Embedder, next: &mut Option<Prepared>) -> Vec<Prepared> {
        let room = embedder.network().pass_tokens();
        let mut tokens = 0;
        let mut jobs: Vec<Prepared> = Vec::new();
        loop {
            let job = next
                .take()
                .or_else(|| Some(self.queue.take()?.1.prepare(embedder)));
            let Some(job) = job else { return jobs };
            tokens += job.tokens();
            if tokens > room && !jobs.is_empty() {
                *next = Some(job);
                return jobs;
            }
            jobs.push(job);
            if tokens >= room {
                return jobs;
            }
        }
    }

    /// Opens the lanes that are missing. Without them, because memory or threads are short, it takes longer.
    fn open_lanes(&self, embedder: &Embedder, lanes: &mut Vec<BoxedLane>) {
        let threads = threads(&self.options);
        let count = threads.min(MOST_LANES);
        while count > 1 && lanes.len() < count {
            match guarded(|| embedder.network().open_lane(threads / count)) {
                Ok(lane) => lanes.push(lane),
                Err(_) => break,
            }
        }
    }

    /// Works through the queue until it is empty, with one thread for each lane.
    fn work_side_by_side(&self, loaded: &Loaded, lanes: &mut [BoxedLane]) {
        let in_order = InOrder::new(self.queue.next_number());
        thread::scope(|scope| {
            for lane in lanes {
                let work = || {
                    // Moves the lane in: it is this thread's alone.
                    let lane = lane;
                    while let Some((number, job)) = self.queue.take() {
                        let jobs = vec![job.prepare(&loaded.embedder)];
                        for settlement in embed_together(loaded, &mut **lane, jobs) {
                            in_order.finish(number, settlement, |settlement| self.settle(settlement));
                        }
                    }
                };
                // Fewer threads take longer; none leave the work to the caller.
                let _ = thread::Builder::new().spawn_scoped(scope, work);
            }
        });
    }

    /// Does what must be done in order. A reply that panics must not end the thread.
    fn settle(&self, settlement: Settlement) {
        runtime::hold_at_exit();
        let _ = catch_unwind(AssertUnwindSafe(|| settlement(&self.shared)));
    }
}
