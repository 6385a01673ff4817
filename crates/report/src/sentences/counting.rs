//! Arguments by counting: more transactions overwrote a value than ever wrote it.
//!
//! Such an argument has many cases, one for each way to say who overwrote whose write. A person counts
//! instead: of three that read a value and overwrote it, which was written twice, two overwrote the same
//! version. Where updates must not be lost, that is impossible.

use std::collections::{BTreeMap, BTreeSet};

use isolario_model::{Anomaly, Evidence, Level, Op, OpId, Outcome, TxnId};

use super::observed::last_write;
use crate::involved::involved;
use crate::names::{Names, listed};
use crate::show::KeyVersions;

/// The argument by counting, in a sentence; none where counting does not tell.
pub(super) fn summary(names: Names<'_>, anomaly: &Anomaly) -> Option<String> {
    // Where the argument holds at prefix, too, it is not about lost updates, which are allowed there.
    let (prefix, si) = (Level::Prefix, Level::SnapshotIsolation);
    let takes_cases = matches!(anomaly.evidence, Evidence::Cases { .. });
    if !takes_cases || anomaly.rules_out.contains(prefix) || !anomaly.rules_out.contains(si) {
        return None;
    }
    let history = names.history();
    let reads: Vec<OpId> = updates(names, anomaly);
    let versions = KeyVersions::seen_by(history, reads.iter().copied());
    // By what was read: the same sources are the same value of the same key.
    let mut by_sources: BTreeMap<(bool, Vec<TxnId>), BTreeMap<TxnId, OpId>> = BTreeMap::new();
    for read in reads {
        let sources = versions.sources(read)?;
        let may_count = |txn: &TxnId| history.outcome(*txn) != Outcome::Aborted;
        let writers: BTreeSet<TxnId> =
            sources.writes.iter().map(|op| history.op_txn(*op)).collect();
        let writers = writers.into_iter().filter(may_count).collect();
        let readers = by_sources.entry((sources.initial, writers)).or_default();
        readers.entry(history.op_txn(read)).or_insert(read);
    }
    by_sources.into_iter().find_map(|((initial, writers), readers)| {
        let sources = writers.len() + usize::from(initial);
        let is_told = sources > 1 && readers.len() > sources;
        let value = names.version(*readers.values().next()?);
        is_told.then(|| {
            told(names, &readers.into_keys().collect::<Vec<_>>(), &value, initial, &writers)
        })
    })
}

/// The reads of keys that their transactions went on to write, of those that take part. Who wrote the
/// value that is read is no reader of it.
fn updates(names: Names<'_>, anomaly: &Anomaly) -> Vec<OpId> {
    let history = names.history();
    let ops = involved(history, anomaly).into_iter().flat_map(|part| part.ops);
    let is_update = |op: &OpId| {
        let Op::Read { key, value: Some(_) } = history.op(*op) else { return false };
        let txn = history.op_txn(*op);
        history.outcome(txn) == Outcome::Committed
            && last_write(history, txn, key).is_some_and(|write| write > *op)
    };
    ops.filter(is_update).collect()
}

fn told(
    names: Names<'_>,
    readers: &[TxnId],
    value: &str,
    initial: bool,
    writers: &[TxnId],
) -> String {
    let name = |txn: &TxnId| names.txn(*txn);
    let all = listed(&readers.iter().map(name).collect::<Vec<_>>());
    let who = listed(&writers.iter().map(name).collect::<Vec<_>>());
    let sources = match initial {
        true => format!("only {who} wrote that, besides the initial state"),
        false => format!("only {who} wrote that"),
    };
    format!(
        "{all} all read {value} and then overwrote it, but {sources}: two of them overwrote the \
         same version"
    )
}
