//! What the adapters of databases with data of others share.

use crate::error::DbError;

/// The comment, or the key, by which we know our own tables again.
pub(crate) const OURS: &str = "made by isolario";

/// What was under way when something went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// No transaction of the workload is open.
    Connect,
    /// A statement of a transaction that is not going to commit by itself.
    Statement,
    /// A commit, or a statement that commits by itself.
    Commit,
}

impl Stage {
    /// The connection is lost, and with it the answer.
    pub(crate) fn no_answer(self, message: impl Into<String>) -> DbError {
        match self {
            Stage::Connect | Stage::Statement => DbError::retryable(message).disconnected(),
            Stage::Commit => DbError::unknown(message),
        }
    }
}

/// The error for data of others under a name that Isolario uses.
pub(crate) fn not_ours(what: &str, place: &str) -> DbError {
    DbError::fatal(format!(
        "{place} has {what} that Isolario did not create: choose another database, or rename what is in the way"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorClass;

    #[test]
    fn a_lost_answer_leaves_only_commits_in_doubt() {
        for (stage, class) in [
            (Stage::Connect, ErrorClass::Retryable),
            (Stage::Statement, ErrorClass::Retryable),
            (Stage::Commit, ErrorClass::Unknown),
        ] {
            let error = stage.no_answer("");
            assert_eq!((error.class, error.disconnected), (class, true));
        }
    }
}
