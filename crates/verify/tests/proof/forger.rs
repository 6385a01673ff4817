//! Results drawn at random: of every kind there is, with every reason there is, mostly wrong.

use std::time::Duration;

use isolario_model::{
    Anomaly, AnomalyKind, Attempt, Edge, EvaluatedVersion, Evidence, ExpectedVersion, Findings,
    History, Inapplicable, KeyAssumption, KeyId, Level, LevelResult, Limit, OpId, Point,
    ReadSource, Reason, Stamp, TxnId, Undecided, Value, Verdict, VersionOrder, Witness,
};
use isolario_oracle::random::Rng;

pub(crate) struct Forger<'h> {
    pub(crate) history: &'h History,
    pub(crate) rng: Rng,
}

impl Forger<'_> {
    /// A result per level.
    pub(crate) fn results(&mut self) -> Vec<LevelResult> {
        Level::all().map(|level| self.result(level)).collect()
    }

    fn result(&mut self, level: Level) -> LevelResult {
        let decided_by = self.pick(&Attempt::ALL);
        let verdict = match self.rng.below(4) {
            0 => Verdict::Satisfied(self.witness()),
            1 => {
                let anomalies = self.several(|forger| forger.anomaly().at(level));
                let (total, findings) =
                    (self.number(), Findings::new(anomalies, self.rng.percent(50)));
                Verdict::Violated(Findings { total, ..findings })
            }
            2 => Verdict::Undecided(Undecided::new(self.limit())),
            _ => Verdict::NotApplicable(self.inapplicable()),
        };
        LevelResult { level, decided_by, verdict }
    }

    fn witness(&mut self) -> Witness {
        match self.rng.below(5) {
            0 => Witness::Empty,
            // More than fits on one line, now and then.
            1 => Witness::CommitOrder((0..self.rng.below(250)).map(|_| self.txn()).collect()),
            2 => Witness::Chosen {
                order: (0..self.rng.below(150)).map(|_| self.txn()).collect(),
                sources: (0..self.rng.below(150))
                    .map(|_| ReadSource { read: self.op(), writer: self.txn() })
                    .collect(),
            },
            3 => Witness::Linearization((0..self.rng.below(250)).map(|_| self.op()).collect()),
            _ => Witness::Points(self.several(|forger| {
                let txn = forger.txn();
                forger.pick(&[Point::Start(txn), Point::Commit(txn)])
            })),
        }
    }

    fn inapplicable(&mut self) -> Inapplicable {
        match self.rng.below(15) {
            0 => Inapplicable::AmbiguousRead {
                read: self.op(),
                first: self.optional_op(),
                second: self.op(),
                total: self.number(),
            },
            1 => Inapplicable::Operation { op: self.op() },
            2 => Inapplicable::NoTimes,
            3 => Inapplicable::NoVersionOrder,
            4 => Inapplicable::SeveralOperations { txn: self.txn() },
            5 => Inapplicable::NoChecker,
            6 => Inapplicable::CyclicDependencies,
            7 => Inapplicable::NotByPromisedOrder,
            8 => Inapplicable::NotInPromisedOrder { txn: self.txn() },
            9 => Inapplicable::TiedInPromisedOrder { first: self.txn(), second: self.txn() },
            10 => Inapplicable::Predicate { op: self.op() },
            11 => Inapplicable::NoVersionSet { op: self.op(), total: self.number() },
            12 => Inapplicable::OpenVersionOrder { key: self.key() },
            13 => Inapplicable::NotByCertificate,
            _ => Inapplicable::SkewOfEventOrder,
        }
    }

    fn anomaly(&mut self) -> Anomaly {
        let kinds: Vec<AnomalyKind> = AnomalyKind::all().collect();
        let evidence = match self.rng.below(7) {
            0 => Evidence::Read {
                read: self.op(),
                saw: self.optional_op(),
                instead: self.optional_op(),
            },
            1 => Evidence::Reads {
                key: self.key(),
                first: self.op(),
                second: self.op(),
                edges: self.edges(2),
            },
            2 => Evidence::Cycle { edges: self.edges(2) },
            3 => Evidence::Operations { key: self.key(), ops: self.several(Forger::op) },
            4 => Evidence::Unexpected {
                op: self.op(),
                expected: self.several(|forger| ExpectedVersion {
                    key: forger.key(),
                    write: forger.optional_op(),
                }),
                result: self.rng.percent(50).then(|| Value::Int(self.time())),
            },
            5 => Evidence::Concurrent { key: self.key(), first: self.op(), second: self.op() },
            _ => Evidence::Cases { cycles: self.several(|forger| forger.edges(2)) },
        };
        Anomaly::new(self.pick(&kinds), evidence)
    }

    fn edges(&mut self, depth: usize) -> Vec<Edge> {
        self.several(|forger| forger.edge(depth))
    }

    pub(crate) fn edge(&mut self, depth: usize) -> Edge {
        let reason = match self.rng.below(if depth == 0 { 8 } else { 12 }) {
            0 => Reason::Initial,
            1 => Reason::Session,
            2 => Reason::RealTime { finish: self.time(), start: self.time() },
            3 => Reason::Read { key: self.key(), read: self.op(), write: self.optional_op() },
            4 => Reason::PredicateAntiDependency {
                read: self.op(),
                key: self.key(),
                write: self.op(),
                evaluated: (depth > 0).then(|| EvaluatedVersion {
                    writer: self.txn(),
                    known: self.version_order(depth - 1),
                }),
            },
            5 => Reason::PredicateRead { read: self.op(), key: self.key(), write: self.op() },
            6 => Reason::Stated { at: self.number() },
            7 => Reason::StartDependency {
                op: self.op(),
                snapshot: Stamp { physical: self.number(), logical: self.number() },
            },
            8 => Reason::Refuted { cycle: self.edges(depth - 1) },
            9 => Reason::Overwrite { key: self.key(), known: self.version_order(depth - 1) },
            10 => Reason::AntiDependency {
                key: self.key(),
                read: self.op(),
                writer: self.txn(),
                known: self.version_order(depth - 1),
            },
            _ => Reason::Visible {
                rule: self.pick(&[Level::ReadCommitted, Level::ReadAtomic, Level::Causal]),
                key: self.key(),
                reader: self.txn(),
                read: self.op(),
                path: self.edges(depth - 1),
            },
        };
        Edge { from: self.txn(), to: self.txn(), reason }
    }

    fn version_order(&mut self, depth: usize) -> VersionOrder {
        match self.rng.below(9) {
            0 => VersionOrder::Initial,
            1 => VersionOrder::ReadModifyWrite { read: self.op() },
            2 => VersionOrder::List { read: self.op() },
            3 => VersionOrder::Stated { at: self.number() },
            4 => VersionOrder::Refuted { cycle: self.edges(depth) },
            5 => VersionOrder::Assumed,
            6 => VersionOrder::AppendedLater { read: self.op() },
            7 => VersionOrder::Guaranteed {
                by: self.pick(&KeyAssumption::ALL),
                first: self.op(),
                second: self.op(),
            },
            _ => VersionOrder::Path { edges: self.edges(depth) },
        }
    }
}

