//! Values in memory pages of their own, which return to the system when they are dropped.

use std::{iter, marker::PhantomData, mem, ops};

use bytemuck::Pod;
use memmap2::MmapMut;

/// The size of a huge page on most systems.
const HUGE_PAGE_BYTES: usize = 2 * 1024 * 1024;

/// A vector of values with a fixed capacity, which never moves. Unlike a large `Vec`, it can use huge pages, which the system provides
/// several times as fast, and no allocator keeps its memory when it is freed.
#[derive(Debug)]
pub(crate) struct Mapped<T> {
    pages: MmapMut,
    length: usize,
    values: PhantomData<Vec<T>>,
}

impl<T: Pod> Mapped<T> {
    /// Returns an empty vector with room for `capacity` values; `None` if there is not enough memory.
    pub(crate) fn with_room(capacity: usize) -> Option<Self> {
        const {
            assert!(mem::align_of::<T>() <= 4096, "pages are aligned to no more");
            assert!(
                HUGE_PAGE_BYTES.is_multiple_of(size_of::<T>()),
                "huge pages are whole numbers of values"
            );
        }
        let bytes = capacity.checked_mul(size_of::<T>())?;
        let huge = cfg!(target_os = "linux") && bytes >= HUGE_PAGE_BYTES / 2;
        // Rounded up, because a part of a huge page would use small pages.
        let mapped = if huge {
            bytes.checked_next_multiple_of(HUGE_PAGE_BYTES)?
        } else {
            bytes
        };
        let pages = MmapMut::map_anon(mapped).ok()?;
        #[cfg(target_os = "linux")]
        if huge {
            // Ignores a refusal: small pages are only slower.
            let _ = pages.advise(memmap2::Advice::HugePage);
        }
        Some(Self {
            pages,
            length: 0,
            values: PhantomData,
        })
    }

    /// Appends values, for which there must be room.
    pub(crate) fn extend_from_slice(&mut self, values: &[T]) {
        let (start, end) = (self.length, self.length + values.len());
        bytemuck::cast_slice_mut(&mut self.pages)[start..end].copy_from_slice(values);
        self.length = end;
    }

    /// Removes all values but the first `length`; the memory stays.
    pub(crate) fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }
}

/// Appends values, for which there must be room.
impl<T: Pod> Extend<T> for Mapped<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, values: I) {
        let room = &mut bytemuck::cast_slice_mut(&mut self.pages)[self.length..];
        let mut count = 0;
        for (place, value) in iter::zip(room, values) {
            *place = value;
            count += 1;
        }
        self.length += count;
    }
}

impl<T: Pod> ops::Deref for Mapped<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &bytemuck::cast_slice(&self.pages)[..self.length]
    }
}

impl<T: Pod> ops::DerefMut for Mapped<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut bytemuck::cast_slice_mut(&mut self.pages)[..self.length]
    }
}
