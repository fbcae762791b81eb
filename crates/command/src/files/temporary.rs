//! Temporary files beside the files that they replace.

use std::{
    fs::{File, Metadata},
    io,
    path::Path,
    sync::Arc,
};

use knowledgepulse_os::temporary;

use crate::files::{file_identity::directory_of, leftovers::Leftover};

/// The beginning of the names of temporary files.
const PREFIX: &str = ".kp-score-";

/// A temporary file beside the one that it is to replace. A signal that ends the process at once removes it.
#[derive(Debug)]
pub(crate) struct TemporaryFile {
    file: temporary::TemporaryFile,
    _leftover: Leftover,
}

impl TemporaryFile {
    /// Creates one beside `target`, with the permissions of `existing` or of new files.
    pub(crate) fn beside(target: &Path, existing: Option<&Metadata>) -> io::Result<Self> {
        let file = temporary::TemporaryFile::create(directory_of(target), PREFIX, existing)?;
        Ok(Self {
            _leftover: Leftover::of(file.path()),
            file,
        })
    }

    /// Returns the file, for writing.
    pub(crate) fn file(&self) -> &Arc<File> {
        self.file.file()
    }

    /// Gives it the name of the file that it replaces, so that this survives a loss of power.
    pub(crate) fn persist(self, target: &Path) -> io::Result<()> {
        self.file.persist(target)
    }
}
