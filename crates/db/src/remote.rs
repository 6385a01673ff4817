//! What the adapters of databases with data of others share.

/// The comment, or the key, by which we know our own tables again.
pub(crate) const OURS: &str = "made by isolario";

/// What was under way when something went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// No transaction of the workload is open.
    Connect,
    /// A statement of a transaction that is not going to commit by itself.
    Statement,
    /// A commit, or a statement that commits by itself.
    Commit,
}
