//! Folders as inputs: the files in them that a reader recognises.

use std::{fs::File, io, ops::ControlFlow, path::Path};

use knowledgepulse_formats::{
    reader::{self, MOST_FIRST_RECORDS},
    records::{Record, Records},
};
use walkdir::WalkDir;

use crate::{
    error::{Failure, Result},
    files::file_identity::{Output, is_same_file, metadata_of},
    read::{
        Inputs,
        compression::{Input, read_text},
    },
    show::{messages::Messages, printable::counted},
};

/// So many bytes of a file are read at once to recognise it.
const BEGINNING_SIZE: usize = 64 * 1024;

/// Replaces each folder among the inputs by the files below it that a reader recognises or that cannot be read, in the order of their
/// names. Leaves out links and the files that the run writes (`outputs`), and says how many files were skipped.
///
/// # Errors
/// If only folders are named, and no file in them is recognised.
pub(crate) fn expand(inputs: &mut Inputs, outputs: &[Output], messages: &Messages) -> Result<()> {
    let mut sources = Vec::new();
    let mut empty = Vec::new();
    for source in std::mem::take(&mut inputs.sources) {
        if !metadata_of(&source).is_some_and(|metadata| metadata.is_dir()) {
            sources.push(source);
            continue;
        }
        let before = sources.len();
        let skipped = find(&source, inputs, outputs, messages, &mut sources);
        if skipped > 0 {
            let files = counted(skipped, "file");
            let more = if messages.is_verbose() {
                ""
            } else {
                " (--verbose names them)"
            };
            messages.note(format!("{source}: {files} of no known format skipped{more}"));
        }
        if sources.len() == before {
            empty.push(source);
        }
    }
    if sources.is_empty() && !empty.is_empty() {
        return Err(Failure::file(format!(
            "there is no file of a known format in {}",
            empty.join(", ")
        )));
    }
    inputs.sources = sources;
    Ok(())
}

/// Appends the recognised files below a folder. Returns how many files were skipped.
fn find(
    folder: &str,
    inputs: &Inputs,
    outputs: &[Output],
    messages: &Messages,
    sources: &mut Vec<String>,
) -> u64 {
    let mut skipped = 0;
    for entry in WalkDir::new(folder).sort_by_file_name() {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                match error.path().and_then(Path::to_str) {
                    Some(path) => sources.push(path.to_owned()),
                    None => messages.warning(format!("cannot read a part of {folder}: {error}")),
                }
                continue;
            }
        };
        if !entry.file_type().is_file() {
            continue;
        }
        let Some(path) = entry.path().to_str() else {
            messages.warning(format!(
                "{} is not UTF-8, so it is skipped",
                entry.path().display()
            ));
            continue;
        };
        if outputs.iter().any(|(_, output)| is_same_file(output, path)) {
            continue;
        }
        match is_recognised(path, inputs) {
            // Reading it says why that fails, and that the run is incomplete.
            Ok(true) | Err(_) => sources.push(path.to_owned()),
            Ok(false) => {
                skipped += 1;
                if messages.is_verbose() {
                    messages.note(format!("{path}: skipped, it is of no known format"));
                }
            }
        }
    }
    skipped
}

/// Returns whether one of the first records of a file has a known format; with `--from`, whether one is JSON.
fn is_recognised(path: &str, inputs: &Inputs) -> io::Result<bool> {
    let any = inputs.format.is_some();
    let is_known = |record: &Record| {
        let known = |(value, _): &_| any || reader::format_of(value).is_some();
        record.content.as_ref().is_ok_and(known)
    };
    let mut records = Records::default();
    let (mut seen, mut found, mut is_text) = (0, false, true);
    let mut look = |records: &mut Records| {
        let first = records.take(MOST_FIRST_RECORDS - seen).inspect(|_| seen += 1);
        found |= { first }.any(|record| is_known(&record));
        found || seen == MOST_FIRST_RECORDS
    };
    let mut is_over = false;
    let mut input = Input::with_capacity(BEGINNING_SIZE, File::open(path)?);
    read_text(&mut input, &mut |text| {
        is_text = records.push(text).is_ok();
        is_over = !is_text || look(&mut records);
        if is_over {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })?;
    if !is_over && records.finish().is_ok() {
        look(&mut records);
    }
    Ok(found)
}
