//! Times as JavaScript's `Date` reads and writes them.

use std::time::{SystemTime, UNIX_EPOCH};

/// The most milliseconds from 1970 that a `Date` can have.
const MAX_TIME: i64 = 8_640_000_000_000_000;

const DAY: i64 = 86_400_000;

/// Returns the present time in ISO 8601.
pub fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    to_iso(i64::try_from(since.as_millis()).unwrap_or(MAX_TIME))
}

/// Returns the milliseconds since 1970 of a number of them; `None` if a `Date` cannot have it.
pub fn from_number(milliseconds: f64) -> Option<i64> {
    #[allow(clippy::cast_possible_truncation)] // It is in the range.
    (milliseconds.abs() <= MAX_TIME as f64).then_some(milliseconds as i64)
}

/// Milliseconds since 1970 in ISO 8601, as `toISOString` writes them.
pub fn to_iso(time: i64) -> String {
    let (year, month, day) = civil_of(time.div_euclid(DAY));
    let rest = time.rem_euclid(DAY);
    let (hour, minute, second) = (rest / 3_600_000, rest / 60_000 % 60, rest / 1000 % 60);
    let (sign, width) = match year {
        0..=9999 => ("", 4),
        10_000.. => ("+", 6),
        ..0 => ("-", 6),
    };
    let (year, milliseconds) = (year.abs(), rest % 1000);
    format!("{sign}{year:0width$}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milliseconds:03}Z")
}

/// Returns the milliseconds since 1970 of a time in ISO 8601, also with a space in place of the T. A time without a zone is
/// UTC: a trace is the same on every machine.
pub fn parse(text: &str) -> Option<i64> {
    let mut rest = Rest(text.as_bytes());
    let sign = rest.one_of(b"+-");
    let year = rest.digits(if sign.is_some() { 6 } else { 4 })?;
    // There is no year -0.
    let year = match (sign, year) {
        (Some(b'-'), 0) => return None,
        (Some(b'-'), year) => -year,
        _ => year,
    };
    let (mut month, mut day) = (1, 1);
    if rest.one_of(b"-").is_some() {
        month = rest.digits(2)?;
        if rest.one_of(b"-").is_some() {
            day = rest.digits(2)?;
        }
    }
    let is_date = (1..=12).contains(&month) && (1..=31).contains(&day);
    if !is_date {
        return None;
    }
    let mut time = days_of(year, month, day) * DAY;
    if rest.one_of(b"Tt ").is_some() {
        time += rest.clock()?;
        rest.one_of(b" ");
        time -= rest.zone()?;
    }
    (rest.0.is_empty() && time.abs() <= MAX_TIME).then_some(time)
}

/// The rest of the text.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn one_of(&mut self, bytes: &[u8]) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        bytes.contains(&first).then(|| {
            self.0 = rest;
            first
        })
    }

    /// Returns a number of exactly so many digits.
    fn digits(&mut self, count: usize) -> Option<i64> {
        let (digits, rest) = self.0.split_at_checked(count)?;
        let add = |number: i64, digit: &u8| {
            digit
                .is_ascii_digit()
                .then(|| number * 10 + i64::from(digit - b'0'))
        };
        let number = digits.iter().try_fold(0, add)?;
        self.0 = rest;
        Some(number)
    }

    /// Returns the milliseconds of a time of the day.
    fn clock(&mut self) -> Option<i64> {
        let hour = self.digits(2)?;
        self.one_of(b":")?;
        let minute = self.digits(2)?;
        let (mut second, mut milliseconds) = (0, 0);
        if self.one_of(b":").is_some() {
            second = self.digits(2)?;
            if self.one_of(b".,").is_some() {
                let first = self.digits(1)?;
                let (second, third) = (self.digits(1).unwrap_or(0), self.digits(1).unwrap_or(0));
                milliseconds = first * 100 + second * 10 + third;
                while self.digits(1).is_some() {}
            }
        }
        let time = hour * 3_600_000 + minute * 60_000 + second * 1000 + milliseconds;
        let is_time = (hour < 24 && minute < 60 && second < 60) || time == DAY;
        is_time.then_some(time)
    }

    /// Returns how far the zone is before UTC, in milliseconds.
    fn zone(&mut self) -> Option<i64> {
        for name in [&b"Z"[..], b"z", b"UTC", b"GMT"] {
            if let Some(rest) = self.0.strip_prefix(name) {
                self.0 = rest;
                return Some(0);
            }
        }
        let Some(sign) = self.one_of(b"+-") else {
            return Some(0);
        };
        let hours = self.digits(2)?;
        self.one_of(b":");
        let minutes = if self.0.is_empty() { 0 } else { self.digits(2)? };
        let zone = hours * 3_600_000 + minutes * 60_000;
        let is_zone = hours < 24 && minutes < 60;
        is_zone.then_some(if sign == b'-' { -zone } else { zone })
    }
}

/// Returns the days from 1970 to a date of the Gregorian calendar: Howard Hinnant's algorithm, with years that begin in
/// March.
fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Returns the date of a day counted from 1970: the same backwards.
fn civil_of(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = (month + 2) % 12 + 1;
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_written_as_javascript_does() {
        for (text, iso) in [
            ("2024-02-29", Some("2024-02-29T00:00:00.000Z")),
            ("2024", Some("2024-01-01T00:00:00.000Z")),
            ("2024-05-01T12:34Z", Some("2024-05-01T12:34:00.000Z")),
            (
                "2024-05-01T12:34:56.789999+02:00",
                Some("2024-05-01T10:34:56.789Z"),
            ),
            ("2024-05-01 12:34:56.7 -0130", Some("2024-05-01T14:04:56.700Z")),
            ("2024-05-01T24:00:00Z", Some("2024-05-02T00:00:00.000Z")),
            ("2023-02-29T00:00:00Z", Some("2023-03-01T00:00:00.000Z")),
            ("1969-12-31T23:59:59.999Z", Some("1969-12-31T23:59:59.999Z")),
            ("+010000-01-01T00:00:00Z", Some("+010000-01-01T00:00:00.000Z")),
            ("-000001-12-31", Some("-000001-12-31T00:00:00.000Z")),
            ("0000-03-01", Some("0000-03-01T00:00:00.000Z")),
            ("-000000-01-01", None),
            ("2024-13-01", None),
            ("2000-02-29", Some("2000-02-29T00:00:00.000Z")),
            ("2100-02-28T24:00", Some("2100-03-01T00:00:00.000Z")),
            ("2024-05-01T25:00Z", None),
            ("2024-05-01T24:01Z", None),
            ("2024-05-01T12:60Z", None),
            ("2024-05-01T12:34:60Z", None),
            ("2024-05-01T12:34+24:00", None),
            ("2024-05-01T12:34+01:60", None),
            ("2024-05-01T12:00Z!", None),
            ("+275760-09-13T00:00:00.001Z", None),
            ("yesterday", None),
            ("", None),
        ] {
            assert_eq!(parse(text).map(to_iso).as_deref(), iso, "{text}");
        }
    }

    #[test]
    fn to_iso_writes_what_parse_reads_on_the_days_around_each_february() {
        for year in 1599..=2401 {
            for month in [2, 3] {
                let first = parse(&format!("{year}-{month:02}")).unwrap();
                for time in [first - 1, first, first + 28 * DAY] {
                    assert_eq!(parse(&to_iso(time)), Some(time));
                }
            }
        }
    }

    #[test]
    fn now_is_a_time_of_this_millennium() {
        assert!(now().starts_with('2') && parse(&now()).is_some());
    }
}
