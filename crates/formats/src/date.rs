//! Times as JavaScript's `Date` writes them: in UTC, to the millisecond.

use jiff::{Timestamp, civil::DateTime, tz::Offset};

/// Returns the present time in ISO 8601.
#[must_use]
pub fn now() -> String {
    to_iso(Timestamp::now())
}

/// Returns the time of so many milliseconds since 1970; `None` outside of the years -9999 to 9999.
#[must_use]
pub fn from_number(milliseconds: f64) -> Option<Timestamp> {
    #[allow(clippy::cast_possible_truncation)] // What is out of range is of no year.
    Timestamp::from_millisecond(milliseconds as i64).ok()
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
        let text = text
            .strip_suffix("UTC")
            .or(text.strip_suffix("GMT"))
            .unwrap_or(&text);
        let time: DateTime = text.trim_end().parse().ok()?;
        Offset::UTC.to_timestamp(time).ok()
    })
}

#[cfg(test)]
mod tests {
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
    fn from_number_refuses_what_is_no_time() {
        assert_eq!(
            from_number(1e12).map(to_iso).as_deref(),
            Some("2001-09-09T01:46:40.000Z")
        );
        for number in [1e15, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(from_number(number), None, "{number}");
        }
    }

    #[test]
    fn now_is_a_time_of_this_millennium() {
        assert!(now().starts_with('2') && parse(&now()).is_some());
    }
}
