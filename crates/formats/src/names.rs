//! Lists of names that formats have, which are data: `tables/names.tsv`.

use std::sync::LazyLock;

/// Each list with its names, in the order of the table.
static LISTS: LazyLock<Vec<(&str, Vec<&str>)>> = LazyLock::new(|| {
    let lines = include_str!("../tables/names.tsv").lines();
    let mut lists: Vec<(_, Vec<_>)> = Vec::new();
    for (list, names) in lines.filter_map(|line| line.split_once('\t')) {
        match lists.last_mut() {
            Some((last, all)) if *last == list => all.extend(names.split(' ')),
            _ => lists.push((list, names.split(' ').collect())),
        }
    }
    lists
});

/// Returns the names of a list of the table.
pub fn list(name: &str) -> &'static [&'static str] {
    let list = LISTS.iter().find(|(list, _)| *list == name);
    debug_assert!(list.is_some(), "{name} is no list");
    list.map_or(&[], |(_, names)| names)
}

/// Returns whether a text begins with a name of a list.
pub fn begins(list: &str, text: &str) -> bool {
    self::list(list).iter().any(|name| text.starts_with(name))
}

/// Returns whether a list of the table has a name.
pub fn has(list: &str, name: &str) -> bool {
    self::list(list).contains(&name)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_table_has_each_list_in_one_place_and_each_name_of_a_list_once() {
        let mut lists = HashSet::new();
        for (list, names) in LISTS.iter() {
            assert!(lists.insert(list), "{list} is in two places");
            let all: HashSet<_> = names.iter().collect();
            assert_eq!(all.len(), names.len(), "{list} has a name twice");
            assert!(!names.contains(&""), "{list} has an empty name");
        }
    }
}
