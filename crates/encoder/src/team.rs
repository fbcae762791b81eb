//! Threads that live as long as the encoder: they wait for a pass, spinning for microseconds and then asleep.

use std::{
    any::Any,
    hint,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use crate::error::{Error, Result};

/// How long a thread spins before it sleeps, or within a pass before it yields: about what it takes to wake one.
const SPIN: Duration = Duration::from_micros(50);

/// How long a thread yields to others at a barrier, after that, before it sleeps. Waking a thread of a virtual machine whose
/// processor had halted takes up to a millisecond, and a short pass would pay it at every layer; whoever else wants the processor
/// gets it meanwhile.
const PATIENCE: Duration = Duration::from_millis(2);

/// What all threads do, each with its number; the barrier is where they wait for each other. The first error ends the pass
/// for all.
pub(crate) type Job = Arc<dyn Fn(usize, &Barrier) -> Result<(), Stop> + Send + Sync>;

/// Why a thread leaves a pass early.
#[derive(Debug)]
pub(crate) enum Stop {
    /// Another thread has failed.
    Broken,
    /// This one has.
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// The thread that calls [`Team::run`] and its helpers.
#[derive(Debug)]
pub(crate) struct Team {
    shared: Arc<Shared>,
    helpers: Vec<JoinHandle<()>>,
}

struct Shared {
    /// Passes begun; what a helper looks at while it spins.
    begun: AtomicUsize,
    order: Mutex<Order>,
    start: Condvar,
    /// Where the threads wait for each other within a pass.
    barrier: Barrier,
    /// Where all arrive at its end.
    finish: Barrier,
    failure: Mutex<Option<Error>>,
}

#[derive(Default)]
struct Order {
    begun: usize,
    job: Option<Job>,
    stop: bool,
}

impl Team {
    /// A team of `threads`, or of fewer where the system starts no more.
    pub fn new(threads: usize) -> Self {
        // The helpers must know how many they are, so they are started before the team is.
        let (senders, helpers): (Vec<_>, Vec<_>) = (1..threads)
            .map_while(|number| {
                let (sender, receiver) = std::sync::mpsc::sync_channel::<Arc<Shared>>(1);
                let helper = thread::Builder::new()
                    .name(format!("encoder {number}"))
                    .spawn(move || {
                        if let Ok(shared) = receiver.recv() {
                            shared.help(number);
                        }
                    });
                Some((sender, helper.ok()?))
            })
            .unzip();
        let shared = Arc::new(Shared {
            begun: AtomicUsize::new(0),
            order: Mutex::default(),
            start: Condvar::new(),
            barrier: Barrier::new(helpers.len() + 1),
            finish: Barrier::new(helpers.len() + 1),
            failure: Mutex::default(),
        });
        for sender in senders {
            // A helper waits for it, so it is there.
            let _ = sender.send(Arc::clone(&shared));
        }
        Self { shared, helpers }
    }

    /// How many threads there are, the caller's included.
    pub fn threads(&self) -> usize {
        self.helpers.len() + 1
    }

    /// Has all threads do `job`, the calling one as number 0, and waits for them.
    ///
    /// # Errors
    /// The first error of a thread; [`Error::Panicked`] if one has panicked.
    pub fn run(&mut self, job: Job) -> Result<()> {
        let shared = &self.shared;
        if !self.helpers.is_empty() {
            let mut order = lock(&shared.order);
            order.begun = order.begun.wrapping_add(1);
            order.job = Some(Arc::clone(&job));
            shared.begun.store(order.begun, Ordering::Release);
            shared.start.notify_all();
        }
        shared.work(0, &job);
        let _ = shared.finish.wait();
        lock(&shared.order).job = None;
        shared.barrier.mend();
        match lock(&shared.failure).take() {
            None => Ok(()),
            Some(error) => Err(error),
        }
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        lock(&self.shared.order).stop = true;
        self.shared.start.notify_all();
        for helper in self.helpers.drain(..) {
            // It catches what a job panics with.
            let _ = helper.join();
        }
    }
}

impl Shared {
    fn help(&self, number: usize) {
        let mut done = 0;
        loop {
            spin_until(|| self.begun.load(Ordering::Acquire) != done);
            let mut order = lock(&self.order);
            while order.begun == done && !order.stop {
                order = self.start.wait(order).unwrap_or_else(PoisonError::into_inner);
            }
            if order.stop {
                return;
            }
            done = order.begun;
            let job = order.job.clone();
            drop(order);
            if let Some(job) = job {
                self.work(number, &job);
            }
            self.finish.arrive();
        }
    }

    fn work(&self, number: usize, job: &Job) {
        let outcome = catch_unwind(AssertUnwindSafe(|| job(number, &self.barrier)));
        let error = match outcome {
            Ok(Ok(()) | Err(Stop::Broken)) => return,
            Ok(Err(Stop::Failed(error))) => error,
            Err(panic) => Error::Panicked(message(&*panic)),
        };
        lock(&self.failure).get_or_insert(error);
        self.barrier.break_up();
    }
}

/// Where threads wait until all of them are there.
pub(crate) struct Barrier {
    threads: usize,
    arrived: AtomicUsize,
    /// How often all were there.
    passed: AtomicUsize,
    broken: AtomicBool,
    sleepers: AtomicUsize,
    lock: Mutex<()>,
    wake: Condvar,
}

impl Barrier {
    fn new(threads: usize) -> Self {
        Self {
            threads,
            arrived: AtomicUsize::new(0),
            passed: AtomicUsize::new(0),
            broken: AtomicBool::new(false),
            sleepers: AtomicUsize::new(0),
            lock: Mutex::default(),
            wake: Condvar::new(),
        }
    }

    /// Waits for all threads.
    ///
    /// # Errors
    /// [`Stop::Broken`] if one of them has failed and will not come.
    pub fn wait(&self) -> Result<(), Stop> {
        let passed = self.arrive();
        let over = || self.passed.load(Ordering::SeqCst) != passed || self.broken.load(Ordering::SeqCst);
        if !spin_until(over) && !yield_until(over) {
            let mut guard = lock(&self.lock);
            // Whoever comes last changes `passed` and then looks for sleepers; here it is the other way round, so one of the
            // two sees the other.
            self.sleepers.fetch_add(1, Ordering::SeqCst);
            while !over() {
                guard = self.wake.wait(guard).unwrap_or_else(PoisonError::into_inner);
            }
            self.sleepers.fetch_sub(1, Ordering::SeqCst);
        }
        if self.passed.load(Ordering::SeqCst) == passed {
            return Err(Stop::Broken);
        }
        Ok(())
    }

    /// Tells that this thread is there, without waiting. Returns how often all were there before.
    fn arrive(&self) -> usize {
        let passed = self.passed.load(Ordering::SeqCst);
        if self.arrived.fetch_add(1, Ordering::SeqCst) + 1 == self.threads {
            self.arrived.store(0, Ordering::SeqCst);
            self.passed.store(passed.wrapping_add(1), Ordering::SeqCst);
            self.wake_all();
        }
        passed
    }

    fn break_up(&self) {
        self.broken.store(true, Ordering::SeqCst);
        self.wake_all();
    }

    /// Makes it as new, when no thread waits at it.
    fn mend(&self) {
        self.arrived.store(0, Ordering::SeqCst);
        self.broken.store(false, Ordering::SeqCst);
    }

    fn wake_all(&self) {
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            drop(lock(&self.lock));
            self.wake.notify_all();
        }
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut std::fmt::Formatter) -> std::fmt::Result {
        formatter.debug_struct("Shared").finish_non_exhaustive()
    }
}

/// Spins until `over`, but not for long. Returns whether it is.
fn spin_until(over: impl Fn() -> bool) -> bool {
    let mut start = None;
    loop {
        for _ in 0..64 {
            if over() {
                return true;
            }
            hint::spin_loop();
        }
        if start.get_or_insert_with(Instant::now).elapsed() > SPIN {
            return false;
        }
    }
}

/// Gives the processor to others until `over`, but not for long. Returns whether it is.
fn yield_until(over: impl Fn() -> bool) -> bool {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        if over() {
            return true;
        }
        thread::yield_now();
    }
    over()
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What a panic leaves behind is overwritten by the next pass.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_threads_meet_at_every_barrier() {
        for threads in 1..=4 {
            let mut team = Team::new(threads);
            assert_eq!(team.threads(), threads);
            for _ in 0..if cfg!(miri) { 2 } else { 200 } {
                let counts: Arc<[AtomicUsize; 5]> = Arc::default();
                let seen = Arc::clone(&counts);
                let job: Job = Arc::new(move |_, barrier| {
                    for count in &*seen {
                        count.fetch_add(1, Ordering::Relaxed);
                        barrier.wait()?;
                        assert_eq!(count.load(Ordering::Relaxed), threads);
                    }
                    Ok(())
                });
                team.run(job).unwrap();
                assert_eq!(counts[4].load(Ordering::Relaxed), threads);
            }
        }
    }

    #[test]
    fn a_thread_that_fails_or_panics_keeps_nobody_waiting() {
        let mut team = Team::new(3);
        for bad in 0..3 {
            for panics in [false, true] {
                let job: Job = Arc::new(move |number, barrier| {
                    barrier.wait()?;
                    if number == bad {
                        if panics {
                            panic!("as tested");
                        }
                        return Err(Stop::Failed(Error::NoTokens));
                    }
                    barrier.wait()?;
                    unreachable!("one is missing");
                });
                match team.run(job) {
                    Err(Error::Panicked(message)) if panics => assert_eq!(message, "as tested"),
                    Err(Error::NoTokens) if !panics => {}
                    other => panic!("{other:?}"),
                }
                let job: Job = Arc::new(|_, barrier| barrier.wait());
                team.run(job).unwrap();
            }
        }
    }

    #[test]
    fn sleeping_threads_wake() {
        let mut team = Team::new(2);
        for _ in 0..3 {
            thread::sleep(PATIENCE * 3);
            let job: Job = Arc::new(|number, barrier| {
                if number == 0 {
                    thread::sleep(PATIENCE * 3);
                }
                barrier.wait()?;
                if number == 1 {
                    thread::sleep(PATIENCE * 3);
                }
                barrier.wait()
            });
            team.run(job).unwrap();
        }
    }
}
