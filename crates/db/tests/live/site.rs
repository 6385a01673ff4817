//! A server to test against.

use std::time::{Duration, Instant};

use isolario_db::{Connection, Database, DbError, DbUrl, ErrorClass, Layout, Settings, open};
use isolario_servers::{Durability, Kind, Servers};
use isolario_workload::{Kind as Workload, Schema};

/// How many milliseconds a statement may take that should succeed: the machine may be very busy.
pub const SLOW: u64 = 30_000;

/// How long something may be tried again that should succeed in the end.
const IN_THE_END: Duration = Duration::from_secs(180);

/// Starts a server in which nothing is going to crash.
pub fn start(kind: Kind) -> Servers {
    Servers::start(kind, Durability::Fast).unwrap_or_else(|error| panic!("{error}"))
}

/// Opens a database at one of its levels; the empty name is the default.
pub fn database(url: &str, isolation: &str) -> Box<dyn Database> {
    patient(url, isolation, SLOW)
}

/// The same with another time-out.
pub fn patient(url: &str, isolation: &str, milliseconds: u64) -> Box<dyn Database> {
    with_tables(url, isolation, milliseconds, None)
}

/// The same with the rows of an application in tables of their own.
pub fn with_tables(
    url: &str,
    isolation: &str,
    milliseconds: u64,
    tables: Option<Schema>,
) -> Box<dyn Database> {
    let settings = Settings {
        isolation: Some(isolation.to_owned()).filter(|name| !name.is_empty()),
        statement_timeout: Duration::from_millis(milliseconds),
        tables,
        ..Settings::default()
    };
    open(&DbUrl::parse(url).unwrap(), &settings).unwrap()
}

/// What a connection failed with.
pub fn refused(database: &dyn Database) -> DbError {
    match database.connect() {
        Err(error) => error,
        Ok(_) => panic!("it connects"),
    }
}

/// Does something as often as the database asks for another attempt, as the runner does too.
pub fn eventually<T>(mut attempt: impl FnMut() -> Result<T, DbError>) -> T {
    let deadline = Instant::now() + IN_THE_END;
    loop {
        match attempt() {
            Err(error) if error.class == ErrorClass::Retryable && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(50));
            }
            done => return done.unwrap(),
        }
    }
}

/// Empty tables.
pub fn prepare(database: &dyn Database, kind: Workload, keys: u32) {
    eventually(|| database.prepare(&Layout::new(kind, keys)));
}

/// Empty tables on all nodes.
pub fn prepare_nodes(nodes: &[Box<dyn Database>], kind: Workload, keys: u32) {
    let layout = Layout::new(kind, keys);
    eventually(|| isolario_db::prepare(nodes, &layout).map_err(|(_, error)| error));
}

/// A new connection.
pub fn connect(database: &dyn Database) -> Box<dyn Connection> {
    eventually(|| database.connect())
}
