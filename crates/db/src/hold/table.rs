//! The mark in a table of its own, for everything that speaks SQL.

use isolario_model::Value;

use crate::error::DbError;
use crate::sql::SqlConnection;

const TABLE: &str = "isolario_run";
const CREATE: &str =
    "CREATE TABLE IF NOT EXISTS isolario_run (k INTEGER PRIMARY KEY, mark VARCHAR(250) NOT NULL)";

/// Reads the mark; nothing where there is no table.
pub(crate) fn read(connection: &mut dyn SqlConnection) -> Result<Option<String>, DbError> {
    match connection.statement("SELECT mark FROM isolario_run", true) {
        Ok(answer) => Ok(answer.rows.into_iter().flatten().find_map(|value| match value {
            Value::Text(text) => Some(text.to_string()),
            _ => None,
        })),
        Err(error) if is_missing(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Replaces the mark. Marks have no quotes in them.
pub(crate) fn replace(
    connection: &mut dyn SqlConnection,
    old: Option<&str>,
    new: Option<&str>,
) -> Result<bool, DbError> {
    let changed = match (old, new) {
        (None, None) => Ok(()),
        // Of two that create the table, one may be refused.
        (None, Some(new)) => {
            let created = change(connection, CREATE);
            let inserted = change(connection, &format!("INSERT INTO {TABLE} VALUES (1, '{new}')"));
            if inserted.as_ref().is_err_and(is_missing) { created } else { inserted }
        }
        (Some(old), Some(new)) => {
            change(connection, &format!("UPDATE {TABLE} SET mark = '{new}' WHERE mark = '{old}'"))
        }
        (Some(old), None) => {
            // The mark goes with its table in one step. No other run replaces it while it is renewed.
            if read(connection)?.as_deref() != Some(old) {
                return Ok(false);
            }
            return change(connection, &format!("DROP TABLE {TABLE}")).map(|()| true);
        }
    };
    if let Err(error) = &changed
        && (error.disconnected || error.code.is_none())
    {
        return changed.map(|()| false);
    }
    // An insert next to another mark is refused, and so is an update where no table is.
    match (read(connection)?, changed) {
        (Some(found), _) => Ok(Some(found.as_str()) == new),
        (None, Err(error)) if !is_missing(&error) => Err(error),
        (None, _) => Ok(false),
    }
}

fn change(connection: &mut dyn SqlConnection, sql: &str) -> Result<(), DbError> {
    connection.statement(sql, true).map(drop)
}

/// Whether an error says that there is no table.
fn is_missing(error: &DbError) -> bool {
    let is_absent = ["exist", "no such table"].iter().any(|words| error.message.contains(words));
    error.code.is_some() && !error.disconnected && error.message.contains(TABLE) && is_absent
}
