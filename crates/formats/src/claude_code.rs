//! Session files of Claude Code.

use knowledgepulse_json::Value;

use crate::{Entry, FormatReader, Found, Wrong};

pub fn recognises(_value: &Value) -> bool {
    false
}

pub struct Reader;

impl Reader {
    pub fn new() -> Self {
        Self
    }
}

impl FormatReader for Reader {
    fn read(&mut self, _entry: &Entry, _found: &mut Vec<Found>) -> Result<(), Wrong> {
        Err(Wrong::new("no reader"))
    }
}
