//! Replaces secrets and personal data in texts by `[REDACTED:<type>]`, as the SDK's `cleanPii` does, to the character.
//!
//! The SDK applies fourteen regular expressions, one after another, each to the result of the one before ([`kinds`]). Some
//! of them backtrack: on 80,000 characters without an `@` the one for e-mail addresses takes seconds. Here an automaton runs
//! an expression, or a loop that never goes back replaces it, so time grows linearly with any text.
//!
//! Texts are JavaScript's: UTF-16 code units, which may be lone surrogates ([`text`]).

mod base64;
mod cleaner;
mod codes;
mod columns;
mod commands;
mod emails;
mod identity;
mod keys;
mod keywords;
mod kinds;
mod known;
mod languages;
mod lines;
mod names;
mod numbers;
mod pairs;
mod pem;
mod phrases;
mod providers;
mod random;
mod ranges;
mod review;
mod seen;
mod siblings;
mod structures;
mod text;
mod trace;
mod values;
mod view;
mod words;
mod wrapped;

pub use cleaner::{Cleaner, Finding, InvalidExpression};
pub use identity::Identities;
pub use kinds::CleanOptions;
pub use review::{PlaceToReview, places_in_json, places_in_text};
pub use text::block_of;

#[cfg(test)]
pub(crate) mod tests;
