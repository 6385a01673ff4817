//! The command line of a benchmark.

use std::str::FromStr;

use crate::Failure;

/// What the benchmark was called with.
#[derive(Clone, Debug)]
pub struct Arguments(Vec<String>);

impl Arguments {
    /// Those of this process.
    pub fn of_process() -> Arguments {
        Arguments(std::env::args().skip(1).collect())
    }

    /// All of them, in order.
    pub fn all(&self) -> &[String] {
        &self.0
    }

    /// Whether an option is there.
    pub fn has(&self, option: &str) -> bool {
        self.0.iter().any(|argument| argument == option)
    }

    /// The value that follows an option, if the option is there.
    pub fn value<T>(&self, option: &str) -> Result<Option<T>, Failure>
    where
        T: FromStr<Err: std::error::Error>,
    {
        let Some(at) = self.0.iter().position(|argument| argument == option) else {
            return Ok(None);
        };
        let value = self.0.get(at + 1).ok_or_else(|| format!("{option} needs a value"))?;
        match value.parse() {
            Ok(value) => Ok(Some(value)),
            Err(error) => Err(format!("{option} {value}: {error}").into()),
        }
    }

    /// Whether to measure in earnest. Cargo adds `--bench` when it runs benchmarks and leaves it
    /// out when it tests them.
    pub fn in_earnest(&self) -> bool {
        self.has("--bench")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_follow_their_options() {
        let arguments = Arguments(["--bench", "--runs", "3", "--charts"].map(str::to_owned).into());
        assert!(arguments.in_earnest());
        assert_eq!(arguments.value::<usize>("--runs").unwrap(), Some(3));
        assert_eq!(arguments.value::<usize>("--txns").unwrap(), None);
        let message = |option| arguments.value::<usize>(option).unwrap_err().to_string();
        assert_eq!(message("--charts"), "--charts needs a value");
        assert!(message("--bench").starts_with("--bench --runs: invalid digit"));
    }
}
