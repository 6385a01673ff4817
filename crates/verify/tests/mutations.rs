//! Proofs that are wrong are refused: right ones with something changed, and made-up ones.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use isolario_check::{check, supported};
use isolario_model::{
    Anomaly, AnomalyKind, Attempt, Edge, Evidence, Findings, History, KeyId, Level, LevelResult,
    OpId, Outcome, Point, Reason, TxnId, Verdict, VersionOrder, Witness,
};
use isolario_oracle::random::{Case, Rng};
use isolario_oracle::{Answer, Draft, levels, satisfies, volume};
use isolario_verify::{VerifyOptions, verify};

const NOWHERE: OpId = OpId(u32::MAX);

/// Small histories of registers, with and without blind writes, and of lists.
fn histories() -> impl Iterator<Item = (Draft, History)> {
    let drafts = |case: Case| [case.draft(), case.read_modify_write_draft(), case.list_draft()];
    Case::first(volume() / 20).flat_map(drafts).map(|draft| {
        let history = draft.history().expect("small");
        (draft, history)
    })
}

fn results(history: &History) -> Vec<LevelResult> {
    check(history, supported(), &isolario_check::CheckOptions::default())
}

fn is_refused(history: &History, level: Level, verdict: Verdict) -> bool {
    let result = LevelResult { level, decided_by: Attempt::Rule, verdict };
    verify(history, &result, &VerifyOptions::default()).is_err()
}

fn findings(anomaly: Anomaly) -> Verdict {
    Verdict::Violated(Findings::new(vec![anomaly], true))
}

/// Orders that surely show nothing: one transaction too few or too many, and where sessions count two of
/// one swapped.
fn broken_orders(history: &History, level: Level, order: &[TxnId]) -> Vec<Vec<TxnId>> {
    let mut broken = Vec::new();
    for (at, txn) in order.iter().enumerate() {
        let mut repeated = order.to_vec();
        repeated.insert(at, *txn);
        broken.push(repeated);
        if history.outcome(*txn) == Outcome::Committed {
            let mut without = order.to_vec();
            without.remove(at);
            broken.push(without);
        }
        let follows = |(_, later): &(usize, &TxnId)| {
            txn < *later
                && history.session_of(*txn) == history.session_of(**later)
                && history.outcome(*txn) == Outcome::Committed
                && level.shape().session_order
        };
        if let Some((later, _)) = order.iter().enumerate().skip(at + 1).find(follows) {
            let mut swapped = order.to_vec();
            swapped.swap(at, later);
            broken.push(swapped);
        }
    }
    let aborted = history.txns().filter(|txn| history.outcome(*txn) == Outcome::Aborted);
    for stranger in aborted.chain([TxnId::INIT, TxnId(1_000)]) {
        broken.push(order.iter().copied().chain([stranger]).collect());
    }
    broken
}

#[test]
fn orders_with_a_transaction_too_few_too_many_or_out_of_session_are_refused() {
    for (draft, history) in histories() {
        // Without session order, a witness may contradict it.
        let with_sessions = |result: &LevelResult| result.level.shape().session_order;
        for result in results(&history).into_iter().filter(with_sessions) {
            let Verdict::Satisfied(Witness::CommitOrder(order)) = result.verdict else { continue };
            for broken in broken_orders(&history, result.level, &order) {
                let verdict = Verdict::Satisfied(Witness::CommitOrder(broken.clone()));
                let refused = is_refused(&history, result.level, verdict);
                assert!(refused, "{}: {broken:?}\n{}", result.level, draft);
            }
        }
    }
}

/// Points that surely show nothing: one too few or too many, a transaction that commits before it
/// starts, or starts before the one before it in its session has committed.
fn broken_points(history: &History, points: &[Point]) -> Vec<Vec<Point>> {
    let mut broken = Vec::new();
    for (at, point) in points.iter().enumerate() {
        let mut repeated = points.to_vec();
        repeated.insert(at, *point);
        broken.push(repeated);
        let mut without = points.to_vec();
        without.remove(at);
        broken.push(without);
        let Point::Start(txn) = *point else { continue };
        let is_before = |other: &TxnId| {
            *other < txn
                && history.session_of(*other) == history.session_of(txn)
                && history.outcome(*other) == Outcome::Committed
        };
        let too_early = history.txns().filter(is_before).chain([txn]).map(Point::Commit);
        for commit in too_early {
            let Some(place) = points.iter().position(|other| *other == commit) else { continue };
            let mut swapped = points.to_vec();
            swapped.swap(at, place);
            broken.push(swapped);
        }
    }
    for stranger in [TxnId::INIT, TxnId(1_000)] {
        let both = [Point::Start(stranger), Point::Commit(stranger)];
        broken.push(points.iter().copied().chain(both).collect());
    }
    broken
}

