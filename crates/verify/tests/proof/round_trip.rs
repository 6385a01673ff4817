//! What is written is read back.

use isolario_model::{Anomaly, AnomalyKind, TxnId, Verdict, Witness};
use isolario_model::{Attempt, Edge, Evidence, Findings, Level, LevelResult, OpId, Reason};
use isolario_oracle::history;
use isolario_oracle::random::{Case, Rng};
use isolario_oracle::volume;
use isolario_verify::{VerifyOptions, proof};

use crate::forger::Forger;
use crate::support::{oddly_named, options, proof_of, results, write};

/// A proof names the checker, and of the attempts that a checker makes one is read back.
fn as_read(attempt: Attempt) -> Attempt {
    use Attempt::{
        Certificate, Linearization, PromisedOrder, Rows, Rule, Search, Segments, Versions,
    };
    match attempt {
        Linearization => Linearization,
        Segments | Search => Search,
        PromisedOrder | Certificate | Versions | Rows => Versions,
        _ => Rule,
    }
}

#[test]
fn what_the_checkers_show_is_read_back_and_verified() {
    for case in Case::first(volume() / 4) {
        let draft = if case.seed.is_multiple_of(3) { case.list_draft() } else { case.draft() };
        let history = draft.history().expect("small");
        let options = options(case.seed % 4 != 0);
        let mut results = results(&history, &options);
        let file = write(&history, &results, &options);
        results.iter_mut().for_each(|result| result.decided_by = as_read(result.decided_by));
        let verified = proof::verify_proof(&history, file.as_bytes()).expect("well formed");
        assert!(verified.is_right(), "{:#?}\n{file}\n{}", verified.refusals, draft);
        assert_eq!(verified.proof.results, results, "{file}");
        assert_eq!(verified.proof.options, options);
        assert_eq!(verified.proof.history, "a history");
    }
}

#[test]
fn every_verdict_and_every_reason_is_read_back() {
    let named = oddly_named();
    for seed in 0..volume() / 20 {
        let mut forger = Forger { history: &named, rng: Rng::new(seed) };
        let (mut results, options) = (forger.results(), options(seed.is_multiple_of(2)));
        let file = write(&named, &results, &options);
        let read = proof::read(&named, file.as_bytes()).expect("well formed");
        results.iter_mut().for_each(|result| result.decided_by = as_read(result.decided_by));
        assert_eq!(read.results, results, "{file}");
        assert_eq!(read.options, options);
        // Wrong as they are, they are looked at without a panic.
        proof::verify_proof(&named, file.as_bytes()).expect("well formed");
    }
}

fn satisfied(order: Vec<TxnId>) -> LevelResult {
    let verdict = Verdict::Satisfied(Witness::CommitOrder(order));
    LevelResult { level: Level::Causal, decided_by: Attempt::Rule, verdict }
}

#[test]
fn transactions_go_by_their_own_names_where_these_are_unique_and_by_position_elsewhere() {
    let history = oddly_named();
    let order = history.txns().chain([TxnId::INIT]).collect();
    let file = write(&history, &[satisfied(order)], &VerifyOptions::default());
    let order = file.lines().last().expect("there are lines");
    assert_eq!(
        order,
        "{\"order\":[7,\"7\",{\"keyword\":\"7\"},{\"other\":\"7\"},null,true,\
         18446744073709551615,-9223372036854775808,\"\\\"\\\\\\n\u{1f3dd} init #\",\
         {\"#\":9},{\"#\":10},{\"#\":11},{\"#\":\"init\"}]}"
    );
}

#[test]
fn a_long_order_is_many_lines() {
    let text: String = (0..1_000).map(|n| format!("a: w x {n}\n")).collect();
    let history = history(&text);
    let results = [satisfied(history.txns().collect())];
    let file = write(&history, &results, &VerifyOptions::default());
    assert_eq!(file.lines().count(), 2 + 10);
    assert_eq!(proof::read(&history, file.as_bytes()).expect("well formed").results, results);
}

/// An edge whose reason has a reason, and so on.
fn nested(depth: usize) -> LevelResult {
    let mut edge = Edge { from: TxnId(0), to: TxnId(0), reason: Reason::Session };
    for _ in 0..depth {
        edge = Edge { reason: Reason::Refuted { cycle: vec![edge.clone()] }, ..edge };
    }
    let evidence = Evidence::Cycle { edges: vec![edge] };
    let anomalies = vec![Anomaly::new(AnomalyKind::CyclicCo, evidence).at(Level::Causal)];
    let verdict = Verdict::Violated(Findings::new(anomalies, true));
    LevelResult { level: Level::Causal, decided_by: Attempt::Rule, verdict }
}

#[test]
fn reasons_lie_within_each_other_to_a_depth_that_writer_and_reader_agree_on() {
    let history = history("a: w x 1");
    let deepest = (0..)
        .take_while(|depth| {
            let mut file = Vec::new();
            let results = [nested(*depth)];
            let written =
                proof::write(&history, &results, &VerifyOptions::default(), "deep", &mut file);
            written.is_ok() && proof::read(&history, &file).expect("readable").results == results
        })
        .last();
    assert_eq!(deepest, Some(48));
}

#[test]
fn what_the_history_does_not_have_cannot_be_written() {
    let history = history("a: w x 1");
    let mut wrong = vec![satisfied(vec![TxnId(1)])];
    let evidence = Evidence::Read { read: OpId(1), saw: None, instead: None };
    let anomalies = vec![Anomaly::new(AnomalyKind::ThinAirRead, evidence)];
    let verdict = Verdict::Violated(Findings::new(anomalies, true));
    wrong.push(LevelResult { verdict, ..wrong[0].clone() });
    for result in wrong {
        let mut file = Vec::new();
        let written = proof::write(&history, &[result], &VerifyOptions::default(), "", &mut file);
        assert!(written.is_err());
    }
}

#[test]
fn an_empty_history_has_a_proof() {
    let history = history("");
    let verified = proof::verify_proof(&history, proof_of(&history).as_bytes());
    assert!(verified.expect("well formed").is_right());
}
