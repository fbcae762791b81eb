//! The page to decide at: the sessions, clean, as a list and as conversations, in one file of HTML that needs nothing else. Everything that
//! a session carries may be hostile: it is JSON here, and the page takes it as text.

mod conversation;
mod row;

use std::{
    cmp::Reverse,
    collections::HashMap,
    io::{Read, Write},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use flate2::{Compression, bufread::GzDecoder, write::GzEncoder};
use knowledgepulse_clean::Cleaner;
use knowledgepulse_json::{Value, json_object};
use knowledgepulse_score::select::{Chosen, Left, Neighbour, Standing, Unfit};
use knowledgepulse_share::{Log, Shown, USUAL_ROOM, in_order, logs::WholeFiles, shown, told_apart};

use crate::{Context, Failure, Output, Result, Set, VERSION, counted, escaped};

/// Where the page takes its data and the conversations.
const DATA: &str = "__KNOWLEDGEPULSE_REPORT__";
const CONVERSATIONS: &str = "<!-- CONVERSATIONS -->";

/// The message of a program that was built before the page was.
const NOT_A_PAGE: &str = "this program was built without the page of the report, which npm run setup makes";

/// The most bytes of all conversations in a page, as it holds them: a browser opens that in a second.
const MOST_BYTES: usize = 64 * 1024 * 1024;

/// How many sessions that are like one are named.
const LISTED_ALIKE: usize = 8;

/// Returns what the page shows of a session by itself: its `row`, and its `conversation`.
///
/// # Errors
/// Why it cannot be read or cleaned.
pub fn described(log: &Log, cleaner: Option<&Cleaner>) -> std::result::Result<(Value, Value), String> {
    let shown = shown(log, cleaner)?;
    let conversation = conversation::of(&shown);
    let row = row::of(&shown, log.format, conversation.to_json().len());
    Ok((row, conversation))
}

/// Writes the page of a set into a file, which appears whole or not at all. The chosen sessions come first, and the others follow, the latest
/// first. `cleaner` is `None` for their original text, and `command` follows the decisions.
///
/// # Errors
/// If a text cannot be read back, or the page cannot be written.
pub(crate) fn write(
    mut out: Output,
    set: &Set,
    sources: &[String],
    (cleaner, command): (Option<&Cleaner>, String),
    run: Context,
) -> Result<()> {
    let page = page()?;
    let (selection, scored) = (&set.selection, &set.scored);
    let ranked = (1..).zip(&selection.chosen);
    let ranked: HashMap<usize, (usize, &Chosen)> = ranked.map(|it| (it.1.index, it)).collect();
    let left: HashMap<usize, &Left> = selection.left.iter().map(|left| (left.index, left)).collect();
    let mut order: Vec<_> = (0..scored.len()).collect();
    let rank_of = |index: &usize| ranked.get(index).map_or(usize::MAX, |(rank, _)| *rank);
    order.sort_by_key(|index| (rank_of(index), Reverse(&scored[*index].about.when)));
    let places: HashMap<usize, usize> = order.iter().enumerate().map(|(at, index)| (*index, at)).collect();
    let roots = set.roots();
    let files = WholeFiles::of(sources);
    let log_of = |&index: &usize| set.log(&set.scored[index], &files);
    let logs: Vec<_> = order.iter().map(log_of).collect();
    let describe = |log: &Log| {
        let (row, conversation) = described(log, cleaner)?;
        Ok((row, compressed(&conversation.to_json())))
    };
    let (mut rows, mut conversations) = (Vec::new(), Vec::new());
    let mut bytes = 0;
    in_order(
        &logs,
        describe,
        |log, described: std::result::Result<_, String>| {
            let at = rows.len();
            if run.stop.is_interrupted() {
                return Err(Failure::interrupted("interrupted: the page was not written"));
            }
            let (mut row, text) = described.unwrap_or_else(|reason| {
                run.messages.warning(format!("{}: {reason}", log.name));
                let mut row = row::of(&Shown::default(), log.format, 0);
                if let Value::Object(row) = &mut row {
                    row.insert("name", "(it could not be read)");
                }
                (row, String::new())
            });
            bytes += text.len();
            let is_whole = !text.is_empty() && bytes <= MOST_BYTES;
            let index = order[at];
            let (about, chosen, left) = (&scored[index].about, ranked.get(&index), left.get(&index));
            let near: Vec<&Neighbour> = match (chosen, left.map(|left| &left.standing)) {
                (Some((_, chosen)), _) => chosen.stands_for.iter().chain(&chosen.nearest_left).collect(),
                (None, Some(Standing::Chosen(near))) => vec![near],
                _ => Vec::new(),
            };
            let near = near.into_iter().filter_map(|near| {
                let place = Value::from(*places.get(&near.index)?);
                Some(Value::from_iter([place, near.similarity.into()]))
            });
            if let Value::Object(row) = &mut row {
                row.insert("success", about.success);
                row.insert("copies", about.run.copies);
                row.insert("parent", roots[index].map(|root| places[&root]));
                row.insert("isWhole", is_whole);
                row.insert("rank", chosen.map(|(rank, _)| *rank));
                row.insert("why", left.and_then(|left| left.unfit).map(Unfit::words));
                row.insert(
                    "standsFor",
                    chosen.map_or(0, |(_, chosen)| chosen.stands_for.len()),
                );
                row.insert("alike", near.take(LISTED_ALIKE).collect::<Value>());
            }
            rows.push(row);
            conversations.push(if is_whole { text } else { String::new() });
            Ok(())
        },
    )?;
    tell_apart(&mut rows);
    let beyond = conversations.iter().filter(|text| text.is_empty()).count() as u64;
    if beyond > 0 {
        run.messages.note(format!(
            "the page has no room for the conversations of {}",
            counted(beyond, "session")
        ));
    }
    let data = json_object! {
        "version": VERSION,
        "raw": cleaner.is_none(),
        "command": command,
        "explanation": set.selection.explanation(),
        "sessions": rows,
    };
    let [before, between, after] = &page;
    out.write(before.as_bytes())?;
    out.write(escaped(&data.to_json(), is_markup).as_bytes())?;
    out.write(between.as_bytes())?;
    let shown = conversations.iter().enumerate();
    for (at, text) in shown.filter(|(_, text)| !text.is_empty()) {
        out.write(format!("<script type=\"text/plain\" id=\"session-{at}\">{text}</script>\n").as_bytes())?;
    }
    out.write(after.as_bytes())?;
    out.publish()
}

/// Shows the objectives of lines so that they tell their sessions apart.
fn tell_apart(rows: &mut [Value]) {
    let names = rows.iter().map(|row| row.get("name").and_then(Value::as_str));
    let names: Vec<_> = names.map(Option::unwrap_or_default).collect();
    let names = told_apart(&names, USUAL_ROOM);
    for (row, name) in rows.iter_mut().zip(names) {
        if let Value::Object(row) = row {
            row.insert("name", name);
        }
    }
}

/// Returns the page, taken apart where its data go and where the conversations go.
fn page() -> Result<[String; 3]> {
    const COMPRESSED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/report.html.gz"));
    let mut page = String::new();
    // An invalid file is no page either.
    drop(GzDecoder::new(COMPRESSED).read_to_string(&mut page));
    apart(&page).ok_or_else(|| Failure::file(NOT_A_PAGE))
}

fn apart(page: &str) -> Option<[String; 3]> {
    let (before, rest) = page.split_once(DATA)?;
    let (between, after) = rest.split_once(CONVERSATIONS)?;
    let is_once = !rest.contains(DATA) && !after.contains(CONVERSATIONS);
    is_once.then(|| [before, between, after].map(str::to_owned))
}

/// Returns whether HTML could take a character of JSON for the beginning or the end of an element.
fn is_markup(character: char) -> bool {
    matches!(character, '<' | '>' | '&' | '\u{2028}' | '\u{2029}')
}

/// Returns a text as the page holds it: compressed by gzip, in Base64.
fn compressed(text: &str) -> String {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    let written = encoder.write_all(text.as_bytes()).and_then(|()| encoder.finish());
    BASE64_STANDARD.encode(written.unwrap_or_default())
}

#[cfg(test)]
mod tests;
