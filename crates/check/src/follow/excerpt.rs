//! A part of a history that proves something, and where it is in the whole.

use std::sync::Arc;

use isolario_model::{Findings, History, LevelResult, OpId, TxnId, Verdict};
use rustc_hash::FxHashMap;

use crate::minimal::Whole;

/// Where the transactions and operations of a part are in the whole.
#[derive(Clone, Debug, Default)]
pub struct PartPositions {
    /// By transaction, its place among all, session by session.
    pub txns: Vec<u64>,
    /// By operation, its place in its transaction: some may have been left out.
    pub ops: Vec<u32>,
    /// By transaction, its place in its session.
    pub(super) in_session: Vec<u64>,
}

impl PartPositions {
    /// Adds a transaction; says what it goes by if it has no name.
    pub(super) fn add_txn(&mut self, position: u64, in_session: u64) -> String {
        self.txns.push(position);
        self.in_session.push(in_session);
        format!("#{position}")
    }

    /// What is said of a part, told of a larger one that has all of it; none if it cannot be told so.
    pub fn result_in_larger(
        &self,
        part: &History,
        result: &LevelResult,
        (larger, places): (&History, &PartPositions),
    ) -> Option<LevelResult> {
        let there: FxHashMap<(u64, u32), OpId> =
            larger.txns().flat_map(|txn| places.named_ops(larger, txn)).collect();
        let mine = part.txns().flat_map(|txn| self.named_ops(part, txn));
        let ops: Option<Vec<OpId>> = mine.map(|(name, _)| there.get(&name).copied()).collect();
        let whole = Whole { history: larger, part, ops: &ops? };
        let verdict = match &result.verdict {
            Verdict::Violated(Findings { anomalies, total, .. }) => {
                let anomalies = anomalies.iter().map(|one| one.map(&whole).map(Arc::new));
                let anomalies = anomalies.collect::<Result<_, _>>().ok()?;
                Verdict::Violated(Findings { anomalies, total: *total, exact: false })
            }
            Verdict::NotApplicable(reason) => {
                Verdict::NotApplicable(reason.clone().map(&whole).ok()?)
            }
            verdict => verdict.clone(),
        };
        Some(LevelResult { verdict, ..*result })
    }

    /// The operations of a transaction by their places in the whole.
    fn named_ops<'p>(
        &'p self,
        part: &'p History,
        txn: TxnId,
    ) -> impl Iterator<Item = ((u64, u32), OpId)> + 'p {
        let name = move |op: OpId| ((self.txns[txn.index()], self.ops[op.index()]), op);
        part.txn_ops(txn).map(name)
    }
}
