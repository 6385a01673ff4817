//! Every sentence, as people read it.

use isolario_model::{
    Aggregate, Anomaly, AnomalyKind, Batch, Clock, Edge, Evidence, Inapplicable, KeyAssumption,
    KeyId, Level, Meta, Op, OpId, Outcome, Predicate, Reason, RowInput, Stamp, TxnEnd, TxnId,
    TxnSink, TxnStart, ValueRef, VersionOrder,
};

use super::*;
use crate::names::Names;
use crate::testing::{History as Builder, edge, int, r, text, w};

const X: KeyId = KeyId(0);

/// T1 writes x, T2 reads and overwrites it, T3 reads both keys, T4 follows in T3's session.
fn registers() -> isolario_model::History {
    Builder::new()
        .txn(&[w("x", 1), w("y", 1)])
        .session()
        .txn(&[r("x", 1), w("x", 2)])
        .session()
        .txn(&[r("x", 1), r("y", 1), r("x", 0)])
        .txn(&[Op::Delete { key: text("x") }])
        .build()
}

fn lists() -> isolario_model::History {
    let x = text("x");
    Builder::new()
        .txn(&[Op::Append { key: x, element: int(1) }])
        .session()
        .txn(&[Op::Append { key: x, element: int(2) }])
        .session()
        .txn(&[Op::ReadList { key: x, elements: Some(&[int(1), int(2)]) }])
        .txn(&[Op::ReadList { key: x, elements: Some(&[int(1)]) }])
        .txn(&[Op::ReadList { key: x, elements: Some(&[int(2), int(1)]) }])
        .build()
}

fn read(write: Option<u32>, read: u32, key: KeyId) -> Reason {
    Reason::Read { key, read: OpId(read), write: write.map(OpId) }
}

fn anti(read: u32, writer: TxnId, known: VersionOrder) -> Reason {
    Reason::AntiDependency { key: X, read: OpId(read), writer, known }
}

fn overwrite(known: VersionOrder) -> Reason {
    Reason::Overwrite { key: X, known }
}

fn visible(rule: Level, path: Vec<Edge>) -> Reason {
    Reason::Visible { rule, key: X, reader: TxnId(2), read: OpId(4), path }
}

fn shown(steps: &[ArgumentStep], indent: &str, lines: &mut Vec<String>) {
    for step in steps {
        lines.push(format!("{indent}[{}] {}", step.kind.name(), step.sentence));
        shown(&step.because, &format!("{indent}    "), lines);
    }
}

fn explained(history: &isolario_model::History, edges: &[Edge]) -> String {
    let names = Names::new(history);
    let mut lines = Vec::new();
    shown(&argument(names, edges), "", &mut lines);
    lines.join("\n")
}

#[test]
fn reasons_of_registers() {
    let known_orders = || {
        [
            VersionOrder::ReadModifyWrite { read: OpId(2) },
            VersionOrder::Stated { at: 5 },
            VersionOrder::Guaranteed {
                by: KeyAssumption::SequentialKeys,
                first: OpId(2),
                second: OpId(3),
            },
            VersionOrder::Guaranteed {
                by: KeyAssumption::LinearizableKeys,
                first: OpId(0),
                second: OpId(4),
            },
            VersionOrder::Refuted { cycle: vec![edge(1, 0, Reason::Session)] },
            VersionOrder::Assumed,
            VersionOrder::Path { edges: vec![edge(0, 1, read(Some(0), 2, X))] },
        ]
    };
    let mut edges = vec![
        Edge { from: TxnId::INIT, to: TxnId(0), reason: Reason::Initial },
        edge(2, 3, Reason::Session),
        edge(0, 1, read(Some(0), 2, X)),
        Edge { from: TxnId::INIT, to: TxnId(2), reason: read(None, 6, X) },
        Edge { from: TxnId::INIT, to: TxnId(1), reason: overwrite(VersionOrder::Initial) },
        edge(2, 1, anti(6, TxnId::INIT, VersionOrder::Initial)),
        edge(2, 3, anti(4, TxnId(0), VersionOrder::Assumed)),
    ];
    edges.extend(known_orders().map(|known| edge(0, 1, overwrite(known))));
    edges.extend(known_orders().map(|known| edge(2, 1, anti(4, TxnId(0), known))));
    insta::assert_snapshot!(explained(&registers(), &edges));
}