#[test]
fn points_too_few_too_many_or_out_of_order_are_refused() {
    let mut tried = 0;
    for (draft, history) in histories() {
        for result in results(&history) {
            let Verdict::Satisfied(Witness::Points(points)) = result.verdict else { continue };
            for broken in broken_points(&history, &points) {
                let verdict = Verdict::Satisfied(Witness::Points(broken.clone()));
                let refused = is_refused(&history, result.level, verdict);
                assert!(refused, "{}: {broken:?}\n{draft}", result.level);
                tried += 1;
            }
        }
    }
    assert!(tried > 0);
}

/// Changes that surely make an edge unjustified.
fn broken_edges(edge: &Edge) -> Vec<Edge> {
    let with = |reason: Reason| Edge { reason, ..edge.clone() };
    let mut broken = vec![Edge { from: edge.to, to: edge.from, ..edge.clone() }];
    match edge.reason.clone() {
        Reason::Read { key, read, write } => {
            broken.push(with(Reason::Read { key: KeyId(key.0 + 1), read, write }));
            broken.push(with(Reason::Read { key, read: NOWHERE, write }));
            broken.push(with(Reason::Read { key, read, write: Some(read) }));
            broken.push(with(Reason::Initial));
        }
        Reason::Visible { rule, key, reader, read, path } => {
            let visible = |rule, key, reader, read, path: Vec<Edge>| {
                with(Reason::Visible { rule, key, reader, read, path })
            };
            broken.push(visible(Level::Linearizable, key, reader, read, path.clone()));
            broken.push(visible(rule, KeyId(key.0 + 1), reader, read, path.clone()));
            broken.push(visible(rule, key, edge.from, read, path.clone()));
            broken.push(visible(rule, key, reader, NOWHERE, path.clone()));
            broken.push(visible(rule, key, reader, read, path[1..].to_vec()));
            for (at, step) in path.iter().enumerate() {
                for broken_step in broken_edges(step) {
                    let mut path = path.clone();
                    path[at] = broken_step;
                    broken.push(visible(rule, key, reader, read, path));
                }
            }
        }
        Reason::AntiDependency { key, read, writer, known } => {
            let anti = |key, read, writer, known: &VersionOrder| {
                with(Reason::AntiDependency { key, read, writer, known: known.clone() })
            };
            broken.push(anti(KeyId(key.0 + 1), read, writer, &known));
            broken.push(anti(key, NOWHERE, writer, &known));
            broken.push(anti(key, read, edge.from, &known));
            broken.push(anti(key, read, edge.to, &known));
            let orders = broken_orders_of_versions(&known);
            broken.extend(orders.iter().map(|known| anti(key, read, writer, known)));
        }
        Reason::Overwrite { key, known } => {
            let overwrite = |key, known| with(Reason::Overwrite { key, known });
            // Another key that both write would do: versions follow the order of commits.
            broken.push(overwrite(KeyId(1_000), known.clone()));
            let orders = broken_orders_of_versions(&known).into_iter();
            broken.extend(orders.map(|known| overwrite(key, known)));
        }
        Reason::RealTime { finish, start } => {
            broken.push(with(Reason::RealTime { finish: finish - 1, start }));
            broken.push(with(Reason::RealTime { finish, start: start + 1 }));
        }
        Reason::Session => {
            broken.push(with(Reason::RealTime { finish: 0, start: 1 }));
            broken.push(with(Reason::Initial));
        }
        _ => {}
    }
    broken
}

