//! Columns of people, accounts and machines.

use std::{ops::Range, sync::LazyLock};

use regex::bytes::Regex;

use super::{
    HOSTS, Identities,
    people::{is_full_name, is_person},
};
use crate::{
    columns::{self, Table, line_at},
    ranges::expression,
    review::{PEOPLE, plain},
    text::Text,
    words::Words,
};

/// What stands before `name` in the names of columns that hold people.
static OF_PEOPLE: Words = Words::new("full first last given family sur fore display real vor nach");
/// Names of columns beside one with people.
static BESIDE_PEOPLE: Words = Words::of("identity.beside_people");
/// Names of columns that hold accounts.
static LOGINS: Words = Words::of("identity.logins");

impl Identities {
    /// Learns the names in the columns of tables that are named like people, accounts or machines.
    pub(super) fn learn_labelled(&mut self, page: &Text) {
        static LABEL: LazyLock<Regex> = LazyLock::new(|| {
            let words: Vec<_> = PEOPLE.iter().chain(LOGINS.iter()).collect();
            let words = words.join("|").replace("by", "[ _-]?by");
            expression(&format!(
                r#"(?i)(?:^|[|,;\t\n"(\xFF]|  )(?:[ "*`-]|''')*(?:[a-z]{{0,12}}[ _-]?name|{words})(?:[ "`]|''')*(?:[|,;\t\r\n")\xFF]|  |$)|\b(?-i:USER|USERNAME|OWNER|AUTHINFO|HOSTNAME|ASSIGNEE|REPORTER|AUTHOR) "#
            ))
        });
        // One letter for each that is shown, so the cells of a column stand below each other.
        let (units, letters) = (page.units(), page.letters());
        let mut from = 0;
        while let Some(found) = LABEL.find_at(letters, from) {
            from = found.end();
            let line = line_at(letters, from - 1);
            if line.len() > columns::MOST_LETTERS {
                from = line.end;
            } else if let Some(table) = Table::below(letters, line, &is_of_people) {
                from = table.end.max(from);
                self.learn_table(units, &table);
            }
        }
    }

    /// Learns the people in the columns of a table.
    fn learn_table(&mut self, units: &[u16], table: &Table) {
        const LEAST_PEOPLE: usize = 3;
        static FIRST: Words = Words::new("firstname givenname forename prenom vorname nombre nome imie");
        static LAST: Words = Words::new("lastname surname familyname nom nachname apellido cognome nazwisko");
        let text_of = |cell: &Range<usize>| String::from_utf16_lossy(&units[cell.clone()]);
        let headings = table.headings.iter().map(|at| plain(text_of(at).as_bytes()));
        let headings: Vec<_> = headings.collect();
        let column = |names: &Words| headings.iter().position(|heading| names.has(heading));
        let pair = column(&FIRST).zip(column(&LAST));
        for (row, (first, last)) in table.rows.iter().zip(pair.into_iter().cycle()) {
            self.add_author(&format!("{} {}", text_of(&row[first]), text_of(&row[last])), "");
        }
        // A column that is called `name` alone has people if there are several, or if another column tells.
        let is_told =
            table.rows.len() >= LEAST_PEOPLE || column(&BESIDE_PEOPLE).or(column(&LOGINS)).is_some();
        for (at, heading) in headings.iter().enumerate() {
            let cells: Vec<String> = table.rows.iter().map(|row| text_of(&row[at])).collect();
            if LOGINS.has(heading) {
                cells
                    .iter()
                    .for_each(|cell| self.add_user(cell.trim_start_matches('>'), "", ""));
            } else if HOSTS.has(heading) {
                cells.iter().for_each(|cell| self.add_host(cell, "", ""));
            }
            let are_full = || cells.iter().all(|cell| cell.is_empty() || is_full_name(cell));
            let has_people = !BESIDE_PEOPLE.has(heading)
                && !HOSTS.has(heading)
                && (heading != b"name" || is_told && are_full());
            for name in cells.into_iter().filter(|cell| has_people && is_person(cell)) {
                self.add_author(&name, "");
            }
        }
    }
}

/// Returns the name of a field or a column in small letters and without signs, and without `name` at its end; `None` if it is `name`.
fn own_name(name: &[u8]) -> Option<Vec<u8>> {
    let name = plain(name);
    let own = name.strip_suffix(b"name").unwrap_or(&name);
    (!own.is_empty()).then(|| own.to_vec())
}

/// Returns whether a column has people, or tells that the one beside it has.
fn is_of_people(heading: &[u8]) -> bool {
    let of_people = |own: Vec<u8>| PEOPLE.has(&own) || OF_PEOPLE.has(&own) || BESIDE_PEOPLE.has(&own);
    LOGINS.has(&plain(heading)) || HOSTS.has(&plain(heading)) || own_name(heading).is_none_or(of_people)
}
