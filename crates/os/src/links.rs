//! Symbolic links, and names of files that change in one step.

use std::{
    fs, io,
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

/// Exchanges two folders of one file system in one step.
///
/// # Errors
/// Where the system or the file system cannot do that: nothing has changed then.
pub fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    #[cfg(any(target_os = "linux", target_vendor = "apple"))]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        Ok(renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)?)
    }
    #[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
    {
        let _ = (one, other);
        Err(io::ErrorKind::Unsupported.into())
    }
}
