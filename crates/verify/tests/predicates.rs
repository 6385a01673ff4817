//! Random small tables of which nothing is promised go through the oracle, the checker and the
//! verifier, and all must agree.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use isolario_check::check;
use isolario_model::{
    Anomaly, AnomalyKind, Batch, Edge, EdgeKind, EvaluatedVersion, Evidence, ExpectedVersion,
    Findings, History, Inapplicable, IncarnationView, Initial, ItemView, KeyId, Level, LevelNodes,
    Limit, Meta, Op, OpId, OpInput, OpNotes, Outcome, Point, Predicate, Reason, RowInput,
    SinkError, StatedOrder, TxnEnd, TxnId, TxnSink, TxnStart, ValueRef, Verdict, VerdictKind,
    VersionSet, Witness,
};
use isolario_oracle::random::Case;
use isolario_oracle::random::certificates::certificate_case;
use isolario_oracle::random::postgres::postgres_case;
use isolario_oracle::random::tables::{black_box_case, incarnations_case};
use isolario_oracle::{Answer, Shown, satisfies_certificate, satisfies_predicates, volume};
use isolario_verify::verify;

const LEVELS: [Level; 5] = [
    Level::Serializable,
    Level::StrictSerializable,
    Level::Prefix,
    Level::SnapshotIsolation,
    Level::StrongSnapshotIsolation,
];

/// The history with rows of one key apart, if somebody saw two.
fn apart(history: &History) -> Option<IncarnationView> {
    IncarnationView::new(history, |_, _| false)
}

/// How often there was which verdict.
#[derive(Debug, Default)]
struct Tally {
    satisfied: u64,
    violated: u64,
    /// Not applicable.
    open: u64,
    /// Mostly where rows come back after a delete, and nobody knows when.
    undecided: u64,
}

/// Lets oracle, checker and verifier judge a history.
fn agree(seed: u64, history: &History, levels: &[Level], tally: &mut Tally) {
    let session_order = !seed.is_multiple_of(3);
    let options = isolario_check::CheckOptions::default().with_session_order(session_order);
    for result in check(history, levels, &options) {
        let level = result.level;
        let by_oracle = isolario_oracle::Options::default().with_session_order(session_order);
        let answer = || satisfies_predicates(history, level, by_oracle);
        let plain = isolario_verify::VerifyOptions::default().with_session_order(session_order);
        let accepted = verify(history, &result, &plain);
        assert!(
            accepted.is_ok(),
            "seed {seed}, {level}: {accepted:?} {:?}\n{:#?}",
            result.verdict,
            Shown(history)
        );
        for anomaly in result.verdict.anomalies() {
            let ruled_out = levels.iter().filter(|other| anomaly.rules_out.contains(**other));
            for other in ruled_out {
                let answer = satisfies_predicates(history, *other, by_oracle);
                assert!(
                    answer != Answer::Satisfied,
                    "seed {seed}, {level}: {anomaly:?} does not rule out {other}\n{:#?}",
                    Shown(history)
                );
            }
        }
        let agrees = match &result.verdict {
            Verdict::Satisfied(_) => {
                tally.satisfied += 1;
                answer() == Answer::Satisfied
            }
            Verdict::Violated(findings) => {
                tally.violated += 1;
                let expected = match findings.anomalies.iter().all(|a| is_of_one_txn(a)) {
                    // Whatever others wrote.
                    true => [Answer::Violated, Answer::Unsupported],
                    false => [Answer::Violated; 2],
                };
                expected.contains(&answer())
            }
            Verdict::NotApplicable(_) => {
                tally.open += 1;
                true
            }
            Verdict::Undecided(why) => match why.limit {
                Limit::UnobservedWrite(_) => answer() == Answer::Unsupported,
                _ => {
                    tally.undecided += 1;
                    level.shape().exclusive_writers || may_be_undecided(history)
                }
            },
            _ => false,
        };
        assert!(
            agrees,
            "seed {seed}, {level}: {:?}, and by the oracle {:?}\n{:#?}",
            result.verdict,
            answer(),
            Shown(history),
        );
    }
}

