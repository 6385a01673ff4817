//! The databases that are compiled in, by scheme.

use std::sync::OnceLock;
use std::time::Duration;

use isolario_workload::Schema;

use crate::claims::ClaimRow;
use crate::database::Database;
use crate::error::DbError;
use crate::url::{Address, DbUrl};

/// What to ask of every connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The isolation level, by the database's own name; without one, its strongest.
    pub isolation: Option<String>,
    /// How long a call may take before it counts as failed.
    pub statement_timeout: Duration,
    /// How many sessions there will be.
    pub sessions: u32,
    /// Whether connections ask for what a version certificate is made of: snapshots, and the
    /// database's own numbers of transactions.
    pub evidence: bool,
    /// Whether, with that, a second transaction reads every row in the snapshot of each transaction.
    pub shadow: bool,
    /// Whether what is committed has to survive the end of this process. Embedded stores that can be told to wait
    /// for their files do so then; otherwise they need not.
    pub durable: bool,
    /// The application whose rows are to be kept in SQL tables of their own, where the database
    /// [has them](crate::Traits::tables), instead of as registers.
    pub tables: Option<Schema>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            isolation: None,
            statement_timeout: Duration::from_secs(5),
            sessions: 8,
            evidence: false,
            shadow: false,
            durable: false,
            tables: None,
        }
    }
}

impl Settings {
    /// Finds the isolation level that was asked for among those of a database, weakest first.
    /// Case, and whether words are joined by spaces, hyphens or underscores, do not matter.
    pub fn isolation_of(&self, known: &'static [&'static str]) -> Result<&'static str, DbError> {
        let Some(wanted) = &self.isolation else {
            return known.last().copied().ok_or_else(|| DbError::unsupported("isolation levels"));
        };
        let normal = wanted.to_ascii_lowercase().replace([' ', '_'], "-");
        known.iter().find(|name| **name == normal).copied().ok_or_else(|| {
            let names = known.join(", ");
            DbError::fatal(format!("there is no isolation level {wanted:?}: expected {names}"))
        })
    }
}

/// How a database is opened.
pub type OpenFn = fn(&DbUrl, &Settings) -> Result<Box<dyn Database>, DbError>;

/// A kind of database.
#[non_exhaustive]
pub struct Driver {
    /// The schemes of its URLs; the first is the usual one.
    pub schemes: &'static [&'static str],
    /// How its URLs look.
    pub form: &'static str,
    /// What it is, in half a sentence.
    pub about: &'static str,
    /// Its isolation levels by its own names, weakest first; empty where names are free.
    pub isolations: &'static [&'static str],
    /// What it claims to give.
    pub claims: &'static [ClaimRow],
    /// Where it runs.
    pub service: Service,
    /// Opens one. This may look at the URL and at the settings, but sends nothing yet.
    pub open: OpenFn,
}

/// Where a database runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Service {
    /// In this process.
    Embedded,
    /// In servers, at this port where a URL names none.
    Server(u16),
    /// Wherever a program of the user's finds it.
    Program,
}

impl Driver {
    /// An embedded database by its schemes, the form of its URLs, what it is in half a sentence, its isolation
    /// levels weakest first, its claims, and how it is opened.
    pub const fn new(
        schemes: &'static [&'static str],
        form: &'static str,
        about: &'static str,
        isolations: &'static [&'static str],
        claims: &'static [ClaimRow],
        open: OpenFn,
    ) -> Driver {
        Driver { schemes, form, about, isolations, claims, service: Service::Embedded, open }
    }
}

/// Every database that is compiled in.
pub static DRIVERS: &[Driver] = &[
    #[cfg(feature = "sqlite")]
    crate::sqlite::DRIVER,
    #[cfg(feature = "postgres")]
    crate::postgres::DRIVER,
    #[cfg(feature = "mysql")]
    crate::mysql::DRIVER,
    #[cfg(feature = "postgres")]
    crate::postgres::COCKROACH,
    #[cfg(feature = "mysql")]
    crate::mysql::TIDB,
    #[cfg(feature = "etcd")]
    crate::etcd::DRIVER,
    #[cfg(feature = "redis")]
    crate::redis::DRIVER,
    #[cfg(feature = "sim")]
    crate::sim::DRIVER,
    #[cfg(all(unix, feature = "exec"))]
    crate::exec::DRIVER,
];

