//! Times as JavaScript's `Date` writes them: in UTC, to the millisecond.

use jiff::{Timestamp, civil::DateTime, tz::Offset};
use knowledgepulse_json::Value;

/// Returns the present time in ISO 8601.
#[must_use]
pub fn now() -> String {
    to_iso(Timestamp::now())
}

/// Returns the time that a value is: a text in ISO 8601, or a number of seconds, milliseconds, microseconds or nanoseconds since 1970.
#[must_use]
pub fn of(time: Option<&Value>) -> Option<Timestamp> {
    let Some(number) = time?.as_number().filter(|number| *number > 0.0) else {
        return parse(time?.as_str()?);
    };
    // Whole microseconds: a double has no more of a time.
    let microseconds = match number {
        ..1e11 => number * 1e6,
        ..1e14 => number * 1e3,
        ..1e17 => number,
        _ => number / 1e3,
    };
    #[allow(clippy::cast_possible_truncation)] // What is out of range is of no year.
    Timestamp::from_microsecond(microseconds.round() as i64).ok()
}

/// Returns a time in ISO 8601, as `toISOString` writes it.
#[must_use]
pub fn to_iso(time: Timestamp) -> String {
    format!("{time:.3}")
}

/// Returns a time in ISO 8601, also with a space in place of the T. A time without a zone is UTC: a trace is the same on every
/// machine.
#[must_use]
pub fn parse(text: &str) -> Option<Timestamp> {
    // Ruby and Python write a space before the zone, which may be a name.
    let text = text.replacen(" +", "+", 1).replacen(" -", "-", 1);
    text.parse().ok().or_else(|| {
        let without_zone = text.strip_suffix("UTC").or(text.strip_suffix("GMT"));
        let text = without_zone.unwrap_or(&text);
        let time: DateTime = text.trim_end().parse().ok()?;
        Offset::UTC.to_timestamp(time).ok()
    })
}

#[cfg(test)]
mod tests {
    use knowledgepulse_json::parse_str;

    use super::*;

    #[test]
    fn parse_reads_times_of_all_agents_and_to_iso_writes_them_as_javascript_does() {
        for (text, iso) in [
            ("2024-02-29", Some("2024-02-29T00:00:00.000Z")),
            ("2024-05-01T12:34Z", Some("2024-05-01T12:34:00.000Z")),
            (
                "2024-05-01T12:34:56.789999+02:00",
                Some("2024-05-01T10:34:56.789Z"),
            ),
            ("2024-05-01 12:34:56.7 -0130", Some("2024-05-01T14:04:56.700Z")),
            ("2024-05-01 12:34:56 UTC", Some("2024-05-01T12:34:56.000Z")),
            ("2024-05-01T12:34:56,789", Some("2024-05-01T12:34:56.789Z")),
            ("20240501T123456Z", Some("2024-05-01T12:34:56.000Z")),
            ("1969-12-31T23:59:59.999Z", Some("1969-12-31T23:59:59.999Z")),
            ("2023-02-29T00:00:00Z", None),
            ("2024-13-01", None),
            ("2024-05-01T25:00Z", None),
            ("2024-05-01T12:34+01:60", None),
            ("2024-05-01T12:00Z!", None),
            ("yesterday", None),
            ("", None),
        ] {
            assert_eq!(parse(text).map(to_iso).as_deref(), iso, "{text}");
        }
    }

    #[test]
    fn of_reads_times_of_every_unit_with_their_fractions() {
        for (time, nanoseconds) in [
            (
                r#""2026-01-02T00:00:00.123456Z""#,
                Some(1_767_312_000_123_456_000),
            ),
            (r#""2026-01-02 00:00:00.000001""#, Some(1_767_312_000_000_001_000)),
            (
                r#""2026-01-02T01:00:00.5+01:00""#,
                Some(1_767_312_000_500_000_000),
            ),
            ("1767312000", Some(1_767_312_000_000_000_000)),
            ("1767312000123", Some(1_767_312_000_123_000_000)),
            ("1767312000123456", Some(1_767_312_000_123_456_000)),
            ("1e40", None),
            ("-1", None),
            (r#""soon""#, None),
            ("null", None),
        ] {
            assert_eq!(
                of(parse_str(time).ok().as_ref()).map(Timestamp::as_nanosecond),
                nanoseconds,
                "{time}"
            );
        }
    }

    #[test]
    fn now_is_a_time_of_this_millennium() {
        assert!(now().starts_with('2') && parse(&now()).is_some());
    }
}
