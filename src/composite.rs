//! The weighted sum of the dimensions.

use crate::{dimensions::Dimensions, fault};

/// How much each dimension counts. The weights of a profile sum to 1.
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

    /// For every domain that has no profile of its own.
    pub const DEFAULT: Self = Self::new(0.25, 0.35, 0.15, 0.25);
    /// `finance`: the outcome decides.
    pub const FINANCE: Self = Self::new(0.20, 0.25, 0.10, 0.45);
    /// `code`: tools count double.
    pub const CODE: Self = Self::new(0.20, 0.30, 0.30, 0.20);
    /// `medical`: the outcome decides more than everything else.
    pub const MEDICAL: Self = Self::new(0.15, 0.20, 0.10, 0.55);
    /// `customer_service`: novelty and outcome alike.
    pub const CUSTOMER_SERVICE: Self = Self::new(0.20, 0.30, 0.20, 0.30);

    /// The profile of a task domain; the default one for any name that is not exactly one of the four.
    #[must_use]
    pub fn for_domain(domain: Option<&str>) -> &'static Self {
        match domain {
            Some("finance") => &Self::FINANCE,
            Some("code") => &Self::CODE,
            Some("medical") => &Self::MEDICAL,
            Some("customer_service") => &Self::CUSTOMER_SERVICE,
            _ => &Self::DEFAULT,
        }
    }
}

/// The weighted sum, before overrides; above 1 only where novelty is.
#[must_use]
pub fn composite(dimensions: &Dimensions, weights: &Weights) -> f64 {
    fault::point("composite");
    dimensions.complexity * weights.complexity
        + dimensions.novelty * weights.novelty
        + dimensions.tool_diversity * weights.tool_diversity
        + dimensions.outcome * weights.outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_sums_to_one() {
        for domain in ["default", "finance", "code", "medical", "customer_service", ""] {
            let w = Weights::for_domain(Some(domain));
            let sum = w.complexity + w.novelty + w.tool_diversity + w.outcome;
            assert!((sum - 1.0).abs() < 1e-15, "{domain}: {sum}");
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
            assert_eq!(Weights::for_domain(domain), &Weights::DEFAULT);
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
            composite(&dimensions, &Weights::CODE),
            0.5 * 0.2 + 1.25 * 0.3 + 0.25 * 0.3 + 1.0 * 0.2
        );
    }
}
