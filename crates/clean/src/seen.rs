//! What became of texts that were cleaned before. Sessions repeat nine of ten texts and a third of their bytes: names of fields, folders, ids,
//! and results that are told twice.

use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
};

use knowledgepulse_json::Text;
use rustc_hash::FxBuildHasher;
use twox_hash::XxHash3_128;

use crate::{cleaner::Finding, kinds::has_secret};

/// All is forgotten beyond so many bytes.
const MOST_BYTES: usize = 8 * 1024 * 1024;
/// What an entry takes besides its text.
const ENTRY: usize = 48;

/// A clean text and its findings; `None` of a text without findings.
pub(crate) type Outcome = Option<Box<(Text, Vec<Finding>)>>;

/// A hash of a text with a random seed: 128 bits, which no two texts of a session share.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key(u128);

/// The outcomes of texts.
#[derive(Clone, Default)]
pub(crate) struct Seen {
    random: RandomState,
    outcomes: HashMap<Key, Outcome, FxBuildHasher>,
    bytes: usize,
    /// Whether there is a secret in an id, by itself.
    ids: HashMap<Key, bool, FxBuildHasher>,
}

impl Seen {
    /// Returns the key of a text.
    pub(crate) fn key(&self, text: &str) -> Key {
        let seed = self.random.hash_one(());
        Key(XxHash3_128::oneshot_with_seed(seed, text.as_bytes()))
    }

    /// Returns what became of a text; `None` if that is not known.
    pub(crate) fn get(&self, key: Key) -> Option<&Outcome> {
        self.outcomes.get(&key)
    }

    /// Remembers what became of a text.
    pub(crate) fn insert(&mut self, key: Key, outcome: Outcome) {
        let size = |(text, findings): &(Text, Vec<Finding>)| text.len() + findings.len() * 3 * ENTRY;
        self.bytes += ENTRY + outcome.as_deref().map_or(0, size);
        if self.bytes > MOST_BYTES {
            self.clear();
            return;
        }
        self.outcomes.insert(key, outcome);
    }

    /// Returns whether an id has a secret, which is searched once.
    pub(crate) fn has_secret(&mut self, id: &str) -> bool {
        if self.ids.len() * ENTRY > MOST_BYTES {
            self.ids.clear();
        }
        *self.ids.entry(self.key(id)).or_insert_with(|| has_secret(id))
    }

    /// Forgets all texts.
    pub(crate) fn clear(&mut self) {
        self.outcomes.clear();
        self.bytes = 0;
    }
}
