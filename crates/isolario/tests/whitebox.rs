//! Runs that are also checked against the database's own word.

#![cfg(all(feature = "run", feature = "sim", feature = "sqlite"))]
#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use isolario::model::{Level, VerdictKind};
use isolario::run::{Handle, Judgement, RunOutcome, Settings, Shrinking, run};
use isolario::workload::{Kind, Workload};
use tempfile::TempDir;

fn whitebox(url: &str, kind: Kind) -> (RunOutcome, TempDir) {
    let directory = TempDir::new().unwrap();
    let settings = Settings::new(kind)
        .with_url(url)
        .unwrap()
        .with_workload(Workload { kind, ops: 4, keys: 40, ..Workload::default() })
        .with_txns(300)
        .with_shrinking(Shrinking::Never)
        .with_whitebox(true)
        .with_out(directory.path().join("run"));
    (run(&settings, &Handle::new(), &mut ()).unwrap(), directory)
}

#[test]
fn the_order_that_a_database_promises_is_checked_predicates_included() {
    for (url, level) in
        [("sqlite:", Level::StrictSerializable), ("sim:serializable", Level::Serializable)]
    {
        for kind in [Kind::Predicate, Kind::Append, Kind::Mini] {
            let (outcome, _directory) = whitebox(url, kind);
            let own = outcome.whitebox.as_ref().unwrap();
            let answers: Vec<_> =
                own.by_order.iter().map(|result| (result.level, result.verdict.kind())).collect();
            assert_eq!(answers, [(level, VerdictKind::Satisfied)], "{url} {kind}");
            assert_eq!(outcome.judgement(), Judgement::Satisfied, "{url} {kind}");
            let record = outcome.record.whitebox.unwrap();
            assert_eq!((record.failure, record.by_order.len()), (None, 1));
        }
    }
}

#[test]
fn a_broken_promise_of_an_order_is_a_violation() {
    let (outcome, _directory) = whitebox("sim:serializable?anomaly=WriteSkew", Kind::Predicate);
    assert_eq!(outcome.judgement(), Judgement::Violated);
    let own = outcome.whitebox.unwrap();
    assert_eq!(own.by_order[0].verdict.kind(), VerdictKind::Violated);
}

#[test]
fn without_a_log_there_is_an_explanation_and_the_answer_by_what_clients_saw() {
    let (outcome, _directory) = whitebox("sim:causal", Kind::Mini);
    let why = outcome.whitebox.as_ref().unwrap().failure.clone().unwrap();
    assert_eq!(why, "the order of versions is captured for the predicate workload, not for mini");
    assert_eq!(outcome.judgement(), Judgement::Satisfied);
    assert_eq!(outcome.record.whitebox.unwrap().failure, Some(why));
}
