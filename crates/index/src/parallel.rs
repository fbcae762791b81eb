//! Work that is spread over threads.

use std::thread;

/// Does `work` on up to `threads` threads at once, the caller's among them, and returns each result. If the system starts no more threads,
/// fewer do the work.
pub(crate) fn on_threads<T: Send>(threads: usize, work: impl Fn() -> T + Sync) -> Vec<T> {
    let work = &work;
    thread::scope(|scope| {
        let helpers: Vec<_> = (1..threads)
            .filter_map(|_| thread::Builder::new().spawn_scoped(scope, work).ok())
            .collect();
        let mut results = vec![work()];
        for helper in helpers {
            let result = helper.join();
            results.push(result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        results
    })
}
