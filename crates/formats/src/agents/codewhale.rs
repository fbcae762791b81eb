//! CodeWhale, DeepSeek TUI before: `~/.codewhale/sessions/ID.json`, messages of Anthropic with what is known of the session.

use crate::prelude::*;

pub static FORMAT: Format = Format::of_messages("codewhale", add_message);
