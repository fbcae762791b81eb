//! Where agents keep their files on each operating system.
//!
//! A place is a root, and a pattern below it, where `*` stands for a part of a name. What it fits is read with all below it. A root is `~`, a
//! variable as shells write it (nothing where it is not set and has no default), `~/.local/share`, `DATA` (where programs keep their data),
//! `SETTINGS`, `CRUSH` (the folders of its projects, which it lists), or `EDITOR` (the folder `User` of an editor like VS Code, in the settings or on the machine that it is connected with).

use std::{
    collections::HashSet,
    env,
    path::{Path, PathBuf},
    sync::LazyLock,
};

use glob::Pattern;

use crate::{
    input::read_small,
    values::{list_of, str_of},
    words::words,
};

/// The one that `XDG_DATA_HOME` moves.
const SHARE: &str = "~/.local/share";

/// Splits a place into its root and its pattern.
fn split(place: &str) -> (&str, &str) {
    let end = place.rfind('}').map(|at| at + 1);
    let end = end
        .or(place.starts_with(SHARE).then_some(SHARE.len()))
        .or(place.find('/'));
    let (root, pattern) = place.split_at(end.unwrap_or(place.len()));
    (root, pattern.trim_start_matches('/'))
}

/// Returns the folder where programs of this user keep their settings.
#[must_use]
pub fn settings_folder() -> Option<PathBuf> {
    folders_of("SETTINGS").into_iter().next()
}

/// The home folders of Windows, as its subsystem for Linux sees them.
static OF_WINDOWS: LazyLock<Vec<PathBuf>> = LazyLock::new(|| {
    let all = cfg!(target_os = "linux").then(|| found(Path::new("/mnt/c/Users"), "*"));
    all.unwrap_or_default()
});

/// Returns the folders on this machine that a root stands for; of a variable that names a database, the file.
fn folders_of(root: &str) -> Vec<PathBuf> {
    let home = knowledgepulse_os::home_folder();
    // One that was moved, as for a test, has no others beside it.
    let is_usual = |home: &&PathBuf| home.starts_with("/home") || home.starts_with("/root");
    let others = home.iter().filter(is_usual).flat_map(|_| OF_WINDOWS.iter());
    let own = home.iter().flat_map(|home| folders_in(root, home, true));
    own.chain(others.flat_map(|home| folders_in(root, home, false)))
        .collect()
}

/// Returns the same of the user with this home, who runs this program, or else is one of Windows.
fn folders_in(root: &str, home: &Path, is_own: bool) -> Vec<PathBuf> {
    let path_in = |name: &str| {
        env::var_os(name)
            .filter(|path| is_own && !path.is_empty())
            .map(PathBuf::from)
    };
    let named = |name| path_in(name).filter(|path| path.is_absolute());
    let (mac, windows) = (cfg!(target_os = "macos") && is_own, cfg!(windows) || !is_own);
    let support = || home.join("Library/Application Support");
    let share = || named("XDG_DATA_HOME").unwrap_or_else(|| home.join(".local/share"));
    let local = || named("LOCALAPPDATA").unwrap_or_else(|| home.join("AppData/Local"));
    let settings = || match (mac, windows) {
        (true, _) => support(),
        (_, true) => named("APPDATA").unwrap_or_else(|| home.join("AppData/Roaming")),
        _ => named("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config")),
    };
    match root {
        "DATA" if mac => vec![support()],
        "DATA" if windows => vec![local()],
        "DATA" | SHARE => vec![share()],
        "SETTINGS" => vec![settings()],
        "CRUSH" => {
            let data = || if windows { local() } else { share() };
            let data = path_in("CRUSH_GLOBAL_DATA").unwrap_or_else(|| data().join("crush"));
            data_folders(&data.join("projects.json"))
        }
        "EDITOR" => {
            let local = words("editor").map(|editor| settings().join(editor));
            let servers = words("editor-server").map(|server| home.join(server));
            let portable = path_in("VSCODE_PORTABLE").map(|folder| folder.join("user-data"));
            let all = local.chain(servers).chain(portable);
            all.map(|folder| folder.join("User")).collect()
        }
        // Variables, of which the first that is set counts, and then perhaps a default.
        _ => {
            let mut parts = root.trim_end_matches('}').split(":-");
            let path = parts.find_map(|part| match part.trim_start_matches(['$', '{']) {
                path if path.starts_with('~') => Some(PathBuf::from(path)),
                name => path_in(name),
            });
            path.map(|path| with_home(&path, home)).into_iter().collect()
        }
    }
}

/// Returns the folders of the projects that Crush lists in a file.
fn data_folders(list: &Path) -> Vec<PathBuf> {
    let list = read_small(list).unwrap_or_default();
    let folders = list_of(list.get("projects")).iter();
    let folders = folders.filter_map(|project| str_of(project.get("data_dir")));
    folders.map(PathBuf::from).collect()
}

/// Returns a path whose first part may be `~`, as some programs take it from their variables.
fn with_home(path: &Path, home: &Path) -> PathBuf {
    path.strip_prefix("~")
        .map_or_else(|_| path.to_owned(), |rest| home.iter().chain(rest).collect())
}

