//! The shadow of a transaction (the Emme paper, Section 5): a second transaction that takes over its
//! snapshot, and reads every row in it.

use super::Line;
use crate::error::DbError;
use crate::remote::Stage;

const EXPORT: &str = "SELECT pg_export_snapshot()";
const ROWS: &str = "SELECT id, v FROM isolario_row";

pub(super) struct Shadow {
    line: Line,
    /// What it saw last.
    pub(super) seen: Option<Vec<(i64, i64)>>,
}

impl Shadow {
    pub(super) fn new(line: Line) -> Result<Shadow, DbError> {
        let settings = "SET default_transaction_isolation = 'repeatable read'; \
             SET default_transaction_read_only = on";
        line.batch(Stage::Connect, settings)?;
        Ok(Shadow { line, seen: None })
    }

    /// Looks at what another connection's transaction sees of others. A snapshot can be taken over as
    /// long as that transaction goes on; what it wrote itself is not part of it.
    pub(super) fn look(&mut self, original: &Line) -> Result<(), DbError> {
        let exported = original.simple(Stage::Statement, EXPORT)?;
        let name = exported
            .first_text()
            .ok_or_else(|| DbError::aborted("the snapshot was exported without a name"))?;
        let seen = self.rows(&name);
        let ended = self.line.batch(Stage::Statement, "ROLLBACK");
        self.seen = Some(seen?);
        ended
    }

    fn rows(&self, name: &str) -> Result<Vec<(i64, i64)>, DbError> {
        let begin = format!("BEGIN; SET TRANSACTION SNAPSHOT '{name}'");
        self.line.batch(Stage::Statement, &begin)?;
        let rows = self.line.ask(Stage::Statement, self.line.client.query(ROWS, &[]))?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
    }
}
