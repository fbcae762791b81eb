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

/// Returns whether a list of the table has a name.
pub fn has(list: &str, name: &str) -> bool {
    let names = LISTS.get(list);
    debug_assert!(names.is_some(), "{list} is no list");
    names.is_some_and(|names| names.contains(name))
}
