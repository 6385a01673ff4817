//! A query that also tells all rows of the table that it asks.
//!
//! Where each statement has a snapshot of its own, a read that goes before a query may meet other rows than the query
//! does. So the two are one statement: the query is joined to a single row that has the names and lists of all rows
//! of the table. A query that finds nothing still gives that row.

use super::{Instrument, Instrumented, Rewrite};
use crate::asked::Asked;

impl Instrument<'_> {
    /// The same statement with all rows of its table, where it is a query of one table that locks nothing.
    pub fn with_all_rows(&self, sql: &str, sent: Instrumented) -> Instrumented {
        let Ok(statement) = self.product.parse(sql) else { return sent };
        let asked = Asked::of(&statement).filter(|asked| !asked.locks);
        let Some(Asked { table, .. }) = asked.filter(|_| sent.refusal.is_none()) else {
            return sent;
        };
        if self.schema.table(&table).is_none() {
            return sent;
        }
        let rewrite = Rewrite { names: *self, element: String::new(), next: 0 };
        let all = self.product.gathering(&rewrite.row_parts(None));
        let sql = format!(
            "SELECT isolario_found.*, isolario_all.isolario_met \
             FROM (SELECT {all} AS isolario_met FROM {table}) AS isolario_all \
             LEFT JOIN (SELECT isolario_asked.*, TRUE AS isolario_there FROM ({}) AS isolario_asked) \
             AS isolario_found ON TRUE",
            sent.sql
        );
        Instrumented { sql, tells_all_rows: true, ..sent }
    }
}
