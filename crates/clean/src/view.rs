//! Another view of a text: parts of it as a reader sees them, which are searched as texts, and whose places lead back.

use std::ops::Range;

use crate::{
    ranges::{Ranges, merged},
    text::Text,
};

/// Parts of a text, one a line.
#[derive(Default)]
pub(super) struct View {
    pub(super) units: Vec<u16>,
    /// Where each unit comes from.
    places: Ranges,
}

impl View {
    /// Adds units with their places as a line.
    pub(super) fn push_line(&mut self, line: impl IntoIterator<Item = (u16, Range<usize>)>) {
        for (unit, place) in line {
            self.units.push(unit);
            self.places.push(place);
        }
        let end = self.places.last().map_or(0, |place| place.end);
        self.units.push(u16::from(b'\n'));
        self.places.push(end..end);
    }

    /// Returns where that comes from which a search finds in the view.
    pub(super) fn find(&self, search: impl FnOnce(&Text) -> Ranges) -> Ranges {
        if self.units.is_empty() {
            return Ranges::new();
        }
        let found = search(&Text::new(&self.units)).into_iter();
        merged(found.filter_map(|range| self.original(&range, 0)).collect())
    }

    /// Returns the part of the text that a range of the view comes from, if what is there differs from it, or no more than so many units before it.
    pub(super) fn original(&self, range: &Range<usize>, most_before: usize) -> Option<Range<usize>> {
        let before = range.start.saturating_sub(most_before);
        let near = self
            .places
            .get(before..(range.end + usize::from(most_before > 0)).min(self.places.len()))?;
        let differs = near
            .windows(2)
            .any(|pair| pair[0].len() > 1 || pair[0].end != pair[1].start);
        let (first, last) = (self.places.get(range.start)?, self.places.get(range.end - 1)?);
        differs.then_some(first.start..last.end)
    }
}
