//! Work that is spread over threads.

use std::{
    panic::resume_unwind,
    sync::{Mutex, PoisonError},
    thread,
};

/// Does `work` on each part, on up to `threads` threads at once, the caller's among them. Each thread begins with a state of its own. If the
/// system starts no more threads, fewer do the work.
///
/// # Errors
/// The first error of `work`, after which no thread begins another part.
pub fn for_each<P: Send, S, E: Send>(
    threads: usize,
    parts: impl Iterator<Item = P> + Send,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, P) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let left = Mutex::new((parts, Ok(())));
    let lock = || left.lock().unwrap_or_else(PoisonError::into_inner);
    let next = || {
        let (parts, done) = &mut *lock();
        done.is_ok().then(|| parts.next()).flatten()
    };
    let work = || {
        let mut state = state();
        while let Some(part) = next() {
            if let Err(error) = work(&mut state, part) {
                lock().1 = Err(error);
            }
        }
    };
    thread::scope(|scope| {
        let helpers = (1..threads).map_while(|_| thread::Builder::new().spawn_scoped(scope, work).ok());
        let helpers: Vec<_> = helpers.collect();
        work();
        for helper in helpers {
            helper.join().unwrap_or_else(|panic| resume_unwind(panic));
        }
    });
    left.into_inner().unwrap_or_else(PoisonError::into_inner).1
}
