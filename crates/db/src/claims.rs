//! What databases claim, by setting and workload: the one table that `--check` defaults to.
//!
//! The book shows the same table; a test compares the two.

use isolario_model::Level::{
    self, AdyaReadCommitted, Causal, CutIsolation, Linearizable, ParallelSnapshotIsolation, Prefix,
    ReadAtomic, ReadCommitted, ReadUncommitted, Serializable, SnapshotIsolation,
    StrictSerializable, StrongSnapshotIsolation,
};
use isolario_workload::Kind;

/// Over how many nodes a claim holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimNodes {
    /// Over any number.
    Any,
    /// Over a single one.
    One,
    /// Over two and more.
    Several,
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ClaimRow {
    /// The database, as [`Database::name`](crate::Database::name) tells it.
    pub database: &'static str,
    /// The isolation setting, by the database's own name.
    pub isolation: &'static str,
    /// The workloads.
    pub workloads: &'static [Kind],
    /// The nodes.
    pub nodes: ClaimNodes,
    /// The strongest levels it promises; none where it promises nothing.
    pub levels: &'static [Level],
    /// Where the promise comes from, in a few words.
    pub source: &'static str,
}

/// What a database claims to give.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The strongest levels it promises; none where it promises nothing.
    pub levels: Vec<Level>,
    /// Where the promise comes from.
    pub source: String,
}

impl Claim {
    /// No promise, and why.
    pub fn none(words: impl Into<String>) -> Claim {
        Claim { levels: Vec::new(), source: words.into() }
    }
}

const REGISTERS: &[Kind] = &[Kind::Mini, Kind::General];
const TRANSACTIONS: &[Kind] = &[Kind::Mini, Kind::General, Kind::Append];
const ROWS_TOO: &[Kind] = &[Kind::Mini, Kind::General, Kind::Append, Kind::Predicate];
const ROWS: &[Kind] = &[Kind::Predicate];
/// Whose histories tell the order of versions.
const ORDERED: &[Kind] = &[Kind::Mini, Kind::Append];
const SINGLE: &[Kind] = &[Kind::Lwt];
const EVERY: &[Kind] = &Kind::ALL;
const KEYED: &[Kind] = &Kind::KEYED;

const fn row(
    database: &'static str,
    isolation: &'static str,
    workloads: &'static [Kind],
    levels: &'static [Level],
    words: &'static str,
) -> ClaimRow {
    ClaimRow { database, isolation, workloads, nodes: ClaimNodes::Any, levels, source: words }
}

/// The promise of a server that knows of no other.
const fn on_one_node(row: ClaimRow) -> ClaimRow {
    ClaimRow { nodes: ClaimNodes::One, ..row }
}

/// What a primary and its standbys promise together.
const STANDBY: &str = "a standby replays the log of the primary: its snapshots are prefixes of the \
                       log, which is not the order in which the primary shows commits";

/// Why updates by range promise little where reads come from a snapshot.
const CURRENT: &str = "reads come from a snapshot, and updates and deletes find the newest rows: a \
                       transaction may see both, one after the other";

/// What is promised where reads may be dirty.
const DIRTY: &str = "reads take no locks and may be dirty; writes lock rows until the end";

/// The promise of several servers together.
const fn over_nodes(row: ClaimRow) -> ClaimRow {
    ClaimRow { nodes: ClaimNodes::Several, ..row }
}