/// Whether a history may be left undecided at every level: somebody saw two rows of one key, or what
/// a transaction was told about rows rules out that it committed, and nothing else tells its outcome.
fn may_be_undecided(history: &History) -> bool {
    let certain = certainly_committed(history);
    let is_open = |txn: &TxnId| history.outcome(*txn) == Outcome::Unknown && !certain.contains(txn);
    apart(history).is_some() || history.txns().any(|txn| is_open(&txn))
}

/// The transactions that committed by their outcome, or since such a one read what nobody else wrote.
fn certainly_committed(history: &History) -> Vec<TxnId> {
    let view = ItemView::new(history).expect("small");
    let items = view.history();
    let version = |op: OpId| (items.op_keys()[op.index()], items.encoded_version(op));
    let of_kind = |txn: TxnId, writes: bool| {
        let ops = items.txn_ops(txn).filter(move |op| match items.op(*op) {
            Op::Write { .. } | Op::Delete { .. } => writes,
            Op::Read { value: Some(_), .. } => !writes,
            _ => false,
        });
        ops.map(version).collect::<Vec<_>>()
    };
    let committed = |txn: &TxnId| items.outcome(*txn) == Outcome::Committed;
    let mut certain: Vec<TxnId> = items.txns().filter(committed).collect();
    let mut at = 0;
    while let Some(reader) = certain.get(at).copied() {
        at += 1;
        for seen in of_kind(reader, false) {
            let mut writers = items.txns().filter(|txn| of_kind(*txn, true).contains(&seen));
            let only = writers.next().filter(|_| writers.next().is_none());
            let is_new =
                |txn: &TxnId| items.outcome(*txn) == Outcome::Unknown && !certain.contains(txn);
            if items.encoded_initial_version() != Some(seen.1) {
                certain.extend(only.filter(is_new));
            }
        }
    }
    certain
}

#[test]
fn the_checker_agrees_with_every_order() {
    let mut tally = Tally::default();
    for seed in 0..volume() {
        let history = black_box_case(seed).expect("a history");
        agree(seed, &history, &LEVELS, &mut tally);
    }
    let Tally { satisfied, violated, open, undecided } = tally;
    assert!(satisfied > 5 * open && 2 * violated > open, "{tally:?}");
    assert!(satisfied > 200 * undecided, "{tally:?}");
}

#[test]
fn the_checker_agrees_with_every_order_of_rows_that_come_and_go() {
    // Where somebody saw two rows of one key; and elsewhere.
    let mut tallies: [Tally; 2] = Default::default();
    for seed in 0..volume() {
        let history = incarnations_case(seed).expect("a history");
        let [both, others] = &mut tallies;
        match apart(&history) {
            Some(_) => agree(seed, &history, &LEVELS[2..], both),
            None => agree(seed, &history, &LEVELS, others),
        }
    }
    let [both, others] = &tallies;
    assert!(both.satisfied + both.violated > both.undecided, "{tallies:?}");
    assert!(others.satisfied > 100 * others.undecided, "{tallies:?}");
    assert!(both.satisfied > volume() / 1_000, "{tallies:?}");
}

#[test]
fn the_checker_agrees_with_every_order_of_what_postgres_shows() {
    // Where a transaction saw two rows of one key; and elsewhere.
    let mut tallies: [Tally; 2] = Default::default();
    let mut true_ones = 0;
    for seed in 0..volume() / 4 {
        let case = postgres_case(seed).expect("a history");
        let history = &case.stated.history;
        let [both, others] = &mut tallies;
        let has_both = apart(history).is_some();
        agree(seed, history, &LEVELS, if has_both { both } else { others });
        for result in check(history, &LEVELS[2..], &isolario_check::CheckOptions::default()) {
            if case.is_true {
                true_ones += u64::from(result.verdict.is_satisfied() && has_both);
                assert!(!result.verdict.is_violated(), "seed {seed}: {:#?}", Shown(history));
            }
        }
    }
    let [both, others] = &tallies;
    assert!(both.satisfied > 5 * both.undecided && both.violated > both.undecided, "{tallies:?}");
    assert!(both.satisfied + both.violated > volume() / 20, "{tallies:?}");
    assert!(others.satisfied > 100 * others.undecided, "{tallies:?}");
    assert!(true_ones > volume() / 50, "{true_ones}");
}

