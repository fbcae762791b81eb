//! The JSON file that `--map` names.

use std::fs;

use knowledgepulse_formats::map::Map;
use knowledgepulse_json::{Value, parse, trim};

use crate::error::{Failure, Result};

/// Reads a map of another format.
///
/// # Errors
/// If it cannot be read, or is no map; the message has the path in the file.
pub fn read_map(file: &str) -> Result<Map> {
    Map::from_value(&read_json(file)?).map_err(|error| Failure::file(error.at(file)))
}

fn read_json(file: &str) -> Result<Value> {
    let bytes = fs::read(file).map_err(|error| Failure::read(file, &error))?;
    let text = String::from_utf8_lossy(&bytes);
    parse(trim(&text).as_bytes()).map_err(|error| Failure::file(format!("{file} is not JSON: {error}")))
}
