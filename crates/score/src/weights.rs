//! The weighted sum of the dimensions, and the profiles of weights.

use std::{collections::HashMap, sync::Arc};

use knowledgepulse_error::{Code, Error, Result, javascript_number};

use crate::dimensions::ByDimension;

/// The weights of domains without a profile.
pub const DEFAULT: ByDimension = ByDimension::from_array([0.25, 0.35, 0.15, 0.25]);

/// The tolerance of the sum of four weights.
const TOLERANCE: f64 = 1e-9;

/// Checks that weights are finite, at least 0, and sum to 1 within [`TOLERANCE`]. The error names them by their path
/// in the options, where `name` is that of their profile.
///
/// # Errors
/// `ERR_INVALID_OPTION`.
pub fn check(weights: ByDimension, name: &str) -> Result<()> {
    let refuse = |property: String, problem: String| {
        let problem = format!("options.weights[{name:?}]{property} {problem}");
        Err(Error::OutOfRange(Code::InvalidOption, problem))
    };
    for (dimension, weight) in ByDimension::NAMES.into_iter().zip(weights.to_array()) {
        if !weight.is_finite() || weight < 0.0 {
            let found = javascript_number(weight);
            let problem = format!("must be a finite number of at least 0, got {found}");
            return refuse(format!(".{dimension}"), problem);
        }
    }
    let sum = weights.sum();
    let is_one = (sum - 1.0).abs() <= TOLERANCE;
    if !is_one {
        let sum = javascript_number(sum);
        return refuse(String::new(), format!("must sum to 1, but sums to {sum}"));
    }
    Ok(())
}

/// Returns the contributions of the dimensions: values times weights. That of novelty exceeds the weight if novelty is above 1.
#[must_use]
pub fn contributions(dimensions: ByDimension, weights: ByDimension) -> ByDimension {
    let (dimensions, weights) = (dimensions.to_array(), weights.to_array());
    ByDimension::from_array(std::array::from_fn(|index| dimensions[index] * weights[index]))
}

/// Weights and their name.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// A task domain, or [`Profile::DEFAULT_NAME`].
    pub name: String,
    /// The weights.
    pub weights: ByDimension,
}

impl Profile {
    /// The name of the profile of domains without one.
    pub const DEFAULT_NAME: &str = "default";

    fn of(name: String, weights: ByDimension) -> Arc<Self> {
        Arc::new(Self { name, weights })
    }
}

/// The profiles of a scorer, by task domain, and that of all others.
#[derive(Debug, Clone)]
pub struct Profiles {
    by_domain: HashMap<String, Arc<Profile>>,
    default: Arc<Profile>,
}

impl Default for Profiles {
    /// The five profiles of the SDK.
    fn default() -> Self {
        let by_domain =
            Self::BUILT_IN.map(|(name, weights)| (name.into(), Profile::of(name.into(), weights)));
        Self {
            by_domain: by_domain.into(),
            default: Profile::of(Profile::DEFAULT_NAME.into(), DEFAULT),
        }
    }
}

impl Profiles {
    /// The domains of the SDK's profiles, with their weights.
    pub const BUILT_IN: [(&'static str, ByDimension); 4] = [
        ("finance", ByDimension::from_array([0.20, 0.25, 0.10, 0.45])),
        ("code", ByDimension::from_array([0.20, 0.30, 0.30, 0.20])),
        ("medical", ByDimension::from_array([0.15, 0.20, 0.10, 0.55])),
        (
            "customer_service",
            ByDimension::from_array([0.20, 0.30, 0.20, 0.30]),
        ),
    ];

    /// Adds a profile, or replaces the one with its name.
    ///
    /// # Errors
    /// The errors of [`check`]; nothing is changed then.
    pub fn set(&mut self, name: String, weights: ByDimension) -> Result<()> {
        check(weights, &name)?;
        let profile = Profile::of(name.clone(), weights);
        match name.as_str() {
            Profile::DEFAULT_NAME => self.default = profile,
            _ => drop(self.by_domain.insert(name, profile)),
        }
        Ok(())
    }

    /// Returns the profile of a task domain: the one with exactly that name, or the default one.
    #[must_use]
    pub fn for_domain(&self, domain: Option<&str>) -> &Arc<Profile> {
        domain
            .and_then(|domain| self.by_domain.get(domain))
            .unwrap_or(&self.default)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_sums_to_one() {
        let profiles = Profiles::default();
        for domain in ["default", "finance", "code", "medical", "customer_service", ""] {
            check(profiles.for_domain(Some(domain)).weights, domain).unwrap();
        }
    }

    #[test]
    fn unknown_domains_get_the_default() {
        for domain in [
            None,
            Some("default"),
            Some("astronomy"),
            Some("__proto__"),
            Some("Finance"),
        ] {
            let profile = Arc::clone(Profiles::default().for_domain(domain));
            assert_eq!((profile.name.as_str(), profile.weights), ("default", DEFAULT));
        }
    }

    #[test]
    fn composite_is_the_weighted_sum() {
        let dimensions = ByDimension::from_array([0.5, 1.25, 0.25, 1.0]);
        let code = Profiles::default().for_domain(Some("code")).weights;
        assert_eq!(
            contributions(dimensions, code).sum(),
            0.5 * 0.2 + 1.25 * 0.3 + 0.25 * 0.3 + 1.0 * 0.2
        );
    }

    #[test]
    fn profiles_extend_and_replace() {
        let mut profiles = Profiles::default();
        let weights = ByDimension::from_array([0.0, 0.0, 0.0, 1.0]);
        for name in ["legal", "code", "__proto__"] {
            profiles.set(name.into(), weights).unwrap();
            assert_eq!(profiles.for_domain(Some(name)).weights, weights);
        }
        assert_eq!(profiles.for_domain(Some("other")).weights, DEFAULT);
        profiles.set("default".into(), weights).unwrap();
        assert_eq!(profiles.for_domain(Some("other")).weights, weights);
        let finance = Profiles::BUILT_IN[0].1;
        assert_eq!(profiles.for_domain(Some("finance")).weights, finance);
    }

    #[test]
    fn weights_that_do_not_add_up_are_refused() {
        let mut profiles = Profiles::default();
        let mut refused = |weights| profiles.set("legal".into(), weights).unwrap_err().to_string();
        assert_eq!(
            refused(ByDimension::from_array([0.5, 0.25, 0.25, 0.25])),
            r#"options.weights["legal"] must sum to 1, but sums to 1.25"#
        );
        assert_eq!(
            refused(ByDimension::from_array([1.0, f64::NAN, 0.0, 0.0])),
            r#"options.weights["legal"].novelty must be a finite number of at least 0, got NaN"#
        );
        assert!(
            refused(ByDimension::from_array([1.5, 0.0, 0.0, -0.5])).contains("].outcomeConfidence must be")
        );
        assert!(refused(ByDimension::from_array([1.0, 0.0, 2e-9, 0.0])).contains("1.000000002"));
        assert!(check(ByDimension::from_array([1.0, 0.0, 5e-10, 0.0]), "legal").is_ok());
        assert_eq!(profiles.for_domain(Some("legal")).name, "default");
    }
}