/// Rows come back whether or not the history has predicates, and whatever it says about other tables.
#[test]
fn rows_come_back_without_predicates() {
    let mut tally = Tally::default();
    let mut compared = 0;
    for seed in 0..volume() / 8 {
        let case = postgres_case(seed).expect("a history");
        let history = &case.stated.history;
        let [alone, beside] = [false, true].map(|has_other_table| {
            let mut single = SingleRows { batch: Batch::new(), has_other_table };
            history.replay(&mut single).and_then(|()| single.batch.build()).expect("a history")
        });
        if !alone.may_reuse_rows() {
            continue;
        }
        assert!(!alone.has_predicates() && beside.has_predicates());
        agree(seed, &alone, &LEVELS, &mut tally);
        let verdicts = [&alone, &beside].map(|history| {
            let results = check(history, &LEVELS, &isolario_check::CheckOptions::default());
            results.into_iter().map(|result| result.verdict.kind()).collect::<Vec<_>>()
        });
        assert_eq!(verdicts[0], verdicts[1], "seed {seed}: {:#?}", Shown(&alone));
        if seed % 10 == 0 {
            compared += by_some_version_orders(seed, &alone);
        }
    }
    let Tally { satisfied, violated, undecided, .. } = tally;
    assert!(satisfied + violated > volume() / 8 && undecided < satisfied / 100, "{tally:?}");
    assert!(compared > volume() / 1000, "{compared}");
}

/// Takes a history of rows without its predicates; perhaps with one about another table.
struct SingleRows {
    batch: Batch,
    has_other_table: bool,
}

impl TxnSink for SingleRows {
    fn meta(&mut self, meta: &Meta) -> Result<(), SinkError> {
        self.batch.meta(meta)
    }

    fn begin(&mut self, start: &TxnStart<'_>) -> Result<(), SinkError> {
        self.batch.begin(start)?;
        if !std::mem::take(&mut self.has_other_table) {
            return Ok(());
        }
        let predicate = &Predicate::from_sql("FROM u WHERE a > 5");
        self.batch.op(&Op::PredicateRead { predicate, rows: Some(&[]) })
    }

    fn op_with(&mut self, op: &OpInput<'_>, notes: &OpNotes<'_>) -> Result<(), SinkError> {
        match op {
            Op::PredicateRead { .. } | Op::Aggregate { .. } => Ok(()),
            Op::PredicateWrite { rows, .. } => {
                rows.unwrap_or_default().iter().try_for_each(|row| match row.value {
                    ValueRef::Nil => self.batch.op(&Op::Delete { key: row.key }),
                    value => self.batch.op(&Op::Write { key: row.key, value }),
                })
            }
            op => self.batch.op_with(op, notes),
        }
    }

    fn end(&mut self, end: &TxnEnd<'_>) -> Result<(), SinkError> {
        self.batch.end(end)
    }
}

