//! What MariaDB, MySQL, Galera and TiDB claim.

use isolario_model::Level::{
    AdyaReadCommitted, CutIsolation, ReadAtomic, ReadCommitted, ReadUncommitted, Serializable,
    SnapshotIsolation,
};

use crate::claims::{ClaimRow, EVERY, KEYED, REGISTERS, ROWS, row};

/// Why updates by range promise little where reads come from a snapshot.
const CURRENT: &str = "reads come from a snapshot, and updates and deletes find the newest rows: a \
                       transaction may see both, one after the other";

/// What is promised where reads may be dirty.
const DIRTY: &str = "reads take no locks and may be dirty; writes lock rows until the end";

pub(super) const MYSQL: &[ClaimRow] = &[
    row("mariadb", "read-uncommitted", EVERY, &[ReadUncommitted], DIRTY),
    row("mariadb", "read-committed", EVERY, &[ReadCommitted], "each read gets its own snapshot"),
    row(
        "mariadb",
        "repeatable-read",
        REGISTERS,
        &[CutIsolation, ReadAtomic],
        "consistent reads of one transaction use one snapshot; nothing is said of updates",
    ),
    row("mariadb", "repeatable-read", ROWS, &[AdyaReadCommitted], CURRENT),
    row(
        "mariadb",
        "innodb-snapshot-isolation",
        KEYED,
        &[SnapshotIsolation],
        "repeatable read with innodb_snapshot_isolation=ON: an update of a row that changed since \
         the snapshot fails",
    ),
    row(
        "mariadb",
        "serializable",
        EVERY,
        &[Serializable],
        "reads lock what they read, so that nothing they saw changes before the end",
    ),
    row("mysql", "read-uncommitted", EVERY, &[ReadUncommitted], DIRTY).on_one_node(),
    row(
        "mysql",
        "read-committed",
        EVERY,
        &[ReadCommitted],
        "each consistent read, even within the same transaction, has a fresh snapshot of its own",
    )
    .on_one_node(),
    row(
        "mysql",
        "repeatable-read",
        REGISTERS,
        &[CutIsolation, ReadAtomic],
        "consistent reads of one transaction read the snapshot of the first; an update works on \
         the newest row instead",
    )
    .on_one_node(),
    row("mysql", "repeatable-read", ROWS, &[AdyaReadCommitted], CURRENT).on_one_node(),
    row(
        "mysql",
        "serializable",
        EVERY,
        &[Serializable],
        "as repeatable read, and plain reads lock what they read",
    )
    .on_one_node(),
    row("galera", "read-uncommitted", EVERY, &[ReadUncommitted], "as MariaDB"),
    row("galera", "read-committed", EVERY, &[ReadCommitted], "as MariaDB"),
    row(
        "galera",
        "repeatable-read",
        REGISTERS,
        &[CutIsolation, ReadAtomic],
        "as MariaDB: consistent reads of one transaction use one snapshot",
    ),
    row("galera", "repeatable-read", ROWS, &[AdyaReadCommitted], CURRENT),
    row("galera", "serializable", EVERY, &[Serializable], "as MariaDB, on one node").on_one_node(),
    row(
        "galera",
        "serializable",
        REGISTERS,
        &[CutIsolation, ReadAtomic],
        "serializable is claimed per node only; across nodes the claim is that of repeatable read",
    )
    .over_nodes(),
];

pub(super) const TIDB: &[ClaimRow] = &[
    row(
        "tidb",
        "read-committed",
        EVERY,
        &[ReadCommitted],
        "a read sees what is committed; in optimistic transactions it is repeatable read",
    ),
    row(
        "tidb",
        "repeatable-read",
        REGISTERS,
        &[CutIsolation, ReadAtomic],
        "snapshot isolation; but in pessimistic transactions, the default, an update works on the \
         newest row",
    ),
    row("tidb", "repeatable-read", ROWS, &[AdyaReadCommitted], CURRENT),
];
