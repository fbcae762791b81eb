//! Injects faults for tests, in a build with debug assertions; otherwise [`point`] does nothing.

/// A place where tests can cause a panic: `KNOWLEDGEPULSE_FAULT=tokens:2` panics at the second call with the stage `tokens`.
#[inline(always)]
pub fn point(stage: &str) {
    #[cfg(debug_assertions)]
    reach(stage);
    #[cfg(not(debug_assertions))]
    let _ = stage;
}

#[cfg(debug_assertions)]
fn reach(stage: &str) {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicUsize, Ordering};
    static FAULT: LazyLock<Option<String>> = LazyLock::new(|| std::env::var("KNOWLEDGEPULSE_FAULT").ok());
    static REACHED: AtomicUsize = AtomicUsize::new(0);

    let Some(fault) = &*FAULT else { return };
    let (name, time) = fault.split_once(':').unwrap_or((fault, "1"));
    if name == stage && REACHED.fetch_add(1, Ordering::Relaxed) + 1 == time.parse().unwrap_or(1) {
        panic!("a fault in the stage `{stage}`, on purpose");
    }
}
