//! What SQLite claims.

use isolario_model::Level::{Linearizable, StrictSerializable};

use crate::claims::{ClaimRow, ROWS_TOO, SINGLE, row};

pub(super) const CLAIMS: &[ClaimRow] = &[
    row(
        "sqlite",
        "serializable",
        ROWS_TOO,
        &[StrictSerializable],
        "transactions are serializable, one writer at a time; readers see the last commit",
    ),
    row(
        "sqlite",
        "serializable",
        SINGLE,
        &[Linearizable],
        "a statement is a transaction of its own",
    ),
];
