//! Symbolic links.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// How many links are followed, as many as Linux does; a longer chain is a circle.
const MOST_LINKS: usize = 40;

/// Returns the canonical path of a file, whether it exists or not. Links are followed, also links to a missing file.
pub fn target_of(file: impl AsRef<Path>) -> PathBuf {
    let file = file.as_ref();
    // Windows has no canonical name for every directory.
    let mut target = std::path::absolute(file).unwrap_or_else(|_| file.into());
    for _ in 0..MOST_LINKS {
        let Some((directory, name)) = target.parent().zip(target.file_name()) else {
            break;
        };
        let Ok(directory) = fs::canonicalize(directory) else {
            break;
        };
        target = directory.join(name);
        let Ok(link) = fs::read_link(&target) else { break };
        target = directory.join(link);
    }
    target
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn target_of_follows_links_to_files_that_do_not_exist() {
        let directory = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(directory.path()).unwrap();
        symlink("b", root.join("a")).unwrap();
        symlink("c", root.join("b")).unwrap();
        symlink("circle", root.join("circle")).unwrap();
        let target = |name: &str| target_of(root.join(name));
        assert_eq!(target("a"), root.join("c"));
        assert_eq!(target("circle"), root.join("circle"));
        fs::write(root.join("c"), "").unwrap();
        assert_eq!(target("a"), root.join("c"));
    }
}
