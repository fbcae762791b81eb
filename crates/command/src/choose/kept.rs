//! Texts that wait in a temporary file without a name until a set of them is chosen. A second pass over the input is impossible for
//! standard input and pipes.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    sync::{Arc, Mutex, PoisonError},
};

use knowledgepulse_json::{Value, parse_str};
use knowledgepulse_os::temporary;
use knowledgepulse_share::Lazy;

use crate::{Failure, Result, reason_of};

/// The texts, in the order in which they were added.
pub(crate) struct Kept {
    file: Arc<Mutex<File>>,
    /// Where each text begins, and where the next one will.
    starts: Vec<u64>,
}

impl Kept {
    /// Creates the temporary file, which only this process can open.
    pub(crate) fn new() -> Result<Self> {
        let file = temporary::unnamed().map_err(|error| cannot_keep(&error))?;
        Ok(Self {
            file: Arc::new(Mutex::new(file)),
            starts: vec![0],
        })
    }

    /// Adds a text, and returns its index.
    pub(crate) fn add(&mut self, text: &str) -> Result<usize> {
        let start = self.starts.last().copied().unwrap_or_default();
        self.starts.push(start + text.len() as u64);
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let written = file.write_all(text.as_bytes());
        written.map_err(|error| cannot_keep(&error))?;
        Ok(self.starts.len() - 2)
    }

    /// Reads a text back by its index, as the JSON that it is.
    pub(crate) fn get(&self, index: usize) -> Result<Value> {
        self.value(index)().map_err(|error| cannot_keep(&error))
    }

    /// Returns what reads a text back, on any thread.
    pub(crate) fn value(&self, index: usize) -> Lazy<'static, Value> {
        let (start, end) = (self.starts[index], self.starts[index + 1]);
        let file = Arc::clone(&self.file);
        Box::new(move || parse_str(&text_in(&file, start, end)?).map_err(io::Error::other))
    }
}

fn text_in(file: &Mutex<File>, start: u64, end: u64) -> io::Result<String> {
    let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
    file.seek(SeekFrom::Start(start))?;
    let mut text = String::new();
    (&*file).take(end - start).read_to_string(&mut text)?;
    // The next text goes to the end.
    file.seek(SeekFrom::End(0))?;
    Ok(text)
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
            texts in proptest::collection::vec(".{0,40}".prop_map(Value::from), 1..40),
            at in any::<proptest::sample::Index>(),
        ) {
            let mut kept = Kept::new().unwrap();
            for text in &texts {
                kept.add(&text.to_json()).unwrap();
                let at = at.index(kept.starts.len() - 1);
                prop_assert_eq!(&kept.get(at).unwrap(), &texts[at]);
            }
        }
    }
}