/// Every claim. The first row that fits is the answer.
pub static CLAIMS: &[ClaimRow] = &[
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
    row(
        "postgres",
        "read-committed",
        EVERY,
        &[ReadCommitted],
        "a query sees only data committed before it began",
    ),
    on_one_node(row(
        "postgres",
        "repeatable-read",
        KEYED,
        &[SnapshotIsolation],
        "a transaction reads from one snapshot; updates of rows changed since are refused",
    )),
    on_one_node(row(
        "postgres",
        "repeatable-read",
        ROWS,
        &[Prefix],
        "a transaction reads from one snapshot; an insert in place of a row deleted since is not \
         refused, as an update would be",
    )),
    over_nodes(row("postgres", "repeatable-read", ORDERED, &[ParallelSnapshotIsolation], STANDBY)),
    over_nodes(row("postgres", "repeatable-read", &[Kind::General], &[Causal], STANDBY)),
    on_one_node(row(
        "postgres",
        "serializable",
        EVERY,
        &[Serializable],
        "the effect is that of some serial order; dangerous patterns are refused",
    )),
    over_nodes(row("postgres", "serializable", ORDERED, &[ParallelSnapshotIsolation], STANDBY)),
    over_nodes(row("postgres", "serializable", &[Kind::General], &[Causal], STANDBY)),
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
    on_one_node(row("mysql", "read-uncommitted", EVERY, &[ReadUncommitted], DIRTY)),
    on_one_node(row(
        "mysql",
        "read-committed",
        EVERY,
        &[ReadCommitted],
        "each consistent read, even within the same transaction, has a fresh snapshot of its own",
    )),
    on_one_node(row(
        "mysql",
        "repeatable-read",
        REGISTERS,
        &[CutIsolation, ReadAtomic],
        "consistent reads of one transaction read the snapshot of the first; an update works on \
         the newest row instead",
    )),
    on_one_node(row("mysql", "repeatable-read", ROWS, &[AdyaReadCommitted], CURRENT)),
    on_one_node(row(
        "mysql",
        "serializable",
        EVERY,
        &[Serializable],
        "as repeatable read, and plain reads lock what they read",
    )),
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
    on_one_node(row("galera", "serializable", EVERY, &[Serializable], "as MariaDB, on one node")),
    over_nodes(row(
        "galera",
        "serializable",
        REGISTERS,
        &[CutIsolation, ReadAtomic],
        "serializable is claimed per node only; across nodes the claim is that of repeatable read",
    )),
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
    row(
        "redis",
        "watch",
        ORDERED,
        &[StrictSerializable],
        "EXEC runs all commands at once, if no watched key changed",
    ),
    row("redis", "watch", SINGLE, &[Linearizable], "one thread runs scripts one after the other"),
    // Embedded stores, by their own pages. A list is a value that is read and written back: below
    // snapshot isolation, appends may be lost without a promise being broken.
    //
    // https://github.com/arthurprs/canopydb/blob/master/README.md, and the documentation of
    // WriteTransaction
    row(
        "canopydb",
        "concurrent",
        KEYED,
        &[SnapshotIsolation],
        "\"These transactions provide Snapshot-Isolation (SI)\"",
    ),
    row(
        "canopydb",
        "exclusive",
        KEYED,
        &[Serializable],
        "\"exclusive mode with Serializable-Snapshot-Isolation (SSI)\"",
    ),
    // https://github.com/fjall-rs/fjall/blob/main/README.md
    row(
        "fjall",
        "single-writer",
        KEYED,
        &[Serializable],
        "\"This is trivially serializable because it literally serializes write transactions\"",
    ),
    row(
        "fjall",
        "optimistic",
        KEYED,
        &[Serializable],
        "\"a transactional database for multi-writer, serializable transactions\"",
    ),
    // https://github.com/abbycin/mace/blob/master/README.md
    row(
        "mace",
        "snapshot-isolation",
        KEYED,
        &[SnapshotIsolation],
        "\"Non-blocking concurrent reads and writes with snapshot isolation\"",
    ),
    // https://github.com/gburd/noxu/blob/main/docs/src/transactions/isolation.md
    row("noxu", "read-committed", REGISTERS, &[AdyaReadCommitted], "\"Dirty reads are prevented\""),
    // Locks on the records that were read, and none on what was not found: the manual says so.
    row(
        "noxu",
        "repeatable-read",
        REGISTERS,
        &[AdyaReadCommitted],
        "\"Read and write locks are held until the transaction completes\", of records that exist",
    ),
    row(
        "noxu",
        "serializable",
        KEYED,
        &[Serializable],
        "\"Repeatable read is observed plus no phantom reads\"",
    ),
    // https://docs.rs/persy/latest/persy/struct.Persy.html#method.begin
    row(
        "persy",
        "read-committed",
        REGISTERS,
        &[AdyaReadCommitted],
        "\"The transaction isolation level is 'read_committed'\"",
    ),
    // https://github.com/cberner/redb/blob/master/docs/design.md
    row(
        "redb",
        "serializable",
        KEYED,
        &[Serializable],
        "\"a single isolation level: serializable, in which all writes are applied sequentially\"",
    ),
    // https://docs.rs/slatedb/latest/slatedb/enum.IsolationLevel.html
    row(
        "slatedb",
        "snapshot",
        KEYED,
        &[SnapshotIsolation],
        "\"Snapshot Isolation - only detects write-write conflicts\"",
    ),
    row(
        "slatedb",
        "serializable-snapshot",
        KEYED,
        &[Serializable],
        "\"Serializable Snapshot Isolation - detects both read-write and write-write conflicts\"",
    ),
    // https://stoolap.io/docs/architecture/transaction-isolation
    row(
        "stoolap",
        "read-committed",
        REGISTERS,
        &[AdyaReadCommitted],
        "\"a transaction only sees data that has been committed by other transactions\"",
    ),
    row(
        "stoolap",
        "snapshot",
        KEYED,
        &[SnapshotIsolation],
        "\"All queries within the transaction see the same snapshot of data\", and \"write-write conflict \
         detection to prevent lost updates\"",
    ),
    // https://github.com/surrealdb/surrealkv/blob/main/README.md
    row(
        "surrealkv",
        "snapshot-isolation",
        KEYED,
        &[SnapshotIsolation],
        "\"Snapshot Isolation: Multi-version concurrency control\"",
    ),
    // https://github.com/surrealdb/surrealmx/blob/main/README.md, "Isolation Levels"
    row(
        "surrealmx",
        "read-only",
        KEYED,
        &[StrongSnapshotIsolation],
        "read-only transactions \"observe a completely consistent, linearizable point-in-time cut of \
         the database pinned at transaction creation\"",
    ),
    row(
        "surrealmx",
        "update",
        TRANSACTIONS,
        &[StrictSerializable],
        "update transactions \"execute with Strict Serializable guarantees\"",
    ),
    row(
        "surrealmx",
        "update",
        SINGLE,
        &[Linearizable],
        "update transactions \"execute with Strict Serializable guarantees\"",
    ),
    // https://github.com/tursodatabase/turso, its guide "MVCC"
    row(
        "turso",
        "concurrent",
        KEYED,
        &[SnapshotIsolation],
        "\"multiple row versions, snapshot isolation. Each transaction sees consistent snapshot at begin \
         time\"",
    ),
];

