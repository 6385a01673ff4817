//! What a database reports about its own state while a transaction runs.

/// What the database told about itself while a transaction ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateReport {
    /// The transaction, by its name.
    pub name: i64,
    /// The operation, as it is numbered in the history; none for the transaction as a whole.
    pub op: Option<usize>,
    /// The state that it saw, in the database's own words.
    pub snapshot: Option<String>,
    /// The database's own number of the transaction.
    pub txn: Option<u64>,
    /// The version that rows were marked with before they were deleted.
    pub mark: Option<i64>,
    /// The rows that a second transaction saw in the snapshot, each with its version.
    pub shadow: Option<Vec<(i64, i64)>>,
}

impl StateReport {
    /// A report that states nothing yet.
    pub fn of(name: i64, op: Option<usize>) -> StateReport {
        StateReport { name, op, snapshot: None, txn: None, mark: None, shadow: None }
    }
}
