//! Chooses the best traces of a run by their scores. Scored traces wait in a temporary file until all scores are known. A
//! second pass over the input is impossible for standard input and pipes, and would have to score every trace again beside a
//! memory that holds it already.

use std::{
    fs::File,
    io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write},
};

use knowledgepulse_os::temporary;
use knowledgepulse_score::select::Count;

use crate::error::{Failure, Result, reason_of};

/// A record in the file.
#[derive(Debug, Clone, Copy)]
struct Entry {
    score: f64,
    position: u64,
    length: usize,
}

/// The records of a run, in the order in which they were added. Holds 24 bytes for each in memory.
pub(crate) struct Ranking {
    file: BufWriter<File>,
    entries: Vec<Entry>,
    position: u64,
}

/// The best records, and the order of all.
pub(crate) struct Best {
    entries: Vec<Entry>,
    /// Whether each of the entries is among the best.
    is_best: Vec<bool>,
    /// The positions of the best, in their order.
    order: Vec<usize>,
    /// The lowest score among the best; 0 without any.
    pub threshold: f64,
    file: File,
}

impl Ranking {
    /// Creates the temporary file, which only this process can open.
    pub(crate) fn new() -> Result<Self> {
        Ok(Self {
            file: BufWriter::new(temporary::unnamed().map_err(|error| cannot_keep(&error))?),
            entries: Vec::new(),
            position: 0,
        })
    }

    /// Adds a text that comes back in its place.
    pub(crate) fn add(&mut self, score: f64, record: &[u8]) -> Result<()> {
        self.file.write_all(record).map_err(|error| cannot_keep(&error))?;
        let length = record.len();
        let position = self.position;
        self.entries.push(Entry {
            score,
            position,
            length,
        });
        self.position += length as u64;
        Ok(())
    }

    /// Finds the best traces; of equal scores, the earlier ones.
    pub(crate) fn finish(self, top: Count) -> Result<Best> {
        let mut order = by_rank(&self.entries);
        order.truncate(count_of(top, order.len()));
        self.finish_with(order)
    }

    /// Takes the records at these positions for the best, in this order.
    pub(crate) fn finish_with(self, order: Vec<usize>) -> Result<Best> {
        let Self { file, entries, .. } = self;
        let file = file.into_inner().map_err(|error| cannot_keep(error.error()))?;
        let mut is_best = vec![false; entries.len()];
        order.iter().for_each(|&at| is_best[at] = true);
        Ok(Best {
            threshold: order.last().map_or(0.0, |&at| entries[at].score),
            entries,
            is_best,
            order,
            file,
        })
    }
}

/// Returns how many of `all` are the best: at least one, if there is any.
fn count_of(top: Count, all: usize) -> usize {
    top.of(all).max(1).min(all)
}

/// Returns the positions of the entries, highest score first; of equal scores, the earlier first.
fn by_rank(entries: &[Entry]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..entries.len()).collect();
    // The sort is stable. Scores are never NaN; -0 and 0 are equal.
    order.sort_by(|&a, &b| {
        entries[b]
            .score
            .partial_cmp(&entries[a].score)
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    order
}

impl Best {
    /// Hands on all records in the order in which they were added, and whether each is among the best.
    pub(crate) fn each(&mut self, mut take: impl FnMut(&[u8], bool) -> Result<()>) -> Result<()> {
        self.file.rewind().map_err(|error| cannot_keep(&error))?;
        let mut file = BufReader::with_capacity(1024 * 1024, &self.file);
        let mut record = Vec::new();
        for (entry, &is_best) in self.entries.iter().zip(&self.is_best) {
            record.resize(entry.length, 0);
            file.read_exact(&mut record)
                .map_err(|error| cannot_keep(&error))?;
            take(&record, is_best)?;
        }
        Ok(())
    }

    /// Hands on the best records, that of the highest score first.
    pub(crate) fn best(&mut self, mut take: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let mut record = Vec::new();
        for &at in &self.order {
            let Entry { position, length, .. } = self.entries[at];
            record.resize(length, 0);
            let read = self
                .file
                .seek(SeekFrom::Start(position))
                .and_then(|_| self.file.read_exact(&mut record));
            read.map_err(|error| cannot_keep(&error))?;
            take(&record)?;
        }
        Ok(())
    }
}

fn cannot_keep(error: &io::Error) -> Failure {
    Failure::file(format!(
        "cannot write to {}, where the traces wait until the best are known: {}; TMPDIR names another directory",
        temporary::directory().display(),
        reason_of(error)
    ))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_best_are_the_first_of_a_stable_sort(
            scores in proptest::collection::vec(0_u8..5, 0..40),
            count in 1_usize..50,
        ) {
            let mut ranking = Ranking::new().unwrap();
            for (at, &score) in scores.iter().enumerate() {
                ranking.add(f64::from(score), format!("record {at}").as_bytes()).unwrap();
            }
            let mut expected: Vec<usize> = (0..scores.len()).collect();
            expected.sort_by_key(|&at| std::cmp::Reverse(scores[at]));
            expected.truncate(count);
            let mut best = ranking.finish(Count::Number(count)).unwrap();
            let mut found = Vec::new();
            best.best(|record| { found.push(String::from_utf8(record.to_vec()).unwrap()); Ok(()) }).unwrap();
            prop_assert_eq!(found, expected.iter().map(|at| format!("record {at}")).collect::<Vec<_>>());
            let mut at = 0;
            best.each(|record, is_best| {
                assert_eq!((record, is_best), (format!("record {at}").as_bytes(), expected.contains(&at)));
                at += 1;
                Ok(())
            }).unwrap();
            prop_assert_eq!(at, scores.len());
        }
    }

    #[test]
    fn a_percentage_is_rounded_up_and_keeps_at_least_one() {
        for (percent, all, count) in [
            (10.0, 10, 1),
            (10.0, 11, 2),
            (0.1, 5, 1),
            (100.0, 7, 7),
            (29.0, 100, 29),
            (50.0, 0, 0),
        ] {
            assert_eq!(
                count_of(Count::Percent(percent), all),
                count,
                "{percent} % of {all}"
            );
        }
    }
}