static REGISTERED: OnceLock<&'static [Driver]> = OnceLock::new();

/// Adds databases that are not part of this crate, before any is opened. Only the first call counts:
/// a program knows its databases when it starts.
pub fn register(drivers: &'static [Driver]) {
    let _ = REGISTERED.set(drivers);
}

/// Every database there is: those that are compiled in, and those that were registered.
pub fn drivers() -> impl Iterator<Item = &'static Driver> {
    DRIVERS.iter().chain(REGISTERED.get().copied().unwrap_or_default())
}

fn driver_of(url: &DbUrl) -> Option<&'static Driver> {
    drivers().find(|driver| driver.schemes.contains(&url.scheme()))
}

/// Whether a URL is that of a server, and not of a store in this process or of a driver.
pub fn names_server(url: &DbUrl) -> bool {
    matches!(driver_of(url).map(|driver| driver.service), Some(Service::Server(_)))
}

/// Whether a URL is that of a store in this process.
pub fn is_embedded(url: &DbUrl) -> bool {
    driver_of(url).is_some_and(|driver| driver.service == Service::Embedded)
}

/// Host and port of the server that a URL names.
pub fn host_and_port(url: &DbUrl) -> Result<(String, u16), DbError> {
    let no_server = || DbError::fatal(format!("{url} does not give the host and port of a server"));
    let Some(Service::Server(usual)) = driver_of(url).map(|driver| driver.service) else {
        return Err(no_server());
    };
    let Address { host, port, .. } = url.address()?;
    // A path is where a socket of the same machine is.
    match host.starts_with('/') {
        true => Err(no_server()),
        false => Ok((host, port.unwrap_or(usual))),
    }
}

/// Opens the database of a URL.
pub fn open(url: &DbUrl, settings: &Settings) -> Result<Box<dyn Database>, DbError> {
    match driver_of(url) {
        Some(driver) => (driver.open)(url, settings),
        None => {
            let forms: Vec<_> = drivers().map(|driver| driver.form).collect();
            let (scheme, forms) = (url.scheme(), forms.join(", "));
            Err(DbError::fatal(format!("there is no database {scheme:?}: expected {forms}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn isolation_levels_are_found_however_they_are_spelt() {
        const KNOWN: &[&str] = &["read-committed", "repeatable-read"];
        let named = |name: &str| Settings { isolation: Some(name.into()), ..Settings::default() };
        assert_eq!(Settings::default().isolation_of(KNOWN), Ok("repeatable-read"));
        for name in ["READ COMMITTED", "read_committed", "Read-Committed"] {
            assert_eq!(named(name).isolation_of(KNOWN), Ok("read-committed"));
        }
        assert_eq!(
            named("chaos").isolation_of(KNOWN).unwrap_err().message,
            "there is no isolation level \"chaos\": expected read-committed, repeatable-read"
        );
    }

    #[test]
    fn schemes_are_unique() {
        let mut schemes: Vec<_> = DRIVERS.iter().flat_map(|driver| driver.schemes).collect();
        let count = schemes.len();
        schemes.sort_unstable();
        schemes.dedup();
        assert_eq!(schemes.len(), count);
    }

    #[test]
    fn a_server_has_a_place() {
        let place = |url: &str| host_and_port(&DbUrl::parse(url).unwrap()).ok();
        let of = |host: &str, port| Some((host.to_owned(), port));
        #[cfg(feature = "postgres")]
        {
            assert_eq!(place("postgres://me:x@db.example:7/0"), of("db.example", 7));
            assert_eq!(place("postgres://me@[::1]/test"), of("::1", 5432));
            assert_eq!(place("postgres://me@%2Frun%2Fpostgresql/test"), None);
        }
        for url in ["sqlite:", "sqlite://file.db", "sim:serializable", "exec:./driver"] {
            assert_eq!(place(url), None, "{url}");
        }
    }

    #[test]
    fn an_unknown_scheme_lists_the_known_ones() {
        let url = DbUrl::parse("oracle://x").unwrap();
        let message = open(&url, &Settings::default()).err().unwrap().message;
        assert!(message.starts_with("there is no database \"oracle\": expected sqlite:[PATH]"));
    }
}