#[test]
fn reasons_of_rules_and_statements() {
    let session = || vec![edge(1, 2, Reason::Session)];
    let seen = || vec![edge(1, 2, read(Some(3), 4, X))];
    let edges = [
        edge(1, 0, visible(Level::ReadCommitted, seen())),
        edge(1, 0, visible(Level::ReadAtomic, seen())),
        edge(1, 0, visible(Level::ReadAtomic, session())),
        edge(1, 0, visible(Level::Causal, [seen(), session()].concat())),
        Edge {
            from: TxnId(1),
            to: TxnId::INIT,
            reason: Reason::Visible {
                rule: Level::Causal,
                key: X,
                reader: TxnId(2),
                read: OpId(6),
                path: seen(),
            },
        },
        edge(0, 1, Reason::Stated { at: 9 }),
        edge(
            0,
            2,
            Reason::StartDependency { op: OpId(4), snapshot: Stamp { physical: 9, logical: 0 } },
        ),
        edge(0, 1, Reason::Refuted { cycle: vec![edge(1, 0, Reason::Session)] }),
        edge(0, 1, Reason::RealTime { finish: 1_000, start: 2_501_000 }),
    ];
    insta::assert_snapshot!(explained(&registers(), &edges));
}

#[test]
fn reasons_of_lists() {
    let list = || VersionOrder::List { read: OpId(2) };
    let not_shown = || VersionOrder::AppendedLater { read: OpId(3) };
    let edges = [
        edge(0, 2, read(Some(0), 2, X)),
        edge(0, 1, overwrite(list())),
        edge(3, 1, anti(3, TxnId(0), list())),
        edge(0, 1, overwrite(not_shown())),
        edge(3, 1, anti(3, TxnId(0), not_shown())),
    ];
    insta::assert_snapshot!(explained(&lists(), &edges));
}

#[test]
fn reasons_of_conditionals_deletes_and_predicates() {
    let x = text("x");
    let (yes, no) = (Some(true), Some(false));
    let cas =
        |applied, seen| Op::CompareAndSet { key: x, expected: int(1), new: int(2), applied, seen };
    let insert = |applied, seen| Op::InsertIfAbsent { key: x, value: int(1), applied, seen };
    let rows = [RowInput::new(x, 1)];
    let positive = Predicate::from_sql("v > 0");
    let history = Builder::new()
        .txn(&[w("x", 1), Op::Delete { key: x }])
        .txn(&[
            cas(yes, None),
            cas(no, Some(int(7))),
            cas(no, None),
            insert(yes, None),
            insert(no, Some(int(7))),
            insert(no, None),
            Op::PredicateRead { predicate: &positive, rows: Some(&rows) },
            Op::PredicateRead { predicate: &Predicate::from_sql("v > 5"), rows: Some(&[]) },
            Op::Aggregate {
                function: &Aggregate::Count,
                predicate: &positive,
                result: Some(int(2)),
            },
            Op::Read { key: x, value: None },
            Op::Read { key: x, value: Some(ValueRef::Nil) },
        ])
        .build();
    let mut edges: Vec<_> = (2..12).map(|op| edge(0, 1, read(Some(0), op, X))).collect();
    edges.push(edge(0, 1, read(Some(1), 12, X)));
    let (read, write) = (OpId(8), OpId(0));
    edges.push(edge(
        1,
        0,
        Reason::PredicateAntiDependency { read, key: X, write, evaluated: None },
    ));
    edges.push(edge(0, 1, Reason::PredicateRead { read, key: X, write }));
    insta::assert_snapshot!(explained(&history, &edges));
}