/// Compares the levels that are about versions with all orders of the versions of each row. Returns how many
/// levels were compared.
fn by_some_version_orders(seed: u64, history: &History) -> u64 {
    let is_unknown = |txn: TxnId| history.outcome(txn) == Outcome::Unknown;
    if history.txns().any(is_unknown) {
        return 0;
    }
    let mut orders: Vec<Vec<StatedOrder>> = vec![Vec::new()];
    for key in (0..history.key_count()).map(KeyId::at) {
        let counts = |txn: &TxnId| history.outcome(*txn) == Outcome::Committed;
        let writes = |txn: &TxnId| history.rows_left(*txn).iter().any(|(left, _)| *left == key);
        let writers: Vec<TxnId> = history.txns().filter(counts).filter(writes).collect();
        let of_key = permutations(&writers);
        let with = |order: &Vec<StatedOrder>| -> Vec<Vec<StatedOrder>> {
            let stated =
                |writers: &Vec<TxnId>| StatedOrder { key, writers: writers.clone(), at: 1 };
            of_key.iter().map(|w| order.iter().cloned().chain([stated(w)]).collect()).collect()
        };
        orders = orders.iter().flat_map(with).collect();
    }
    let levels = [
        Level::ReadUncommitted,
        Level::ConsistentView,
        Level::ParallelSnapshotIsolation,
        Level::RepeatableRead,
    ];
    let mut compared = 0;
    for result in check(history, &levels, &isolario_check::CheckOptions::default()) {
        let accepted = verify(history, &result, &isolario_verify::VerifyOptions::default());
        assert!(accepted.is_ok(), "seed {seed}: {accepted:?} {result:?}\n{:#?}", Shown(history));
        let by_oracle = isolario_oracle::Options::default();
        let holds = |order: &Vec<StatedOrder>| {
            let answer = satisfies_certificate(history, result.level, by_oracle, order, &[]);
            answer == Answer::Satisfied
        };
        match &result.verdict {
            Verdict::Satisfied(_) => assert!(orders.iter().any(holds), "seed {seed}: {result:?}"),
            Verdict::Violated(_) => {
                assert!(
                    !orders.iter().any(holds),
                    "seed {seed}: {result:?}\n{:#?}",
                    Shown(history)
                );
            }
            _ => continue,
        }
        compared += 1;
    }
    compared
}

fn permutations(of: &[TxnId]) -> Vec<Vec<TxnId>> {
    let Some((first, rest)) = of.split_first() else { return vec![Vec::new()] };
    let places = |order: Vec<TxnId>| (0..=order.len()).map(move |at| (order.clone(), at));
    let with = |(mut order, at): (Vec<TxnId>, usize)| {
        order.insert(at, *first);
        order
    };
    permutations(rest).into_iter().flat_map(places).map(with).collect()
}

/// Cases on which two of them once disagreed.
#[test]
fn the_checker_agrees_with_every_order_of_rare_cases() {
    let mut tally = Tally::default();
    let incarnations = [22_385, 36_008, 39_958].map(|seed| (seed, incarnations_case(seed)));
    let others = [46_784, 61_080].map(|seed| (seed, black_box_case(seed)));
    for (seed, history) in incarnations.into_iter().chain(others) {
        agree(seed, &history.expect("a history"), &LEVELS, &mut tally);
    }
    // A result has three rows of one key, and no transaction wrote the second one.
    let seed = 38_966;
    let case = postgres_case(seed).expect("a history");
    agree(seed, &case.stated.history, &LEVELS, &mut tally);
}

#[test]
fn the_opposite_of_a_verdict_is_refused() {
    for seed in 0..volume() / 20 {
        let history = black_box_case(seed).expect("a history");
        for mut result in check(&history, &LEVELS, &isolario_check::CheckOptions::default()) {
            let forged = match &result.verdict {
                Verdict::Satisfied(_) => everything_wrong(&history),
                Verdict::Violated(findings) => {
                    let mut forged = less_is_shown(findings);
                    forged.push(in_the_order_of_numbers(&history, result.level));
                    forged
                }
                _ => continue,
            };
            for verdict in forged {
                result.verdict = verdict;
                let accepted =
                    verify(&history, &result, &isolario_verify::VerifyOptions::default());
                assert!(accepted.is_err(), "seed {seed}: {result:?}\n{:#?}", Shown(&history));
            }
        }
    }
}

