//! What PostgreSQL's errors mean, by SQLSTATE.

use std::error::Error;
use std::io;

use tokio_postgres::error::Severity;

use crate::error::{DbError, ErrorClass, Obstacle};
use crate::remote::Stage;
use crate::site::distrusted;

pub(super) fn classify(error: &tokio_postgres::Error, stage: Stage) -> DbError {
    let Some(answer) = error.as_db_error() else { return without_answer(error, stage) };
    let (code, message) = (answer.code().code(), answer.message().to_owned());
    // `ERROR` ends the transaction and `FATAL` the connection; the latter may hit a backend whose
    // commit is done already. Servers that are not PostgreSQL, H2 for one, say so in the older of the
    // two fields only, which PostgreSQL translates.
    let ends_connection = match answer.parsed_severity() {
        Some(severity) => severity != Severity::Error,
        None => answer.severity() != "ERROR",
    };
    if ends_connection && stage == Stage::Commit {
        return DbError::unknown(message).with_code(code);
    }
    let error = DbError::new(class(code, stage), message).with_code(code);
    let error = match obstacle(code, stage) {
        Some(obstacle) => error.with_obstacle(obstacle),
        None => error,
    };
    if ends_connection { error.disconnected() } else { error }
}

/// The classes of PostgreSQL's own documentation ("PostgreSQL Error Codes"), which the servers that
/// speak its protocol keep to: what their documentation asks to retry is 40001 (CockroachDB,
/// "Transaction Retry Error Reference"; YugabyteDB, "Transaction error codes in YSQL") and 40P01
/// (YugabyteDB).
fn class(code: &str, stage: Stage) -> ErrorClass {
    match (code.get(..2).unwrap_or_default(), code) {
        // CockroachDB's "result is ambiguous"; a proxy that lost the server behind it.
        (_, "40003") => ErrorClass::Unknown,
        ("08", _) if stage == Stage::Commit => ErrorClass::Unknown,
        // Serialization failures and deadlocks; locks and time-outs; a server without room, one
        // that starts or stops, or one that a proxy cannot reach.
        ("08" | "40" | "53", _) | (_, "55P03") | ("57", _) => ErrorClass::Retryable,
        // Wrong password, no such database, no right, no table of that name, a read-only server.
        ("28" | "3D" | "42", _) | (_, "25006") => ErrorClass::Fatal,
        _ => ErrorClass::Aborted,
    }
}

fn obstacle(code: &str, stage: Stage) -> Option<Obstacle> {
    match code {
        "53300" => Some(Obstacle::Full),
        "3D000" => Some(Obstacle::NoDatabase),
        _ if code.starts_with("28") => Some(Obstacle::Login),
        _ if stage == Stage::Connect && is_not_understood(code) => Some(Obstacle::Dialect),
        _ => None,
    }
}

/// Whether the server does not know a function, a setting, a table of the catalogue, a type or the syntax of
/// what PostgreSQL understands. H2 has codes of its own for a function (90022) and for what it does not
/// support (50100); others keep to the standard (42000, 42S02).
fn is_not_understood(code: &str) -> bool {
    matches!(
        code,
        "0A000"
            | "42000"
            | "42001"
            | "42601"
            | "42703"
            | "42704"
            | "42883"
            | "42P01"
            | "42S02"
            | "42S22"
            | "3F000"
            | "50100"
            | "90022"
    )
}

/// No word from the server: the line broke, or the two did not understand each other.
fn without_answer(error: &tokio_postgres::Error, stage: Stage) -> DbError {
    let cause = error.source();
    let message = match cause {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    };
    let broken = cause.and_then(|cause| cause.downcast_ref::<io::Error>());
    // TLS reports what it does not trust as bad data.
    match (stage, broken) {
        (Stage::Connect, Some(broken)) if broken.kind() == io::ErrorKind::InvalidData => {
            distrusted(message)
        }
        // The server asks for what the URL does not have: a password, mostly.
        (Stage::Connect, None) if !error.is_closed() => {
            DbError::fatal(message).with_obstacle(Obstacle::Login)
        }
        _ => stage.no_answer(message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_only_speaks_the_protocol_is_known_by_what_it_does_not_understand() {
        let dialect = Some(Obstacle::Dialect);
        for code in ["42883", "42P01", "90022", "42601", "0A000"] {
            assert_eq!(obstacle(code, Stage::Connect), dialect, "{code}");
            assert_eq!(obstacle(code, Stage::Statement), None, "{code}");
        }
        assert_eq!(obstacle("42501", Stage::Connect), None);
        assert_eq!(obstacle("28P01", Stage::Connect), Some(Obstacle::Login));
    }

    #[test]
    fn states_have_classes() {
        for (code, expected) in [
            ("40001", ErrorClass::Retryable),
            ("40P01", ErrorClass::Retryable),
            ("08006", ErrorClass::Retryable),
            ("40003", ErrorClass::Unknown),
            ("55P03", ErrorClass::Retryable),
            ("57014", ErrorClass::Retryable),
            ("57P03", ErrorClass::Retryable),
            ("53300", ErrorClass::Retryable),
            ("28P01", ErrorClass::Fatal),
            ("3D000", ErrorClass::Fatal),
            ("42501", ErrorClass::Fatal),
            ("42P01", ErrorClass::Fatal),
            ("25006", ErrorClass::Fatal),
            ("23505", ErrorClass::Aborted),
            ("25P02", ErrorClass::Aborted),
            ("XX000", ErrorClass::Aborted),
        ] {
            assert_eq!(class(code, Stage::Statement), expected, "{code}");
        }
        assert_eq!(class("40001", Stage::Commit), ErrorClass::Retryable);
        assert_eq!(class("08006", Stage::Commit), ErrorClass::Unknown);
    }
}
