//! How operations spread over keys.

use std::fmt;
use std::str::FromStr;

/// How operations spread over keys. Lower keys are never less popular than higher ones.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
#[non_exhaustive]
pub enum Distribution {
    /// Every key alike.
    #[default]
    Uniform,
    /// Zipf's law: the i-th key in proportion to 1 / i^exponent.
    Zipf {
        /// The exponent; 0 is uniform, 0.99 is customary.
        exponent: f64,
    },
    /// A few hot keys.
    Hotspot {
        /// The share of the keys that is hot.
        hot: f64,
        /// The share of the operations that goes to hot keys.
        ops: f64,
    },
    /// The i-th of n keys in proportion to exp(-rate · i / n).
    Exponential {
        /// The rate; 0 is uniform, at 10 half of the operations go to 7% of the keys.
        rate: f64,
    },
}

/// Why a text is not a distribution.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DistributionError {
    /// The name before the colon.
    #[error(
        "there is no distribution {0:?}: expected uniform, zipf:S, hotspot:H,O or exponential:L"
    )]
    Name(String),
    /// The numbers after the colon.
    #[error("{name} takes {expected}; found {found:?}")]
    Arguments {
        /// The distribution.
        name: &'static str,
        /// What it takes.
        expected: &'static str,
        /// What was there.
        found: String,
    },
}

impl Distribution {
    /// Says what is wrong with the numbers, if anything is.
    pub fn validate(&self) -> Result<(), DistributionError> {
        let (name, expected, right) = match *self {
            Distribution::Uniform => return Ok(()),
            Distribution::Zipf { exponent } => ("zipf", ZIPF, is_moderate(exponent)),
            Distribution::Exponential { rate } => ("exponential", EXPONENTIAL, is_moderate(rate)),
            Distribution::Hotspot { hot, ops } => {
                ("hotspot", HOTSPOT, [hot, ops].iter().all(|share| (0.0..=1.0).contains(share)))
            }
        };
        if right {
            return Ok(());
        }
        let found = self.to_string();
        let found = found.split_once(':').map_or("", |(_, numbers)| numbers).to_owned();
        Err(DistributionError::Arguments { name, expected, found })
    }
}

const ZIPF: &str = "an exponent from 0 to 1000, as in zipf:0.99";
const EXPONENTIAL: &str = "a rate from 0 to 1000, as in exponential:10";
const HOTSPOT: &str =
    "the hot share of the keys and their share of the operations, as in hotspot:0.2,0.8";

fn is_moderate(number: f64) -> bool {
    (0.0..=1000.0).contains(&number)
}

/// Reads `uniform`, `zipf:S`, `hotspot:H,O` and `exponential:L`.
impl FromStr for Distribution {
    type Err = DistributionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, numbers) = text.split_once(':').unwrap_or((text, ""));
        let parsed: Option<Vec<f64>> =
            numbers.split(',').map(|number| number.trim().parse().ok()).collect();
        let parsed = parsed.as_deref();
        let wrong = |name, expected| {
            Err(DistributionError::Arguments { name, expected, found: numbers.to_owned() })
        };
        let distribution = match (name, parsed) {
            ("uniform", _) if numbers.is_empty() => Distribution::Uniform,
            ("uniform", _) => return wrong("uniform", "no numbers"),
            ("zipf", Some(&[exponent])) => Distribution::Zipf { exponent },
            ("zipf", _) => return wrong("zipf", ZIPF),
            ("hotspot", Some(&[hot, ops])) => Distribution::Hotspot { hot, ops },
            ("hotspot", _) => return wrong("hotspot", HOTSPOT),
            ("exponential", Some(&[rate])) => Distribution::Exponential { rate },
            ("exponential", _) => return wrong("exponential", EXPONENTIAL),
            _ => return Err(DistributionError::Name(name.to_owned())),
        };
        distribution.validate()?;
        Ok(distribution)
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Distribution::Uniform => f.write_str("uniform"),
            Distribution::Zipf { exponent } => write!(f, "zipf:{exponent}"),
            Distribution::Hotspot { hot, ops } => write!(f, "hotspot:{hot},{ops}"),
            Distribution::Exponential { rate } => write!(f, "exponential:{rate}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_can_be_read_again() {
        for text in ["uniform", "zipf:0.99", "hotspot:0.2,0.8", "exponential:10"] {
            assert_eq!(text.parse::<Distribution>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn mistakes_are_told_with_what_was_expected() {
        let message = |text: &str| text.parse::<Distribution>().unwrap_err().to_string();
        assert_eq!(
            message("zpif:1"),
            "there is no distribution \"zpif\": expected uniform, zipf:S, hotspot:H,O or exponential:L"
        );
        assert_eq!(
            message("zipf"),
            "zipf takes an exponent from 0 to 1000, as in zipf:0.99; found \"\""
        );
        assert_eq!(message("uniform:1"), "uniform takes no numbers; found \"1\"");
        for wrong in ["zipf:-1", "zipf:nan", "zipf:1,2", "zipf:inf", "hotspot:0.2"] {
            assert!(wrong.parse::<Distribution>().is_err(), "{wrong}");
        }
        for wrong in ["hotspot:2,0.5", "hotspot:a,b", "exponential:x", ""] {
            assert!(wrong.parse::<Distribution>().is_err(), "{wrong}");
        }
    }
}
