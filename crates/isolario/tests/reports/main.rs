//! Every anomaly of the table in every form that people and programs get it in.
//!
//! The histories are those of `isolario explain`, and the evidence is what the checkers find, where
//! they call it by its name. Some need evidence by hand: the database's own order of versions, which
//! the histories do not state, would be part of it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod by_hand;

use isolario::check::{CheckOptions, StatedOrder, check, supported};
use isolario::formats::{Source, find};
use isolario::model::{
    Anomaly, AnomalyKind, Attempt, Findings, History, KeyId, Level, LevelResult, TxnId, Verdict,
};
use isolario::report::explain::Topic;
use isolario::report::{Human, Json, Junit, Renderer, Report, dot, svg};

fn history(text: &'static str) -> History {
    let source = Source::from_bytes("example", text.into()).unwrap();
    find("text").unwrap().read(&source).unwrap().history
}

/// A level that finds an anomaly, and what it finds.
fn found(history: &History, kind: AnomalyKind) -> Option<LevelResult> {
    let results = check(history, supported(), &CheckOptions::default());
    results.into_iter().find_map(|result| match result.verdict {
        Verdict::Violated(findings) => {
            let anomaly = findings.anomalies.into_iter().find(|anomaly| anomaly.kind == kind)?;
            Some(violated(result.level, result.decided_by, Anomaly::clone(&anomaly)))
        }
        _ => None,
    })
}

fn violated(level: Level, decided_by: Attempt, anomaly: Anomaly) -> LevelResult {
    let findings = Findings::new(vec![anomaly], true);
    LevelResult { level, decided_by, verdict: Verdict::Violated(findings) }
}

/// What a renderer writes.
fn rendered(mut renderer: impl Renderer, report: &Report<'_>) -> String {
    let mut out = Vec::new();
    renderer.begin(&mut out).unwrap();
    renderer.report(report, &mut out).unwrap();
    renderer.end(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// All forms, one after the other. Of SVG the style, which all have in common, is left out.
fn all_forms(report: &Report<'_>) -> String {
    let text = rendered(Human::default(), report);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let (mut graph, mut picture) = (Vec::new(), Vec::new());
    dot::write(report, &mut graph).unwrap();
    svg::write(report, &mut picture).unwrap();
    let picture = String::from_utf8(picture).unwrap();
    let (start, rest) = picture.split_once("<style>").unwrap();
    let (_, end) = rest.split_once("</style>\n").unwrap();
    [
        text,
        rendered(Json, report).replace(",\"", ",\n\""),
        rendered(Junit, report),
        String::from_utf8(graph).unwrap(),
        format!("{start}{end}"),
    ]
    .join("\n---\n\n")
}

#[test]
fn every_anomaly_of_the_table() {
    for kind in AnomalyKind::all() {
        let history = history(Topic::Anomaly(kind).page().history);
        let result = found(&history, kind).unwrap_or_else(|| {
            let level = kind.names().forbidden_by[0];
            violated(level, Attempt::Versions, by_hand::anomaly(&history, kind))
        });
        let results = [result];
        let report = Report::new("example.txt", &history, &results);
        insta::assert_snapshot!(kind.name(), all_forms(&report));
    }
}

#[test]
fn a_history_with_nothing_wrong() {
    let history = history(
        "initial 0\nsession a\n  T1 [0, 10]: r x 0, w x 1\nsession b\n  T2 [20, 30]: r x 1, w x 2\n",
    );
    let levels =
        [Level::ReadCommitted, Level::Causal, Level::Serializable, Level::StrictSerializable];
    let results = check(&history, &levels, &CheckOptions::default());
    let report = Report::new("fine.txt", &history, &results);
    insta::assert_snapshot!(all_forms(&report));
}

/// That T1 overwrote the x of T2 is known only because the other order is impossible.
#[test]
fn an_argument_within_an_argument() {
    let history = history(
        "initial 0\nsession a\n  T1: w x 1, w a 1\nsession b\n  T2: r a 0, w x 2\n\
         session c\n  T3: r x 2, r a 1\n",
    );
    let results = check(&history, &[Level::Causal, Level::Serializable], &CheckOptions::default());
    let text = all_forms(&Report::new("example.txt", &history, &results));
    assert!(text.contains("would close a cycle"), "{text}");
    insta::assert_snapshot!(text);
}

/// Two readers agree on an order of two writes, and somebody states the other one.
#[test]
fn a_stated_order_that_clients_contradict() {
    let history = history(
        "initial 0\nsession a\n  T1: w x 1\nsession b\n  T2: w x 2\nsession c\n  T3: r x 1\n  T4: r x 2\n",
    );
    let mut options = CheckOptions::default();
    let stated = StatedOrder { key: KeyId(0), writers: vec![TxnId(1), TxnId(0)], at: 7 };
    options.version_order = vec![stated];
    options.trust_version_order = true;
    let results = check(&history, &[Level::Serializable], &options);
    insta::assert_snapshot!(all_forms(&Report::new("example.txt", &history, &results)));
}

/// Every order of two writes fails, each for a reason of its own.
#[test]
fn an_argument_by_cases() {
    let history = history(Topic::Anomaly(AnomalyKind::NoOrderPossible).page().history);
    let results = check(&history, &[Level::Serializable], &CheckOptions::default());
    insta::assert_snapshot!(all_forms(&Report::new("example.txt", &history, &results)));
}
