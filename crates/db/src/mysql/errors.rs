//! What MySQL's errors mean, by number.

use std::error::Error as _;

use mysql::{DriverError, Error};

use crate::error::{DbError, ErrorClass, Obstacle};
use crate::remote::Stage;

/// The transaction certainly did not commit.
///
/// - 1213 deadlock, which is also how Galera refuses to certify a transaction, and 1205 lock
///   time-out, which undoes the statement alone (MySQL's error reference; Galera's documentation,
///   "Certification-based replication");
/// - 1467, a deadlock over the lock that counts a column up: InnoDB rolls the whole transaction back, as it does
///   for 1213, and the server ends it (`@@in_transaction` is 0 afterwards), but this is all that it says;
/// - 1020, a row that changed since the snapshot (MariaDB, `innodb_snapshot_isolation`);
/// - 3101, a transaction that group replication did not certify (MySQL's error reference:
///   `ER_TRANSACTION_ROLLBACK_DURING_COMMIT`);
/// - 8002, 8005, 8022, 8028 and 9007, conflicts of TiDB with other transactions or with a change of
///   the schema (TiDB's documentation, "Error codes").
const CONFLICTS: [u16; 10] = [1213, 1205, 1467, 1020, 3101, 8002, 8005, 8022, 8028, 9007];

/// It passes, but a commit may have got through.
///
/// - 1040 too many connections, 1317 interrupted, 1969 and 3024 statement time-outs of MariaDB and
///   MySQL;
/// - 1047, a Galera node that is not part of the cluster (Galera's documentation, "unknown command");
/// - 8027, 9001 to 9005: TiDB's schema is out of date, or its storage does not answer, is busy, holds
///   a lock for too long or has no leader (TiDB's documentation, "Error codes").
const PASSING: [u16; 11] = [1040, 1317, 1969, 3024, 1047, 8027, 9001, 9002, 9003, 9004, 9005];

/// The server stops, or ended the connection.
const ENDING: [u16; 4] = [1053, 1927, 1152, 4031];

/// Wrong password or right, no such database, table, column, setting or isolation level; a
/// statement that the server does not understand; a read-only server.
const FATAL: [u16; 12] = [1044, 1045, 1049, 1054, 1064, 1142, 1146, 1193, 1231, 1290, 1698, 8048];

/// A statement that breaks a constraint or has a value that does not fit. The server undoes it and says so,
/// also where it stands outside of any transaction: it has certainly not taken effect.
///
/// - 1022, 1062 and 1586 a key that is there already, 1048 and 1364 a value that is missing, 1216, 1217, 1451 and
///   1452 a foreign key, 3819 and 4025 a check of MySQL and of MariaDB;
/// - 1264, 1265, 1292, 1366 and 1406 a value that does not fit its column (MySQL's and MariaDB's error references).
const REFUSALS: [u16; 16] = [
    1022, 1048, 1062, 1216, 1217, 1264, 1265, 1292, 1364, 1366, 1406, 1451, 1452, 1586, 3819, 4025,
];

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
    if REFUSALS.contains(&number) {
        return DbError::aborted(message);
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
            (1467, Retryable, Retryable),
            (1020, Retryable, Retryable),
            (3101, Retryable, Retryable),
            (9007, Retryable, Retryable),
            (9002, Retryable, Unknown),
            (1317, Retryable, Unknown),
            (1047, Retryable, Unknown),
            (1053, Retryable, Unknown),
            (1045, Fatal, Fatal),
            (1146, Fatal, Fatal),
            (8048, Fatal, Fatal),
            (1180, Aborted, Unknown),
            (1062, Aborted, Aborted),
            (1452, Aborted, Aborted),
            (4025, Aborted, Aborted),
        ] {
            let class = |stage| answered(number, String::new(), stage).class;
            assert_eq!(class(Stage::Statement), in_statement, "{number}");
            assert_eq!(class(Stage::Commit), in_commit, "{number}");
        }
    }
}
