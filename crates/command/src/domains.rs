//! Finds the domain that a mistyped one was meant to be. Any name is a domain, so an unknown one is no error.

use knowledgepulse_score::weights::Profiles;

/// Returns the domains that have weights of their own without `--weights`.
pub fn built_in<'n>() -> impl Iterator<Item = &'n str> {
    Profiles::BUILT_IN.into_iter().map(|(name, _)| name)
}

/// Two names are close if they differ by one slip for this many UTF-16 code units, and by [`MOST_SLIPS`] at most.
const UNITS_PER_SLIP: usize = 3;
const MOST_SLIPS: usize = 2;

/// Returns the name that is closest to this one without being equal; `None` if no name is close. Close names differ by one
/// character that is missing, added, replaced or swapped with the next one, ignoring case.
pub fn closest_to<'n>(name: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let units = name.encode_utf16().count();
    let most = (units / UNITS_PER_SLIP).min(MOST_SLIPS);
    let lower = name.to_lowercase();
    names
        .into_iter()
        // Comparing takes time in proportion to both lengths, and either may be long.
        .filter(|&other| other != name && other.encode_utf16().count().abs_diff(units) <= most)
        .map(|other| (strsim::osa_distance(&lower, &other.to_lowercase()), other))
        .filter(|&(slips, _)| slips <= most)
        .min_by_key(|&(slips, _)| slips)
        .map(|(_, other)| other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closest_to_finds_the_name_with_the_fewest_slips() {
        for (name, closest) in [
            ("finace", Some("finance")),
            ("Finance", Some("finance")),
            ("fiannce", Some("finance")),
            ("cod", Some("code")),
            ("co", None),
            ("code", None),
            ("customer-servcie", Some("customer_service")),
            ("costumer-servcie", None),
            ("", None),
        ] {
            assert_eq!(closest_to(name, built_in()), closest, "{name}");
        }
    }

    #[test]
    fn closest_to_takes_the_first_of_equally_close_names() {
        assert_eq!(closest_to("cope", ["rope", "code", "cope"]), Some("rope"));
    }
}
