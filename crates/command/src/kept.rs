//! Records that wait in a temporary file without a name until a set of them is chosen. A second pass over the input is impossible for
//! standard input and pipes.

use std::{
    fs::File,
    io::{self, BufWriter, Read, Seek, SeekFrom, Write},
};

use knowledgepulse_json::{Value, parse};
use knowledgepulse_os::temporary;

use crate::error::{Failure, Result, reason_of};

/// The records, in the order in which they were added.
pub(crate) struct Kept {
    file: BufWriter<File>,
    /// Where each record ends.
    ends: Vec<u64>,
}

impl Kept {
    /// Creates the temporary file, which only this process can open.
    pub(crate) fn new() -> Result<Self> {
        let file = temporary::unnamed().map_err(|error| cannot_keep(&error))?;
        Ok(Self {
            file: BufWriter::new(file),
            ends: Vec::new(),
        })
    }

    /// Adds a record.
    pub(crate) fn add(&mut self, record: &Value) -> Result<()> {
        let text = record.to_json();
        self.file
            .write_all(text.as_bytes())
            .map_err(|error| cannot_keep(&error))?;
        self.ends.push(self.start_of(self.ends.len()) + text.len() as u64);
        Ok(())
    }

    /// Returns how many records there are.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    fn start_of(&self, index: usize) -> u64 {
        index.checked_sub(1).map_or(0, |before| self.ends[before])
    }

    /// Reads a record back by its index.
    pub(crate) fn get(&mut self, index: usize) -> Result<Value> {
        let start = self.start_of(index);
        let length = self.ends[index] - start;
        let bytes = self.read(start, length).map_err(|error| cannot_keep(&error))?;
        parse(&bytes).map_err(|_| damaged())
    }

    fn read(&mut self, start: u64, length: u64) -> io::Result<Vec<u8>> {
        self.file.flush()?;
        let mut file = self.file.get_ref();
        file.seek(SeekFrom::Start(start))?;
        let mut bytes = Vec::new();
        file.take(length).read_to_end(&mut bytes)?;
        // What is added next goes to the end.
        file.seek(SeekFrom::End(0))?;
        Ok(bytes)
    }
}

/// The failure of a record that came back otherwise than it was added.
pub(crate) fn damaged() -> Failure {
    Failure::file("a trace that waited to be chosen came back damaged")
}

fn cannot_keep(error: &io::Error) -> Failure {
    Failure::file(format!(
        "cannot write to {}, where the traces wait until a set is chosen: {}; TMPDIR names another directory",
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
        fn get_returns_what_was_added_in_any_order(
            texts in proptest::collection::vec(".{0,40}", 1..40),
            at in any::<proptest::sample::Index>(),
        ) {
            let mut kept = Kept::new().unwrap();
            for text in &texts {
                kept.add(&text.as_str().into()).unwrap();
                let at = at.index(kept.len());
                prop_assert_eq!(kept.get(at).unwrap().as_str(), Some(texts[at].as_str()));
            }
        }
    }
}
