//! `kp-score formats`: what is read, and what of it is on this machine.

use clap::Args;
use knowledgepulse_formats::places::SOURCES;

use crate::{
    error::{Exit, Result},
    files::output_file::StandardOutput,
    show::printable::{grouped, pad_end, width_of},
};

/// List the formats that are read, and how many files of each are here
#[derive(Debug, Clone, Args)]
#[command(before_help = "Example: kp-score formats")]
pub(crate) struct FormatsArgs {}

/// Prints the table.
pub(crate) fn run() -> Result<Exit> {
    let rows = SOURCES.iter().map(|source| {
        let files = if source.places.is_empty() {
            String::new()
        } else {
            grouped(source.files().len() as u64)
        };
        [source.format.name().to_owned(), source.name.to_owned(), files]
    });
    let heading = ["format", "of", "files here"].map(str::to_owned);
    let rows: Vec<_> = [heading].into_iter().chain(rows).collect();
    let widths = [0, 1].map(|column| {
        rows.iter()
            .map(|row| width_of(&row[column]))
            .max()
            .unwrap_or_default()
    });
    let mut text = String::new();
    for [format, of, files] in &rows {
        let line = format!(
            "{}  {}  {files:>10}",
            pad_end(format, widths[0]),
            pad_end(of, widths[1])
        );
        text.push_str(line.trim_end());
        text.push('\n');
    }
    StandardOutput::print(text.as_bytes()).map(|()| Exit::Ok)
}
