//! Names that no other file has.

use std::collections::{HashMap, HashSet};

/// The names of files that are taken. Some file systems do not tell capitals from small letters, so two names are told by more.
#[derive(Debug, Default)]
pub struct FreeNames {
    taken: HashSet<String>,
    /// The number that the next file of a name gets.
    next: HashMap<String, u64>,
}

impl FreeNames {
    /// Takes the first free name of `numbered(1)`, `numbered(2)`, … and returns it. `is_there` says of a name whether something else has it.
    pub fn take(&mut self, numbered: impl Fn(u64) -> String, is_there: impl Fn(&str) -> bool) -> String {
        let next = self.next.entry(numbered(1).to_lowercase()).or_insert(1);
        loop {
            let name = numbered(*next);
            *next += 1;
            if !is_there(&name) && self.taken.insert(name.to_lowercase()) {
                return name;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn take_counts_on_from_the_last_number() {
        let tried = Cell::new(0);
        let mut names = FreeNames::default();
        let mut take = |stem: &str| {
            let numbered = |number| {
                tried.set(tried.get() + 1);
                if number == 1 {
                    stem.into()
                } else {
                    format!("{stem}-{number}")
                }
            };
            names.take(numbered, |name| name == "a-5")
        };
        let taken = ["a", "A-2", "a", "a", "a"].map(&mut take);
        assert_eq!(taken, ["a", "A-2", "a-3", "a-4", "a-6"]);
        let costs = [1000, 2000, 4000, 8000, 16_000].map(|count| {
            tried.set(0);
            (0..count).for_each(|_| drop(take("b")));
            tried.get()
        });
        assert!(
            costs.windows(2).all(|pair| pair[1] <= 2 * pair[0] + 10),
            "{costs:?}"
        );
    }
}
