//! The names of inputs, and which names are of the same file.

use std::fs::{self, File, Metadata};

pub use knowledgepulse_os::links::target_of;
use same_file::Handle;

/// The name of standard input among the inputs.
pub const STDIN: &str = "-";

/// A file that is written, and its option.
pub(crate) type Target<'a> = (&'static str, &'a str);

/// Returns the name of an input in messages.
pub fn name_of(source: &str) -> &str {
    if source == STDIN { "stdin" } else { source }
}

/// Returns the metadata of an input; `None` on failure, which reading the input will report, and of standard input in WebAssembly.
pub fn metadata_of(source: &str) -> Option<Metadata> {
    match source {
        STDIN => Handle::stdin().ok()?.as_file().metadata().ok(),
        path => fs::metadata(path).ok(),
    }
}

/// Returns whether two names mean the same ordinary file, also through symbolic or hard links. `-` is standard input.
/// Returns false for terminals and pipes, which cannot be overwritten.
pub fn is_same_file(one: &str, other: &str) -> bool {
    let handle = |name: &str| match name {
        STDIN => Handle::stdin(),
        path => Handle::from_path(path),
    };
    match (metadata_of(one), metadata_of(other)) {
        (Some(first), Some(second)) if !first.is_file() || !second.is_file() => false,
        (Some(_), None) | (None, Some(_)) => false,
        // In WebAssembly no file has a handle.
        _ => match (handle(one), handle(other)) {
            (Ok(one), Ok(other)) => one == other,
            _ => target_of(one) == target_of(other),
        },
    }
}

/// Returns how many bytes there are to read; `None` if that is not known.
pub fn total_size<'s>(sources: impl IntoIterator<Item = &'s String>) -> Option<u64> {
    let sizes = sources.into_iter().map(|source| {
        let metadata = metadata_of(source).filter(Metadata::is_file);
        metadata.map(|metadata| metadata.len())
    });
    sizes.sum()
}

/// Returns the standard output or standard error that a file is; `None` if it is neither.
pub(crate) fn standard_stream(file: &str) -> Option<File> {
    let file = Handle::from_path(file).ok()?;
    let streams = [Handle::stdout(), Handle::stderr()];
    let stream = streams.into_iter().flatten().find(|stream| *stream == file)?;
    stream.as_file().try_clone().ok()
}

#[cfg(test)]
mod tests {
    #[cfg(unix)]
    use super::*;

    #[cfg(unix)]
    #[test]
    fn is_same_file_sees_links_and_missing_files() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
        fs::write(path("a"), "").unwrap();
        fs::hard_link(path("a"), path("b")).unwrap();
        assert!(is_same_file(&path("a"), &path("b")));
        assert!(is_same_file(&path("new"), &path("./new")));
        assert!(!is_same_file(&path("a"), &path("new")));
        assert!(!is_same_file("/dev/null", "/dev/null"));
    }

    #[cfg(unix)]
    #[test]
    fn is_same_file_sees_a_linked_folder_of_a_file_that_is_not_there_yet() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
        fs::create_dir(path("folder")).unwrap();
        std::os::unix::fs::symlink("folder", path("link")).unwrap();
        assert!(is_same_file(&path("folder/new"), &path("link/new")));
    }
}
