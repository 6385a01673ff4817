//! Orders of versions that the database or the user states.

use crate::{KeyId, TxnId};

/// Versions of one key in the order in which they were written, as far as it is stated: neighbours
/// are not necessarily successive versions, and any may be missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatedOrder {
    /// The key.
    pub key: KeyId,
    /// Who wrote the versions, earlier ones first. Those that did not commit do not count.
    pub writers: Vec<TxnId>,
    /// The line or position of the statement.
    pub at: u64,
}
