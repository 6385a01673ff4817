//! What the adapters of servers share.

use std::time::Duration;

use crate::error::{DbError, ErrorClass, Obstacle};
use crate::registry::Settings;
use crate::remote::Stage;
use crate::tls::{Mode, Tls};
use crate::url::{Address, DbUrl};

/// How much longer than the server we wait, so that its own time-out is reported.
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) const GRACE: Duration = Duration::from_secs(1);

impl Stage {
    /// The connection is lost, and with it the answer.
    pub(crate) fn no_answer(self, message: impl Into<String>) -> DbError {
        match self {
            Stage::Connect | Stage::Statement => DbError::retryable(message).disconnected(),
            Stage::Commit => DbError::unknown(message),
        }
    }

    /// The line broke, or was never there: it may come back. Only what TLS does not trust stays as
    /// it is; TLS reports that as bad data.
    #[cfg(any(feature = "etcd", feature = "mysql", feature = "redis"))]
    pub(crate) fn broken(self, error: &std::io::Error) -> DbError {
        use std::io::ErrorKind;

        match (self, error.kind()) {
            (Stage::Connect, ErrorKind::InvalidData) => distrusted(error.to_string()),
            (_, ErrorKind::WouldBlock | ErrorKind::TimedOut) => self.no_answer("no answer in time"),
            _ => self.no_answer(error.to_string()),
        }
    }
}

/// A certificate that TLS does not accept.
pub(crate) fn distrusted(message: String) -> DbError {
    DbError::fatal(message).with_obstacle(Obstacle::Certificate)
}

/// A server: where it is, and how to talk to it.
#[derive(Clone)]
pub(crate) struct Site {
    pub(crate) address: Address,
    pub(crate) tls: Tls,
    /// Its URL, for messages.
    pub(crate) place: String,
    /// The isolation level, by the database's own name.
    pub(crate) isolation: &'static str,
    /// How long an answer may take.
    pub(crate) patience: Duration,
}

impl Site {
    /// Reads a URL and the settings. The isolation levels are those of the database, weakest first;
    /// `own` are the parameters of its URLs that have nothing to do with encryption.
    pub(crate) fn of(
        url: &DbUrl,
        settings: &Settings,
        isolations: &'static [&'static str],
        mode: Mode,
        own: &[&str],
    ) -> Result<Site, DbError> {
        let isolation = settings.isolation_of(isolations)?;
        let address = url.address()?;
        let tls = Tls::of(&address, mode, own)?;
        let (place, patience) = (url.to_string(), settings.statement_timeout);
        Ok(Site { address, tls, place, isolation, patience })
    }

    /// Says to whom a connection failed. Whoever gives no code has not answered.
    pub(crate) fn cannot_connect(&self, error: DbError) -> DbError {
        let silent = error.class == ErrorClass::Retryable && error.code.is_none();
        DbError {
            message: format!("cannot connect to {}: {}", self.place, error.message),
            obstacle: error.obstacle.or(silent.then_some(Obstacle::Unreachable)),
            ..error
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
