//! A queue that numbers its jobs, and a gate that lets them out in that order again.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// Jobs in the order in which they were pushed, numbered from 0.
pub(super) struct Queue<T> {
    state: Mutex<State<T>>,
    pushed: Condvar,
}

struct State<T> {
    jobs: VecDeque<T>,
    /// The number of the first job in the queue, or of the next one if it is empty.
    first: u64,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self {
            state: Mutex::new(State {
                jobs: VecDeque::new(),
                first: 0,
            }),
            pushed: Condvar::new(),
        }
    }
}

impl<T> State<T> {
    fn take(&mut self) -> Option<(u64, T)> {
        let job = self.jobs.pop_front()?;
        let number = self.first;
        self.first += 1;
        Some((number, job))
    }
}

impl<T> Queue<T> {
    /// Appends a job.
    pub(super) fn push(&self, job: T) {
        self.lock().jobs.push_back(job);
        self.pushed.notify_one();
    }

    /// The first job, if there is one.
    pub(super) fn take(&self) -> Option<(u64, T)> {
        self.lock().take()
    }

    /// Waits for the first job.
    pub(super) fn wait(&self) -> (u64, T) {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.take() {
                return job;
            }
            state = self.pushed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits for a job, at most `patience`. Returns the number of waiting jobs.
    pub(super) fn wait_for_backlog(&self, patience: Duration) -> usize {
        let (state, _) = self
            .pushed
            .wait_timeout_while(self.lock(), patience, |state| state.jobs.is_empty())
            .unwrap_or_else(PoisonError::into_inner);
        state.jobs.len()
    }

    /// Returns the number of the next job to be taken.
    pub(super) fn next_number(&self) -> u64 {
        self.lock().first
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Releases numbered results in order, whatever the order in which they finish.
pub struct InOrder<T> {
    state: Mutex<Waiting<T>>,
}

struct Waiting<T> {
    next: u64,
    finished: BTreeMap<u64, T>,
    /// Whether a thread is settling; it also settles results that finish meanwhile.
    settling: bool,
}

impl<T> InOrder<T> {
    /// Makes a gate whose first result has the number `next`.
    pub fn new(next: u64) -> Self {
        Self {
            state: Mutex::new(Waiting {
                next,
                finished: BTreeMap::new(),
                settling: false,
            }),
        }
    }

    /// Passes `result`, and results that waited for it, to `settle` in the order of their numbers. If another thread is
    /// settling, leaves it to that thread and returns: settling takes a scan of the memory, during which lanes can embed.
    pub fn finish(&self, number: u64, result: T, mut settle: impl FnMut(T)) {
        self.lock().finished.insert(number, result);
        while let Some((result, _turn)) = self.begin_turn() {
            settle(result);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the next result and the turn to settle it; `None` if another thread settles, or if the next result is missing.
    fn begin_turn(&self) -> Option<(T, Turn<'_, T>)> {
        let mut state = self.lock();
        if state.settling {
            return None;
        }
        let next = state.next;
        let result = state.finished.remove(&next)?;
        state.next += 1;
        state.settling = true;
        Some((result, Turn(self)))
    }
}

/// Ends when dropped, also by a panic, so that later results are still settled.
struct Turn<'g, T>(&'g InOrder<T>);

impl<T> Drop for Turn<'_, T> {
    fn drop(&mut self) {
        self.0.lock().settling = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::{
        panic::{self, AssertUnwindSafe},
        sync::mpsc,
        thread,
    };

    #[test]
    fn a_queue_numbers_its_jobs() {
        let queue = Queue::default();
        assert_eq!(queue.take(), None);
        assert_eq!(queue.wait_for_backlog(Duration::ZERO), 0);
        queue.push('a');
        queue.push('b');
        assert_eq!(queue.wait_for_backlog(Duration::MAX), 2);
        assert_eq!(queue.wait(), (0, 'a'));
        assert_eq!(queue.next_number(), 1);
        assert_eq!(queue.take(), Some((1, 'b')));
        queue.push('c');
        assert_eq!(queue.take(), Some((2, 'c')));
    }

    #[test]
    fn waiting_ends_with_a_push() {
        let queue = Queue::default();
        thread::scope(|scope| {
            let waiting = scope.spawn(|| (queue.wait_for_backlog(Duration::from_secs(3600)), queue.wait()));
            queue.push('a');
            assert_eq!(waiting.join().unwrap(), (1, (0, 'a')));
        });
    }

    #[test]
    fn finished_threads_do_not_wait_for_settling() {
        let gate = InOrder::new(0);
        let settled = Mutex::new(Vec::new());
        let (begin, begun) = mpsc::channel();
        let (leave, left) = mpsc::channel();
        let (gate, settled) = (&gate, &settled);
        thread::scope(|scope| {
            let settle_slowly = move |number| {
                if number == 0 {
                    begin.send(()).unwrap();
                    left.recv_timeout(Duration::from_secs(60)).unwrap();
                }
                settled.lock().unwrap().push(number);
            };
            let settling = scope.spawn(move || gate.finish(0, 0, settle_slowly));
            begun.recv().unwrap();
            for number in [2, 1] {
                gate.finish(number, number, |_| panic!("out of turn"));
            }
            leave.send(()).unwrap();
            settling.join().unwrap();
        });
        assert_eq!(*settled.lock().unwrap(), [0, 1, 2]);
    }

    #[test]
    fn panic_while_settling_keeps_later_results() {
        let gate = InOrder::new(0);
        let settling = panic::catch_unwind(AssertUnwindSafe(|| {
            gate.finish(0, 0, |_| panic!("on purpose"));
        }));
        assert!(settling.is_err());
        let mut settled = Vec::new();
        gate.finish(1, 1, |number| settled.push(number));
        assert_eq!(settled, [1]);
    }

    proptest! {
        #[test]
        fn results_come_out_in_order(order in Just((5..40_u64).collect::<Vec<_>>()).prop_shuffle()) {
            let gate = InOrder::new(5);
            let mut settled = Vec::new();
            for number in order {
                gate.finish(number, number, |number| settled.push(number));
            }
            prop_assert_eq!(settled, (5..40).collect::<Vec<_>>());
        }
    }
}
