//! What PostgreSQL and CockroachDB claim.

use isolario_model::Level::{
    Causal, ParallelSnapshotIsolation, Prefix, ReadCommitted, Serializable, SnapshotIsolation,
};
use isolario_workload::Kind;

use crate::claims::{ClaimRow, EVERY, KEYED, ORDERED, ROWS, row};

/// What a primary and its standbys promise together.
const STANDBY: &str = "a standby replays the log of the primary: its snapshots are prefixes of the \
                       log, which is not the order in which the primary shows commits";

pub(super) const POSTGRES: &[ClaimRow] = &[
    row(
        "postgres",
        "read-committed",
        EVERY,
        &[ReadCommitted],
        "a query sees only data committed before it began",
    ),
    row(
        "postgres",
        "repeatable-read",
        KEYED,
        &[SnapshotIsolation],
        "a transaction reads from one snapshot; updates of rows changed since are refused",
    )
    .on_one_node(),
    row(
        "postgres",
        "repeatable-read",
        ROWS,
        &[Prefix],
        "a transaction reads from one snapshot; an insert in place of a row deleted since is not \
         refused, as an update would be",
    )
    .on_one_node(),
    row("postgres", "repeatable-read", ORDERED, &[ParallelSnapshotIsolation], STANDBY).over_nodes(),
    row("postgres", "repeatable-read", &[Kind::General], &[Causal], STANDBY).over_nodes(),
    row(
        "postgres",
        "serializable",
        EVERY,
        &[Serializable],
        "the effect is that of some serial order; dangerous patterns are refused",
    )
    .on_one_node(),
    row("postgres", "serializable", ORDERED, &[ParallelSnapshotIsolation], STANDBY).over_nodes(),
    row("postgres", "serializable", &[Kind::General], &[Causal], STANDBY).over_nodes(),
];

pub(super) const COCKROACH: &[ClaimRow] = &[
    row(
        "cockroach",
        "read-committed",
        EVERY,
        &[ReadCommitted],
        "statements see what was committed before they began; they retry on conflicts with others",
    ),
    row(
        "cockroach",
        "serializable",
        EVERY,
        &[Serializable],
        "\"CockroachDB uses the SERIALIZABLE isolation level, which is the strongest ANSI transaction \
         isolation level\"",
    ),
];
