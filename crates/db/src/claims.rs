//! What databases claim, by setting and workload: the table that `--check` defaults to.
//!
//! Each [driver](crate::Driver) has its rows. The book shows the same table; a test compares the two.

use isolario_model::Level;
use isolario_workload::Kind;

use crate::registry::drivers;

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

/// Workloads on registers.
pub const REGISTERS: &[Kind] = &[Kind::Mini, Kind::General];
/// Transactions on registers and lists.
pub const TRANSACTIONS: &[Kind] = &[Kind::Mini, Kind::General, Kind::Append];
/// Transactions on registers, lists and rows.
pub const ROWS_TOO: &[Kind] = &[Kind::Mini, Kind::General, Kind::Append, Kind::Predicate];
/// Transactions on rows.
pub const ROWS: &[Kind] = &[Kind::Predicate];
/// Those whose histories tell the order of versions.
pub const ORDERED: &[Kind] = &[Kind::Mini, Kind::Append];
/// Single operations.
pub const SINGLE: &[Kind] = &[Kind::Lwt];
/// All workloads.
pub const EVERY: &[Kind] = &Kind::ALL;
/// All but those on rows.
pub const KEYED: &[Kind] = &Kind::KEYED;

/// The promise of a database over any number of nodes.
pub const fn row(
    database: &'static str,
    isolation: &'static str,
    workloads: &'static [Kind],
    levels: &'static [Level],
    source: &'static str,
) -> ClaimRow {
    ClaimRow { database, isolation, workloads, nodes: ClaimNodes::Any, levels, source }
}

impl ClaimRow {
    /// The promise of a single server, which knows of no other.
    #[must_use]
    pub const fn on_one_node(self) -> ClaimRow {
        ClaimRow { nodes: ClaimNodes::One, ..self }
    }

    /// The promise of several servers together.
    #[must_use]
    pub const fn over_nodes(self) -> ClaimRow {
        ClaimRow { nodes: ClaimNodes::Several, ..self }
    }
}

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
    match drivers().flat_map(|driver| driver.claims).find(fits) {
        Some(row) => Claim { levels: row.levels.to_vec(), source: row.source.to_owned() },
        None => Claim::none(format!("{database} claims nothing for {isolation} and {kind}")),
    }
}

#[cfg(test)]
#[cfg(all(feature = "mysql", feature = "postgres"))]
mod tests {
    use isolario_model::Level::{
        AdyaReadCommitted, CutIsolation, ParallelSnapshotIsolation, ReadAtomic, ReadCommitted,
        ReadUncommitted, Serializable,
    };

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
        for driver in crate::DRIVERS {
            for row in driver.claims {
                let is_known = driver.isolations.contains(&row.isolation);
                assert!(is_known, "{} {}", row.database, row.isolation);
                assert!(!row.levels.is_empty() && !row.source.is_empty(), "{}", row.database);
            }
        }
    }
}
