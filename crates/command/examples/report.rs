//! Makes the report of a run that standard input describes, as [`described`] reads it. Prints the figures as JSON; with the path of a
//! page, which is not compressed, the page with the figures in it.

use std::{
    error::Error,
    fs,
    io::{Write, read_to_string, stdin, stdout},
};

use knowledgepulse_command::report::described;

fn main() -> Result<(), Box<dyn Error>> {
    let page = std::env::args_os().nth(1).map(fs::read_to_string).transpose()?;
    let (report, run) = described(&read_to_string(stdin())?)?;
    let text = match &page {
        Some(page) => report.render(&run, page).map_err(|failure| failure.message)?,
        None => report.summary(&run).to_json(),
    };
    stdout().write_all(text.as_bytes())?;
    Ok(())
}
