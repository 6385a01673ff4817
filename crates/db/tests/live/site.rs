//! A server to test against.

use std::time::Duration;

use isolario_db::{Connection, Database, DbError, DbUrl, Settings, open};
use isolario_servers::{Durability, Kind, Servers};

/// Starts a server in which nothing is going to crash.
pub fn start(kind: Kind) -> Servers {
    Servers::start(kind, Durability::Fast).unwrap_or_else(|error| panic!("{error}"))
}

/// Opens a database at one of its levels; the empty name is the default.
pub fn database(url: &str, isolation: &str) -> Box<dyn Database> {
    patient(url, isolation, 5000)
}

/// The same with another time-out.
pub fn patient(url: &str, isolation: &str, milliseconds: u64) -> Box<dyn Database> {
    let settings = Settings {
        isolation: Some(isolation.to_owned()).filter(|name| !name.is_empty()),
        statement_timeout: Duration::from_millis(milliseconds),
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

/// A new connection.
pub fn connect(database: &dyn Database) -> Box<dyn Connection> {
    database.connect().unwrap()
}