/// Claims about each operation and row: that no version explains the one, and that each two operations
/// of a transaction contradict each other.
fn everything_wrong(history: &History) -> Vec<Verdict> {
    let mut claims = Vec::new();
    let ops = || (0..history.op_count()).map(OpId::at);
    for key in (0..history.key_count()).map(KeyId::at) {
        for op in ops() {
            let expected = vec![ExpectedVersion { key, write: None }];
            let unexpected = Evidence::Unexpected { op, expected, result: None };
            let row = Evidence::Row { key, read: op, saw: None, instead: None };
            for evidence in [unexpected, row] {
                claims.extend(AnomalyKind::all().map(|kind| Anomaly::new(kind, evidence.clone())));
            }
            for second in ops().filter(|second| history.op_txn(*second) == history.op_txn(op)) {
                let evidence = Evidence::Reads { key, first: op, second, edges: Vec::new() };
                let own = Evidence::Row { key, read: op, saw: None, instead: Some(second) };
                claims.push(Anomaly::new(AnomalyKind::NotMyOwnWrite, own));
                for kind in [AnomalyKind::Phantom, AnomalyKind::PredicateManyPreceders] {
                    claims.push(Anomaly::new(kind, evidence.clone()));
                }
            }
        }
    }
    claims.into_iter().map(|claim| Verdict::Violated(Findings::new(vec![claim], true))).collect()
}

/// The findings with cycles that do not close, and with none.
fn less_is_shown(findings: &Findings) -> Vec<Verdict> {
    let mut forged = Vec::new();
    for anomaly in &findings.anomalies {
        let mut spoil = |evidence| {
            let mut spoilt = Anomaly::clone(anomaly);
            spoilt.evidence = evidence;
            forged.push(Verdict::Violated(Findings::new(vec![spoilt], true)));
        };
        match &anomaly.evidence {
            Evidence::Cycle { edges } => {
                spoil(Evidence::Cycle { edges: Vec::new() });
                spoil(Evidence::Cycle { edges: edges[1..].to_vec() });
                for edges in other_edges(edges) {
                    spoil(Evidence::Cycle { edges });
                }
                if edges.iter().any(|edge| edge.reason.is_about_predicate()) {
                    forged.extend(other_names(anomaly));
                }
            }
            Evidence::Cases { cycles } => {
                spoil(Evidence::Cases { cycles: Vec::new() });
                if let [first, rest @ ..] = &cycles[..] {
                    let mut cycles = rest.to_vec();
                    cycles.push(first[1..].to_vec());
                    spoil(Evidence::Cases { cycles });
                }
            }
            _ => {}
        }
    }
    forged
}

/// A cycle with each edge of a predicate spoilt: nobody says what it met, somebody else wrote that, or the
/// operation is another one.
fn other_edges(edges: &[Edge]) -> Vec<Vec<Edge>> {
    let mut all = Vec::new();
    for (at, edge) in edges.iter().enumerate() {
        let nowhere = OpId(u32::MAX - 1);
        let spoilt = match edge.reason.clone() {
            Reason::PredicateAntiDependency { read, key, write, evaluated: Some(met) } => {
                let other = Some(EvaluatedVersion { writer: edge.from, ..met.clone() });
                vec![
                    Reason::PredicateAntiDependency { read, key, write, evaluated: None },
                    Reason::PredicateAntiDependency { read, key, write, evaluated: other },
                    Reason::PredicateAntiDependency {
                        read: write,
                        key,
                        write,
                        evaluated: Some(met),
                    },
                    Reason::PredicateRead { read, key, write },
                ]
            }
            Reason::PredicateRead { read, key, write } => vec![
                Reason::PredicateRead { read: nowhere, key, write },
                Reason::PredicateRead { read, key, write: read },
                Reason::PredicateAntiDependency { read, key, write, evaluated: None },
            ],
            _ => Vec::new(),
        };
        for reason in spoilt {
            let mut spoilt = edges.to_vec();
            spoilt[at].reason = reason;
            all.push(spoilt);
        }
    }
    all
}

