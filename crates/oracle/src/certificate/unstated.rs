//! Operations of which the certificate does not say what they met: all versions of all rows are tried
//! that give their results.

use isolario_model::{KeyId, Op, OpId, StatedSet, TxnId, VersionSet};

use super::{Own, World};

impl World<'_> {
    /// The operations with a result of which it is not stated what they met.
    pub(super) fn unstated(&self) -> Vec<(TxnId, OpId)> {
        let is_stated = |op: OpId| self.sets.iter().any(|set| set.op == op);
        let has_result = |op: OpId| {
            matches!(
                self.history.op(op),
                Op::PredicateRead { rows: Some(_), .. }
                    | Op::PredicateWrite { rows: Some(_), .. }
                    | Op::Aggregate { result: Some(_), .. }
            )
        };
        let ops = self.kept.iter().flat_map(|txn| self.history.txn_ops(*txn).map(|op| (*txn, op)));
        ops.filter(|(_, op)| has_result(*op) && !is_stated(*op)).collect()
    }

    /// Whether some versions that these operations may have met leave no forbidden cycle.
    pub(super) fn some_sets(&mut self, unstated: &[(TxnId, OpId)]) -> bool {
        let Some(((txn, op), others)) = unstated.split_first() else { return self.holds() };
        let mut sets: Vec<Vec<(KeyId, TxnId)>> = vec![Vec::new()];
        for key in self.keys() {
            let chain = &self.chains[key.index()];
            let writers =
                || chain.iter().map(|version| version.writer).filter(|w| *w != Some(*txn));
            let with = |set: &Vec<(KeyId, TxnId)>, writer: Option<TxnId>| {
                set.iter().copied().chain(writer.map(|writer| (key, writer))).collect()
            };
            sets = { sets.iter() }
                .flat_map(|set| writers().map(move |writer| with(set, writer)))
                .collect();
        }
        sets.into_iter().any(|writers| {
            self.sets.push(StatedSet { op: *op, versions: VersionSet::Writers(writers), at: 0 });
            let holds = self.explains(*txn, *op) && self.some_sets(others);
            self.sets.pop();
            holds
        })
    }

    /// Whether what an operation met gives its result, as far as that counts.
    fn explains(&self, txn: TxnId, op: OpId) -> bool {
        let mut own = Own::new();
        let earlier = self.history.txn_ops(txn).take_while(|earlier| *earlier < op);
        earlier.for_each(|earlier| self.apply(earlier, &mut own));
        self.allows_dirty_reads() || self.result(txn, op, &own).is_ok()
    }
}