/// Returns the folders and files on this machine, none within another, in the order of the places.
pub(crate) fn here(places: &[&str]) -> Vec<PathBuf> {
    let found = places.iter().flat_map(|place| {
        let (root, pattern) = split(place);
        let roots = folders_of(root).into_iter();
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
    let folder = Pattern::escape(&folder.to_string_lossy());
    let all = format!("{folder}/{pattern}");
    let paths = glob::glob(all.trim_end_matches('/')).into_iter().flatten();
    paths.filter_map(Result::ok).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::FormatName;

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
    fn split_parts_a_place_behind_its_root() {
        for (place, root, pattern) in [
            ("~/a/*.db", "~", "a/*.db"),
            ("~/.local/share/a", SHARE, "a"),
            ("$A", "$A", ""),
            ("$A/b", "$A", "b"),
            ("${A:-${B:-~/.c}}/d/*", "${A:-${B:-~/.c}}", "d/*"),
            ("DATA/a/b", "DATA", "a/b"),
        ] {
            assert_eq!(split(place), (root, pattern));
        }
    }

    /// Returns whether an agent's sessions are looked for in a folder or a file, where no variable is set.
    fn is_place(agent: &str, path: &str) -> bool {
        let places = FormatName::from_name(agent).unwrap().format().about().folders;
        places.into_iter().any(|place| {
            let (root, pattern) = split(place);
            let default = root.rsplit(":-").next().unwrap().trim_end_matches('}');
            let place = format!("{default}/{pattern}");
            Pattern::new(place.trim_end_matches('/')).unwrap().matches(path)
        })
    }

    #[test]
    fn profiles_forks_and_containers_have_places_of_their_own() {
        for (agent, path) in [
            ("pi", "~/.pi/agent/sessions"),
            ("pi", "~/.omp/profiles/work/agent/sessions"),
            ("pi", "~/.local/share/omp/sessions"),
            ("pi", "~/.local/share/omp/profiles/work/sessions"),
            ("pi", "~/.openclaw/agents/main/sessions"),
            ("pi", "~/.openclaw-rescue/agents/main/agent/openclaw-agent.sqlite"),
            ("pi", "~/.clawdbot/agents/main/sessions"),
            ("pi", "~/.qclaw/agents/main/sessions"),
            ("codex", "~/.codex/archived_sessions"),
            ("copilot-cli", "~/.copilot/history-session-state"),
            ("copilot-chat", "EDITOR/globalStorage/transferredChatSessions"),
            (
                "copilot-cli",
                "EDITOR/workspaceStorage/0a/GitHub.copilot-chat/transcripts",
            ),
            ("gptme", "~/.local/share/gptme/logs/roses/conversation.jsonl"),
            ("copilot-cli", "~/snap/copilot-cli/common/.copilot/session-state"),
            ("opencode", "~/.local/share/opencode/opencode-beta.db"),
            ("opencode", "~/.local/share/icodemate/icodemate.db"),
            ("hermes", "~/.hermes/sessions/session_20260901_100000_aa.json"),
            ("forge", "~/forge/.forge.db"),
            ("gemini-cli", "~/.qwen/tmp/0a/chats"),
            ("opencode", "~/.local/share/opencode/storage/session"),
            ("opencode", "~/.local/share/kilo/storage/session"),
            ("zed", "DATA/Zed/threads/threads.db"),
        ] {
            assert!(is_place(agent, path), "{path}");
        }
        assert!(!is_place("hermes", "~/.hermes/sessions/sessions.json"));
        let home = knowledgepulse_os::home_folder().unwrap();
        let editors = folders_of("EDITOR");
        for folder in [
            ".vscode-server/data",
            ".local/share/code-server",
            ".var/app/com.visualstudio.code/config/Code",
        ] {
            assert!(editors.contains(&home.join(folder).join("User")), "{folder}");
        }
    }

    #[test]
    fn folders_of_takes_the_default_where_no_variable_is_set() {
        let home = knowledgepulse_os::home_folder().unwrap();
        for (root, folders) in [
            (
                "${KNOWLEDGEPULSE_NONE:-${KNOWLEDGEPULSE_NEITHER:-~/.c}}",
                &[home.join(".c")][..],
            ),
            ("${KNOWLEDGEPULSE_NONE:-~}", std::slice::from_ref(&home)),
            ("~", std::slice::from_ref(&home)),
            ("$KNOWLEDGEPULSE_NONE", &[]),
        ] {
            assert_eq!(folders_of(root), folders, "{root}");
        }
    }

    #[test]
    fn folders_in_a_home_of_windows_are_those_that_its_programs_use() {
        let home = Path::new("/mnt/c/Users/ida");
        for (root, folder) in [
            ("~", Some("")),
            ("${PATH:-~/.c}", Some(".c")),
            ("$PATH", None),
            ("DATA", Some("AppData/Local")),
            ("SETTINGS", Some("AppData/Roaming")),
            ("EDITOR", Some("AppData/Roaming/Code/User")),
        ] {
            let found = folders_in(root, home, false).into_iter().next();
            assert_eq!(found, folder.map(|folder| home.join(folder)), "{root}");
        }
    }

    #[test]
    fn data_folders_takes_those_that_crush_lists() {
        let home = tempfile::tempdir().unwrap();
        let list = home.path().join("projects.json");
        assert_eq!(data_folders(&list), [""; 0].map(PathBuf::from));
        let text = r#"{"projects": [{"path": "/a", "data_dir": "/a/.crush"}, {"path": "/b"}]}"#;
        fs::write(&list, text).unwrap();
        assert_eq!(data_folders(&list), [Path::new("/a/.crush")]);
    }

    #[test]
    fn with_home_reads_a_tilde_as_shells_do() {
        let home = Path::new("/home/ida");
        assert_eq!(with_home(Path::new("~/x"), home), home.join("x"));
        assert_eq!(with_home(Path::new("/a/~"), home), Path::new("/a/~"));
    }
}
