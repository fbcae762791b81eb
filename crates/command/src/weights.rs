//! The JSON files that `--weights` and `--map` name.

use std::fs;

use knowledgepulse_error::Error;
use knowledgepulse_formats::map::Map;
use knowledgepulse_json::{Text, Value, parse, trim};
use knowledgepulse_score::{dimensions::ByDimension, weights::Profiles};

use crate::error::{Failure, Result};

/// Weights by domain, and the domains that a file names.
#[derive(Debug, Default)]
pub struct NamedProfiles {
    /// All profiles.
    pub profiles: Profiles,
    /// The names in the file, in its order.
    pub names: Vec<String>,
    /// The contents of the file; `None` without one.
    pub json: Option<String>,
}

/// Reads a file of weights.
///
/// # Errors
/// If it cannot be read, or is no JSON object of profiles; the message has the path in the file.
pub fn read_weights(file: &str) -> Result<NamedProfiles> {
    profiles_of(&read_json(file)?, file).map_err(Failure::file)
}

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

fn profiles_of(weights: &Value, file: &str) -> std::result::Result<NamedProfiles, String> {
    let Value::Object(named) = weights else {
        return Err(format!("{file} must be an object, got {}", weights.kind()));
    };
    let mut found = NamedProfiles {
        json: Some(weights.to_json()),
        ..NamedProfiles::default()
    };
    for (name, given) in named.iter() {
        let place = format!("{file}[{}]", Value::from(name.clone()).to_json());
        let Value::Object(given) = given else {
            return Err(format!("{place} must be an object, got {}", given.kind()));
        };
        let is_known = |name: &Text| ByDimension::NAMES.contains(&name.as_str());
        if let Some(name) = given.keys().find(|name| !is_known(name)) {
            let known = ByDimension::NAMES.join(", ");
            return Err(format!(
                "{} is not known; {place} has {known}",
                member(&place, name)
            ));
        }
        let [complexity, novelty, tool_diversity, outcome] = ByDimension::NAMES.map(|dimension| {
            let weight = given.get(dimension).and_then(Value::as_number);
            weight.ok_or_else(|| format!("{place}.{dimension} must be a number"))
        });
        let weights = ByDimension::from_array([complexity?, novelty?, tool_diversity?, outcome?]);
        let name = name.to_string();
        found
            .profiles
            .set(name.clone(), weights)
            .map_err(|error| match error {
                Error::Weights {
                    dimension, problem, ..
                } => {
                    let dimension = dimension
                        .map(|dimension| format!(".{dimension}"))
                        .unwrap_or_default();
                    format!("{place}{dimension} {problem}")
                }
                error => error.to_string(),
            })?;
        found.names.push(name);
    }
    Ok(found)
}

/// Returns the path of a member: by a dot where its name is an identifier.
fn member(place: &str, name: &Text) -> String {
    let is_word = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '$');
    let identifier = Some(name).filter(|name| {
        !name.is_empty()
            && !name.starts_with(|first: char| first.is_ascii_digit())
            && name.chars().all(is_word)
    });
    match identifier {
        Some(name) => format!("{place}.{name}"),
        None => format!("{place}[{}]", Value::from(name.clone()).to_json()),
    }
}