/// A cycle with an edge of a predicate under each name but its own.
fn other_names(anomaly: &Anomaly) -> Vec<Verdict> {
    let others = AnomalyKind::all().filter(|kind| *kind != anomaly.kind);
    let renamed = |kind| Anomaly::new(kind, anomaly.evidence.clone());
    others.map(|kind| Verdict::Violated(Findings::new(vec![renamed(kind)], true))).collect()
}

/// With a certificate and without one, a cycle of the same edges has the same name.
#[test]
fn cycles_are_called_as_by_a_certificate() {
    let (mut same, mut other) = (0, 0);
    for seed in 0..volume() / 10 {
        let case = certificate_case(seed).expect("a history");
        let plain = isolario_check::CheckOptions::default();
        let stated = plain
            .clone()
            .with_version_order(case.orders.clone())
            .with_version_sets(case.sets.clone())
            .with_trusted_version_order(true);
        for level in [Level::SnapshotIsolation, Level::Serializable] {
            let [one, two] = [&plain, &stated]
                .map(|options| check(&case.history, &[level], options).remove(0).verdict);
            let ([one], [two]) = (one.anomalies(), two.anomalies()) else { continue };
            if !has_predicate_edge(one) || shape(one) != shape(two) {
                continue;
            }
            match one.kind == two.kind {
                true => same += 1,
                false => other += 1,
            }
        }
    }
    assert!(same > 0 && other == 0, "{same} {other}");
}

fn has_predicate_edge(anomaly: &Anomaly) -> bool {
    let is_cycle = matches!(anomaly.evidence, Evidence::Cycle { .. });
    is_cycle && anomaly.evidence.edges().iter().any(|edge| edge.reason.is_about_predicate())
}

/// The edges of a cycle, whatever explains them, wherever it begins.
fn shape(anomaly: &Anomaly) -> Vec<(TxnId, TxnId, EdgeKind, bool)> {
    let of =
        |edge: &Edge| (edge.from, edge.to, edge.reason.kind(), edge.reason.is_about_predicate());
    let mut edges: Vec<_> = anomaly.evidence.edges().iter().map(of).collect();
    edges.sort_unstable();
    edges
}

/// The claim that transactions took effect in the order of their numbers.
fn in_the_order_of_numbers(history: &History, level: Level) -> Verdict {
    let kept = history.txns().filter(|txn| history.outcome(*txn) == Outcome::Committed);
    Verdict::Satisfied(match level.shape().nodes {
        LevelNodes::One => Witness::CommitOrder(kept.collect()),
        _ => {
            Witness::Points(kept.flat_map(|txn| [Point::Start(txn), Point::Commit(txn)]).collect())
        }
    })
}

/// Below prefix, and where versions must be in an order, predicates are only as good as their rows.
#[test]
fn weak_levels_are_violated_as_single_rows_are_and_never_satisfied() {
    let (mut violated, mut open) = (0, 0);
    for seed in 0..volume() / 10 {
        let history = black_box_case(seed).expect("a history");
        let rows_apart = apart(&history);
        let one_of_each = rows_apart.as_ref().map_or(&history, IncarnationView::history);
        let view = ItemView::new(one_of_each).expect("a view");
        if view.unobserved_write().is_some() || !history.has_predicates() {
            continue;
        }
        let weak: Vec<Level> = Level::decided().filter(|level| !LEVELS.contains(level)).collect();
        let options = isolario_check::CheckOptions::default();
        let items = check(view.history(), &weak, &options);
        for (result, of_items) in check(&history, &weak, &options).iter().zip(items) {
            assert!(!result.verdict.is_satisfied(), "seed {seed}: {result:?}");
            let is_open = |reason: &Inapplicable| matches!(reason, Inapplicable::RowTwice { .. });
            let is_open = matches!(&result.verdict, Verdict::NotApplicable(why) if is_open(why));
            if of_items.level != Level::Linearizable && !is_open {
                // Rows of one key may be different ones where one was deleted.
                let kinds = (result.verdict.is_violated(), of_items.verdict.is_violated());
                let is_more = kinds.0 && !kinds.1;
                assert!(!is_more, "seed {seed}: {result:?}");
                assert!(may_come_back(&history) || kinds.0 == kinds.1, "seed {seed}: {result:?}");
            }
            let accepted = verify(&history, result, &isolario_verify::VerifyOptions::default());
            assert!(
                accepted.is_ok(),
                "seed {seed}: {accepted:?} {result:?}\n{:#?}",
                Shown(&history)
            );
            match result.verdict.is_violated() {
                true => violated += 1,
                false => open += 1,
            }
        }
    }
    assert!(violated > 0 && open > 0, "{violated} {open}");
}

