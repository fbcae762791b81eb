//! Injects faults for tests. This needs the feature `fault-injection`; otherwise [`point`] does nothing.

/// A place where tests can cause a panic: `KNOWLEDGEPULSE_FAULT=tokens:2` panics at the second call with the stage `tokens`.
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

/// A place where tests can cause a panic. Does nothing in this build.
#[cfg(not(feature = "fault-injection"))]
#[inline(always)]
pub fn point(_stage: &str) {}
