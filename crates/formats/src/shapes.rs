//! How records are told, whichever program has written them: the rows of `tables/shapes.tsv`, which describes them.

use std::sync::LazyLock;

use knowledgepulse_json::Value;

use crate::{values::list_of, words::ByName};

/// What there is at the end of a path.
enum Has {
    Anything,
    Nothing,
    Fields(usize),
    /// A value of this type; a string has something in it.
    Type(&'static str),
    /// The value itself is of this shape.
    Shape(&'static str),
    OneOf(Vec<&'static str>),
    Beginning(Vec<&'static str>),
    End(Vec<&'static str>),
}

/// What a record has at the end of a path, in one of these ways.
struct Mark {
    path: Vec<&'static str>,
    ways: Vec<(&'static str, Has)>,
}

const ROWS: &str = include_str!("../tables/shapes.tsv");

static SHAPES: LazyLock<ByName<Vec<Vec<Mark>>>> = LazyLock::new(|| {
    let mut shapes: ByName<Vec<Vec<Mark>>> = ByName::default();
    for row in ROWS.lines() {
        if let Some((name, marks)) = row.split_once('\t') {
            let marks = marks.split(' ').map(mark_of).collect();
            shapes.entry(name).or_default().push(marks);
        }
    }
    shapes
});

fn mark_of(mark: &'static str) -> Mark {
    let first = mark.split(['|', '=', '^', '$']).next().unwrap_or_default();
    let (path, ways) = mark.split_at(first.rfind('/').map_or(0, |at| at + 1));
    let way = |way: &'static str| {
        if let Some((name, texts)) = way.split_once('=') {
            let texts = texts.split(',').collect();
            return match (name.strip_suffix('^'), name.strip_suffix('$')) {
                (Some(name), _) => (name, Has::Beginning(texts)),
                (_, Some(name)) => (name, Has::End(texts)),
                _ => (name, Has::OneOf(texts)),
            };
        }
        match (way.split_at_checked(1), way.split_once(':')) {
            (Some(("!", name)), _) => (name, Has::Nothing),
            (Some(("@", shape)), _) => ("", Has::Shape(shape)),
            (Some(("#", count)), _) => ("", Has::Fields(count.parse().unwrap_or_default())),
            (_, Some((name, kind))) => (name, Has::Type(kind)),
            _ => (way, Has::Anything),
        }
    };
    Mark {
        path: path.split_terminator('/').collect(),
        ways: ways.split('|').map(way).collect(),
    }
}

/// Returns whether a record is of a shape.
pub fn is(record: &Value, shape: &str) -> bool {
    let fits = |marks: &Vec<Mark>| marks.iter().all(|mark| mark.is_in(record, &mark.path));
    SHAPES.get(shape).is_some_and(|shapes| shapes.iter().any(fits))
}

/// Returns whether there is a shape of this name.
pub fn is_known(shape: &str) -> bool {
    SHAPES.contains_key(shape)
}

impl Mark {
    fn is_in(&self, value: &Value, path: &[&str]) -> bool {
        let is_in = |rest| move |value: &Value| self.is_in(value, rest);
        match path {
            [] => self.ways.iter().any(|(name, has)| has.is_at(value, name)),
            ["*", rest @ ..] => {
                let list = list_of(Some(value));
                !list.is_empty() && list.iter().all(is_in(rest))
            }
            ["+", rest @ ..] => list_of(Some(value)).iter().any(is_in(rest)),
            [name, rest @ ..] => {
                let first = list_of(Some(value)).first().filter(|_| *name == "0");
                first.or_else(|| value.get(name)).is_some_and(is_in(rest))
            }
        }
    }
}

impl Has {
    /// Returns whether a value has this in a field, or is it where the field has no name.
    fn is_at(&self, value: &Value, name: &str) -> bool {
        let itself = Some(value).filter(|_| name.is_empty());
        let found = itself.or_else(|| value.get(name));
        let text = found.and_then(Value::as_str);
        match self {
            Self::Anything => found.is_some(),
            Self::Nothing => found.is_none(),
            Self::Fields(count) => value.as_object().is_some_and(|fields| fields.len() == *count),
            Self::Shape(shape) => is(value, shape),
            Self::Type(kind) => found.is_some_and(|found| found.kind() == *kind) && text != Some(""),
            Self::OneOf(texts) => text.is_some_and(|text| texts.contains(&text)),
            Self::End(texts) => text.is_some_and(|text| texts.iter().any(|end| text.ends_with(end))),
            Self::Beginning(texts) => {
                text.is_some_and(|text| texts.iter().any(|begin| text.starts_with(begin)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use knowledgepulse_json::parse_str;

    use super::*;

    #[test]
    fn is_looks_for_all_marks_of_one_row_at_their_paths() {
        for (record, shape, is_one) in [
            (r#"{"id":"T-1","messages":[]}"#, "amp", true),
            (r#"{"id":"S-1","messages":[]}"#, "amp", false),
            (r#"{"id":"T-1","messages":""}"#, "amp", false),
            (r#"{"source":"MODEL","created_at":null}"#, "antigravity", true),
            (r#"{"source":"MODEL"}"#, "antigravity", false),
            (r#"{"working_dir":"","description":""}"#, "goose", true),
            (r#"{"type":"summary","leafUuid":"a"}"#, "claude-code", true),
            (
                r#"{"type":"summary","leafUuid":"a","role":"b"}"#,
                "claude-code",
                false,
            ),
            (r#"{"sessionId":"","projectHash":"a"}"#, "gemini-header", false),
            (r#"{"sessionId":"a","history":[]}"#, "continue", false),
            (
                r#"{"sessionId":"a","history":[{"message":{"role":""}},{}]}"#,
                "continue",
                false,
            ),
            (r#"{"version":1,"messages":["Resume",{"User":{}}]}"#, "zed", true),
            (r#"{"version":1,"messages":["Resume"]}"#, "zed", false),
            (
                r#"{"conversation":[{"user_content":{}}]}"#,
                "google-adk-case",
                true,
            ),
            (r#"{"system_prompt":""}"#, "smolagents", true),
            (r#"{"system_prompt":"","a":1}"#, "smolagents", false),
        ] {
            assert_eq!(is(&parse_str(record).unwrap(), shape), is_one, "{shape} {record}");
        }
    }

    #[test]
    fn each_mark_names_a_field_and_a_type_or_a_shape_that_there_is() {
        for (shape, rows) in SHAPES.iter() {
            let marks = rows.iter().flatten();
            let ways = marks.flat_map(|mark| mark.ways.iter().map(move |way| (&mark.path, way)));
            for (path, (name, has)) in ways {
                let is_known = match has {
                    Has::Type(kind) => ["string", "number", "array", "object"].contains(kind),
                    // A shape of itself within itself ends with the value.
                    Has::Shape(other) => SHAPES.contains_key(other) && (other != shape || !path.is_empty()),
                    Has::Fields(count) => *count > 0,
                    _ => !name.is_empty(),
                };
                assert!(is_known && !name.contains('/'), "{shape}: {name}");
            }
        }
    }

    #[test]
    fn each_shape_is_named_by_a_format_or_by_its_adapter() {
        let sources =
            crate::words::tests::sources(std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src")));
        for shape in SHAPES.keys() {
            let of_format = ["-header", "-line"]
                .iter()
                .find_map(|end| shape.strip_suffix(end));
            let is_format = crate::FormatName::from_name(of_format.unwrap_or(shape)).is_some();
            let is_named = sources.contains(&format!("\"{shape}\"")) || ROWS.contains(&format!("@{shape}"));
            let is_named = is_named || crate::words::is_one(shape, "unread");
            assert!(is_format || is_named, "{shape}");
        }
        let named = crate::values::regex(r#"[^a-z_]is\(&?[a-z_.]+, "([^"]+)"\)"#);
        for found in named.captures_iter(&sources) {
            assert!(SHAPES.contains_key(&found[1]), "{}", &found[1]);
        }
    }
}
