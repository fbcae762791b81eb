//! What was replaced, in the order of its danger.

use std::collections::BTreeMap;

use knowledgepulse_clean::Cleaner;

/// What identifiers are called, those first that tell most.
const IDENTIFIERS: [(&str, &str, &str); 9] = [
    ("email", "e-mail address", "e-mail addresses"),
    ("phone", "telephone number", "telephone numbers"),
    ("address", "street address", "street addresses"),
    ("birth_date", "date of birth", "dates of birth"),
    ("ip", "IP address", "IP addresses"),
    ("user", "name", "names"),
    ("host", "machine", "machines"),
    ("filepath", "path", "paths"),
    ("document", "document or picture", "documents and pictures"),
];

/// Returns whether a kind is of secrets.
#[must_use]
pub fn is_secret(kind: &str) -> bool {
    let mut types = Cleaner::types().into_iter();
    types.any(|(each, is_identifier)| each == kind && !is_identifier)
}

/// Returns whether a kind is of what tells of people and machines, as paths and documents hardly do.
#[must_use]
pub fn is_personal(kind: &str) -> bool {
    let mut told = IDENTIFIERS.iter().take_while(|(name, ..)| *name != "filepath");
    told.any(|(name, ..)| *name == kind)
}

/// Returns how much was replaced by what it is called: the secrets of all kinds, then the identifiers by what they tell, then what a user's
/// rules found by their names. `counts` are by kind.
#[must_use]
pub fn by_danger(counts: &BTreeMap<String, u64>) -> Vec<(u64, String)> {
    let secrets = counts.iter().filter(|(name, _)| is_secret(name));
    let secrets = secrets.map(|(_, count)| *count).sum();
    let identifiers = IDENTIFIERS
        .into_iter()
        .map(|(name, one, many)| (counts.get(name).copied().unwrap_or_default(), one, many));
    let all = [(secrets, "secret", "secrets")].into_iter().chain(identifiers);
    let all = all.map(|(count, one, many)| (count, if count == 1 { one } else { many }.to_owned()));
    let is_other = |name: &str| !is_secret(name) && IDENTIFIERS.iter().all(|(each, ..)| *each != name);
    let others = counts.iter().filter(|(name, _)| is_other(name));
    let all = all.chain(others.map(|(name, count)| (*count, name.clone())));
    all.filter(|(count, _)| *count > 0).collect()
}
