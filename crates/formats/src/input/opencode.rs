//! The sessions of opencode before it had a database: a file each in `storage/session`, whose messages and their parts are files too.

use std::{fs, path::Path};

use knowledgepulse_json::{Object, Text, Value, object};

use super::read_small;

/// Returns the objects in the files of a folder in the order of their names, which is that of their times, each with its name.
fn all_in(folder: &Path) -> Vec<(Text, Object)> {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let named = |path: &Path| Some((Text::from(path.file_stem()?.to_str()?), read_small(path)?));
    let mut all: Vec<_> = files.filter_map(|file| named(&file.path())).collect();
    all.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    all
}

/// Returns whether a file is such a session, of which it holds no message itself.
#[must_use]
pub fn is_in_parts(path: &Path) -> bool {
    let project = path.parent().and_then(Path::parent);
    project.is_some_and(|folder| folder.ends_with("storage/session"))
}

/// Returns the session of such a file as a line, as `opencode export` has it; `None` if it is none.
pub fn line_of(path: &Path) -> Option<String> {
    let (storage, name) = (path.ancestors().nth(3)?, path.file_stem()?);
    let message = |(name, info): (Text, Object)| {
        let parts = all_in(&storage.join("part").join(name.as_str()));
        let parts: Value = parts.into_iter().map(|(_, part)| Value::from(part)).collect();
        object([("info", info.into()), ("parts", parts)])
    };
    let messages = all_in(&storage.join("message").join(name));
    let messages = messages.into_iter().map(message).collect();
    let info = read_small(path)?.into();
    Some(object([("info", info), ("messages", messages)]).to_json() + "\n")
}
