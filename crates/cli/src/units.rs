//! Shares, durations and sizes, as people write them.

use std::ops::RangeInclusive;
use std::time::Duration;

/// Reads a share.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok();
    number
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| "expected a number from 0 to 1".to_owned())
}

/// Reads a duration: `100us`, `500ms`, `10s`, `5m`, `1h`. A bare number is refused: five of what
/// decides whether a stale read is one.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = number_and_unit(text);
    let seconds = match unit {
        "s" => 1.0,
        "ms" => 1e-3,
        "us" | "µs" => 1e-6,
        "ns" => 1e-9,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "" if number.is_some() => {
            return Err(format!("the unit is missing: expected {text}s, {text}ms or {text}us"));
        }
        _ => f64::NAN,
    };
    number
        .and_then(|number| Duration::try_from_secs_f64(number * seconds).ok())
        .ok_or_else(|| "expected a duration such as 500ms, 10s, 5m or 1h".to_owned())
}

/// What servers can be told: they count milliseconds, take none for no limit, and refuse numbers
/// that do not fit into 32 bits.
const STATEMENT_TIMEOUTS: RangeInclusive<Duration> =
    Duration::from_millis(1)..=Duration::from_secs(24 * 60 * 60);

/// Reads a statement time-out. There is always one: a run must end even where the database never
/// answers.
pub(crate) fn statement_timeout(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        timeout if STATEMENT_TIMEOUTS.contains(&timeout) => Ok(timeout),
        none if none.is_zero() => {
            Err("without a limit, a database that does not answer would hang the run; use a long one, such as 1h"
                .to_owned())
        }
        _ => Err("expected a duration from 1ms to 24h".to_owned()),
    }
}

/// Reads a size: `500MB`, `2GiB`; a bare number is bytes.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let (number, unit) = number_and_unit(text);
    let bytes = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "kb" | "k" => 1e3,
        "mb" | "m" => 1e6,
        "gb" | "g" => 1e9,
        "kib" => 1024.0,
        "mib" => 1024.0 * 1024.0,
        "gib" => 1024.0 * 1024.0 * 1024.0,
        _ => f64::NAN,
    };
    number
        .map(|number| number * bytes)
        .filter(|bytes| (1.0..1e18).contains(bytes))
        .map(|bytes| bytes as u64)
        .ok_or_else(|| "expected a size such as 500MB or 2GB".to_owned())
}

/// The number that a text begins with, and what follows it.
fn number_and_unit(text: &str) -> (Option<f64>, &str) {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    (number.parse().ok(), unit.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        for (text, size) in [("500MB", 500_000_000), ("2 GiB", 2 << 30), ("64", 64), ("1.5k", 1500)]
        {
            assert_eq!(bytes(text), Ok(size), "{text}");
        }
        for wrong in ["", "MB", "0", "-1GB", "10 parsecs"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn durations_have_units() {
        for (text, ms) in [("500ms", 500), ("10s", 10_000), ("1.5m", 90_000), ("0s", 0)] {
            assert_eq!(duration(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for wrong in ["", "s", "10", "0", "10x", "-1s", "nan", "1e9h"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_statement_always_has_a_time_limit() {
        for (text, ms) in [("1ms", 1), ("1h", 3_600_000), ("24h", 86_400_000)] {
            assert_eq!(statement_timeout(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for wrong in ["0s", "1ns", "25h", "5"] {
            assert!(statement_timeout(wrong).is_err(), "{wrong}");
        }
    }
}
