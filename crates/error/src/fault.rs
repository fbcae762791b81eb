//! Makes a stage fail on purpose, to test what happens then. This needs a build with the feature `fault-injection`; in every
//! other build [`point`] does nothing.

/// A place where a test can make the process panic. With `KNOWLEDGEPULSE_FAULT=tokens:2` it panics when the stage `tokens` is reached
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

/// A place where a test can make the process panic. In this build it does nothing.
#[cfg(not(feature = "fault-injection"))]
#[inline(always)]
pub fn point(_stage: &str) {}