/// A level that is satisfied satisfies the weaker ones, by all orders and by the checker; and what a
/// certificate explains needs none to be explained.
#[test]
fn stronger_levels_satisfy_the_weaker_ones() {
    let decided: Vec<Level> = Level::decided().collect();
    for seed in 0..volume() / 20 {
        let history = black_box_case(seed).expect("a history");
        let options = isolario_oracle::Options::default();
        let by_oracle = LEVELS.map(|level| satisfies_predicates(&history, level, options));
        for (strong, level) in LEVELS.iter().enumerate() {
            for (weak, weaker) in LEVELS.iter().enumerate().filter(|(_, l)| level.implies(**l)) {
                let contradict =
                    (by_oracle[strong], by_oracle[weak]) == (Answer::Satisfied, Answer::Violated);
                assert!(!contradict, "seed {seed}: {level}, {weaker}\n{:#?}", Shown(&history));
            }
        }
        for history in [history, incarnations_case(seed).expect("a history")] {
            let results = check(&history, &decided, &isolario_check::CheckOptions::default());
            for strong in results.iter().filter(|result| result.verdict.is_satisfied()) {
                let implied = results.iter().filter(|result| strong.level.implies(result.level));
                for weak in implied {
                    assert!(
                        !weak.verdict.is_violated(),
                        "seed {seed}: {}, {weak:?}\n{:#?}",
                        strong.level,
                        Shown(&history)
                    );
                }
            }
        }
    }
}

/// Of all levels that a certificate decides, repeatable read and serializability among them.
#[test]
fn stronger_levels_satisfy_the_weaker_ones_by_a_certificate() {
    let levels: Vec<Level> = Level::decided().filter(|l| *l != Level::Linearizable).collect();
    let mut told_apart = 0;
    for seed in 0..volume() / 20 {
        let case = certificate_case(seed).expect("a history");
        let stated = isolario_check::CheckOptions::default()
            .with_version_order(case.orders.clone())
            .with_version_sets(case.sets.clone())
            .with_trusted_version_order(true);
        let kinds: Vec<VerdictKind> =
            check(&case.history, &levels, &stated).iter().map(|r| r.verdict.kind()).collect();
        let kind = |level| kinds[levels.iter().position(|other| *other == level).unwrap_or(0)];
        // Stated snapshots say who had committed before a start, which snapshot isolation alone is about.
        let has_starts =
            case.sets.iter().any(|set| matches!(set.versions, VersionSet::Snapshot(_)));
        let is_by_starts = |level: Level| {
            matches!(level, Level::SnapshotIsolation | Level::StrongSnapshotIsolation)
        };
        for strong in levels.iter().filter(|l| kind(**l) == VerdictKind::Satisfied) {
            for weak in levels.iter().filter(|weak| strong.implies(**weak)) {
                if has_starts && is_by_starts(*weak) && !is_by_starts(*strong) {
                    continue;
                }
                assert_ne!(kind(*weak), VerdictKind::Violated, "seed {seed}: {strong} and {weak}");
            }
        }
        let (ser, rr) = (kind(Level::Serializable), kind(Level::RepeatableRead));
        told_apart += u64::from(ser == VerdictKind::Violated && rr == VerdictKind::Satisfied);
        if ser == VerdictKind::Satisfied {
            let plain = isolario_check::CheckOptions::default();
            let verdict = check(&case.history, &[Level::Serializable], &plain).remove(0).verdict;
            assert!(
                !verdict.is_violated(),
                "seed {seed}: {verdict:?}\n{:#?}",
                Shown(&case.history)
            );
        }
    }
    assert!(told_apart > 0);
}

