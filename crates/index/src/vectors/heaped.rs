//! Replaces memory pages of their own in WebAssembly, which has none.

use std::ops;

use bytemuck::Pod;

/// A vector of values with a fixed capacity, which never moves.
#[derive(Debug)]
pub(crate) struct Mapped<T>(Vec<T>);

impl<T: Pod> Mapped<T> {
    /// An empty vector with room for `capacity` values; `None` if there is not enough memory.
    pub(crate) fn allocate(capacity: usize) -> Option<Self> {
        let mut values = Vec::new();
        values.try_reserve_exact(capacity).ok()?;
        Some(Self(values))
    }

    /// Appends values, for which there must be room.
    pub(crate) fn extend_from_slice(&mut self, values: &[T]) {
        self.0.extend_from_slice(values);
    }

    /// Removes all values but the first `length`; the memory stays.
    pub(crate) fn truncate(&mut self, length: usize) {
        self.0.truncate(length);
    }
}

/// Appends values, for which there must be room.
impl<T: Pod> Extend<T> for Mapped<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, values: I) {
        let room = self.0.capacity() - self.0.len();
        self.0.extend(values.into_iter().take(room));
    }
}

impl<T: Pod> ops::Deref for Mapped<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T: Pod> ops::DerefMut for Mapped<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}
