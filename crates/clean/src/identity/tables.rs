//! Columns of people and accounts.

use std::ops::Range;

use super::{Identities, people::is_person};
use crate::{
    columns::{self, Table, line_at},
    keywords::Owner,
    review::{PEOPLE, plain},
    text::Text,
    words::Words,
};

/// What stands before `name` in the names of columns that hold people.
static OF_PEOPLE: Words = Words::new("full first last given family sur fore display real vor nach");
/// Names of columns that hold accounts.
static LOGINS: Words = Words::of("identity.logins");

impl Identities {
    /// Learns the names in the columns of tables that are named like people or accounts.
    pub(super) fn learn_labelled(&mut self, page: &Text) {
        // One letter for each that is shown, so the cells of a column stand below each other.
        let (units, letters) = (page.units(), page.letters());
        let mut from = 0;
        for label in page.keywords(Owner::People) {
            // A sign ends a label, or `by` goes on with it.
            let next = letters.get(label.range.end);
            let may_end = next.is_none_or(|next| !next.is_ascii_alphanumeric() || b"bB".contains(next));
            if label.range.start < from || !may_end {
                continue;
            }
            let line = line_at(letters, label.range.start);
            from = line.end;
            if line.len() <= columns::MOST_LETTERS
                && let Some(table) = Table::below(letters, line, &is_of_people)
            {
                from = table.end.max(from);
                self.learn_table(units, &table);
            }
        }
    }

    /// Learns the people and accounts in the columns of a table.
    fn learn_table(&mut self, units: &[u16], table: &Table) {
        let text_of = |cell: &Range<usize>| String::from_utf16_lossy(&units[cell.clone()]);
        for (at, heading) in table.headings.iter().enumerate() {
            let has_logins = LOGINS.has(&plain(text_of(heading).as_bytes()));
            for cell in table.rows.iter().map(|row| text_of(&row[at])) {
                if has_logins {
                    self.add_user(cell.trim_start_matches('>'), "", "");
                }
                if is_person(&cell) {
                    self.add_author(&cell, "");
                }
            }
        }
    }
}

/// Returns the words of which one stands in each label of such a column.
pub(crate) fn labels() -> Vec<Vec<u8>> {
    let words = PEOPLE
        .iter()
        .chain(LOGINS.iter())
        .map(|word| word.trim_end_matches("by"));
    words
        .chain(["name"])
        .map(|word| word.as_bytes().to_vec())
        .collect()
}

/// Returns whether a column has people or accounts, by its name in small letters and without signs, and without `name` at its end.
fn is_of_people(heading: &[u8]) -> bool {
    let heading = plain(heading);
    let own = heading.strip_suffix(b"name").unwrap_or(&heading);
    LOGINS.has(&heading) || PEOPLE.has(own) || OF_PEOPLE.has(own)
}
