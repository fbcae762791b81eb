//! Errors that end the command, and reasons why a file cannot be used.

use std::io::{self, ErrorKind};

use knowledgepulse_error::{Code, Error};

/// The meaning of the exit code, as in `--help`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// All was scored.
    Ok = 0,
    /// Some lines are bad, the rest is scored.
    BadLines = 1,
    /// The arguments make no sense.
    Usage = 2,
    /// A file could not be read or written.
    File = 3,
    /// `clean --check` has found something.
    Found = 4,
    /// A signal has ended the run.
    Interrupted = 130,
}

impl Exit {
    /// Returns the code of the process.
    pub fn code(self) -> u8 {
        self as u8
    }
}

/// An error that ends the command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The exit code.
    pub exit: Exit,
    /// One line for people, with the way out.
    pub message: String,
}

impl Failure {
    fn of(exit: Exit, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { exit, message }
    }

    /// Returns the failure for arguments that make no sense.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::of(Exit::Usage, message)
    }

    /// Returns the failure for a file that cannot be read or written.
    pub fn file(message: impl Into<String>) -> Self {
        Self::of(Exit::File, message)
    }

    /// Returns the failure for a run that a signal has ended.
    pub fn interrupted(message: impl Into<String>) -> Self {
        Self::of(Exit::Interrupted, message)
    }

    /// Returns the failure for a file that cannot be read.
    pub fn read(name: &str, error: &io::Error) -> Self {
        Self::file(format!("cannot read {name}: {}", reason_of(error)))
    }

    /// Returns the failure for an output that cannot be written.
    pub fn write(name: &str, error: &io::Error) -> Self {
        Self::file(format!(
            "cannot write {name}: {}; name a file in a directory that can be written to and has room",
            reason_of(error)
        ))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Aborted => Self::interrupted("interrupted: nothing was written"),
            Error::Io { path, source, .. } => Self::write(&path.display().to_string(), &source),
            error => Self::file(error.to_string()),
        }
    }
}

/// For programs, which have no exit code.
impl From<Failure> for Error {
    fn from(Failure { message, .. }: Failure) -> Self {
        Self::Other(Code::InvalidInput, message)
    }
}

/// The result of a step that can end the command.
pub type Result<T> = std::result::Result<T, Failure>;

/// Returns the reason why a file cannot be used: in words, with the name of the system's error if it is known.
pub fn reason_of(error: &io::Error) -> String {
    let (words, name) = match error.kind() {
        ErrorKind::PermissionDenied if error.raw_os_error() == Some(1) => ("not permitted", "EPERM"),
        ErrorKind::PermissionDenied => ("permission denied", "EACCES"),
        ErrorKind::ResourceBusy => ("it is in use", "EBUSY"),
        ErrorKind::QuotaExceeded => ("the disk quota is used up", "EDQUOT"),
        ErrorKind::FileTooLarge => ("the file would be larger than is allowed", "EFBIG"),
        ErrorKind::IsADirectory => ("it is a directory", "EISDIR"),
        ErrorKind::NotFound => ("no such file or directory", "ENOENT"),
        ErrorKind::StorageFull => ("the disk is full", "ENOSPC"),
        ErrorKind::NotADirectory => ("a part of its path is no directory", "ENOTDIR"),
        ErrorKind::ReadOnlyFilesystem => ("the file system is read-only", "EROFS"),
        _ if cfg!(unix) && error.raw_os_error() == Some(24) => ("too many files are open", "EMFILE"),
        _ => return error.to_string(),
    };
    format!("{words} ({name})")
}