/// The parts.
impl Forger<'_> {
    fn several<T>(&mut self, mut one: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.rng.below(3)).map(|_| one(self)).collect()
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.rng.below(from.len())]
    }

    fn txn(&mut self) -> TxnId {
        match self.rng.below(self.history.txn_count() + 1) {
            0 => TxnId::INIT,
            txn => TxnId::at(txn - 1),
        }
    }

    fn op(&mut self) -> OpId {
        OpId::at(self.rng.below(self.history.op_count()))
    }

    fn optional_op(&mut self) -> Option<OpId> {
        let op = self.op();
        self.rng.percent(50).then_some(op)
    }

    fn key(&mut self) -> KeyId {
        KeyId::at(self.rng.below(self.history.key_count()))
    }

    fn number(&mut self) -> u64 {
        self.pick(&[0, 1, 12, u64::MAX])
    }

    fn time(&mut self) -> i64 {
        self.pick(&[0, -1, i64::MIN, i64::MAX])
    }

    fn limit(&mut self) -> Limit {
        let bytes = self.number();
        let time = Duration::from_nanos(self.number());
        self.pick(&[
            Limit::Time(time),
            Limit::Memory(bytes),
            Limit::Argument(bytes),
            Limit::Steps,
            Limit::NotSearched,
            Limit::Interrupted,
            Limit::NotBegun,
        ])
    }
}
