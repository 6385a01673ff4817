//! The database's own clock, to which hosts that record one run together compare theirs.

use isolario_model::Value;

use crate::database::Database;
use crate::database::SqlConnection;
use crate::error::DbError;

/// A connection that asks a database for the time.
pub struct ServerClock {
    connection: Box<dyn SqlConnection>,
    question: &'static str,
    /// How many microseconds make one step of what it tells.
    step_us: i64,
}

/// What a clock told: it was not earlier than the first, and earlier than the second, in microseconds
/// since 1970.
pub type ClockBounds = (i64, i64);

impl ServerClock {
    /// The clock of a database; nothing where it has none that we can ask.
    pub fn of(database: &dyn Database) -> Result<Option<ServerClock>, DbError> {
        let Ok(sql) = database.sql() else { return Ok(None) };
        let (question, step_us) = sql.clock();
        let connection = sql.connect_sql()?;
        Ok(Some(ServerClock { connection, question, step_us }))
    }

    /// Asks for the time.
    pub fn now(&mut self) -> Result<ClockBounds, DbError> {
        let answer = self.connection.statement(self.question, true)?;
        match answer.rows.first().and_then(|row| row.first()) {
            // What is rounded may be half a step early or late.
            Some(Value::Int(steps)) => Ok(((steps - 1) * self.step_us, (steps + 1) * self.step_us)),
            other => Err(DbError::fatal(format!("expected a time, found {other:?}"))),
        }
    }
}
