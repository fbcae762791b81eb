//! The words that adapters are written in.

pub use std::path::Path;

pub use knowledgepulse_json::{Object, Text, Value, is_white_space, object, parse_str};

pub use super::{Adapter, Decoded, Kind};
pub use crate::{
    Wrong,
    event::{Agent, Call, Events, Fact, Origin, Outcome, Parent, TextKind, Undo, What},
    messages::{add_by, add_message, add_said},
    parts::{call_of, kind_alone, result_of, saying, some_object, thinking},
    values::*,
};
