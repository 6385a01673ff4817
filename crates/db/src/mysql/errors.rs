//! What MySQL's errors mean, by number.

use std::error::Error as _;

use mysql::{DriverError, Error};

use crate::error::{DbError, ErrorClass, Obstacle};
use crate::remote::Stage;

/// Deadlock, and Galera's refusal to certify; lock time-out, which undoes the statement alone; a
/// row that changed since the snapshot; TiDB's conflicts.
const CONFLICTS: [u16; 8] = [1213, 1205, 1020, 8002, 8005, 8022, 8028, 9007];

/// Too many connections; interrupted; a node that is not ready; statement time-outs.
const PASSING: [u16; 5] = [1040, 1317, 1047, 1969, 3024];

/// The server stops, or ended the connection.
const ENDING: [u16; 4] = [1053, 1927, 1152, 4031];

/// Wrong password or right, no such database, table, column, setting or isolation level; a
/// statement that the server does not understand; a read-only server.
const FATAL: [u16; 12] = [1044, 1045, 1049, 1054, 1064, 1142, 1146, 1193, 1231, 1290, 1698, 8048];

/// A table is there that was not there when we looked, or the other way round: somebody made or
/// dropped it in between, on another node perhaps.
const CHANGED: [&str; 3] = ["1050", "1051", "1146"];

/// Whether making tables is worth another attempt.
pub(super) fn passes(error: &DbError) -> bool {
    let changed = error.code.as_deref().is_some_and(|code| CHANGED.contains(&code));
    changed || error.class == ErrorClass::Retryable
}

#[expect(clippy::needless_pass_by_value, reason = "so it fits into map_err")]
pub(super) fn classify(error: Error, stage: Stage) -> DbError {
    match &error {
        Error::MySqlError(answer) => {
            let error = answered(answer.code, answer.message.clone(), stage).with_code(answer.code);
            match obstacle(answer.code) {
                Some(obstacle) => error.with_obstacle(obstacle),
                None => error,
            }
        }
        Error::IoError(broken) => stage.broken(broken),
        Error::CodecError(codec) => match codec.source().and_then(|cause| cause.downcast_ref()) {
            Some(broken) => stage.broken(broken),
            None => stage.no_answer(codec.to_string()),
        },
        Error::DriverError(DriverError::CouldNotConnect(Some((_, why, _)))) => stage.no_answer(why),
        Error::DriverError(DriverError::ConnectTimeout | DriverError::CouldNotConnect(None)) => {
            stage.no_answer("no answer in time")
        }
        _ if stage == Stage::Commit => DbError::unknown(error.to_string()),
        _ => DbError::fatal(error.to_string()).disconnected(),
    }
}

fn obstacle(number: u16) -> Option<Obstacle> {
    match number {
        1040 => Some(Obstacle::Full),
        1049 => Some(Obstacle::NoDatabase),
        1044 | 1045 | 1698 => Some(Obstacle::Login),
        _ => None,
    }
}

/// Of a commit that failed, only conflicts are known to have undone it, and refusals. Whether an
/// interrupted one is undone depends on how far it got.
fn answered(number: u16, message: String, stage: Stage) -> DbError {
    if CONFLICTS.contains(&number) {
        return DbError::retryable(message);
    }
    if FATAL.contains(&number) {
        return DbError::fatal(message);
    }
    if stage == Stage::Commit {
        return DbError::unknown(message);
    }
    if ENDING.contains(&number) {
        return DbError::retryable(message).disconnected();
    }
    if PASSING.contains(&number) {
        return DbError::retryable(message);
    }
    DbError::aborted(message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorClass::{Aborted, Fatal, Retryable, Unknown};

    #[test]
    fn making_tables_is_tried_again_where_that_may_help() {
        for (number, again) in
            [(1213, true), (1047, true), (1050, true), (1146, true), (1142, false)]
        {
            let error = answered(number, String::new(), Stage::Connect).with_code(number);
            assert_eq!(passes(&error), again, "{number}");
        }
        assert!(passes(&Stage::Connect.no_answer("gone")));
    }

    #[test]
    fn numbers_have_classes() {
        for (number, in_statement, in_commit) in [
            (1213, Retryable, Retryable),
            (1205, Retryable, Retryable),
            (1020, Retryable, Retryable),
            (1317, Retryable, Unknown),
            (1047, Retryable, Unknown),
            (1053, Retryable, Unknown),
            (1045, Fatal, Fatal),
            (1146, Fatal, Fatal),
            (8048, Fatal, Fatal),
            (1180, Aborted, Unknown),
            (1406, Aborted, Unknown),
        ] {
            let class = |stage| answered(number, String::new(), stage).class;
            assert_eq!(class(Stage::Statement), in_statement, "{number}");
            assert_eq!(class(Stage::Commit), in_commit, "{number}");
        }
    }
}
