//! The Markdown in which Aider keeps its chats, as a line of JSON for each launch.

use knowledgepulse_json::object;

use super::Foreign;

/// How a launch begins, before its time.
const LAUNCH: &str = "# aider chat started at ";

/// How a file begins.
pub const BEGINNINGS: [&[u8]; 2] = [b"# aide", b"\n# aid"];

/// Returns a line for each launch; the text itself, if it has none.
///
/// # Errors
/// None: it is a reader of inputs that are whole.
#[expect(clippy::unnecessary_wraps, clippy::needless_pass_by_value)] // Other readers of whole inputs may fail.
pub fn lines_of_aider(bytes: Vec<u8>) -> Result<String, Foreign> {
    let text = String::from_utf8_lossy(&bytes);
    let mut lines = String::new();
    let mut add = |launch: &str| {
        let (time, text) = launch.split_once('\n').unwrap_or((launch, ""));
        if !text.trim().is_empty() {
            lines += &object([("aider", time.trim().into()), ("text", text.into())]).to_json();
            lines.push('\n');
        }
    };
    let text = format!("\n{text}");
    text.split(&format!("\n{LAUNCH}")).skip(1).for_each(&mut add);
    Ok(if lines.is_empty() { text } else { lines })
}
