//! Each anomaly once, however many levels it violates.
//!
//! Levels are decided one by one, and most of what violates a weak level violates the stronger ones
//! as well. Whoever reads the results wants to hear of it once. So equal anomalies of several levels
//! become one, which knows all the levels that it was found to violate.

use std::sync::Arc;

use isolario_model::{
    Anomaly, AnomalyKind, Evidence, History, Level, LevelResult, Outcome, Reason, Verdict,
};
use rustc_hash::FxHashMap;

/// Makes results share their anomalies.
pub(crate) fn share(history: &History, results: &mut [LevelResult]) {
    let is_sure = history.txns().all(|txn| history.outcome(txn) != Outcome::Unknown);
    // What a weaker level's rule orders, those of stronger levels order, too; the other way round
    // it need not be so. Of anomalies that differ in the rule alone, the weakest one serves all.
    let mut weakest_first: Vec<&mut LevelResult> = results.iter_mut().collect();
    weakest_first.sort_by_key(|result| result.level);
    let mut pool = Pool::default();
    let mut members: Vec<Vec<usize>> = Vec::with_capacity(weakest_first.len());
    for result in &mut weakest_first {
        let level = result.level;
        let anomalies = match &mut result.verdict {
            Verdict::Violated(findings) => std::mem::take(&mut findings.anomalies),
            _ => Vec::new(),
        };
        let add = |anomaly: Arc<Anomaly>| {
            let anomaly = Arc::unwrap_or_clone(anomaly);
            pool.add(if is_sure { anomaly } else { unsure(anomaly) }.at(level))
        };
        members.push(anomalies.into_iter().map(add).collect());
    }
    let shared: Vec<Arc<Anomaly>> = pool.anomalies.into_iter().map(Arc::new).collect();
    for (result, members) in weakest_first.into_iter().zip(members) {
        if let Verdict::Violated(findings) = &mut result.verdict {
            findings.anomalies = members.into_iter().map(|at| Arc::clone(&shared[at])).collect();
        }
    }
}

/// What an anomaly rules out if a transaction of unknown outcome may be part of it: not read
/// uncommitted by itself, where such a transaction may have aborted, even if somebody read from it.
fn unsure(anomaly: Anomaly) -> Anomaly {
    let allows_dirty_reads =
        |level: &Level| matches!(level, Level::ReadUncommitted | Level::StrongReadUncommitted);
    let rules_out = anomaly.rules_out.iter().filter(|level| !allows_dirty_reads(level)).collect();
    let mut unsure = anomaly;
    unsure.rules_out = rules_out;
    unsure
}

/// Anomalies that differ from each other.
#[derive(Default)]
struct Pool {
    anomalies: Vec<Anomaly>,
    /// Their positions. A history may hold many thousands, too many to compare each with each.
    positions: FxHashMap<(AnomalyKind, Evidence), usize>,
}

impl Pool {
    /// The position of an anomaly, which is added if it is new.
    fn add(&mut self, anomaly: Anomaly) -> usize {
        let position =
            *self.positions.entry(without_rules(&anomaly)).or_insert(self.anomalies.len());
        match self.anomalies.get_mut(position) {
            Some(known) => known.rules_out = known.rules_out.union(anomaly.rules_out),
            None => self.anomalies.push(anomaly),
        }
        position
    }
}

/// The kind and evidence of an anomaly, without the level whose rule found it and the path by which that rule
/// has a writer visible.
fn without_rules(anomaly: &Anomaly) -> (AnomalyKind, Evidence) {
    let mut evidence = anomaly.evidence.clone();
    if let Evidence::Cycle { edges } = &mut evidence {
        for edge in edges {
            if let Reason::Visible { rule, path, .. } = &mut edge.reason {
                *rule = Level::ReadCommitted;
                path.clear();
            }
        }
    }
    (anomaly.kind, evidence)
}

#[cfg(test)]
mod tests {
    use isolario_model::{Attempt, Batch, Edge, Findings, KeyId, OpId, TxnId};

    use super::*;

    fn bad_read(read: u32) -> Anomaly {
        let evidence = Evidence::Read { read: OpId(read), saw: None, instead: None };
        Anomaly::new(AnomalyKind::ThinAirRead, evidence)
    }

    fn violated(level: Level, anomalies: Vec<Anomaly>) -> LevelResult {
        let verdict = Verdict::Violated(Findings::new(anomalies, true));
        LevelResult { level, decided_by: Attempt::Rule, verdict }
    }

    #[test]
    fn what_several_levels_find_is_one_anomaly_whatever_their_order() {
        let mut results = [
            violated(Level::Causal, vec![bad_read(2), bad_read(3), bad_read(1)]),
            violated(Level::ReadCommitted, vec![bad_read(1), bad_read(2)]),
        ];
        share(&Batch::new().build().unwrap(), &mut results);
        let [causal, committed] = &results;
        let (causal, committed) = (causal.verdict.anomalies(), committed.verdict.anomalies());
        assert_eq!((causal.len(), committed.len()), (3, 2));
        assert!(Arc::ptr_eq(&causal[2], &committed[0]) && Arc::ptr_eq(&causal[0], &committed[1]));
        assert_eq!(*causal[1], bad_read(3));
    }

    /// A fractured read, as the rule of a level sees it.
    fn by_rule(rule: Level) -> Anomaly {
        let edge = |from, to, reason| Edge { from: TxnId(from), to: TxnId(to), reason };
        let path = vec![edge(1, 2, Reason::Session)];
        let (key, reader, read) = (KeyId(0), TxnId(2), OpId(3));
        let reason = Reason::Visible { rule, key, reader, read, path };
        let edges = vec![edge(0, 1, Reason::Session), edge(1, 0, reason)];
        Anomaly::new(AnomalyKind::FracturedReadCo, Evidence::Cycle { edges })
    }

    #[test]
    fn what_stronger_rules_find_again_is_told_by_the_weakest_rule() {
        let mut results =
            [Level::Causal, Level::ReadAtomic].map(|level| violated(level, vec![by_rule(level)]));
        share(&Batch::new().build().unwrap(), &mut results);
        for result in &results {
            assert_eq!(
                *result.verdict.anomalies()[0],
                by_rule(Level::ReadAtomic).at(Level::Causal)
            );
        }
    }

    #[test]
    fn an_anomaly_without_a_claim_of_its_own_rules_out_where_it_was_found() {
        let cases = Evidence::Cases { cycles: Vec::new() };
        let anomaly = Anomaly::new(AnomalyKind::NoOrderPossible, cases);
        let mut results = [violated(Level::SnapshotIsolation, vec![anomaly])];
        share(&Batch::new().build().unwrap(), &mut results);
        let rules_out = results[0].verdict.anomalies()[0].rules_out;
        assert!(rules_out.weakest().iter().eq([Level::SnapshotIsolation]));
        assert!(rules_out.contains(Level::StrictSerializable));
        assert!(!rules_out.contains(Level::Prefix));
    }
}