#[test]
fn event_times_are_no_durations() {
    let mut batch = Batch::new();
    batch.meta(&Meta { clock: Clock::EventOrder, ..Meta::default() }).unwrap();
    for id in [1, 2] {
        let start = TxnStart { session: int(id), id: Some(int(id)), line: None };
        batch.begin(&start).unwrap();
        batch.end(&TxnEnd::new(Outcome::Committed)).unwrap();
    }
    let history = batch.build().unwrap();
    let step =
        explain(Names::new(&history), &edge(0, 1, Reason::RealTime { finish: 12, start: 20 }));
    assert_eq!(step.sentence, "T1 had finished (event 12) before T2 started (event 20)");
}

#[test]
fn transactions_lie_in_time_as_people_say_it() {
    let ms = 1_000_000;
    let history = Builder::new()
        .timed(&[w("x", 1)], 1000 * ms, Some(1010 * ms))
        .session()
        .timed(&[w("x", 2)], 1005 * ms, Some(1012 * ms))
        .session()
        .timed(&[w("x", 3)], 1015 * ms, None)
        .session()
        .timed(&[w("x", 4)], 1020 * ms, Some(1021 * ms))
        .build();
    let names = Names::new(&history);
    let all: Vec<TxnId> = history.txns().collect();
    assert_eq!(
        in_time(names, &all),
        [
            "T2 began while T1 ran",
            "T3 began 3 ms after T2 had ended",
            "T4 began 8 ms after T2 had ended, while T3 ran",
        ]
    );
    assert_eq!(in_time(names, &[all[3], all[0]]), ["T4 began 10 ms after T1 had ended"]);
    let first = began(&history);
    let when = |txn: TxnId| TxnTimes::of(&history, txn, first).describe().unwrap();
    assert_eq!(when(all[1]), "at 5 ms, for 7 ms");
    assert_eq!(when(all[2]), "from 15 ms on");
    assert_eq!(TxnTimes::of(&registers(), TxnId(0), 0).describe(), None);
    assert!(in_time(Names::new(&registers()), &[TxnId(0), TxnId(1)]).is_empty());
}

#[test]
fn arguments_are_spelt_out_to_a_bounded_depth() {
    let mut deep = edge(0, 1, Reason::Session);
    for _ in 0..50 {
        deep = edge(0, 1, Reason::Refuted { cycle: vec![deep] });
    }
    insta::assert_snapshot!(explained(&registers(), &[deep]));
}

