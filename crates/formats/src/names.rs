//! Lists of names that formats have, which are data: `tables/names.tsv`.

use std::{
    collections::{HashMap, HashSet},
    sync::LazyLock,
};

static LISTS: LazyLock<HashMap<&str, HashSet<&str>>> = LazyLock::new(|| {
    let mut lists: HashMap<_, HashSet<_>> = HashMap::new();
    for (list, names) in include_str!("../tables/names.tsv")
        .lines()
        .filter_map(|line| line.split_once('\t'))
    {
        lists.entry(list).or_default().extend(names.split(' '));
    }
    lists
});

/// Returns the names of a list of the table.
pub fn list(name: &str) -> Option<&'static HashSet<&'static str>> {
    let list = LISTS.get(name);
    debug_assert!(list.is_some(), "{name} is no list");
    list
}

/// Returns whether a list of the table has a name.
pub fn has(list: &str, name: &str) -> bool {
    self::list(list).is_some_and(|names| names.contains(name))
}
