//! The words that mean something, each in its place only: a key may be called `r`.

/// What a line may begin with that is not a transaction.
pub(super) const DIRECTIVES: &[&str] = &["initial", "clock", "session"];

/// What may stand between the name of a transaction and its colon.
pub(super) const FACTS: &[&str] = &["committed", "aborted", "unknown", "db", "snapshot", "error"];

/// What an operation begins with.
pub(super) const OPERATIONS: &[&str] =
    &["r", "w", "delete", "append", "insert", "cas", "select", "update", "aggregate"];

/// How a conditional write ended.
pub(super) const RESULTS: &[&str] = &["ok", "failed"];

/// Texts that need quotes although they look like names: somewhere they mean something else.
pub(super) const RESERVED: &[&str] =
    &["nil", "null", "true", "false", "_", "initial", "clock", "session"];
