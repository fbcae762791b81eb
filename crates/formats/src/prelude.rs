//! The words that formats are read in.

pub use std::path::Path;

pub use knowledgepulse_json::{Object, Text, Value, cut, is_white_space, object, parse_str, trim};

pub(crate) use crate::{
    Wrong,
    agent::{Decoded, Format, Kind},
    event::{Agent, Event, Events, Fact, Origin, PARENT, Parent, Span, TextKind, ToolResult, Undo, What},
    input::{Told, listed_beside, read_small, text_of_small, told_beside},
    messages::{
        OF_PROGRAM, UNKNOWN_ROLE, add_as, add_message, add_next, add_parts, add_said, is_message,
        is_of_program, message_by,
    },
    parts::{Call, Part, failure_of, parts_in, parts_of},
    shapes::is,
    tools::{TOOLS, tools_of},
    values::*,
    words::{is_one, row_where, rows_of, tags, words},
};
