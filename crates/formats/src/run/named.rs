//! Whose runs a file holds, by the folders that it is in: the rows `path` of `tables/words.tsv`.

use std::{
    path::Path,
    sync::{LazyLock, OnceLock},
};

use knowledgepulse_json::Text;
use regex::Regex;

use crate::{
    values::regex,
    words::{Tag, tags},
};

/// The rows, each with its expression, which is compiled for the first file of its format.
static PATHS: LazyLock<Vec<(Tag, OnceLock<Regex>)>> = LazyLock::new(|| {
    let rows = tags("path").iter();
    rows.map(|row| (*row, OnceLock::new())).collect()
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
            let mut rows = PATHS.iter().filter(|([of, _], _)| *of == format);
            rows.find_map(|([_, row], compiled)| compiled.get_or_init(|| regex(row)).captures(&path))
        };
        let found = [found(format), found("any")];
        let [session, parent] = ["session", "parent"].map(|name| {
            let mut named = found.iter().flatten().filter_map(|found| found.name(name));
            named.next().map(|name| name.as_str().into())
        });
        Self { session, parent }
    }
}
