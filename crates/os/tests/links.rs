//! Symbolic links.
#![cfg(unix)]

use std::{fs, os::unix::fs::symlink};

use knowledgepulse_os::links::target_of;

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
