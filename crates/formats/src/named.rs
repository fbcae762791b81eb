//! Whose runs a file holds, by the folders that it is in.

use std::path::Path;

use knowledgepulse_json::Text;

/// Whose runs a file holds, by the folders that it is in.
#[derive(Debug, Clone, Default)]
pub struct Named {
    /// The session, where its records do not name it.
    pub session: Option<Text>,
    /// The session whose agent has started it.
    pub parent: Option<Text>,
}

/// Returns what most agents say by the folders of a file: those of sub-agents are in `SESSION/subagents/`.
pub fn by_folders(path: &Path) -> Named {
    Named {
        session: None,
        parent: around(path, "subagents")
            .and_then(|(before, _)| before)
            .map(Into::into),
    }
}

/// Returns the names of the folders around a file, the innermost first.
pub fn folders_of(path: &Path) -> impl Iterator<Item = &str> {
    path.iter().rev().skip(1).filter_map(|name| name.to_str())
}

/// Returns the names before and after the last folder of this name; `None` for a path without one.
pub fn around<'p>(path: &'p Path, name: &str) -> Option<(Option<&'p str>, Option<&'p str>)> {
    let parts: Vec<_> = path
        .iter()
        .map(|part| part.to_str().unwrap_or_default())
        .collect();
    let at = parts.iter().rposition(|part| *part == name)?;
    Some((parts[..at].last().copied(), parts.get(at + 1).copied()))
}
