//! SQL as it is written: for whatever tables and statements a workload or a script makes up.

use isolario_model::Value;

use crate::error::DbError;

/// A connection that takes statements as text.
///
/// It knows nothing of transactions: `BEGIN` and `COMMIT` are statements, and what an error leaves
/// behind is the caller's to clean up. An error with the database's own code concerns that statement,
/// whatever its [class](crate::ErrorClass), unless it says that the connection is lost.
pub trait SqlConnection: Send {
    /// Runs one statement. Where it may end a transaction, because it is a commit or stands outside
    /// of any transaction, a lost answer means that nobody knows whether it took effect.
    fn statement(&mut self, sql: &str, ends: bool) -> Result<SqlResult, DbError>;

    /// The server's own number of this connection, by which it shows up in the server's tables of
    /// sessions and locks.
    fn id(&self) -> Option<u64>;
}

/// What came back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SqlResult {
    /// The names of the columns; a server that returns no row need not tell them.
    pub columns: Vec<String>,
    /// The rows, with a value for each column.
    pub rows: Vec<Vec<Value>>,
    /// How many rows the statement changed, or returned where it changes none.
    pub changed: u64,
}

/// A number with a decimal point, as a server prints it.
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) fn decimal(text: &str) -> Value {
    match isolario_model::Decimal::parse(text) {
        Some(decimal) => Value::Decimal(decimal),
        None => Value::Other(text.into()),
    }
}

/// Bytes that are no text.
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
pub(crate) fn hexadecimal(bytes: &[u8]) -> Value {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Value::Other(format!("x'{digits}'").into())
}