/// The claim of a database, by name and setting.
pub(crate) fn look_up(database: &str, isolation: &str, kind: Kind, nodes: usize) -> Claim {
    let fits = |row: &&ClaimRow| {
        row.database == database
            && row.isolation == isolation
            && row.workloads.contains(&kind)
            && match row.nodes {
                ClaimNodes::Any => true,
                ClaimNodes::One => nodes == 1,
                ClaimNodes::Several => nodes > 1,
            }
    };
    match CLAIMS.iter().find(fits) {
        Some(row) => Claim { levels: row.levels.to_vec(), source: row.source.to_owned() },
        None => Claim::none(format!("{database} claims nothing for {isolation} and {kind}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(database: &str, isolation: &str, kind: Kind, nodes: usize) -> Vec<Level> {
        look_up(database, isolation, kind, nodes).levels
    }

    #[test]
    fn products_of_one_protocol_make_claims_of_their_own() {
        let snapshots = [CutIsolation, ReadAtomic];
        for product in ["mysql", "mariadb", "galera", "tidb"] {
            let mini = |isolation| levels(product, isolation, Kind::Mini, 1);
            let dirty = mini("read-uncommitted");
            assert_eq!(dirty == [ReadUncommitted], product != "tidb", "{product}");
            assert_eq!(mini("read-committed"), [ReadCommitted], "{product}");
            assert_eq!(mini("repeatable-read"), snapshots, "{product}");
            assert!(levels(product, "repeatable-read", Kind::Append, 1).is_empty(), "{product}");
            let on_rows = levels(product, "repeatable-read", Kind::Predicate, 1);
            assert_eq!(on_rows, [AdyaReadCommitted], "{product}");
        }
        for (product, claimed) in
            [("mysql", true), ("mariadb", true), ("galera", true), ("tidb", false)]
        {
            let serializable = levels(product, "serializable", Kind::Append, 1);
            assert_eq!(serializable == [Serializable], claimed, "{product}");
        }
    }

    #[test]
    fn products_with_claims_of_their_own_are_not_postgres() {
        assert_eq!(levels("cockroach", "serializable", Kind::Predicate, 3), [Serializable]);
        assert_eq!(levels("cockroach", "read-committed", Kind::Append, 1), [ReadCommitted]);
        assert!(levels("cockroach", "repeatable-read", Kind::Mini, 1).is_empty());
        assert!(levels("yugabyte", "serializable", Kind::Mini, 1).is_empty());
    }

    #[test]
    fn what_one_server_promises_says_nothing_of_several() {
        assert!(levels("mysql", "serializable", Kind::Mini, 3).is_empty());
        assert_eq!(levels("tidb", "read-committed", Kind::Mini, 3), [ReadCommitted]);
        let over_nodes = levels("galera", "serializable", Kind::Mini, 3);
        assert_eq!(over_nodes, [CutIsolation, ReadAtomic]);
        let with_standby = levels("postgres", "serializable", Kind::Append, 2);
        assert_eq!(with_standby, [ParallelSnapshotIsolation]);
    }

    #[test]
    fn every_setting_in_the_table_is_one_of_its_database() {
        for row in CLAIMS {
            let scheme = match row.database {
                "mariadb" | "galera" => "mysql",
                other => other,
            };
            let driver = crate::DRIVERS.iter().find(|driver| driver.schemes[0] == scheme);
            // Not all of them are always compiled in.
            let known = driver.is_none_or(|driver| driver.isolations.contains(&row.isolation));
            assert!(known, "{} {}", row.database, row.isolation);
            assert!(!row.levels.is_empty() && !row.source.is_empty(), "{}", row.database);
        }
    }
}
