//! Dense ids: an id is a position in the columns of one [`History`](crate::History).

macro_rules! dense_id {
    ($(#[$doc:meta])* $name:ident, $letter:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// The id as an index into a column.
            #[inline]
            pub const fn index(self) -> usize {
                self.0 as usize
            }

            /// The id at an index. Histories are refused before an index can pass 32 bits.
            #[inline]
            pub const fn at(index: usize) -> Self {
                debug_assert!(index <= u32::MAX as usize);
                Self(index as u32)
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!($letter, "{}"), self.0)
            }
        }
    };
}

dense_id! {
    /// A session: one client's sequence of transactions.
    SessionId, "s"
}
dense_id! {
    /// A transaction. Ids follow session order: the transactions of a session are contiguous.
    TxnId, "t"
}
dense_id! {
    /// An operation. Ids follow program order: the operations of a transaction are contiguous.
    OpId, "o"
}
dense_id! {
    /// A key.
    KeyId, "k"
}
dense_id! {
    /// A predicate. Equal predicates have one id.
    PredicateId, "p"
}
dense_id! {
    /// The identity of a version where the format names it apart from its value.
    VersionId, "v"
}

impl TxnId {
    /// The transaction that wrote the initial state. It precedes every other one and is stored
    /// nowhere: it has no session, no operations and no times.
    pub const INIT: TxnId = TxnId(u32::MAX);

    /// Whether this is [`TxnId::INIT`].
    #[inline]
    pub const fn is_init(self) -> bool {
        self.0 == u32::MAX
    }
}

impl KeyId {
    /// The place of the key in operations that have none (predicate operations).
    pub const NONE: KeyId = KeyId(u32::MAX);
}

impl VersionId {
    /// Operations without a version of their own.
    pub const NONE: VersionId = VersionId(u32::MAX);
}
