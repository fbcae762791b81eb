//! The databases of agents: how a session is selected as JSON of the same shape as the agent's export.

use std::sync::LazyLock;

/// Where an agent's sessions are in an SQLite database, and how they are read.
#[derive(Debug)]
pub struct Database {
    /// Whose it is: the sessions of several databases of an agent are told apart by their names.
    pub agent: &'static str,
    /// A table and a column by which the database is recognised.
    pub mark: (&'static str, &'static str),
    /// The tables that are read.
    pub tables: Vec<&'static str>,
    /// Tables that older databases lack, with the columns that are read.
    pub optional: Vec<(&'static str, &'static str)>,
    /// Selects the names of the sessions in their order, and beside each what it has in common with its forks, where the agent makes some.
    pub sessions: &'static str,
    /// Selects the session of the name `?1` as JSON.
    pub session: &'static str,
}

/// The databases that can be read, as `tables/databases.sql` writes them.
pub static DATABASES: LazyLock<Vec<Database>> =
    LazyLock::new(|| databases_in(include_str!("../../tables/databases.sql")));

/// Returns the databases that a text describes. What is incomplete is none.
pub fn databases_in(text: &'static str) -> Vec<Database> {
    let read = |entry: &'static str| {
        let (head, queries) = entry.split_once('\n')?;
        let mut words = head.split_whitespace();
        let (agent, table, column) = (words.next()?, words.next()?, words.next()?);
        let mut queries = queries.split(";\n");
        let (optional, tables): (Vec<_>, Vec<_>) = words.partition(|table| table.ends_with(')'));
        let columns = |table: &'static str| table.trim_end_matches(')').split_once('(');
        Some(Database {
            agent,
            mark: (table, column),
            tables,
            optional: optional.into_iter().filter_map(columns).collect(),
            sessions: queries.next()?,
            session: queries.next()?,
        })
    };
    text.split("-- @ ").skip(1).filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn databases_in_reads_every_entry_of_the_table() {
        let text = include_str!("../../tables/databases.sql");
        assert_eq!(DATABASES.len(), text.matches("-- @ ").count());
        let is_whole = |database: &Database| {
            let selects = |query: &str| query.trim_start().starts_with("SELECT") || query.starts_with("WITH");
            !database.tables.is_empty() && selects(database.sessions) && selects(database.session)
        };
        assert!(DATABASES.iter().all(is_whole));
    }
}
