//! Makes a stage fail on purpose, for the tests of what happens then. Only a build with the feature `fault-injection` does;
//! in every other build [`point`] is nothing.

/// A place where a test can have the process panic: `KNOWLEDGEPULSE_FAULT=tokens:2` does when the stage `tokens` is reached
/// for the second time.
#[cfg(feature = "fault-injection")]
pub fn point(stage: &str) {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static REACHED: AtomicUsize = AtomicUsize::new(0);

    let Ok(fault) = std::env::var("KNOWLEDGEPULSE_FAULT") else {
        return;
    };
    let (name, time) = fault.split_once(':').unwrap_or((&fault, "1"));
    if name == stage && REACHED.fetch_add(1, Ordering::Relaxed) + 1 == time.parse().unwrap_or(1) {
        panic!("a fault in the stage `{stage}`, on purpose");
    }
}

/// A place where a test can have the process panic, in a build for tests.
#[cfg(not(feature = "fault-injection"))]
#[inline(always)]
pub fn point(_stage: &str) {}
