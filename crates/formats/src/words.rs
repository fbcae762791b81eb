//! The words that texts and messages are read by, the rows of `tables/words.tsv`: tags that models and programs write, and types of parts.

use std::{collections::HashMap, sync::LazyLock};

use rustc_hash::FxBuildHasher;

/// How a tag begins, and how it ends, if it does.
pub type Tag = [&'static str; 2];

/// A table by names of this crate, which is asked for each message.
pub type ByName<T> = HashMap<&'static str, T, FxBuildHasher>;

static TABLE: LazyLock<ByName<Vec<Tag>>> = LazyLock::new(|| {
    let mut table: ByName<Vec<Tag>> = ByName::default();
    let rows = include_str!("../tables/words.tsv").lines();
    for row in rows.filter(|row| !row.starts_with('#')) {
        let mut cells = row.split('\t');
        let mut next = || cells.next().unwrap_or_default();
        table.entry(next()).or_default().push([next(), next()]);
    }
    table
});

/// Returns the beginnings and ends of the tags of a kind.
pub fn tags(kind: &str) -> &'static [Tag] {
    TABLE.get(kind).map(Vec::as_slice).unwrap_or_default()
}

/// What a message says of itself, and the paths where it may be.
pub type Row = (&'static str, Vec<Vec<&'static str>>);

static MESSAGES: LazyLock<ByName<Vec<Row>>> = LazyLock::new(|| {
    let paths = |all: &'static str| all.split(' ').map(|path| path.split('/').collect()).collect();
    let rows = |(kind, rows): (&&'static str, &Vec<Tag>)| {
        let rows = rows.iter().map(|[what, all]| (*what, paths(all)));
        Some((kind.strip_suffix("-message")?, rows.collect()))
    };
    TABLE.iter().filter_map(rows).collect()
});

/// Returns what the messages of a format say of themselves.
pub fn rows_of(format: &str) -> &'static [Row] {
    MESSAGES.get(format).map(Vec::as_slice).unwrap_or_default()
}

/// Returns the words of a kind.
pub fn words(kind: &str) -> impl Iterator<Item = &'static str> {
    tags(kind).iter().map(|[word, _]| *word)
}

/// Returns the first row of a kind whose word fits.
pub fn row_where(kind: &str, fits: impl Fn(&str) -> bool) -> Option<Tag> {
    tags(kind).iter().copied().find(|[word, _]| fits(word))
}

/// Returns whether a text begins with a word of a kind, behind white space.
pub fn is_begun(text: &str, kind: &str) -> bool {
    words(kind).any(|word| text.trim_start().starts_with(word))
}

/// Returns whether a word is one of a kind.
pub fn is_one(word: &str, kind: &str) -> bool {
    words(kind).any(|other| other == word)
}

#[cfg(test)]
pub mod tests {
    use std::{collections::HashSet, fs, path::Path};

    use regex::Regex;

    use super::*;

    /// Returns the sources in a folder, with those of the folders in it.
    pub fn sources(folder: &Path) -> String {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        entries
            .map(|path| {
                if path.is_dir() {
                    sources(&path)
                } else {
                    fs::read_to_string(path).unwrap()
                }
            })
            .collect()
    }

    #[test]
    fn no_two_kinds_of_words_and_no_two_rows_of_a_kind_have_one_name() {
        let rows = include_str!("../tables/words.tsv").lines();
        let rows = rows.filter(|row| !row.starts_with('#'));
        let rows: Vec<Vec<&str>> = rows.map(|row| row.split('\t').collect()).collect();
        let lists = rows.chunk_by(|row, next| row[0] == next[0]);
        let kinds: Vec<&str> = lists.map(|list| list[0][0]).collect();
        let mut names = HashSet::new();
        for kind in kinds {
            assert!(
                names.insert(vec![kind]),
                "the rows of {kind} do not stand together"
            );
        }
        for row in rows {
            // Rows of these are tried one after another.
            let are_tried = ["path", "span-input", "span-output"].contains(&row[0]);
            let name = if are_tried { row.clone() } else { row[..2].to_vec() };
            assert!(names.insert(name), "{row:?} has the name of a row before it");
        }
    }

    #[test]
    fn each_kind_that_the_sources_name_is_in_the_table_and_each_of_the_table_is_named() {
        let sources = sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
        let calls = [
            r#"(?:words|tags|row_where|begin_run|facts)\("([^"]+)"[,)]"#,
            r#"(?:is_one|first_named|begins_with|is_begun)\([^"()]*(?:\([^"]*\))?[^"()]*"([^"]+)"\)"#,
        ];
        let calls = calls.map(|call| Regex::new(call).unwrap());
        let named = calls.iter().flat_map(|call| call.captures_iter(&sources));
        let named: HashSet<&str> = named.map(|found| found.extract::<1>().1[0]).collect();
        assert!(named.len() > 40, "{named:?}");
        for kind in &named {
            assert!(TABLE.contains_key(kind), "{kind} is not in the table");
        }
        for kind in TABLE.keys() {
            let of_format = ["-list", "-facts", "-message", "-beside"]
                .iter()
                .find_map(|end| kind.strip_suffix(end));
            let is_named = |name: &str| sources.contains(&format!("\"{name}\""));
            assert!(
                is_named(kind) || of_format.is_some_and(is_named),
                "nothing names {kind}"
            );
        }
    }
}
