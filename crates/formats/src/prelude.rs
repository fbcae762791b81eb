//! The words that formats are read in.

pub use std::path::Path;

pub use knowledgepulse_json::{Object, Text, Value, cut, is_white_space, object, parse_str};

pub use crate::{
    Wrong,
    agent::{Adapter, Decoded, Format, Inner, Kind, Plain},
    event::{Agent, Call, Event, Events, Fact, Origin, Outcome, PARENT, Parent, Span, TextKind, Undo, What},
    messages::{add_as, add_by, add_message, add_said, is_message, message_by},
    parts::{call_of, kind_alone, part_of, result_of, saying, some_object, thinking},
    values::*,
};
