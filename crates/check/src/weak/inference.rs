//! What the rule of a level infers.

use isolario_model::{KeyId, OpId, TxnId};

/// How a writer is visible to a reader that read the key from somebody else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Visibility {
    /// The reader read something else from it before.
    EarlierRead(OpId),
    /// The reader read something else from it, but later.
    LaterRead(OpId),
    /// It came before the reader in the session.
    Session,
    /// The reader depends on it by a longer way.
    Causal,
}

/// One application of a level's rule: `before` was committed before `after`, since `reader` read
/// `after`'s version of a key although `before`, which wrote it too, was visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Inference {
    pub(crate) before: TxnId,
    pub(crate) after: TxnId,
    pub(crate) reader: TxnId,
    pub(crate) key: KeyId,
    /// The read of the key from `after`.
    pub(crate) read: OpId,
    pub(crate) visible: Visibility,
}
