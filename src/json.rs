//! JSON values from JavaScript. `lib/calls/nodes.js` writes them as text, because parsing text is faster than reading properties.

use knowledgepulse_error::{Error, Result};
use knowledgepulse_json::{Value, parse_str};

/// Reads the nodes of a value: its objects and arrays, the value itself first. References replace the nodes inside a node.
///
/// # Errors
/// [`Error::Internal`] if `lib/calls/nodes.js` cannot have written the text.
pub(super) fn nodes(text: &str) -> Result<Vec<Value>> {
    match parse_str(text) {
        Ok(Value::Array(nodes)) => Ok(nodes),
        Ok(_) => Err(Error::Internal("nodes are an array".into())),
        Err(error) => Err(Error::Internal(error.to_string())),
    }
}
