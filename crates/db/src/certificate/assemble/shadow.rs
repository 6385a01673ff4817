//! What snapshots stand for, held against what was seen in them.

use std::collections::{BTreeMap, BTreeSet};

use isolario_model::{Stamp, TxnId};

use super::{Certificate, Clients, CommitLog, LogMismatch, words};
use crate::StateReport;

/// The versions of each row, with the moments of their commits, in their order; a deletion is none.
type Versions = BTreeMap<i64, Vec<(Stamp, Option<i64>)>>;

/// Compares the rows that shadows saw with the versions that the snapshots of their transactions show.
/// Tells how many there were.
pub(super) fn agree(
    clients: &Clients<'_>,
    log: &CommitLog,
    owners: &[TxnId],
    certificate: &Certificate,
    sightings: &[StateReport],
) -> Result<usize, LogMismatch> {
    let mut count = 0;
    let mut versions = None;
    for sighting in sightings {
        let Some(seen) = &sighting.shadow else { continue };
        let Some(txn) = clients.names.get(&sighting.name) else { continue };
        let Some(start) = certificate.starts[txn.index()] else { continue };
        let versions = versions.get_or_insert_with(|| in_order(log, owners, certificate));
        let seen: BTreeMap<i64, i64> = seen.iter().copied().collect();
        let rows: BTreeSet<i64> = versions.keys().chain(seen.keys()).copied().collect();
        for row in rows {
            let shown = versions.get(&row).and_then(|of_row| at(of_row, start));
            let seen = seen.get(&row).copied();
            if seen != shown {
                let [seen, shown] = [seen, shown].map(|version| words(version, "nothing"));
                return Err(LogMismatch::Shadow { txn: clients.label(*txn), row, seen, shown });
            }
        }
        count += 1;
    }
    Ok(count)
}

fn in_order(log: &CommitLog, owners: &[TxnId], certificate: &Certificate) -> Versions {
    let mut versions = Versions::new();
    for (commit, txn) in log.commits.iter().zip(owners) {
        let Some(at) = certificate.commits[txn.index()] else { continue };
        let left: BTreeMap<i64, Option<i64>> =
            commit.changes.iter().map(|change| (change.row, change.after)).collect();
        for (row, version) in left {
            versions.entry(row).or_default().push((at, version));
        }
    }
    versions.values_mut().for_each(|of_row| of_row.sort_unstable());
    versions
}

/// The version that is there at a moment.
fn at(of_row: &[(Stamp, Option<i64>)], moment: Stamp) -> Option<i64> {
    let before = of_row.partition_point(|(at, _)| *at <= moment);
    before.checked_sub(1).and_then(|last| of_row[last].1)
}
