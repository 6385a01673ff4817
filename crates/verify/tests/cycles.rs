//! Every cycle of every edge that a small history seems to show: where the verifier accepts one, the
//! oracle must find the level violated.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use isolario_model::{
    Anomaly, AnomalyKind, Checker, Edge, EdgeKind, Evidence, Findings, History, KeyId, Level,
    LevelResult, OpId, OpKind, Outcome, Reason, TxnId, Verdict, VersionOrder,
};
use isolario_oracle::random::Case;
use isolario_oracle::{Answer, is_ambiguous, satisfies, volume};
use isolario_verify::{Options, Verifier};

const LEVELS: [Level; 7] = [
    Level::ReadAtomic,
    Level::Causal,
    Level::Prefix,
    Level::SnapshotIsolation,
    Level::StrongSnapshotIsolation,
    Level::Serializable,
    Level::StrictSerializable,
];

/// The edges that a history seems to show, made without much thought: the verifier must think.
struct Edges<'h> {
    history: &'h History,
    txns: Vec<TxnId>,
    /// Orders of two writers that seem to follow from others.
    derived: BTreeMap<(TxnId, TxnId), Vec<VersionOrder>>,
}

impl<'h> Edges<'h> {
    fn new(history: &'h History) -> Self {
        let may_commit = |txn: &TxnId| history.outcome(*txn) != Outcome::Aborted;
        let txns = history.txns().filter(may_commit).collect();
        Edges { history, txns, derived: BTreeMap::new() }
    }

    fn is(&self, op: OpId, kinds: &[OpKind]) -> bool {
        kinds.contains(&self.history.op_kinds()[op.index()])
    }

    fn key(&self, op: OpId) -> KeyId {
        self.history.op_keys()[op.index()]
    }

    fn reads(&self, txn: TxnId) -> Vec<OpId> {
        self.history.txn_ops(txn).filter(|op| self.is(*op, &[OpKind::Read])).collect()
    }

    fn writes(&self, txn: TxnId, key: KeyId) -> Vec<OpId> {
        let is_write = |op: &OpId| self.is(*op, &[OpKind::Write, OpKind::Delete]);
        self.history.txn_ops(txn).filter(|op| is_write(op) && self.key(*op) == key).collect()
    }

    /// Who seems to have written what a read saw, and by which write.
    fn sources(&self, read: OpId) -> Vec<(TxnId, Option<OpId>)> {
        let (key, word) = (self.key(read), self.history.version_word(read));
        let of = |txn: &TxnId| {
            let writes = self.writes(*txn, key).into_iter();
            let same = writes.filter(|write| self.history.version_word(*write) == word);
            same.map(|write| (*txn, Some(write))).collect::<Vec<_>>()
        };
        let init = (self.history.initial_word() == Some(word)).then_some((TxnId::INIT, None));
        self.txns.iter().flat_map(of).chain(init).collect()
    }

    /// How the order of a writer's version and another's seems to be known.
    fn orders(&self, key: KeyId, first: TxnId, second: TxnId) -> Vec<VersionOrder> {
        let mut orders = self.derived.get(&(first, second)).cloned().unwrap_or_default();
        if first.is_init() {
            orders.push(VersionOrder::Initial);
        }
        for read in self.reads(second).into_iter().filter(|read| self.key(*read) == key) {
            if self.sources(read).iter().any(|(txn, _)| *txn == first) {
                orders.push(VersionOrder::ReadModifyWrite { read });
            }
        }
        orders
    }

    fn between(&self, from: TxnId, to: TxnId) -> Vec<Edge> {
        let mut reasons = vec![Reason::Session];
        if let (Some(finish), Some(start)) = (self.history.finish(from), self.history.start(to)) {
            reasons.push(Reason::RealTime { finish, start });
        }
        for read in self.reads(to) {
            let sources = self.sources(read).into_iter().filter(|(writer, _)| *writer == from);
            let key = self.key(read);
            reasons.extend(sources.map(|(_, write)| Reason::Read { key, read, write }));
        }
        for key in (0..self.history.key_count()).map(KeyId::at) {
            if self.writes(to, key).is_empty() {
                continue;
            }
            if !self.writes(from, key).is_empty() {
                let orders = self.orders(key, from, to).into_iter();
                reasons.extend(orders.map(|known| Reason::Overwrite { key, known }));
            }
            for read in self.reads(from).into_iter().filter(|read| self.key(*read) == key) {
                for (writer, _) in self.sources(read) {
                    let orders = self.orders(key, writer, to).into_iter();
                    let anti = |known| Reason::AntiDependency { key, read, writer, known };
                    reasons.extend(orders.map(anti));
                }
            }
        }
        reasons.into_iter().map(|reason| Edge { from, to, reason }).collect()
    }

    fn all(&self) -> Vec<Edge> {
        let pairs = self.txns.iter().flat_map(|from| self.txns.iter().map(move |to| (*from, *to)));
        pairs
            .filter(|(from, to)| from != to)
            .flat_map(|(from, to)| self.between(from, to))
            .collect()
    }

    /// Cycles of up to so many edges.
    fn cycles(&self, length: usize) -> Vec<Vec<Edge>> {
        let edges = self.all();
        let mut cycles = Vec::new();
        for first in &self.txns {
            extend(&mut Vec::new(), *first, *first, &edges, length, &mut cycles);
        }
        cycles
    }
}

