//! What a database answers when it does not do what it was asked for.

use std::fmt;

/// What an error means for the transaction it hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorClass {
    /// The transaction certainly did not commit, and running it again would not help.
    Aborted,
    /// The transaction certainly did not commit, and it may when it runs again: a deadlock, a
    /// serialization failure, a lock that took too long, a server that is starting.
    Retryable,
    /// Nobody can tell whether it committed: the commit was sent and no answer came.
    Unknown,
    /// The run cannot go on: a wrong password, a missing right, a table that is not ours. The
    /// transaction certainly did not commit.
    Fatal,
}

impl ErrorClass {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            ErrorClass::Aborted => "aborted",
            ErrorClass::Retryable => "retryable",
            ErrorClass::Unknown => "unknown",
            ErrorClass::Fatal => "fatal",
        }
    }
}

/// What stands between us and a database, as far as its adapter can tell. Whoever shows the error to
/// a person knows the remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Obstacle {
    /// Nobody answers there, or nobody who speaks the database's language.
    Unreachable,
    /// The user, the password or a right.
    Login,
    /// The database of that name.
    NoDatabase,
    /// The server's certificate is not to be trusted.
    Certificate,
    /// It has as many connections as it takes.
    Full,
    /// It does not understand what every server of its kind does: it only speaks the protocol.
    Dialect,
    /// It takes no statements in SQL, or none whose answers we can read.
    NoSql,
    /// Another run uses it.
    InUse,
}

/// An error of a database, classified by its adapter.
///
/// ```
/// use isolario_db::{DbError, ErrorClass};
///
/// let error = DbError::retryable("could not serialize access").with_code("40001");
/// assert_eq!(error.class, ErrorClass::Retryable);
/// assert_eq!(error.to_string(), "could not serialize access (40001)");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DbError {
    /// What it means for the transaction.
    pub class: ErrorClass,
    /// The database's own code: an SQLSTATE, an error number, a name.
    pub code: Option<String>,
    /// The database's own words.
    pub message: String,
    /// Whether the connection is of no use any more. The runner then opens another one.
    pub disconnected: bool,
    /// What stands in the way of a connection, if that is what went wrong.
    pub obstacle: Option<Obstacle>,
}

impl DbError {
    /// An error of a class, over a connection that can still be used.
    pub fn new(class: ErrorClass, message: impl Into<String>) -> DbError {
        DbError { class, code: None, message: message.into(), disconnected: false, obstacle: None }
    }

    /// The transaction did not commit; see [`ErrorClass::Aborted`].
    pub fn aborted(message: impl Into<String>) -> DbError {
        DbError::new(ErrorClass::Aborted, message)
    }

    /// The transaction did not commit and is worth another attempt; see
    /// [`ErrorClass::Retryable`].
    pub fn retryable(message: impl Into<String>) -> DbError {
        DbError::new(ErrorClass::Retryable, message)
    }

    /// Nobody can tell whether the transaction committed; see [`ErrorClass::Unknown`]. Whoever
    /// has not got an answer cannot use the connection for the next question either.
    pub fn unknown(message: impl Into<String>) -> DbError {
        DbError::new(ErrorClass::Unknown, message).disconnected()
    }

    /// The run cannot go on; see [`ErrorClass::Fatal`].
    pub fn fatal(message: impl Into<String>) -> DbError {
        DbError::new(ErrorClass::Fatal, message)
    }

    /// An operation that the database does not have.
    pub fn unsupported(operation: &str) -> DbError {
        DbError::fatal(format!("this database has no {operation}"))
    }

    /// Adds the database's own code.
    #[must_use]
    pub fn with_code(self, code: impl fmt::Display) -> DbError {
        DbError { code: Some(code.to_string()), ..self }
    }

    /// Says that the connection is of no use any more.
    #[must_use]
    pub fn disconnected(self) -> DbError {
        DbError { disconnected: true, ..self }
    }

    /// Says what stands in the way of a connection.
    #[must_use]
    pub fn with_obstacle(self, obstacle: Obstacle) -> DbError {
        DbError { obstacle: Some(obstacle), ..self }
    }

    /// The same error of another class: for example, an error that means "not committed" during a
    /// statement and "unknown" during the commit.
    #[must_use]
    pub fn with_class(self, class: ErrorClass) -> DbError {
        DbError { class, ..self }
    }
}

impl fmt::Display for DbError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.code {
            Some(code) => write!(f, " ({code})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for DbError {}
