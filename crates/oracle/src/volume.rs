//! How much the heavy property tests do.

/// The variable that sets it.
const VARIABLE: &str = "ISOLARIO_TEST_VOLUME";

/// What `cargo test` does without it: seconds, not minutes, in a debug build.
const DEFAULT: u64 = 20_000;

/// How many random cases a property test should go through: the number in `ISOLARIO_TEST_VOLUME`,
/// or 20,000. Every heavy property test asks here, so that one variable governs them all.
pub fn volume() -> u64 {
    parse(std::env::var(VARIABLE).ok().as_deref())
}

/// A variable that is not a number is taken for a missing one.
fn parse(variable: Option<&str>) -> u64 {
    variable.and_then(|text| text.trim().replace('_', "").parse().ok()).unwrap_or(DEFAULT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_is_a_number_of_cases() {
        assert_eq!(parse(Some("300000")), 300_000);
        assert_eq!(parse(Some(" 300_000\n")), 300_000);
        assert_eq!(parse(Some("many")), DEFAULT);
        assert_eq!(parse(None), DEFAULT);
    }
}
