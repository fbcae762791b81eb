//! The weighted sum of the dimensions, and the profiles of weights.

use std::{collections::HashMap, sync::Arc};

use knowledgepulse_error::{Error, Result, javascript_number};

use crate::dimensions::Dimensions;

/// The weights of the dimensions. They sum to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weights {
    /// Weight of complexity.
    pub complexity: f64,
    /// Weight of novelty.
    pub novelty: f64,
    /// Weight of tool diversity.
    pub tool_diversity: f64,
    /// Weight of the outcome.
    pub outcome: f64,
}

impl Weights {
    const fn new(complexity: f64, novelty: f64, tool_diversity: f64, outcome: f64) -> Self {
        Self {
            complexity,
            novelty,
            tool_diversity,
            outcome,
        }
    }

    /// The weights of domains without a profile.
    pub const DEFAULT: Self = Self::new(0.25, 0.35, 0.15, 0.25);
    /// `finance`: the outcome weighs most.
    pub const FINANCE: Self = Self::new(0.20, 0.25, 0.10, 0.45);
    /// `code`: tool diversity weighs twice as much as in the default profile.
    pub const CODE: Self = Self::new(0.20, 0.30, 0.30, 0.20);
    /// `medical`: the outcome weighs more than everything else together.
    pub const MEDICAL: Self = Self::new(0.15, 0.20, 0.10, 0.55);
    /// `customer_service`: novelty and outcome weigh most, and equally.
    pub const CUSTOMER_SERVICE: Self = Self::new(0.20, 0.30, 0.20, 0.30);

    /// The tolerance of the sum of four weights.
    pub const TOLERANCE: f64 = 1e-9;

    /// Checks that the weights are finite, at least 0, and sum to 1 within [`Weights::TOLERANCE`]. The error carries `name`,
    /// the name of their profile.
    ///
    /// # Errors
    /// [`Error::Weights`].
    pub fn check(&self, name: &str) -> Result<()> {
        let refuse = |dimension, problem| {
            Err(Error::Weights {
                profile: name.to_owned(),
                dimension,
                problem,
            })
        };
        for (dimension, weight) in [
            ("complexity", self.complexity),
            ("novelty", self.novelty),
            ("tool diversity", self.tool_diversity),
            ("outcome", self.outcome),
        ] {
            if !weight.is_finite() || weight < 0.0 {
                let found = javascript_number(weight);
                let problem = format!("must be a finite number of at least 0, got {found}");
                return refuse(Some(dimension), problem);
            }
        }
        let sum = self.complexity + self.novelty + self.tool_diversity + self.outcome;
        let is_one = (sum - 1.0).abs() <= Self::TOLERANCE;
        if !is_one {
            let sum = javascript_number(sum);
            return refuse(None, format!("must sum to 1, but sums to {sum}"));
        }
        Ok(())
    }
}

/// Weights and their name.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// A task domain, or [`Profile::DEFAULT_NAME`].
    pub name: String,
    /// The weights.
    pub weights: Weights,
}

impl Profile {
    /// The name of the profile of domains without one.
    pub const DEFAULT_NAME: &str = "default";
}

/// The profiles of a scorer, by task domain.
#[derive(Debug, Clone)]
pub struct Profiles {
    by_domain: HashMap<String, Arc<Profile>>,
    default: Arc<Profile>,
}

impl Default for Profiles {
    /// The five profiles of the SDK.
    fn default() -> Self {
        let default = Arc::new(Profile {
            name: Profile::DEFAULT_NAME.into(),
            weights: Weights::DEFAULT,
        });
        let mut profiles = Self {
            by_domain: HashMap::from([(default.name.clone(), Arc::clone(&default))]),
            default,
        };
        for (name, weights) in Self::BUILT_IN {
            profiles.insert(name.into(), weights);
        }
        profiles
    }
}

