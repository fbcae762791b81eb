//! Points in time that can lie before the start of the process or machine.

use std::{
    sync::LazyLock,
    time::{Duration, Instant},
};

/// A point in time, in nanoseconds since the first one that this process asked for. An `Instant` cannot be used for the time at
/// which a restored vector was added, because on some platforms it cannot lie before the start of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(i64);

static FIRST: LazyLock<Instant> = LazyLock::new(Instant::now);

impl Moment {
    /// The moment `now`. One that is more than 292 years away counts as 292 years away.
    pub(crate) fn at(now: Instant) -> Self {
        let nanoseconds = |duration: Duration| i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
        Self(match now.checked_duration_since(*FIRST) {
            Some(later) => nanoseconds(later),
            None => -nanoseconds(FIRST.saturating_duration_since(now)),
        })
    }

    /// The moment that lies `age` before this one.
    pub(crate) fn before(self, age: Duration) -> Self {
        let nanoseconds = i64::try_from(age.as_nanos()).unwrap_or(i64::MAX);
        Self(self.0.saturating_sub(nanoseconds))
    }

    /// The time from this moment to `now`; zero if this moment is later.
    pub(crate) fn age(self, now: Self) -> Duration {
        Duration::from_nanos(u64::try_from(now.0.saturating_sub(self.0)).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_what_passed() {
        let now = Instant::now();
        let moment = Moment::at(now);
        for age in [Duration::ZERO, Duration::from_nanos(1), Duration::from_secs(3600)] {
            assert_eq!(moment.age(Moment::at(now + age)), age);
            assert_eq!(Moment::at(now + age).age(moment), Duration::ZERO);
            assert_eq!(moment.before(age).age(moment), age);
        }
    }

    #[test]
    fn moments_may_be_before_the_first() {
        let first = *FIRST;
        let Some(earlier) = first.checked_sub(Duration::from_millis(5)) else {
            return;
        };
        assert_eq!(
            Moment::at(earlier).age(Moment::at(first)),
            Duration::from_millis(5)
        );
    }
}