fn summaries(history: &isolario_model::History, anomalies: &[(AnomalyKind, Evidence)]) -> String {
    let names = Names::new(history);
    let line = |(kind, evidence): &(AnomalyKind, Evidence)| {
        let anomaly = Anomaly::new(*kind, evidence.clone());
        format!("{kind}: {}", summary(names, &anomaly))
    };
    anomalies.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn summaries_of_bad_reads() {
    use AnomalyKind as A;
    let history = Builder::new()
        .ended(&[w("x", 5), w("x", 6)], Outcome::Aborted)
        .session()
        .txn(&[r("x", 7), w("x", 8), r("x", 5), w("x", 9), r("x", 8)])
        .session()
        .txn(&[Op::ReadList { key: text("l"), elements: Some(&[int(1), int(1)]) }])
        .build();
    let bad = |read, saw: Option<u32>, instead: Option<u32>| Evidence::Read {
        read: OpId(read),
        saw: saw.map(OpId),
        instead: instead.map(OpId),
    };
    insta::assert_snapshot!(summaries(
        &history,
        &[
            (A::ThinAirRead, bad(2, None, None)),
            (A::ThinAirRead, bad(7, None, None)),
            (A::AbortedRead, bad(4, Some(0), None)),
            (A::FutureRead, bad(2, Some(3), None)),
            (A::NotMyOwnWrite, bad(4, Some(0), Some(3))),
            (A::NotMyOwnWrite, bad(4, None, Some(3))),
            (A::NotMyLastWrite, bad(6, Some(3), Some(5))),
            (A::IntermediateRead, bad(4, Some(0), Some(1))),
            (A::DuplicateElements, bad(7, None, None)),
            (A::DirtyUpdate, bad(4, Some(0), None)),
            (A::NotLinearizable, bad(4, Some(0), None)),
        ],
    ));
}

#[test]
fn summaries_of_two_reads() {
    use AnomalyKind as A;
    let reads = |first, second| Evidence::Reads {
        key: X,
        first: OpId(first),
        second: OpId(second),
        edges: Vec::new(),
    };
    let registers = summaries(
        &registers(),
        &[
            (A::NonRepeatableRead, reads(4, 6)),
            (A::NonMonotonicRead, reads(4, 6)),
            (A::ThinAirRead, reads(2, 6)),
            (A::OrderContradiction, reads(4, 6)),
        ],
    );
    let lists = summaries(&lists(), &[(A::IncompatibleOrder, reads(2, 4))]);
    insta::assert_snapshot!(format!("{registers}\n{lists}"));
}

#[test]
fn summaries_of_cycles() {
    use AnomalyKind as A;
    let cycle = |edges| Evidence::Cycle { edges };
    let wr = || edge(0, 1, read(Some(0), 2, X));
    let session = |from, to| edge(from, to, Reason::Session);
    let rw = || edge(2, 1, anti(4, TxnId(0), VersionOrder::Assumed));
    let other_rw = edge(3, 0, anti(4, TxnId(0), VersionOrder::Assumed));
    let time = || edge(1, 2, Reason::RealTime { finish: 0, start: 7 });
    let co = || edge(1, 0, visible(Level::Causal, vec![session(1, 2)]));
    let phantom =
        Reason::PredicateAntiDependency { read: OpId(5), key: X, write: OpId(3), evaluated: None };
    let long = (0..9).map(|i| edge(i % 4, (i + 1) % 4, Reason::Session)).collect();
    insta::assert_snapshot!(summaries(
        &registers(),
        &[
            (A::CyclicCo, cycle(vec![wr(), session(1, 0)])),
            (A::CyclicCo, cycle(vec![session(1, 1)])),
            (A::CyclicCo, cycle(vec![wr(), session(1, 2), session(2, 0)])),
            (A::CyclicCo, cycle(long)),
            (A::DirtyWrite, cycle(vec![session(0, 1), session(1, 2), session(2, 0)])),
            (A::RealTimeCycle, cycle(vec![wr(), session(1, 2), session(2, 0)])),
            (A::CoConflictCm, cycle(vec![wr(), co()])),
            (A::LostUpdate, cycle(vec![wr(), rw()])),
            (A::LongFork, cycle(vec![rw(), session(1, 3), other_rw, session(0, 2)])),
            (A::StaleRead, cycle(vec![time(), rw()])),
            (A::Phantom, cycle(vec![wr(), edge(2, 1, phantom)])),
            (A::NoOrderPossible, Evidence::Cases { cycles: vec![vec![wr()], vec![rw()]] }),
        ],
    ));
}

#[test]
fn every_anomaly_has_a_title() {
    let lines: Vec<_> = AnomalyKind::all()
        .map(|kind| {
            let levels = Level::all().filter(|level| kind.forbidden_at(*level)).collect();
            let others = other_names(kind).join(", ");
            format!("{} [{kind}; {others}]: {}", title(kind), rules_out(levels))
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn why_levels_do_not_apply() {
    let history = registers();
    let names = Names::new(&history);
    let ambiguous = |first: Option<u32>, second, total| Inapplicable::AmbiguousRead {
        read: OpId(4),
        first: first.map(OpId),
        second: OpId(second),
        total,
    };
    let reasons = [
        ambiguous(Some(0), 3, 1),
        ambiguous(None, 3, 4),
        ambiguous(Some(0), 1, 1),
        Inapplicable::Operation { op: OpId(7) },
        Inapplicable::NoTimes,
        Inapplicable::NoVersionOrder,
        Inapplicable::NoChecker,
        Inapplicable::CyclicDependencies,
        Inapplicable::SkewOfEventOrder,
        Inapplicable::NotByCertificate,
        Inapplicable::OpenVersionOrder { key: X },
        Inapplicable::NoVersionSet { op: OpId(5), total: 1 },
        Inapplicable::NoVersionSet { op: OpId(5), total: 12 },
    ];
    let lines: Vec<_> = reasons.iter().map(|why| why_not_applicable(names, why)).collect();
    insta::assert_snapshot!(lines.join("\n"));
}
