//! Which statements of a round an anomaly is about.

use std::collections::BTreeSet;

use isolario_model::{Anomaly, History, TxnId, ValueRef};
use isolario_report::involved;
use isolario_sql::{Element, OldVersion, Recorded, RecordedTxn, Round};

/// What of a round an anomaly takes, most likely: whether it really shows without the rest, a replay tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Trace {
    /// Its transactions.
    pub(super) txns: Vec<u32>,
    /// The statements that read or wrote what its argument names.
    pub(super) statements: Vec<Element>,
    /// Those that had written the same rows before.
    pub(super) before: Vec<Element>,
}

impl Trace {
    /// The trace of an anomaly in the history of a round.
    pub(super) fn of(anomaly: &Anomaly, history: &History, round: &Round) -> Trace {
        let (mut txns, mut statements) = (BTreeSet::new(), BTreeSet::new());
        for involved in involved(history, anomaly) {
            let is_ours = |txn: &&RecordedTxn| !txn.is_final;
            let txn = number_of(history, involved.txn).and_then(|id| round.txn(id));
            let Some(txn) = txn.filter(is_ours) else { continue };
            txns.insert(txn.id);
            // A statement that was sent twice counts twice: operations know its words only.
            for sql in involved.ops.iter().filter_map(|op| history.op_sql(*op)) {
                let sent = txn.statements.iter().filter(|statement| statement.sql == sql);
                statements.extend(sent.map(|statement| element(txn, statement)));
            }
        }
        Trace::from(txns, statements, round)
    }

    /// The trace of a read of an old version.
    pub(super) fn of_old_version(old: OldVersion, round: &Round) -> Trace {
        let statements = BTreeSet::from([old.read, old.own, old.between]);
        Trace::from(statements.iter().map(|statement| statement.txn).collect(), statements, round)
    }

    fn from(txns: BTreeSet<u32>, statements: BTreeSet<Element>, round: &Round) -> Trace {
        let before = before(round, &statements);
        let (txns, statements) = (txns.into_iter().collect(), statements.into_iter().collect());
        Trace { txns, statements, before }
    }
}

/// The number of a transaction in its round; what it rolled back is a transaction of its own in the history.
fn number_of(history: &History, txn: TxnId) -> Option<u32> {
    match history.txn_name(txn)? {
        ValueRef::Int(id) => u32::try_from(id).ok(),
        ValueRef::Text(name) => name.split(' ').next()?.parse().ok(),
        _ => None,
    }
}

fn element(txn: &RecordedTxn, statement: &Recorded) -> Element {
    Element { txn: txn.id, statement: statement.number }
}

/// Who wrote what some statements met or overwrote, as far as anybody saw it.
fn before(round: &Round, statements: &BTreeSet<Element>) -> Vec<Element> {
    let mut before = BTreeSet::new();
    for txn in &round.transactions {
        for statement in &txn.statements {
            let is_meant = statements.contains(&element(txn, statement));
            for seen in statement.reads.iter().chain(&statement.deleted) {
                let met = match is_meant {
                    true => seen.list.len(),
                    false => {
                        let last = seen.list.iter().rposition(|other| statements.contains(other));
                        last.unwrap_or(0)
                    }
                };
                before.extend(&seen.list[..met]);
            }
        }
    }
    let is_known = |element: &&Element| round.txn(element.txn).is_some();
    before.difference(statements).filter(is_known).copied().collect()
}
