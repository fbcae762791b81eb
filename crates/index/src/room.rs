//! Vectors whose memory may be refused.

/// Returns an empty vector with room for `capacity` values; `None`, without ending the process, if there is not enough memory.
pub(crate) fn with_room<T>(capacity: usize) -> Option<Vec<T>> {
    let mut values = Vec::new();
    values.try_reserve_exact(capacity).ok()?;
    Some(values)
}
