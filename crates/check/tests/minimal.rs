//! Arguments that take more than what clients saw are about as few transactions and operations as
//! possible.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::collections::BTreeSet;

use isolario_check::{CheckOptions, Checker};
use isolario_model::{
    Anomaly, Edge, Evidence, History, HistoryPart, KeyId, Level, LevelResult, Op, OpId, OpKind,
    Outcome, Reason, TxnId, Verdict, VersionOrder,
};
use isolario_oracle::random::{Rng, Shape, generate};
use isolario_oracle::volume;

/// Histories that are too long for the oracle, with many blind writes and values that come back, and
/// lists of which little was read.
fn histories() -> impl Iterator<Item = (u64, History)> {
    let plain = Shape { txns: (8, 14), keys: 3, sessions: 6, stray: 0, ..Shape::default() };
    let shapes = [
        Shape { stale: 50, forked: 20, wandering: 0, repeated: 5, ..plain.clone() },
        Shape { duplicates: 30, stale: 30, forked: 10, wandering: 0, repeated: 5, ..plain.clone() },
        Shape {
            duplicates: 20,
            unknown: 20,
            aborted: 10,
            stale: 40,
            wandering: 0,
            ..plain.clone()
        },
        Shape { deletes: 40, stale: 40, forked: 20, wandering: 0, ..plain.clone() },
        Shape { lists: usize::MAX, reads: 25, stale: 30, forked: 5, wandering: 0, ..plain },
    ];
    (0..).map(move |seed| {
        let shape = &shapes[seed as usize % shapes.len()];
        (seed, generate(shape, &mut Rng::new(seed)).history().unwrap())
    })
}

fn check(history: &History, level: Level, minimize: bool) -> LevelResult {
    let mut options = CheckOptions::default();
    options.minimize = minimize;
    Checker::new(history, options).check(level)
}

fn is_violated(history: &History, level: Level) -> bool {
    matches!(check(history, level, false).verdict, Verdict::Violated(_))
}

fn is_write(history: &History, op: OpId) -> bool {
    matches!(history.op_kinds()[op.index()], OpKind::Write | OpKind::Delete | OpKind::Append)
}

/// Whether an argument supposes something, or refutes the opposite.
fn is_intricate(anomaly: &Anomaly) -> bool {
    let supposes = |edge: &Edge| match &edge.reason {
        Reason::Overwrite { known, .. } | Reason::AntiDependency { known, .. } => {
            matches!(known, VersionOrder::Refuted { .. } | VersionOrder::Assumed)
        }
        _ => false,
    };
    matches!(anomaly.evidence, Evidence::Cases { .. }) || anomaly.evidence.walk().any(supposes)
}

/// The operations that an argument names, with all that wrote what its reads saw. What a transaction
/// wrote of a key is one.
fn named(history: &History, anomaly: &Anomaly) -> Vec<Vec<OpId>> {
    let mut reads: BTreeSet<OpId> = BTreeSet::new();
    let mut written: BTreeSet<(TxnId, KeyId)> = BTreeSet::new();
    for Edge { from, to, reason } in anomaly.evidence.walk().cloned() {
        let known = match reason {
            Reason::Read { read, .. } => {
                reads.insert(read);
                continue;
            }
            Reason::Visible { key, read, .. } => {
                reads.insert(read);
                written.extend([(from, key), (to, key)]);
                continue;
            }
            Reason::AntiDependency { key, read, writer, known } => {
                reads.insert(read);
                written.extend([(writer, key), (to, key)]);
                known
            }
            Reason::Overwrite { key, known } => {
                written.extend([(from, key), (to, key)]);
                known
            }
            _ => continue,
        };
        reads.extend(match known {
            VersionOrder::ReadModifyWrite { read }
            | VersionOrder::List { read }
            | VersionOrder::AppendedLater { read } => Some(read),
            _ => None,
        });
    }
    let key = |op: OpId| history.op_keys()[op.index()];
    let ops = || history.txns().flat_map(|txn| history.txn_ops(txn).map(move |op| (txn, op)));
    for read in &reads {
        let saw: BTreeSet<u64> = match history.op(*read) {
            Op::ReadList { elements: Some(elements), .. } => {
                elements.last().iter().map(|element| element.to_bits()).collect()
            }
            _ => BTreeSet::from([history.encoded_version(*read)]),
        };
        let wrote_it = |(_, op): &(TxnId, OpId)| {
            is_write(history, *op)
                && key(*op) == key(*read)
                && saw.contains(&history.encoded_version(*op))
        };
        written.extend(ops().filter(wrote_it).map(|(txn, op)| (txn, key(op))));
    }
    let writes = written.into_iter().map(|(txn, of)| {
        let own = ops().filter(|(by, op)| *by == txn && is_write(history, *op) && key(*op) == of);
        own.map(|(_, op)| op).collect::<Vec<OpId>>()
    });
    let writes = writes.filter(|ops| !ops.is_empty());
    writes.chain(reads.iter().map(|read| vec![*read])).collect()
}

/// The levels that are asked of a history in turn.
const LEVELS: [Level; 5] = [
    Level::Prefix,
    Level::SnapshotIsolation,
    Level::Serializable,
    Level::ReadAtomic,
    Level::Causal,
];

#[test]
fn nothing_can_go_from_an_argument() {
    let options = isolario_verify::VerifyOptions::default();
    let (mut looked_at, mut smaller, mut with_lists) = (0, 0, 0);
    for (seed, history) in histories() {
        // However few are asked for, some arguments are looked at, those about lists among them.
        if seed >= volume() / 10 && looked_at > 0 && smaller > 0 && with_lists > 0 {
            break;
        }
        let level = LEVELS[seed as usize / 5 % LEVELS.len()];
        let plain = check(&history, level, false);
        let Verdict::Violated(found) = &plain.verdict else { continue };
        if !found.anomalies.iter().any(|anomaly| is_intricate(anomaly)) {
            continue;
        }
        let minimal = check(&history, level, true);
        isolario_verify::verify(&history, &plain, &options).unwrap();
        isolario_verify::verify(&history, &minimal, &options)
            .unwrap_or_else(|refusal| panic!("{seed} {}", refusal.describe(&history)));
        let Verdict::Violated(least) = &minimal.verdict else { panic!("{seed} {minimal:?}") };
        let size = |anomaly: &Anomaly| named(&history, anomaly).len();
        let sizes = [found, least].map(|f| f.anomalies.iter().map(|a| size(a)).min());
        smaller += usize::from(sizes[1] < sizes[0]);
        for anomaly in least.anomalies.iter().filter(|anomaly| is_intricate(anomaly)) {
            // Which of those who saw something shows that it was committed is nowhere said.
            let is_unknown =
                |txn: TxnId| !txn.is_init() && history.outcome(txn) == Outcome::Unknown;
            if anomaly.evidence.walk().any(|edge| is_unknown(edge.from) || is_unknown(edge.to)) {
                continue;
            }
            looked_at += 1;
            with_lists += usize::from(history.op_kinds().contains(&OpKind::Append));
            let groups = named(&history, anomaly);
            let part = |ops: Vec<OpId>| HistoryPart::of_ops(&history, ops).build(&history).unwrap();
            let all = part(groups.concat());
            assert!(is_violated(&all, level), "{seed} {level} {anomaly:?}\n{history:?}");
            for left_out in &groups {
                let rest = groups.iter().filter(|group| *group != left_out).flatten();
                let rest = part(rest.copied().collect());
                assert!(!is_violated(&rest, level), "{seed} {level} {left_out:?} {anomaly:?}");
            }
        }
    }
}
