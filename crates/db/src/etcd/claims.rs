//! What etcd claims.

use isolario_model::Level::{Linearizable, ReadCommitted, StrictSerializable};

use crate::claims::{ClaimRow, KEYED, SINGLE, TRANSACTIONS, row};

pub(super) const CLAIMS: &[ClaimRow] = &[
    row(
        "etcd",
        "linearizable-reads",
        TRANSACTIONS,
        &[StrictSerializable],
        "every operation is linearizable, and a transaction is one atomic step",
    ),
    row("etcd", "linearizable-reads", SINGLE, &[Linearizable], "every operation is linearizable"),
    row(
        "etcd",
        "serializable-reads",
        KEYED,
        &[ReadCommitted],
        "serializable reads, as etcd calls them, come from one member and may be stale",
    ),
];
