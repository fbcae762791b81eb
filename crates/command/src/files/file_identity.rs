//! The names of inputs, and which names are of the same file.

use std::{
    fs::{self, File, Metadata},
    io,
    path::Path,
};

pub use knowledgepulse_os::links::target_of;

/// The name of standard input among the inputs.
pub const STDIN: &str = "-";

/// A file that is written, and its option.
pub(crate) type Target<'a> = (&'static str, &'a str);

/// Returns the name of an input in messages.
pub fn name_of(source: &str) -> &str {
    if source == STDIN { "stdin" } else { source }
}

/// Returns the metadata of an input; `None` on failure, which reading the input will report.
pub fn metadata_of(source: &str) -> Option<Metadata> {
    if source == STDIN {
        standard_input().ok()
    } else {
        fs::metadata(source).ok()
    }
}

/// Returns whether two names mean the same ordinary file, also through symbolic or hard links. `-` is standard input.
/// Returns false for terminals and pipes, which cannot be overwritten.
pub fn is_same_file(one: &str, other: &str) -> bool {
    match (metadata_of(one), metadata_of(other)) {
        (Some(first), Some(second)) => first.is_file() && second.is_file() && is_same(one, other),
        (None, None) => target_of(one) == target_of(other),
        _ => false,
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
#[cfg(not(target_family = "wasm"))]
pub(crate) fn standard_stream(file: &str) -> Option<File> {
    let file = same_file::Handle::from_path(file).ok()?;
    let streams = [same_file::Handle::stdout(), same_file::Handle::stderr()];
    let stream = streams.into_iter().flatten().find(|stream| *stream == file)?;
    stream.as_file().try_clone().ok()
}

#[cfg(not(target_family = "wasm"))]
fn is_same(one: &str, other: &str) -> bool {
    let handle = |name: &str| match name {
        STDIN => same_file::Handle::stdin(),
        path => same_file::Handle::from_path(path),
    };
    handle(one).is_ok_and(|one| handle(other).is_ok_and(|other| one == other))
}

#[cfg(not(target_family = "wasm"))]
fn standard_input() -> io::Result<Metadata> {
    same_file::Handle::stdin()?.as_file().metadata()
}

/// Files have no identity there.
#[cfg(target_family = "wasm")]
pub(crate) fn standard_stream(_: &str) -> Option<File> {
    None
}

#[cfg(target_family = "wasm")]
fn is_same(one: &str, other: &str) -> bool {
    target_of(one) == target_of(other)
}

#[cfg(target_family = "wasm")]
fn standard_input() -> io::Result<Metadata> {
    use std::os::fd::AsFd;
    let descriptor = io::stdin().as_fd().try_clone_to_owned()?;
    File::from(descriptor).metadata()
}

/// Returns the directory that a file is in.
pub(crate) fn directory_of(path: &Path) -> &Path {
    path.parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
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
}