/// Ways to know an order of versions that surely show nothing.
fn broken_orders_of_versions(known: &VersionOrder) -> Vec<VersionOrder> {
    let mut broken = vec![
        VersionOrder::Assumed,
        VersionOrder::ReadModifyWrite { read: NOWHERE },
        VersionOrder::List { read: NOWHERE },
        VersionOrder::AppendedLater { read: NOWHERE },
        VersionOrder::Refuted { cycle: Vec::new() },
        VersionOrder::Path { edges: Vec::new() },
    ];
    if *known != VersionOrder::Initial {
        broken.push(VersionOrder::Initial);
    }
    broken
}

/// Changes that surely make a cycle no cycle, or its edges unjustified.
fn broken_cycles(edges: &[Edge]) -> Vec<Vec<Edge>> {
    let mut broken = vec![Vec::new()];
    for at in 0..edges.len() {
        let replaced = |edge: Edge| {
            let mut edges = edges.to_vec();
            edges[at] = edge;
            edges
        };
        broken.push([&edges[..at], &edges[at + 1..]].concat());
        broken.push(replaced(Edge { to: TxnId(1_000), ..edges[at].clone() }));
        broken.push(replaced(Edge { from: TxnId(1_000), ..edges[at].clone() }));
        broken.extend(broken_edges(&edges[at]).into_iter().map(replaced));
    }
    broken
}

fn broken_evidence(evidence: &Evidence) -> Vec<Evidence> {
    match evidence.clone() {
        Evidence::Cycle { edges } => {
            broken_cycles(&edges).into_iter().map(|edges| Evidence::Cycle { edges }).collect()
        }
        Evidence::Read { read, saw, instead } => vec![
            Evidence::Read { read: NOWHERE, saw, instead },
            Evidence::Read { read, saw: Some(read), instead },
            Evidence::Read { read, saw: Some(NOWHERE), instead },
            Evidence::Read { read, saw, instead: Some(read) },
            Evidence::Read { read, saw, instead: Some(NOWHERE) },
        ],
        Evidence::Reads { key, first, second, edges } => {
            let reads =
                |key, first, second| Evidence::Reads { key, first, second, edges: edges.clone() };
            vec![
                reads(KeyId(key.0 + 1), first, second),
                reads(key, second, first),
                reads(key, first, first),
                reads(key, NOWHERE, second),
                reads(key, first, NOWHERE),
            ]
        }
        _ => Vec::new(),
    }
}

/// Names that the evidence surely does not deserve.
fn wrong_kinds(anomaly: &Anomaly) -> Vec<AnomalyKind> {
    let of_reads = |kind: &AnomalyKind| *kind <= AnomalyKind::IntermediateRead;
    let of_pairs = [AnomalyKind::NonRepeatableRead];
    // An element of an aborted transaction may also be there twice.
    let of_elements = [AnomalyKind::AbortedRead, AnomalyKind::DuplicateElements];
    let wrong = |kind: &AnomalyKind| match anomaly.evidence {
        Evidence::Read { .. } if of_elements.contains(kind) => !of_elements.contains(&anomaly.kind),
        Evidence::Read { .. } => *kind != anomaly.kind,
        Evidence::Reads { .. } => {
            // Two initial values of a key may be called by this name as well.
            let two_initial = *kind == AnomalyKind::ThinAirRead;
            (of_reads(kind) && !two_initial) || *kind == AnomalyKind::CyclicCo
        }
        _ => {
            let crossed = [AnomalyKind::WriteSkew, AnomalyKind::LostUpdate].contains(kind);
            let timed = [AnomalyKind::StaleRead, AnomalyKind::RealTimeCycle];
            let says_nothing = anomaly.kind == AnomalyKind::NoOrderPossible;
            of_reads(kind)
                || of_pairs.contains(kind)
                || (crossed && *kind != anomaly.kind)
                || (timed.contains(kind) && !timed.contains(&anomaly.kind) && !says_nothing)
        }
    };
    AnomalyKind::all().filter(wrong).collect()
}

#[test]
fn anomalies_with_a_wrong_edge_read_key_or_name_are_refused() {
    for (draft, history) in histories() {
        for result in results(&history) {
            let Verdict::Violated(found) = result.verdict else { continue };
            for anomaly in found.anomalies {
                let evidence = broken_evidence(&anomaly.evidence);
                let renamed = wrong_kinds(&anomaly).into_iter();
                let broken = evidence
                    .into_iter()
                    .map(|evidence| Anomaly::new(anomaly.kind, evidence))
                    .chain(renamed.map(|kind| Anomaly::new(kind, anomaly.evidence.clone())));
                for broken in broken {
                    let refused = is_refused(&history, result.level, findings(broken.clone()));
                    assert!(refused, "{}: {broken:#?}\n{}", result.level, draft);
                }
            }
        }
    }
}

