//! The Markdown in which Aider keeps its chats, as a line of JSON for each launch.

use knowledgepulse_json::object;

use super::{Foreign, Lines};

/// How a launch begins, before its time.
const LAUNCH: &str = "# aider chat started at ";

/// How a file begins.
pub const BEGINNINGS: [&[u8]; 2] = [b"# aide", b"\n# aid"];

/// Returns a line for each launch; the text itself, if it has none.
///
/// # Errors
/// None: it is a reader of inputs that are whole.
#[expect(clippy::unnecessary_wraps, clippy::needless_pass_by_value)] // Other readers of whole inputs may fail.
pub fn lines_of(bytes: Vec<u8>) -> Result<Lines, Foreign> {
    let text = format!("\n{}", String::from_utf8_lossy(&bytes));
    let begin = format!("\n{LAUNCH}");
    let launches = text.split(&begin).skip(1).filter_map(|launch| {
        let (time, text) = launch.split_once('\n')?;
        let line = object([("aider", time.trim().into()), ("text", text.into())]).to_json();
        (!text.trim().is_empty()).then(|| line + "\n")
    });
    let lines: Vec<String> = launches.collect();
    Ok(Box::new(
        if lines.is_empty() { vec![text] } else { lines }.into_iter(),
    ))
}
