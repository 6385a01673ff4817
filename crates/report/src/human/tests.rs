//! Whole reports, as people read them.

use std::time::Duration;

use isolario_model::{
    Anomaly, Attempt, Batch, Evidence, Findings, Inapplicable, KeyId, LevelResult, Limit, Op, OpId,
    OpNotes, Outcome, PatternResult, Reason, SearchParts, SearchProgress, Stamp, Stats, TxnEnd,
    TxnId, TxnSink, TxnStart, Undecided, Verdict, VersionOrder, Witness,
};

use super::*;
use crate::stats::StatsReport;
use crate::testing::{History as Builder, edge, int, r, w};

fn result(level: Level, verdict: Verdict) -> LevelResult {
    LevelResult { level, decided_by: Attempt::Rule, verdict }
}

fn violated(level: Level, anomalies: Vec<Anomaly>) -> LevelResult {
    result(level, Verdict::Violated(Findings::new(anomalies, true)))
}

fn text_of(mut human: Human, report: &Report<'_>) -> String {
    let mut out = Vec::new();
    human.report(report, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn plain(report: &Report<'_>) -> String {
    let text = text_of(Human::new(Style::Plain), report);
    assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
    text
}

/// T1 and T2 read each other's writes; T3 reads what T4, aborted, wrote.
fn history() -> isolario_model::History {
    Builder::new()
        .txn(&[w("x", 1), r("y", 1), w("a", 1), w("b", 1)])
        .session()
        .txn(&[r("x", 1), w("y", 1)])
        .session()
        .txn(&[r("z", 9)])
        .session()
        .ended(&[w("z", 9)], Outcome::Aborted)
        .build()
}

fn cycle() -> Anomaly {
    let read = |key, read, write| Reason::Read {
        key: KeyId(key),
        read: OpId(read),
        write: Some(OpId(write)),
    };
    let edges = vec![edge(0, 1, read(0, 4, 0)), edge(1, 0, read(1, 1, 5))];
    Anomaly::new(AnomalyKind::CyclicCo, Evidence::Cycle { edges })
}

fn aborted_read() -> Anomaly {
    let evidence = Evidence::Read { read: OpId(6), saw: Some(OpId(7)), instead: None };
    Anomaly::new(AnomalyKind::AbortedRead, evidence)
}

#[test]
fn violated_levels_come_with_their_anomalies() {
    let history = history();
    let results = [
        violated(Level::AdyaReadCommitted, vec![aborted_read(), cycle()]),
        result(Level::CutIsolation, Verdict::Satisfied(Witness::Empty)),
        violated(Level::ReadAtomic, vec![aborted_read(), cycle()]),
    ];
    insta::assert_snapshot!(plain(&Report::new("h.txt", &history, &results)));
}

#[test]
fn anomalies_beyond_the_limit_are_counted() {
    let history = history();
    let evidence = Evidence::Read { read: OpId(4), saw: None, instead: None };
    let third = Anomaly::new(AnomalyKind::ThinAirRead, evidence);
    let results = [violated(Level::AdyaReadCommitted, vec![aborted_read(), cycle(), third])];
    let report = Report::new("h.txt", &history, &results);
    let one = text_of(
        Human {
            hints: Hints { more: "use a larger limit", ..Hints::default() },
            ..Human::default()
        },
        &report.clone().with_max_anomalies(1),
    );
    let hidden = "\n… 2 more anomalies not shown; use a larger limit\n  \
                  AbortedRead  1  1 on z\n  CyclicCO     1  1 on x\n  ThinAirRead  1  1 on x\n";
    assert!(one.contains(hidden), "{one}");
    let none = plain(&report.with_max_anomalies(0));
    assert!(none.contains("\n… 3 anomalies not shown\n"), "{none}");
}

#[test]
fn of_stronger_levels_there_are_the_names_where_no_level_was_asked_for() {
    let history = history();
    let results = [
        violated(Level::ReadCommitted, vec![aborted_read()]),
        violated(Level::ReadAtomic, vec![aborted_read(), cycle()]),
    ];
    let report = Report::new("h.txt", &history, &results).with_weakest_only(true);
    let hints = Hints { levels: "ask for a level", ..Hints::default() };
    let text = text_of(Human { hints, ..Human::default() }, &report);
    assert!(!text.contains("comes before itself"), "{text}");
    assert!(text.contains("\nStronger levels show more: CyclicCO; ask for a level\n"), "{text}");
}

#[test]
fn single_anomalies_are_found_or_not() {
    let history = history();
    let patterns = [
        (AnomalyKind::AbortedRead, violated(Level::ReadCommitted, vec![aborted_read()]).verdict),
        (AnomalyKind::CyclicCo, Verdict::Satisfied(Witness::Empty)),
        (AnomalyKind::NonMonotonicRead, Verdict::NotApplicable(Inapplicable::NoTimes)),
        (AnomalyKind::ConflictCm, Verdict::Undecided(Undecided::new(Limit::Steps))),
    ]
    .map(|(kind, verdict)| PatternResult { kind, verdict });
    insta::assert_snapshot!(plain(&Report::of_patterns("h.txt", &history, &patterns)));
}

#[test]
fn several_histories_end_in_a_table() {
    let history = history();
    let both = [violated(Level::AdyaReadCommitted, vec![aborted_read(), cycle()])];
    let one = [violated(Level::AdyaReadCommitted, vec![cycle()])];
    let none = [result(Level::ReadCommitted, Verdict::Satisfied(Witness::Empty))];
    let mut summary = Summary::default();
    for results in [&both, &one, &none] {
        summary.add(&Report::new("h.txt", &history, results));
    }
    summary.add_failure();
    let mut out = Vec::new();
    Human::default().summary(&summary, &mut out).unwrap();
    insta::assert_snapshot!(String::from_utf8(out).unwrap());
    out = Vec::new();
    Human::default().summary(&Summary::default(), &mut out).unwrap();
    assert!(out.is_empty(), "nothing was wrong");
}

#[test]
fn verdicts_without_anomalies_give_their_reasons() {
    let history = history();
    let ambiguous = Inapplicable::AmbiguousRead {
        read: OpId(4),
        first: Some(OpId(0)),
        second: OpId(2),
        total: 12,
    };
    let progress = SearchProgress::Writes {
        pairs: 20,
        decided: Some(17),
        parts: Some(SearchParts { total: 5, unsolved: 2, largest: 40 }),
        conflicts: Some(12),
    };
    let late = Undecided::new(Limit::Time(Duration::from_secs(60))).with_progress(progress);
    let findings = Findings { total: 3, ..Findings::default() };
    let results = [
        result(Level::ReadCommitted, Verdict::Satisfied(Witness::Empty)),
        result(Level::ReadAtomic, Verdict::NotApplicable(ambiguous)),
        result(Level::SnapshotIsolation, Verdict::Undecided(late)),
        result(Level::StrictSerializable, Verdict::NotApplicable(Inapplicable::NoTimes)),
        result(Level::Linearizable, Verdict::Violated(findings)),
    ];
    insta::assert_snapshot!(plain(&Report::new("h.txt", &history, &results)));
}

#[test]
fn arguments_within_arguments_are_set_in() {
    let history = history();
    let visible = Reason::Visible {
        rule: Level::Causal,
        key: KeyId(0),
        reader: TxnId(1),
        read: OpId(4),
        path: vec![edge(2, 3, Reason::Session), edge(3, 1, Reason::Stated { at: 7 })],
    };
    let stated = Reason::Overwrite { key: KeyId(0), known: VersionOrder::Stated { at: 1 } };
    let edges = vec![edge(2, 0, visible), edge(0, 2, stated)];
    let cycles = vec![edges.clone(); 7];
    let cases = Anomaly::new(AnomalyKind::NoOrderPossible, Evidence::Cases { cycles });
    let cycle = Anomaly::new(AnomalyKind::CoConflictCm, Evidence::Cycle { edges });
    let causal = plain(&Report::new("h.txt", &history, &[violated(Level::Causal, vec![cycle])]));
    let cases = violated(Level::Prefix, vec![cases.at(Level::Prefix)]);
    let prefix = plain(&Report::new("h.txt", &history, &[cases]));
    insta::assert_snapshot!(format!("{causal}\n{prefix}"));
}

#[test]
fn one_case_is_no_case() {
    let history = history();
    let cases = Evidence::Cases { cycles: vec![cycle().evidence.edges().to_vec()] };
    let anomaly = Anomaly::new(AnomalyKind::NoOrderPossible, cases).at(Level::Serializable);
    let results = [violated(Level::Serializable, vec![anomaly])];
    let text = plain(&Report::new("h.txt", &history, &results));
    assert!(text.contains("No possible order at serializable: what the clients saw"), "{text}");
    assert!(!text.contains("Case") && !text.contains(" case"), "{text}");
    assert!(text.contains("so T1 comes before itself"), "{text}");
}

#[test]
fn text_is_as_wide_as_the_terminal() {
    let history = history();
    let results = [violated(Level::AdyaReadCommitted, vec![aborted_read(), cycle()])];
    let report = Report::new("h.txt", &history, &results);
    for width in [60, 80, 120] {
        let human = Human { columns: Some(width), ..Human::default() };
        let text = text_of(human, &report);
        let widest = text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
        assert!(widest <= width && widest > width - 25, "{widest} of {width}: {text}");
    }
}

#[test]
fn everything_known_of_a_transaction_is_shown() {
    let mut batch = Batch::new();
    let x = crate::testing::text("x");
    for (session, outcome, error) in [
        (1, Outcome::Aborted, Some("could not serialize access\u{7} (40001)")),
        (2, Outcome::Committed, None),
    ] {
        let id = Some(int(session));
        batch.begin(&TxnStart { session: int(session), id, line: None }).unwrap();
        let sql = if session == 1 { "UPDATE t SET v = 5" } else { "SELECT v FROM t" };
        let op = match session {
            1 => Op::Write { key: x, value: int(5) },
            _ => Op::Read { key: x, value: Some(int(5)) },
        };
        batch.op_with(&op, &OpNotes { sql: Some(sql), ..OpNotes::default() }).unwrap();
        let start = Some(session * 2_000_000);
        let end = TxnEnd {
            start,
            finish: start.map(|start| start + 1_000_000),
            db_start: Some(Stamp { physical: 70, logical: 0 }),
            db_commit: Some(Stamp { physical: 71, logical: 2 }),
            snapshot: Some("10:20:"),
            error,
            ..TxnEnd::new(outcome)
        };
        batch.end(&end).unwrap();
    }
    let history = batch.build().unwrap();
    let evidence = Evidence::Read { read: OpId(1), saw: Some(OpId(0)), instead: None };
    let anomaly = Anomaly::new(AnomalyKind::AbortedRead, evidence);
    let results = [violated(Level::AdyaReadCommitted, vec![anomaly])];
    insta::assert_snapshot!(plain(&Report::new("h.txt", &history, &results)));
}

#[test]
fn long_cycles_are_told_by_their_beginning_and_end() {
    let length = 200;
    let mut builder = Builder::new();
    for _ in 0..length {
        builder = builder.txn(&[]);
    }
    let history = builder.build();
    let edges: Vec<_> = (0..length).map(|i| edge(i, (i + 1) % length, Reason::Session)).collect();
    let cycle = Anomaly::new(AnomalyKind::CyclicCo, Evidence::Cycle { edges });
    let results = [violated(Level::AdyaReadCommitted, vec![cycle])];
    insta::assert_snapshot!(plain(&Report::new("h.txt", &history, &results)));
}

#[test]
fn reports_on_several_histories_stand_apart() {
    let history = Builder::new().build();
    let results = [result(Level::ReadCommitted, Verdict::Satisfied(Witness::Empty))];
    let report = Report::new("h.txt", &history, &results);
    let mut human = Human::default();
    let mut out = Vec::new();
    human.report(&report, &mut out).unwrap();
    human.failure("bad.txt".into(), "cannot be read", &mut out).unwrap();
    human.report(&report, &mut out).unwrap();
    insta::assert_snapshot!(String::from_utf8(out).unwrap());
}

#[test]
fn colour_adds_nothing_but_escapes() {
    let history = history();
    let results = [violated(Level::AdyaReadCommitted, vec![aborted_read(), cycle()])];
    let report = Report::new("h.txt", &history, &results);
    let coloured = text_of(Human::new(Style::Coloured), &report);
    assert_ne!(coloured, plain(&report));
    let mut stripped = String::new();
    for (index, part) in coloured.split('\u{1b}').enumerate() {
        stripped.push_str(if index == 0 { part } else { part.split_once('m').unwrap().1 });
    }
    assert_eq!(stripped, plain(&report));
}

#[test]
fn timings_are_said_on_request() {
    let history = Builder::new().build();
    let timing = Timing {
        load: Duration::from_micros(1234),
        check: Duration::from_millis(2),
        peak_rss_bytes: Some(3 << 20),
    };
    let report = Report::new("h.txt", &history, &[]).with_timing(timing);
    let text = text_of(Human { timing: true, ..Human::default() }, &report);
    assert!(text.contains("loaded in 1.2ms, checked in 2.0ms, 3.0 MiB at most"), "{text}");
}

#[test]
fn figures_of_histories() {
    let shown = |history: &isolario_model::History| {
        let stats = Stats::of(history);
        let mut out = Vec::new();
        let report = StatsReport::new("h.txt", history, &stats, &[]);
        Human::default().stats(&report, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    let empty = Builder::new().build();
    insta::assert_snapshot!(format!("{}\n{}", shown(&history()), shown(&empty)));
}
