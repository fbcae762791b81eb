//! Whose runs a file holds, by the folders that it is in: the rows `path` of `tables/words.tsv`.

use std::{path::Path, sync::LazyLock};

use knowledgepulse_json::Text;
use regex::Regex;

use crate::{values::regex, words::tags};

/// What the paths of files look like, by the names of their formats.
static PATHS: LazyLock<Vec<(&str, Regex)>> = LazyLock::new(|| {
    let rows = tags("path").iter();
    rows.map(|[format, path]| (*format, regex(path))).collect()
});

/// Whose runs a file holds.
#[derive(Debug, Clone, Default)]
pub struct Named {
    /// The session, where its records do not name it.
    pub session: Option<Text>,
    /// The session whose agent has started it.
    pub parent: Option<Text>,
}

impl Named {
    /// Returns what the path of a file of a format says, by the first row of that format and that of any.
    pub fn by(format: &str, path: &Path) -> Self {
        let path = path.to_string_lossy().replace('\\', "/");
        let found = |format| {
            let mut rows = PATHS.iter().filter(|(of, _)| *of == format);
            rows.find_map(|(_, row)| row.captures(&path))
        };
        let found = [found(format), found("any")];
        let [session, parent] = ["session", "parent"].map(|name| {
            let mut named = found.iter().flatten().filter_map(|found| found.name(name));
            named.next().map(|name| name.as_str().into())
        });
        Self { session, parent }
    }
}

/// Returns the names of the folders around a file, the innermost first.
pub fn folders_of(path: &Path) -> impl Iterator<Item = &str> {
    path.iter().rev().skip(1).filter_map(|name| name.to_str())
}
