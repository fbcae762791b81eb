//! Threads that live as long as the encoder. A pass is cut into parts, which free threads claim from a shared counter. So
//! the caller can finish alone: where other programs keep the processors busy, it takes the parts that its helpers do not
//! come to.

use std::{
    hint,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use knowledgepulse_error::panic_message;
use knowledgepulse_os as os;

use crate::error::{Error, Result};

/// How long a helper spins after a pass before it sleeps: a call that follows another comes within that time, and waking a thread
/// takes from 40 µs to 2 ms in a virtual machine.
const IDLE: Duration = Duration::from_micros(300);

/// How long a thread spins within a pass, where the others are about to finish, before it sleeps: each sleep is a chance to wake on a
/// processor that another thread of the pass uses. And it never yields: Linux then takes a whole slice from it (since 6.18). DESIGN.md has
/// the figures.
const PATIENCE: Duration = Duration::from_millis(1);

/// The work for a part: takes the numbers of the thread, the step and the part. The first error ends the pass.
pub(crate) type Work = Box<dyn Fn(usize, usize, usize) -> Result<()> + Send + Sync>;

/// The thread that calls [`ThreadPool::run`] and its helpers.
#[derive(Debug)]
pub(crate) struct ThreadPool {
    shared: Arc<Shared>,
    helpers: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    /// Passes begun; a helper reads this counter while it spins.
    begun: AtomicUsize,
    order: Mutex<Order>,
    start: Condvar,
}

#[derive(Default)]
struct Order {
    begun: usize,
    pass: Option<Arc<Pass>>,
    stop: bool,
}

impl ThreadPool {
    /// Creates a pool of `threads`, or of fewer where the system starts no more.
    pub fn new(threads: usize) -> Self {
        let shared = Arc::<Shared>::default();
        let helpers = (1..threads).map_while(|number| {
            let shared = Arc::clone(&shared);
            let builder = thread::Builder::new().name(format!("encoder {number}"));
            builder.spawn(move || shared.help(number)).ok()
        });
        let helpers = helpers.collect();
        Self { shared, helpers }
    }

    /// Returns how many threads there are, the caller's included.
    pub fn threads(&self) -> usize {
        self.helpers.len() + 1
    }

    /// Has the threads do `work` for all parts of all steps, the calling one as number 0: `parts` has the number of parts of each
    /// step. A step begins when all parts of the one before are done.
    ///
    /// # Errors
    /// The first error of a part; [`Error::Panicked`] if one has panicked. Parts that were not begun before are left out.
    pub fn run(&mut self, parts: impl IntoIterator<Item = usize>, work: Work) -> Result<()> {
        let pass = Arc::new(Pass::new(parts, work));
        // One part at a time needs no help.
        if pass.steps.windows(2).any(|step| step[1] - step[0] > 1) {
            let mut order = lock(&self.shared.order);
            order.begun = order.begun.wrapping_add(1);
            order.pass = Some(Arc::clone(&pass));
            self.shared.begun.store(order.begun, Ordering::Release);
            drop(order);
            self.shared.start.notify_all();
        }
        pass.take_part(0);
        pass.wait_for(pass.end());
        lock(&self.shared.order).pass = None;
        match lock(&pass.failure).take() {
            None => Ok(()),
            Some(error) => Err(error),
        }
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        lock(&self.shared.order).stop = true;
        self.shared.start.notify_all();
        for helper in self.helpers.drain(..) {
            // The helper catches the panic of a part.
            let _ = helper.join();
        }
    }
}

impl Shared {
    fn help(&self, number: usize) {
        let mut done = 0;
        loop {
            spin_until(IDLE, || self.begun.load(Ordering::Acquire) != done);
            let mut order = lock(&self.order);
            while order.begun == done && !order.stop {
                order = self.start.wait(order).unwrap_or_else(PoisonError::into_inner);
            }
            if order.stop {
                return;
            }
            done = order.begun;
            // A helper that comes too late finds no pass.
            let pass = order.pass.clone();
            drop(order);
            if let Some(pass) = pass {
                os::leave(pass.waker.load(Ordering::Relaxed));
                pass.take_part(number);
            }
        }
    }
}

/// Steps that follow each other, each with parts that may be done in any order and on any thread. All parts are numbered,
/// the first step's first.
struct Pass {
    work: Work,
    /// The number of the first part of each step, and how many parts there are.
    steps: Vec<usize>,
    /// The part that is taken next.
    next: AtomicUsize,
    /// How many are done, or left out after an error.
    done: AtomicUsize,
    sleepers: AtomicUsize,
    /// The processor of the thread that has woken others last, which they leave to it.
    waker: AtomicUsize,
    lock: Mutex<()>,
    wake: Condvar,
    failure: Mutex<Option<Error>>,
}

impl Pass {
    fn new(parts: impl IntoIterator<Item = usize>, work: Work) -> Self {
        let mut steps = vec![0];
        let mut end = 0;
        for parts in parts {
            end += parts;
            steps.push(end);
        }
        Self {
            work,
            steps,
            next: AtomicUsize::new(0),
            done: AtomicUsize::new(0),
            sleepers: AtomicUsize::new(0),
            waker: AtomicUsize::new(os::processor()),
            lock: Mutex::default(),
            wake: Condvar::new(),
            failure: Mutex::default(),
        }
    }

    /// Returns how many parts there are.
    fn end(&self) -> usize {
        self.steps.last().copied().unwrap_or(0)
    }

    /// Does parts until all are claimed.
    fn take_part(&self, thread: usize) {
        for (step, range) in self.steps.windows(2).enumerate() {
            let &[first, end] = range else { continue };
            // No thread may claim a part that is not open yet: a sleeping thread would keep it.
            while self.next.load(Ordering::SeqCst) < end {
                self.wait_for(first);
                let taken = self
                    .next
                    .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |next| {
                        (first..end).contains(&next).then_some(next + 1)
                    });
                let Ok(part) = taken else { break };
                let work = || (self.work)(thread, step, part - first);
                let outcome = catch_unwind(AssertUnwindSafe(work));
                let outcome = outcome.unwrap_or_else(|panic| Err(Error::Panicked(panic_message(&*panic))));
                let mut done = 1;
                if let Err(error) = outcome {
                    lock(&self.failure).get_or_insert(error);
                    let end = self.end();
                    done += end - self.next.swap(end, Ordering::SeqCst);
                }
                self.finish(done);
            }
        }
    }

    /// Counts parts as done, and wakes the threads that wait for the last part of a step.
    fn finish(&self, parts: usize) {
        let done = self.done.fetch_add(parts, Ordering::SeqCst) + parts;
        if self.sleepers.load(Ordering::SeqCst) > 0 && self.steps.contains(&done) {
            self.waker.store(os::processor(), Ordering::Relaxed);
            drop(lock(&self.lock));
            self.wake.notify_all();
        }
    }

    /// Waits until `parts` of them are done.
    fn wait_for(&self, parts: usize) {
        let over = || self.done.load(Ordering::SeqCst) >= parts;
        if spin_until(PATIENCE, over) {
            return;
        }
        let mut guard = lock(&self.lock);
        // The thread that finishes last counts first and then looks for sleepers; here it is the other way round, so one of
        // the two sees the other.
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        while !over() {
            guard = self.wake.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
        drop(guard);
        os::leave(self.waker.load(Ordering::Relaxed));
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut std::fmt::Formatter) -> std::fmt::Result {
        formatter.debug_struct("Shared").finish_non_exhaustive()
    }
}

/// Spins until `over`, but no longer than `limit`. Returns whether it is.
fn spin_until(limit: Duration, over: impl Fn() -> bool) -> bool {
    let mut start = None;
    loop {
        for _ in 0..64 {
            if over() {
                return true;
            }
            hint::spin_loop();
        }
        if start.get_or_insert_with(Instant::now).elapsed() > limit {
            return false;
        }
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The next pass overwrites everything that a panic leaves behind.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_begins_when_all_parts_of_the_one_before_are_done() {
        const PARTS: [usize; 5] = [3, 1, 0, 7, 2];
        for threads in 1..=4 {
            let mut pool = ThreadPool::new(threads);
            assert_eq!(pool.threads(), threads);
            for _ in 0..if cfg!(miri) { 2 } else { 200 } {
                let done: Arc<[AtomicUsize; PARTS.len()]> = Arc::default();
                let seen = Arc::clone(&done);
                let work: Work = Box::new(move |thread, step, part| {
                    assert!(thread < threads && part < PARTS[step]);
                    for (earlier, parts) in PARTS.iter().enumerate().take(step) {
                        assert_eq!(seen[earlier].load(Ordering::Relaxed), *parts);
                    }
                    seen[step].fetch_add(1, Ordering::Relaxed);
                    Ok(())
                });
                pool.run(PARTS, work).unwrap();
                let done: Vec<usize> = done.iter().map(|done| done.load(Ordering::Relaxed)).collect();
                assert_eq!(done, PARTS);
            }
        }
    }

    #[test]
    fn a_part_that_fails_or_panics_keeps_nobody_waiting() {
        let mut pool = ThreadPool::new(3);
        for bad in 0..4 {
            for panics in [false, true] {
                let work: Work = Box::new(move |_, step, part| {
                    assert!(step < 2, "the step before has failed");
                    if step == 1 && part == bad {
                        if panics {
                            panic!("as tested");
                        }
                        return Err(Error::NoTokens);
                    }
                    Ok(())
                });
                match pool.run([4, 4, 4], work) {
                    Err(Error::Panicked(message)) if panics => assert_eq!(message, "as tested"),
                    Err(Error::NoTokens) if !panics => {}
                    other => panic!("{other:?}"),
                }
                pool.run([4, 4], Box::new(|_, _, _| Ok(()))).unwrap();
            }
        }
    }

    #[test]
    fn sleeping_threads_wake() {
        const NAP: Duration = PATIENCE.saturating_mul(30);
        let mut pool = ThreadPool::new(2);
        for sleeper in 0..2 {
            thread::sleep(NAP);
            // Each of the two threads does a part of the first step, and one has to wait for the other.
            let both = Arc::new(std::sync::Barrier::new(2));
            let work: Work = Box::new(move |thread, step, _| {
                if step == 0 {
                    both.wait();
                    if thread == sleeper {
                        thread::sleep(NAP);
                    }
                }
                Ok(())
            });
            pool.run([2, 3], work).unwrap();
        }
    }
}
