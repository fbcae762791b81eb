//! `kp-score formats`: what is read, and what of it is on this machine.

use knowledgepulse_formats::FormatName;

use crate::{Exit, Messages, Output, Result, find::of_agent, find::tell_not_read, grouped};

/// Prints the table.
pub(crate) fn run(messages: &Messages) -> Result<Exit> {
    let mut unread = Vec::new();
    let mut rows = vec![["format", "of", "files here"].map(str::to_owned)];
    for &name in FormatName::ALL {
        let (found, skipped) = of_agent(name, messages);
        let format = name.format();
        let has_folders = !format.about().folders.is_empty();
        let files = has_folders.then(|| grouped(found.len() as u64));
        let of = format.about().of.to_owned();
        rows.push([format.name.to_owned(), of, files.unwrap_or_default()]);
        unread.extend(skipped);
    }
    let width_of = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let [first, second] = [0, 1].map(|column| width_of(column).unwrap_or_default());
    let lines = rows.iter().map(|[format, of, files]| {
        let line = format!("{format:first$}  {of:second$}  {files:>10}");
        format!("{}\n", line.trim_end())
    });
    let text: String = lines.collect();
    Output::print(&text)?;
    tell_not_read(&unread, true, messages);
    Ok(Exit::Ok)
}
