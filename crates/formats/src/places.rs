//! Where agents keep their files on each operating system.

use std::{
    collections::HashSet,
    env,
    path::{Path, PathBuf},
};

use glob::Pattern;

/// A folder of the user, and a pattern below it: `*` stands for a part of a name. A folder that it fits is read with all below it.
#[derive(Debug, Clone, Copy)]
pub struct Folder(pub Root, pub &'static str);

/// A folder of the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Root {
    /// The home folder.
    Home,
    /// What the first of these variables names that is set; without one, this folder of the home folder.
    Moved(&'static [&'static str], &'static str),
    /// What this variable names. Nothing without it.
    Named(&'static str),
    /// `~/.local/share`, or the one that `XDG_DATA_HOME` names.
    Share,
    /// Where programs keep their data: `Application Support` on macOS, `AppData\Local` on Windows, otherwise `~/.local/share`.
    Data,
    /// Where programs keep settings: `Application Support` on macOS, `AppData\Roaming` on Windows, otherwise `~/.config`.
    Settings,
    /// The folder `User` of an editor like VS Code, in the settings or on the machine that it is connected with.
    Editor,
}

use Root::{Data, Editor, Home, Moved, Named, Settings, Share};

/// The editors that are made from VS Code.
const EDITORS: [&str; 5] = ["Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf"];

/// Their parts on a machine that they are connected with, in the home folder.
#[rustfmt::skip]
const SERVERS: [&str; 5] = [
    ".vscode-server", ".vscode-server-insiders", ".vscodium-server", ".cursor-server", ".windsurf-server",
];

impl Root {
    /// Returns the folders on this machine; of a variable that names a database, the file.
    #[must_use]
    pub fn folders(self) -> Vec<PathBuf> {
        let Some(home) = knowledgepulse_os::home_folder() else {
            return Vec::new();
        };
        let path_in = |name: &&str| {
            env::var_os(name)
                .filter(|path| !path.is_empty())
                .map(PathBuf::from)
        };
        let named = |name| path_in(&name).filter(|path| path.is_absolute());
        let (mac, windows) = (cfg!(target_os = "macos"), cfg!(windows));
        let support = || home.join("Library/Application Support");
        let share = || named("XDG_DATA_HOME").unwrap_or_else(|| home.join(".local/share"));
        let settings = || match (mac, windows) {
            (true, _) => support(),
            (_, true) => named("APPDATA").unwrap_or_else(|| home.join("AppData/Roaming")),
            _ => named("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config")),
        };
        match self {
            Home => vec![home],
            Moved(names, folder) => {
                let moved = names.iter().find_map(path_in);
                vec![moved.map_or_else(|| home.join(folder), |path| with_home(&path, &home))]
            }
            Named(name) => path_in(&name)
                .map(|path| with_home(&path, &home))
                .into_iter()
                .collect(),
            Share => vec![share()],
            Data if mac => vec![support()],
            Data if windows => vec![named("LOCALAPPDATA").unwrap_or_else(|| home.join("AppData/Local"))],
            Data => vec![share()],
            Settings => vec![settings()],
            Editor => {
                let local = EDITORS.iter().map(|editor| settings().join(editor));
                let servers = SERVERS.iter().map(|server| home.join(server).join("data"));
                let portable = path_in(&"VSCODE_PORTABLE").map(|folder| folder.join("user-data"));
                let all = local.chain(servers).chain(portable);
                all.map(|folder| folder.join("User")).collect()
            }
        }
    }
}

/// Returns a path whose first part may be `~`, as some programs take it from their variables.
fn with_home(path: &Path, home: &Path) -> PathBuf {
    path.strip_prefix("~")
        .map_or_else(|_| path.to_owned(), |rest| home.join(rest))
}

/// Returns the folders and files on this machine, none within another, in the order of `folders`.
pub(crate) fn here(folders: &[Folder]) -> Vec<PathBuf> {
    let found = folders.iter().flat_map(|Folder(root, pattern)| {
        let roots = root.folders().into_iter();
        roots.flat_map(|root| found(&root, pattern))
    });
    // Some systems take names in capitals for the same.
    let mut seen: HashSet<PathBuf> = HashSet::new();
    found
        .filter(|path| seen.insert(path.canonicalize().unwrap_or_else(|_| path.clone())))
        .collect()
}

/// Returns the files and folders in a folder that a pattern fits, by name.
fn found(folder: &Path, pattern: &str) -> Vec<PathBuf> {
    if pattern.is_empty() {
        return [folder.to_owned()]
            .into_iter()
            .filter(|path| path.exists())
            .collect();
    }
    let folder = Pattern::escape(&folder.to_string_lossy());
    let paths = glob::glob(&format!("{folder}/{pattern}")).into_iter().flatten();
    paths.filter_map(Result::ok).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn found_has_the_files_and_folders_that_a_pattern_fits() {
        let home = tempfile::tempdir().unwrap();
        for path in [
            "a/b/c/one.jsonl",
            "a/b/two.jsonl",
            "a/three.json",
            "a/d/c/four.jsonl",
        ] {
            let path = home.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let found = |pattern: &str| {
            let paths = found(home.path(), pattern).into_iter();
            let below = paths.map(|path| {
                path.strip_prefix(home.path())
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .to_owned()
            });
            below.collect::<Vec<_>>()
        };
        assert_eq!(found("a/*/c"), ["a/b/c", "a/d/c"]);
        assert_eq!(found("*/t*.js*"), ["a/three.json"]);
        assert_eq!(found("a/b/two.jsonl"), ["a/b/two.jsonl"]);
        assert_eq!(found(""), [""]);
        assert_eq!(found("none/*"), [""; 0]);
    }

    #[test]
    fn with_home_reads_a_tilde_as_shells_do() {
        let home = Path::new("/home/ida");
        assert_eq!(with_home(Path::new("~/x"), home), home.join("x"));
        assert_eq!(with_home(Path::new("/a/~"), home), Path::new("/a/~"));
    }
}
