//! Operations on a table: what an adapter answers, and what every adapter of an SQL database shares.

use isolario_workload::RowValues;

/// The table of a run. Its rows have a key `id`, two columns `a` and `b` that ranges are about, and
/// `v`, the version: which transaction wrote it, by which operation. A column `w` keeps the version
/// that was replaced.
pub const TABLE: &str = "isolario_row";

/// What an operation on a table found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableResult {
    /// The rows: those that were read, as they were; those that were written, as they are from now
    /// on; those that were deleted, without anything. An update of a row that is not there has
    /// none, and neither has an insert, which always writes its row.
    pub rows: Vec<(u32, Option<RowValues>)>,
    /// The value of a function. The rows are then those that it was taken over.
    pub value: Option<i64>,
    /// What the database says of the state that the operation saw, in its own words; only where
    /// [evidence](crate::Settings::evidence) is asked for.
    pub snapshot: Option<String>,
    /// The version that rows were marked with before they were deleted: the database's log has it, and
    /// nobody ever sees it.
    pub mark: Option<i64>,
    /// The database's own number of the transaction; only where evidence is asked for, and often
    /// only once the transaction has written.
    pub txn: Option<u64>,
}

impl TableResult {
    /// Forgets everything.
    pub fn clear(&mut self) {
        self.rows.clear();
        (self.value, self.snapshot, self.mark, self.txn) = (None, None, None, None);
    }
}
