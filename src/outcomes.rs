//! Traces whose outcome was unknown to a reader of logs, and is not unknown any more in a copy without `metadata.imported`.

use knowledgepulse_trace::Trace;

/// Returns whether a trace without this note has the outcome that readers fill in.
#[allow(clippy::float_cmp)] // They fill in exactly this.
pub(super) fn is_filled_in(trace: &Trace) -> bool {
    !trace.success && trace.confidence == 0.5
}

/// Returns what is told of so many of them; `None` without one.
pub(super) fn told_of(count: usize) -> Option<String> {
    let found = match count {
        0 => return None,
        1 => "1 trace has".to_owned(),
        _ => format!("{count} traces have"),
    };
    Some(format!(
        "{found} success: false with a confidence of 0.5 and no metadata.imported, and count as failures: if readTraces made them, copy \
         metadata.imported too"
    ))
}
