//! Prints the items of inputs as JSON, one a line, and an empty line after each input: to be compared with those of another reader.
//! Standard input has, for each input, its path and its bytes, each after its length in four bytes, the lowest first.

use std::io::{Read, Write, stdin, stdout};

use knowledgepulse_formats::{
    Context,
    reader::{Content, Settings, TraceReader, Unbuilt},
    records::Records,
};
use knowledgepulse_json::{Object, Value};

fn main() -> std::io::Result<()> {
    let mut bytes = Vec::new();
    stdin().read_to_end(&mut bytes)?;
    let mut rest = bytes.as_slice();
    let mut out = std::io::BufWriter::new(stdout());
    while let Some((path, input)) = framed(&mut rest).zip(framed(&mut rest)) {
        let file = (!path.is_empty()).then(|| String::from_utf8_lossy(path).into_owned().into());
        let context = Context {
            file,
            ..Context::default()
        };
        let mut reader = TraceReader::new(Settings {
            context,
            ..Settings::default()
        });
        let mut records = Records::default();
        let pushed = records.push(input).and_then(|()| records.finish());
        match pushed {
            Err(foreign) => writeln!(out, "{foreign}")?,
            Ok(()) => {
                for record in records {
                    print(reader.read(record), &mut out)?;
                }
                print(reader.end(), &mut out)?;
            }
        }
        writeln!(out)?;
    }
    Ok(())
}

/// The next bytes with a length before them.
fn framed<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, after) = rest.split_first_chunk::<4>()?;
    let (bytes, after) = after.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    *rest = after;
    Some(bytes)
}

fn print(items: Vec<Unbuilt>, out: &mut impl Write) -> std::io::Result<()> {
    #[allow(clippy::cast_precision_loss)] // No input is so long.
    let number = |place: Option<u64>| place.map_or(Value::Null, |place| (place as f64).into());
    for item in items.into_iter().map(|item| item.build()) {
        let mut object = Object::new();
        object.insert("line", number(item.line));
        object.insert("index", number(item.index));
        object.insert("size", number(Some(item.size)));
        object.insert(
            "format",
            item.format.map_or(Value::Null, |format| format.name().into()),
        );
        match item.content {
            Content::Converted(value, known) => {
                object.insert("value", value);
                object.insert("known", known.into_value());
            }
            Content::Plain(value, text) => {
                object.insert("value", value);
                object.insert("text", text.unwrap_or_default());
            }
            Content::Wrong(error) => object.insert("error", error),
            Content::Skipped(reason) => object.insert("skipped", reason),
        }
        writeln!(out, "{}", Value::Object(object).to_json())?;
    }
    Ok(())
}
