//! What Redis claims.

use isolario_model::Level::{Linearizable, StrictSerializable};

use crate::claims::{ClaimRow, ORDERED, SINGLE, row};

pub(super) const CLAIMS: &[ClaimRow] = &[
    row(
        "redis",
        "watch",
        ORDERED,
        &[StrictSerializable],
        "EXEC runs all commands at once, if no watched key changed",
    ),
    row("redis", "watch", SINGLE, &[Linearizable], "one thread runs scripts one after the other"),
];
