//! The answers of drivers: read strictly, so that a mistake in a driver is found at once.

use serde::Deserialize;
use serde_json::Value;

use crate::error::{DbError, ErrorClass};

/// What a driver says of itself.
#[derive(Debug, Deserialize)]
pub(super) struct Greeting {
    /// The product and its version.
    pub(super) name: String,
    /// The isolation level in force, by the database's own name.
    #[serde(default)]
    pub(super) isolation: Option<String>,
    /// The workloads it can run.
    #[serde(default = "registers")]
    pub(super) workloads: Vec<String>,
    /// The levels it claims to give.
    #[serde(default)]
    pub(super) claim: Vec<String>,
    /// Whether registers may be written that it did not hear of when it prepared.
    #[serde(default)]
    pub(super) new_keys: bool,
    /// Whether one process serves every session.
    #[serde(default)]
    pub(super) shared: bool,
}

fn registers() -> Vec<String> {
    vec!["mini".to_owned(), "general".to_owned()]
}

impl Greeting {
    pub(super) fn read(answer: &Value) -> Result<Greeting, DbError> {
        Greeting::deserialize(answer)
            .map_err(|error| wrong(&answer.to_string(), &error.to_string()))
    }
}

#[derive(Deserialize)]
struct Refusal {
    class: String,
    message: String,
    #[serde(default)]
    code: Option<String>,
    #[serde(default)]
    disconnected: bool,
}

/// Reads an answer: an object, or an error.
pub(super) fn read(line: &str) -> Result<Value, DbError> {
    let answer: Value =
        serde_json::from_str(line).map_err(|error| wrong(line, &error.to_string()))?;
    let Some(object) = answer.as_object() else {
        return Err(wrong(line, "expected an object"));
    };
    match object.get("error") {
        None => Ok(answer),
        Some(error) => {
            let refusal = Refusal::deserialize(error);
            Err(refusal.map_or_else(|error| wrong(line, &error.to_string()), Refusal::error))
        }
    }
}

/// Reads an answer of a process that many sessions share.
pub(super) fn read_shared(line: &str) -> Result<Value, DbError> {
    match session_of(line) {
        Some(_) => read(line),
        None => Err(wrong(line, "expected the number of its session")),
    }
}

/// Whose answer a line is, in a process that many sessions share.
pub(super) fn session_of(line: &str) -> Option<u64> {
    #[derive(Deserialize)]
    struct Addressed {
        session: u64,
    }
    serde_json::from_str(line).ok().map(|Addressed { session }| session)
}

impl Refusal {
    fn error(self) -> DbError {
        let class = match self.class.as_str() {
            "aborted" => ErrorClass::Aborted,
            "retryable" => ErrorClass::Retryable,
            "unknown" => ErrorClass::Unknown,
            "fatal" => ErrorClass::Fatal,
            other => {
                let message = format!("{}, of class {other:?}", self.message);
                return wrong(&message, "expected aborted, retryable, unknown or fatal");
            }
        };
        let lost = self.disconnected || class == ErrorClass::Unknown;
        DbError { code: self.code, disconnected: lost, ..DbError::new(class, self.message) }
    }
}

/// A field of an answer.
pub(super) fn field<'a, T: Deserialize<'a>>(answer: &'a Value, name: &str) -> Result<T, DbError> {
    let found = answer.get(name).unwrap_or(&Value::Null);
    T::deserialize(found).map_err(|error| wrong(&answer.to_string(), &format!("{name}: {error}")))
}

/// A driver that does not keep to the protocol: nobody can work with it.
fn wrong(line: &str, why: &str) -> DbError {
    const SHOWN: usize = 120;
    let line: String = line.chars().take(SHOWN).collect();
    DbError::fatal(format!("the driver answered {line:?}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_classified_by_the_driver() {
        let error = |line: &str| read(line).unwrap_err();
        let busy = error(r#"{"error":{"class":"retryable","message":"busy","code":"40001"}}"#);
        assert_eq!(busy, DbError::retryable("busy").with_code("40001"));
        let gone = error(r#"{"error":{"class":"unknown","message":"gone"}}"#);
        assert_eq!(gone, DbError::unknown("gone"));
        let lost = error(r#"{"error":{"class":"aborted","message":"x","disconnected":true}}"#);
        assert!(lost.disconnected);
    }

    #[test]
    fn what_is_no_answer_is_fatal_and_shown() {
        for (line, words) in [
            ("Traceback", "the driver answered \"Traceback\": expected value"),
            ("[1]", "the driver answered \"[1]\": expected an object"),
            (r#"{"error":"no"}"#, "invalid type: string"),
            (r#"{"error":{"class":"odd","message":"m"}}"#, "m, of class \\\"odd\\\""),
        ] {
            let error = read(line).unwrap_err();
            assert_eq!(error.class, ErrorClass::Fatal);
            assert!(error.message.contains(words), "{}", error.message);
        }
        let answer = read(r#"{"value":"five"}"#).unwrap();
        assert!(field::<Option<i64>>(&answer, "value").is_err());
        assert_eq!(field::<Option<i64>>(&answer, "other"), Ok(None));
    }
}
