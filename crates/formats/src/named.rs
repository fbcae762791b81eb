//! Whose runs a file holds, by the folders that it is in.

use std::path::Path;

use knowledgepulse_json::Text;

use crate::FormatName;

/// Whose runs a file holds, by the folders that it is in.
#[derive(Debug, Clone, Default)]
pub(crate) struct Named {
    /// The session, where its records do not name it.
    pub session: Option<Text>,
    /// The session whose agent has started it.
    pub parent: Option<Text>,
}

/// Returns what the folders of a file say of its runs.
pub(crate) fn named(format: FormatName, path: &Path) -> Named {
    let parts: Vec<_> = path.iter().filter_map(|part| part.to_str()).collect();
    let above = |name: &str| {
        let at = parts.iter().rposition(|part| *part == name)?;
        at.checked_sub(1)
            .map(|before| (parts[before], parts.get(at + 1).copied()))
    };
    let stem = path.file_stem().and_then(|stem| stem.to_str());
    let mut named = Named {
        session: None,
        parent: above("subagents").map(|(parent, _)| parent.into()),
    };
    match format {
        FormatName::Cursor if above("agent-transcripts").is_some() => named.session = stem.map(Into::into),
        FormatName::Kimi => match above("agents") {
            Some((session, Some("main"))) => named.session = Some(session.into()),
            Some((session, Some(_))) => named.parent = Some(session.into()),
            _ => {}
        },
        FormatName::GeminiCli => {
            let folder = above("chats").and_then(|(_, folder)| folder);
            let is_file = |folder: &&str| path.file_name().is_some_and(|name| name == *folder);
            named.parent = folder.filter(|folder| !is_file(folder)).map(Into::into);
        }
        _ => {}
    }
    named
}
