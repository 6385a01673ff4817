//! The answers of drivers: read strictly, so that a mistake in a driver is found at once.

use isolario_model::Level;
use isolario_workload::Kind;
use serde::Deserialize;
use serde_json::Value;

use crate::error::{DbError, ErrorClass};

/// The driver's answer to `hello`.
#[derive(Debug)]
pub(super) struct Greeting {
    /// The product and its version.
    pub(super) name: String,
    /// The isolation level in force, by the database's own name.
    pub(super) isolation: Option<String>,
    /// The workloads it can run.
    pub(super) workloads: Vec<Kind>,
    /// The levels it claims to give.
    pub(super) claim: Vec<Level>,
    /// Whether registers may be written that it did not hear of when it prepared.
    pub(super) new_keys: bool,
    /// Whether one process serves every session.
    pub(super) shared: bool,
}

#[derive(Deserialize)]
struct GreetingFields {
    name: String,
    isolation: Option<String>,
    workloads: Option<Vec<String>>,
    #[serde(default)]
    claim: Vec<String>,
    #[serde(default)]
    new_keys: bool,
    #[serde(default)]
    shared: bool,
}

impl Greeting {
    /// Reads the answer. A name that means nothing here is fatal: a misspelt level would be a claim
    /// that is never checked.
    pub(super) fn read(answer: &Value, isolation: Option<&str>) -> Result<Greeting, DbError> {
        let wrong = |why: String| wrong(&answer.to_string(), &why);
        let fields =
            GreetingFields::deserialize(answer).map_err(|error| wrong(error.to_string()))?;
        if let (Some(asked), Some(in_force)) = (isolation, &fields.isolation)
            && plain_name(asked) != plain_name(in_force)
        {
            return Err(DbError::fatal(format!(
                "the driver was asked for the isolation level `{asked}` and answered with \
                 `{in_force}`: it should refuse a level that it cannot set"
            )));
        }
        let workloads = match fields.workloads {
            Some(names) => each(&names, |name| Kind::ALL.into_iter().find(|it| it.name() == name))
                .map_err(|name| {
                    let known: Vec<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
                    wrong(format!(
                        "there is no workload `{name}`; expected one of: {}",
                        known.join(", ")
                    ))
                })?,
            None => vec![Kind::Mini, Kind::General],
        };
        let claim = each(&fields.claim, Level::find).map_err(|name| {
            let known: Vec<&str> = Level::decided().map(Level::name).collect();
            wrong(format!(
                "there is no level `{name}` to claim; expected one of: {}",
                known.join(", ")
            ))
        })?;
        let GreetingFields { name, isolation, new_keys, shared, .. } = fields;
        Ok(Greeting { name, isolation, workloads, claim, new_keys, shared })
    }
}

/// The values of all names, or the first name that has none.
fn each<T>(names: &[String], find: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, &str> {
    names.iter().map(|name| find(name).ok_or(name.as_str())).collect()
}

/// The name of an isolation level without differences that mean nothing: `READ COMMITTED` is
/// `read-committed`.
fn plain_name(isolation: &str) -> String {
    isolation.trim().to_lowercase().replace([' ', '_'], "-")
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
    fn names_in_a_greeting_must_mean_something() {
        let greet = |line: &str, isolation| Greeting::read(&read(line).unwrap(), isolation);
        let refused = |line: &str, isolation| {
            let error = greet(line, isolation).unwrap_err();
            assert_eq!(error.class, ErrorClass::Fatal);
            error.message
        };
        for misspelt in ["superb", "snapshot_isolation", "Serializable"] {
            let line = format!(r#"{{"name":"x","claim":["si","{misspelt}"]}}"#);
            let message = refused(&line, None);
            assert!(message.contains(&format!("no level `{misspelt}`")), "{message}");
            assert!(message.contains("snapshot-isolation, "), "{message}");
        }
        let message = refused(r#"{"name":"x","workloads":["mini","mnii"]}"#, None);
        assert!(
            message.contains("no workload `mnii`; expected one of: mini, general"),
            "{message}"
        );

        let greeting = greet(r#"{"name":"x","claim":["si"]}"#, Some("snapshot")).unwrap();
        assert_eq!(greeting.claim, [Level::SnapshotIsolation]);
        assert_eq!(greeting.workloads, [Kind::Mini, Kind::General]);
        let line = r#"{"name":"x","isolation":"READ COMMITTED"}"#;
        assert!(greet(line, Some("read-committed")).is_ok());
        assert!(greet(line, None).is_ok());
        let message = refused(line, Some("serializable"));
        assert!(message.contains("`serializable` and answered with `READ COMMITTED`"), "{message}");
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
