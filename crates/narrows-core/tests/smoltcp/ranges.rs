//! Which bytes of a stream are here.

/// Ranges `[start, end)`, ascending, apart from each other.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges(Vec<(u64, u64)>);

impl Ranges {
    pub(crate) fn add(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        let is_apart = |&(from, to): &(u64, u64)| to < start || end < from;
        let touched = self.0.iter().filter(|range| !is_apart(range));
        let merged = touched.fold((start, end), |all, range| (all.0.min(range.0), all.1.max(range.1)));
        self.0.retain(is_apart);
        self.0.push(merged);
        self.0.sort_unstable();
    }

    /// The range that all of `[start, end)` is in.
    pub(crate) fn around(&self, start: u64, end: u64) -> Option<(u64, u64)> {
        self.0.iter().copied().find(|&(from, to)| from <= start && end <= to)
    }

    /// The first byte of a stream that is missing.
    pub(crate) fn next(&self) -> u64 {
        self.0.first().filter(|range| range.0 <= 1).map_or(1, |range| range.1)
    }

    /// What is here beyond the first byte that is missing.
    pub(crate) fn beyond(&self) -> &[(u64, u64)] {
        let begun = self.0.first().is_some_and(|range| range.0 <= 1);
        &self.0[usize::from(begun)..]
    }
}