/// Goes on from a transaction, only to later ones than the first: each cycle is found once.
fn extend(
    path: &mut Vec<Edge>,
    first: TxnId,
    at: TxnId,
    edges: &[Edge],
    length: usize,
    cycles: &mut Vec<Vec<Edge>>,
) {
    if path.len() == length || cycles.len() > 3_000 {
        return;
    }
    for edge in edges.iter().filter(|edge| edge.from == at && edge.to >= first) {
        path.push(edge.clone());
        if edge.to == first {
            cycles.push(path.clone());
        } else if path.iter().all(|before| before.from != edge.to) {
            extend(path, first, edge.to, edges, length, cycles);
        }
        path.pop();
    }
}

/// A name that fits the cycle, if not the clearest.
fn name(cycle: &[Edge]) -> AnomalyKind {
    let count = |kind| cycle.iter().filter(|edge| edge.reason.kind() == kind).count();
    if count(EdgeKind::RealTime) > 0 {
        AnomalyKind::RealTimeCycle
    } else if count(EdgeKind::ReadWrite) > 0 {
        AnomalyKind::ItemAntiDependencyCycle
    } else if count(EdgeKind::WriteWrite) == cycle.len() {
        AnomalyKind::DirtyWrite
    } else {
        AnomalyKind::CyclicCo
    }
}

fn claim(level: Level, cycle: &[Edge]) -> LevelResult {
    let anomaly =
        Anomaly { kind: name(cycle), evidence: Evidence::Cycle { edges: cycle.to_vec() } };
    let verdict = Verdict::Violated(Findings { anomalies: vec![anomaly], total: 1, exact: false });
    LevelResult { level, checker: Checker::Strong, verdict }
}

/// Per level, how many cycles were accepted.
type Accepted = BTreeMap<Level, u32>;

fn judge_all(case: Case, history: &History, cycles: &[Vec<Edge>], accepted: &mut Accepted) {
    let session_order = !case.seed.is_multiple_of(4);
    let options = Options::default().with_session_order(session_order);
    let verifier = Verifier::new(history, &options);
    let options = isolario_oracle::Options::default().with_session_order(session_order);
    for level in LEVELS {
        let proofs = cycles.iter().filter(|cycle| verifier.verify(&claim(level, cycle)).is_ok());
        let proofs: Vec<_> = proofs.collect();
        if let Some(proof) = proofs.first() {
            let answer = satisfies(history, level, options);
            assert_eq!(answer, Answer::Violated, "{level}: {proof:#?}\n{}", case.draft());
        }
        *accepted.entry(level).or_default() += proofs.len() as u32;
    }
}

#[test]
fn a_cycle_is_accepted_only_where_the_level_is_violated() {
    let mut accepted = Accepted::new();
    for case in Case::first(volume() / 10) {
        let history = case.history().expect("small");
        if !is_ambiguous(&history) {
            judge_all(case, &history, &Edges::new(&history).cycles(4), &mut accepted);
        }
    }
    assert!(LEVELS.iter().all(|level| accepted[level] > 0), "{accepted:?}");
}

/// Adds the orders of writers that one refuted cycle each would show, if it is one.
fn derive(edges: &mut Edges<'_>) {
    let txns = edges.txns.clone();
    let mut derived = BTreeMap::new();
    for first in &txns {
        for second in txns.iter().filter(|second| *second != first) {
            edges.derived.insert((*second, *first), vec![VersionOrder::Assumed]);
            let assumes = |cycle: &Vec<Edge>| cycle.iter().any(|edge| is_assumed(&edge.reason));
            let cycles = edges.cycles(3).into_iter().filter(assumes).take(4);
            let refuted: Vec<_> = cycles.map(|cycle| VersionOrder::Refuted { cycle }).collect();
            derived.insert((*first, *second), refuted);
            edges.derived.clear();
        }
    }
    edges.derived = derived;
}

fn is_assumed(reason: &Reason) -> bool {
    match reason {
        Reason::Overwrite { known, .. } | Reason::AntiDependency { known, .. } => {
            *known == VersionOrder::Assumed
        }
        _ => false,
    }
}

fn is_refuted(reason: &Reason) -> bool {
    match reason {
        Reason::Overwrite { known, .. } | Reason::AntiDependency { known, .. } => {
            matches!(known, VersionOrder::Refuted { .. })
        }
        _ => false,
    }
}

#[test]
fn a_cycle_of_refuted_orders_is_accepted_only_where_the_level_is_violated() {
    let mut accepted = Accepted::new();
    for case in Case::first(volume() / 20) {
        let history = case.history().expect("small");
        if is_ambiguous(&history) || history.txn_count() > 4 {
            continue;
        }
        let mut edges = Edges::new(&history);
        derive(&mut edges);
        let rests = |cycle: &Vec<Edge>| cycle.iter().any(|edge| is_refuted(&edge.reason));
        let cycles: Vec<_> = edges.cycles(3).into_iter().filter(rests).collect();
        judge_all(case, &history, &cycles, &mut accepted);
    }
    let strong = LEVELS.iter().filter(|level| level.implies(Level::Prefix));
    assert!(strong.clone().all(|level| accepted[level] > 0), "{accepted:?}");
}
