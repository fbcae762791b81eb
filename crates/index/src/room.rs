//! Vectors whose memory may be refused.

/// A vector that is allocated at once, without ending the process where there is not enough memory.
pub(crate) trait WithRoom: Sized {
    /// Returns an empty vector with room for `capacity` values; `None` if there is not enough memory.
    fn with_room(capacity: usize) -> Option<Self>;
}

impl<T> WithRoom for Vec<T> {
    fn with_room(capacity: usize) -> Option<Self> {
        let mut values = Self::new();
        values.try_reserve_exact(capacity).ok()?;
        Some(values)
    }
}
