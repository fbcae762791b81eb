//! Reasons why a file of an installation cannot be read, one for each remedy.

use std::{
    io::{self, ErrorKind},
    path::{Path, PathBuf},
};

/// The reason why a file cannot be opened or read.
#[derive(Debug, PartialEq)]
pub enum Obstacle {
    /// There is no file of this name.
    Missing,
    /// It is a symbolic link to something that does not exist.
    Dangling(PathBuf),
    /// It is a directory.
    Directory,
    /// The system refuses to read it, with the system's message.
    Unreadable(String),
}

impl Obstacle {
    /// Returns the obstacle behind `error` from opening or reading the file at `path`.
    #[must_use]
    pub fn of(path: &Path, error: &io::Error) -> Self {
        // On Windows, opening a directory fails as if a permission were missing.
        if path.is_dir() {
            return Self::Directory;
        }
        if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) {
            return Self::Unreadable(error.to_string());
        }
        std::fs::read_link(path).map_or(Self::Missing, Self::Dangling)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn obstacle(path: &Path) -> Obstacle {
        Obstacle::of(path, &std::fs::read(path).unwrap_err())
    }

    #[test]
    fn absence_is_told_from_a_directory() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(obstacle(directory.path()), Obstacle::Directory);
        assert_eq!(obstacle(&directory.path().join("none")), Obstacle::Missing);
        let file = directory.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert_eq!(obstacle(&file.join("below")), Obstacle::Missing);
    }

    #[cfg(unix)]
    #[test]
    fn links_are_told_by_where_they_lead() {
        use std::os::unix::fs::symlink;
        let directory = tempfile::tempdir().unwrap();
        let link = directory.path().join("link");
        symlink("nowhere", &link).unwrap();
        assert_eq!(obstacle(&link), Obstacle::Dangling("nowhere".into()));
        // A link to itself stands for the errors that no test can arrange, because permissions do not bind root.
        let circle = directory.path().join("circle");
        symlink("circle", &circle).unwrap();
        assert!(matches!(obstacle(&circle), Obstacle::Unreadable(_)));
    }
}