/// Reads by key as searches for the key: the general solver's answer is the answer.
#[test]
fn searches_for_keys_are_reads_of_them() {
    let levels = [Level::Serializable, Level::SnapshotIsolation, Level::Prefix];
    let (mut satisfied, mut violated) = (0, 0);
    for case in Case::first(volume() / 4) {
        let registers = case.history().expect("a history");
        let Some(rows) = in_row_form(&registers) else { continue };
        let options = isolario_check::CheckOptions::default();
        let of_registers = check(&registers, &levels, &options);
        for (one, two) in of_registers.iter().zip(check(&rows, &levels, &options)) {
            let kinds = (one.verdict.kind(), two.verdict.kind());
            match kinds {
                (VerdictKind::Satisfied, VerdictKind::Satisfied) => satisfied += 1,
                (VerdictKind::Violated, VerdictKind::Violated) => violated += 1,
                (VerdictKind::NotApplicable | VerdictKind::Undecided, _) => {}
                _ => panic!("{case:?} {}: {kinds:?}\n{:#?}", one.level, Shown(&rows)),
            }
        }
    }
    assert!(satisfied > 100 && violated > 100, "{satisfied} {violated}");
}

/// A history of registers with a search for the key in place of every read. None if nobody knows what the
/// keys held at first, or if a key is deleted: what comes after that is another row.
fn in_row_form(registers: &History) -> Option<History> {
    let Initial::Value(_) = registers.initial() else { return None };
    let mut rows = RowForm(Batch::new(), true);
    registers.replay(&mut rows).ok()?;
    if rows.1 { rows.0.build().ok() } else { None }
}

/// Takes operations, and whether rows are never deleted.
struct RowForm(Batch, bool);

impl TxnSink for RowForm {
    fn meta(&mut self, meta: &Meta) -> Result<(), SinkError> {
        self.0.meta(meta)
    }

    fn begin(&mut self, start: &TxnStart<'_>) -> Result<(), SinkError> {
        self.0.begin(start)
    }

    fn op_with(&mut self, op: &OpInput<'_>, notes: &OpNotes<'_>) -> Result<(), SinkError> {
        match op {
            Op::Read { key, value } => {
                let predicate = Predicate::from_sql(&format!("key = '{key}'"));
                let row = value.map(|value| RowInput::new(*key, value));
                let rows = row.as_slice();
                let rows = if *value == Some(ValueRef::Nil) { &[] } else { rows };
                let rows = value.is_some().then_some(rows);
                self.0.op_with(&Op::PredicateRead { predicate: &predicate, rows }, notes)
            }
            op => {
                let is_delete = matches!(op, Op::Delete { .. })
                    || matches!(op, Op::Write { value: ValueRef::Nil, .. });
                self.1 &= !is_delete;
                self.0.op_with(op, notes)
            }
        }
    }

    fn end(&mut self, end: &TxnEnd<'_>) -> Result<(), SinkError> {
        self.0.end(end)
    }
}

/// Whether a row may come back after a delete.
fn may_come_back(history: &History) -> bool {
    let rows_of = |op: OpId| match history.op(op) {
        Op::PredicateWrite { rows, .. } => rows.unwrap_or_default(),
        _ => &[],
    };
    let is_delete = |op: OpId| {
        matches!(history.op(op), Op::Delete { .. })
            || rows_of(op).iter().any(|row| history.value(row.value) == ValueRef::Nil)
    };
    (0..history.op_count()).map(OpId::at).any(is_delete)
}

/// Whether a transaction contradicts itself.
fn is_of_one_txn(anomaly: &Anomaly) -> bool {
    matches!(anomaly.evidence, Evidence::Row { .. } | Evidence::Reads { .. })
}
