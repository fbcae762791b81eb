//! Traces whose records are spread over an input: a bounded number of them is open at a time, and a bounded part of the input.

use std::collections::{HashMap, HashSet};

use knowledgepulse_json::Text;

use crate::{DEFAULT_LIMIT, Wrong};

/// How many traces are open at a time.
const MOST_OPEN: usize = 1024;

/// How many bytes of the input the open traces may hold, all together.
const MOST_BYTES: u64 = 4 * DEFAULT_LIMIT;

/// Refuses a record with which a trace would hold this many bytes of the input.
pub fn check(bytes: u64) -> Result<(), Wrong> {
    if bytes <= DEFAULT_LIMIT {
        return Ok(());
    }
    let megabytes = DEFAULT_LIMIT / 1024 / 1024;
    Err(Wrong::from(format!(
        "its trace would be longer than {megabytes} MB, and goes on without it"
    )))
}

/// How many keys of finished traces are remembered, to tell records that come too late.
const MAX_FINISHED: usize = 100_000;

struct Open<T> {
    value: T,
    bytes: u64,
    /// When it began, and when something was last added, on the clock of additions.
    begun: u64,
    used: u64,
}

/// The open traces, by the key that their records have in common.
#[derive(Default)]
pub struct OpenTraces<T> {
    open: HashMap<Text, Open<T>>,
    clock: u64,
    bytes: u64,
    finished: HashSet<Text>,
}

impl<T> OpenTraces<T> {
    /// Returns the trace that a record of `size` bytes belongs to, made if it is the first.
    ///
    /// # Errors
    /// If the trace is finished, or becomes too long; its earlier contents stay.
    pub fn add(&mut self, key: &Text, size: u64, make: impl FnOnce() -> T) -> Result<&mut T, Wrong> {
        let bytes = self.open.get(key).map(|trace| trace.bytes);
        if bytes.is_none() && self.finished.contains(key) {
            return Err(Wrong::from(format!(
                "it comes too late for its trace, which was finished because {MOST_OPEN} others were open, or 256 MB of them"
            )));
        }
        check(bytes.unwrap_or(0) + size)?;
        self.clock += 1;
        self.bytes += size;
        let now = self.clock;
        let trace = self.open.entry(key.clone()).or_insert_with(|| Open {
            value: make(),
            bytes: 0,
            begun: now,
            used: now,
        });
        trace.used = now;
        trace.bytes += size;
        Ok(&mut trace.value)
    }

    /// Returns a trace that is open.
    pub fn get(&self, key: &Text) -> Option<&T> {
        self.open.get(key).map(|trace| &trace.value)
    }

    /// Evicts the least recently updated traces beyond the limit.
    pub fn overflow(&mut self) -> Vec<T> {
        let mut taken = Vec::new();
        while self.open.len() > MOST_OPEN || self.bytes > MOST_BYTES {
            let oldest = self.open.iter().min_by_key(|(_, trace)| trace.used);
            let key = oldest.map(|(key, _)| key.clone());
            let Some((key, trace)) = key.and_then(|key| self.open.remove_entry(&key)) else {
                break;
            };
            self.bytes -= trace.bytes;
            if self.finished.len() >= MAX_FINISHED {
                self.finished.clear();
            }
            self.finished.insert(key);
            taken.push(trace.value);
        }
        taken
    }

    /// Returns all that are open, in the order in which they began.
    pub fn into_all(self) -> impl Iterator<Item = T> {
        let mut open: Vec<_> = self.open.into_values().collect();
        open.sort_unstable_by_key(|trace| trace.begun);
        open.into_iter().map(|trace| trace.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: usize) -> Text {
        number.to_string().into()
    }

    #[test]
    fn overflow_takes_out_the_least_recently_updated_traces_beyond_the_limit() {
        let mut traces = OpenTraces::default();
        for number in 0..MOST_OPEN {
            traces.add(&key(number), 1, || number).unwrap();
        }
        traces.add(&key(0), 1, || unreachable!()).unwrap();
        assert!(traces.overflow().is_empty());
        for number in MOST_OPEN..MOST_OPEN + 2 {
            traces.add(&key(number), 1, || number).unwrap();
        }
        assert_eq!(traces.overflow(), [1, 2]);
        assert_eq!(traces.get(&key(0)), Some(&0));
        assert_eq!(traces.get(&key(1)), None);
        for number in 1..=2 {
            let wrong = traces.add(&key(number), 1, || number).unwrap_err();
            assert!(wrong.starts_with("it comes too late"));
        }
        let left: Vec<_> = traces.into_all().collect();
        assert_eq!((left.len(), &left[..2]), (MOST_OPEN, &[0, 3][..]));
    }

    #[test]
    fn overflow_takes_out_traces_that_hold_too_many_bytes_together() {
        let mut traces = OpenTraces::default();
        for number in 0..4 {
            traces.add(&key(number), DEFAULT_LIMIT, || number).unwrap();
        }
        assert!(traces.overflow().is_empty());
        traces.add(&key(4), 1, || 4).unwrap();
        assert_eq!(traces.overflow(), [0]);
        traces.add(&key(5), DEFAULT_LIMIT - 1, || 5).unwrap();
        assert!(traces.overflow().is_empty());
    }

    #[test]
    fn add_refuses_a_record_that_makes_a_trace_too_long() {
        let mut traces = OpenTraces::default();
        let mut add = |size| {
            let added = traces.add(&key(0), size, || 0).map(drop);
            added.map_err(|wrong| wrong.to_string())
        };
        assert_eq!(add(DEFAULT_LIMIT - 2), Ok(()));
        assert_eq!(add(1), Ok(()));
        let too_long = "its trace would be longer than 64 MB, and goes on without it";
        assert_eq!(add(2), Err(too_long.into()));
        assert_eq!(add(1), Ok(()));
        assert_eq!(add(1), Err(too_long.into()));
    }
}