impl Profiles {
    /// The domains of the SDK's profiles, with their weights.
    pub const BUILT_IN: [(&'static str, Weights); 4] = [
        ("finance", Weights::FINANCE),
        ("code", Weights::CODE),
        ("medical", Weights::MEDICAL),
        ("customer_service", Weights::CUSTOMER_SERVICE),
    ];

    /// Adds a profile, or replaces the one with its name.
    ///
    /// # Errors
    /// The errors of [`Weights::check`]; nothing is changed then.
    pub fn set(&mut self, name: String, weights: Weights) -> Result<()> {
        weights.check(&name)?;
        self.insert(name, weights);
        Ok(())
    }

    fn insert(&mut self, name: String, weights: Weights) {
        let profile = Arc::new(Profile {
            name: name.clone(),
            weights,
        });
        if name == Profile::DEFAULT_NAME {
            self.default = Arc::clone(&profile);
        }
        self.by_domain.insert(name, profile);
    }

    /// Returns the profile of a task domain: the one with exactly that name, or the default one.
    #[must_use]
    pub fn for_domain(&self, domain: Option<&str>) -> &Arc<Profile> {
        domain
            .and_then(|domain| self.by_domain.get(domain))
            .unwrap_or(&self.default)
    }
}

/// The contributions of the dimensions: values times weights.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Contributions {
    /// The contribution of complexity.
    pub complexity: f64,
    /// The contribution of novelty. It exceeds the weight if novelty is above 1.
    pub novelty: f64,
    /// The contribution of tool diversity.
    pub tool_diversity: f64,
    /// The contribution of the outcome.
    pub outcome: f64,
}

impl Contributions {
    /// Multiplies each of the `dimensions` by its weight.
    #[must_use]
    pub fn new(dimensions: &Dimensions, weights: &Weights) -> Self {
        Self {
            complexity: dimensions.complexity * weights.complexity,
            novelty: dimensions.novelty * weights.novelty,
            tool_diversity: dimensions.tool_diversity * weights.tool_diversity,
            outcome: dimensions.outcome * weights.outcome,
        }
    }

    /// The weighted sum, before overrides. It exceeds 1 only if novelty does.
    #[must_use]
    pub fn composite(&self) -> f64 {
        self.complexity + self.novelty + self.tool_diversity + self.outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_sums_to_one() {
        let profiles = Profiles::default();
        for domain in ["default", "finance", "code", "medical", "customer_service", ""] {
            profiles.for_domain(Some(domain)).weights.check(domain).unwrap();
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
            assert_eq!(
                (profile.name.as_str(), profile.weights),
                ("default", Weights::DEFAULT)
            );
        }
    }

    #[test]
    fn composite_is_the_weighted_sum() {
        let dimensions = Dimensions {
            complexity: 0.5,
            novelty: 1.25,
            tool_diversity: 0.25,
            outcome: 1.0,
        };
        assert_eq!(
            Contributions::new(&dimensions, &Weights::CODE).composite(),
            0.5 * 0.2 + 1.25 * 0.3 + 0.25 * 0.3 + 1.0 * 0.2
        );
    }

    #[test]
    fn profiles_extend_and_replace() {
        let mut profiles = Profiles::default();
        let weights = Weights::new(0.0, 0.0, 0.0, 1.0);
        for name in ["legal", "code", "__proto__"] {
            profiles.set(name.into(), weights).unwrap();
            assert_eq!(profiles.for_domain(Some(name)).weights, weights);
        }
        assert_eq!(profiles.for_domain(Some("other")).weights, Weights::DEFAULT);
        profiles.set("default".into(), weights).unwrap();
        assert_eq!(profiles.for_domain(Some("other")).weights, weights);
        assert_eq!(profiles.for_domain(Some("finance")).weights, Weights::FINANCE);
    }

    #[test]
    fn weights_that_do_not_add_up_are_refused() {
        let mut profiles = Profiles::default();
        let mut refused = |weights| profiles.set("legal".into(), weights).unwrap_err().to_string();
        assert_eq!(
            refused(Weights::new(0.5, 0.25, 0.25, 0.25)),
            r#"profile "legal" must sum to 1, but sums to 1.25"#
        );
        assert_eq!(
            refused(Weights::new(1.0, f64::NAN, 0.0, 0.0)),
            r#"novelty in profile "legal" must be a finite number of at least 0, got NaN"#
        );
        assert!(refused(Weights::new(1.5, 0.0, 0.0, -0.5)).contains("outcome in"));
        assert!(refused(Weights::new(1.0, 0.0, 2e-9, 0.0)).contains("1.000000002"));
        assert!(Weights::new(1.0, 0.0, 5e-10, 0.0).check("legal").is_ok());
        assert_eq!(profiles.for_domain(Some("legal")).name, "default");
    }
}