/// Evidence drawn at random: now and then nearly right.
struct Forger<'h> {
    history: &'h History,
    rng: Rng,
}

impl Forger<'_> {
    fn txn(&mut self) -> TxnId {
        match self.rng.below(self.history.txn_count() + 2) {
            0 => TxnId::INIT,
            txn => TxnId::at(txn - 1),
        }
    }

    fn op(&mut self) -> OpId {
        OpId::at(self.rng.below(self.history.op_count() + 1))
    }

    fn key(&mut self) -> KeyId {
        KeyId::at(self.rng.below(self.history.key_count() + 1))
    }

    fn order_of_versions(&mut self) -> VersionOrder {
        match self.rng.below(5) {
            0 => VersionOrder::Initial,
            1 => VersionOrder::ReadModifyWrite { read: self.op() },
            2 => VersionOrder::List { read: self.op() },
            3 => VersionOrder::AppendedLater { read: self.op() },
            _ => VersionOrder::Assumed,
        }
    }

    fn edge(&mut self, from: TxnId, to: TxnId, depth: usize) -> Edge {
        let (key, read, writer) = (self.key(), self.op(), self.txn());
        let reason = match self.rng.below(if depth == 0 { 6 } else { 9 }) {
            0 => Reason::Initial,
            1 => Reason::Session,
            2 => Reason::Read { key, read, write: None },
            3 => Reason::Read { key, read, write: Some(self.op()) },
            4 => Reason::AntiDependency { key, read, writer, known: self.order_of_versions() },
            5 => Reason::Overwrite { key, known: self.order_of_versions() },
            6 => {
                let cycle = vec![self.edge(to, writer, 0), self.edge(writer, to, depth - 1)];
                Reason::Overwrite { key, known: VersionOrder::Refuted { cycle } }
            }
            7 => {
                let known = VersionOrder::Path { edges: vec![self.edge(writer, to, depth - 1)] };
                Reason::AntiDependency { key, read, writer, known }
            }
            _ => {
                let rules: Vec<Level> = levels().collect();
                let rule = rules[self.rng.below(rules.len())];
                let path = vec![self.edge(from, writer, depth - 1)];
                Reason::Visible { rule, key, reader: writer, read, path }
            }
        };
        Edge { from, to, reason }
    }

    fn anomaly(&mut self) -> Anomaly {
        let kinds: Vec<AnomalyKind> = AnomalyKind::all().collect();
        let kind = kinds[self.rng.below(kinds.len())];
        let optional = |forger: &mut Self| {
            let op = forger.op();
            forger.rng.percent(50).then_some(op)
        };
        let evidence = match self.rng.below(3) {
            0 => Evidence::Read { read: self.op(), saw: optional(self), instead: optional(self) },
            1 => Evidence::Reads {
                key: self.key(),
                first: self.op(),
                second: self.op(),
                edges: Vec::new(),
            },
            _ => {
                let (one, other) = (self.txn(), self.txn());
                Evidence::Cycle { edges: vec![self.edge(one, other, 2), self.edge(other, one, 2)] }
            }
        };
        Anomaly::new(kind, evidence)
    }
}

#[test]
fn nothing_shows_that_a_satisfied_level_is_violated() {
    for (number, (draft, history)) in (0..).zip(histories()) {
        let mut forger = Forger { history: &history, rng: Rng::new(number) };
        let mut anomalies: Vec<Anomaly> = (0..40).map(|_| forger.anomaly()).collect();
        for result in results(&history) {
            anomalies.extend(result.verdict.anomalies().iter().map(|found| Anomaly::clone(found)));
        }
        for level in levels() {
            if satisfies(&history, level, isolario_oracle::Options::default()) != Answer::Satisfied
            {
                continue;
            }
            for anomaly in &anomalies {
                let refused = is_refused(&history, level, findings(anomaly.clone()));
                assert!(refused, "{level}: {anomaly:#?}\n{draft}");
            }
        }
    }
}
