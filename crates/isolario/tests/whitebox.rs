//! Runs that are also checked against the database's own word.

#![cfg(all(feature = "run", feature = "sim", feature = "sqlite"))]
#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::path::Path;

use isolario::check;
use isolario::db::{
    self, Access, Claim, Connection, Database, DbError, DbUrl, Layout, Marking, Receipt, Traits,
};
use isolario::formats::{self, version_order};
use isolario::model::{ItemView, Level, PromisedOrder, Stamp, VerdictKind};
use isolario::run::{Handle, Judgement, RunOutcome, Settings, Shrinking, run, run_against};
use isolario::verify::Verifier;
use isolario::verify::proof::{ProofPremises, verify_proof_with};
use isolario::workload::{Kind, Workload};
use tempfile::TempDir;

fn whitebox(url: &str, kind: Kind) -> (RunOutcome, TempDir) {
    let directory = TempDir::new().unwrap();
    let settings = settings(kind, &directory).with_url(url).unwrap();
    (run(&settings, &Handle::new(), &mut ()).unwrap(), directory)
}

fn settings(kind: Kind, directory: &TempDir) -> Settings {
    Settings::new(kind)
        .with_workload(Workload { kind, ops: 4, keys: 40, ..Workload::default() })
        .with_txns(300)
        .with_shrinking(Shrinking::Never)
        .with_whitebox(true)
        .with_out(directory.path().join("run"))
}

/// A database that tells its clients that it did everything the other way round.
struct Backwards(Box<dyn Database>);

impl Database for Backwards {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn version(&self) -> Result<String, DbError> {
        self.0.version()
    }

    fn traits(&self) -> Traits<'_> {
        self.0.traits()
    }

    fn claim(&self, kind: Kind, nodes: usize) -> Claim {
        self.0.claim(kind, nodes)
    }

    fn marking(&self) -> Marking<'_> {
        self.0.marking()
    }

    fn promised(&self, kind: Kind) -> Option<Level> {
        self.0.promised(kind)
    }

    fn prepare(&self, layout: &Layout) -> Result<(), DbError> {
        self.0.prepare(layout)
    }

    fn clear(&self) -> Result<(), DbError> {
        self.0.clear()
    }

    fn connect(&self) -> Result<Box<dyn Connection>, DbError> {
        Ok(Box::new(Liar(self.0.connect()?)))
    }
}

struct Liar(Box<dyn Connection>);

impl Connection for Liar {
    fn begin(&mut self, access: Access) -> Result<(), DbError> {
        self.0.begin(access)
    }

    fn read(&mut self, key: u64) -> Result<Option<i64>, DbError> {
        self.0.read(key)
    }

    fn write(&mut self, key: u64, value: i64) -> Result<(), DbError> {
        self.0.write(key, value)
    }

    fn commit(&mut self) -> Result<Receipt, DbError> {
        let backwards = |stamp: Stamp| Stamp { physical: u64::MAX - stamp.physical, ..stamp };
        let receipt = self.0.commit()?;
        Ok(receipt.commit.map_or(receipt, |commit| Receipt::at(backwards(commit))))
    }

    fn rollback(&mut self) -> Result<(), DbError> {
        self.0.rollback()
    }
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
    // It takes two transactions at the same time, which is likely in longer runs.
    let outcome = (1..=8).map(|factor| {
        let directory = TempDir::new().unwrap();
        let settings = settings(Kind::Predicate, &directory).with_txns(300 << factor);
        let settings = settings.with_url("sim:serializable?anomaly=WriteSkew").unwrap();
        run(&settings, &Handle::new(), &mut ()).unwrap()
    });
    let outcome = { outcome }.find(|outcome| outcome.judgement() == Judgement::Violated);
    let own = outcome.unwrap().whitebox.unwrap();
    assert_eq!(own.by_order[0].verdict.kind(), VerdictKind::Violated);
}

#[test]
fn a_level_may_be_satisfied_and_not_by_the_order_that_is_promised() {
    let directory = TempDir::new().unwrap();
    let url = DbUrl::parse("sim:serializable").unwrap();
    let evidence = db::Settings { evidence: true, ..db::Settings::default() };
    let backwards = Backwards(db::open(&url, &evidence).unwrap());
    let settings = settings(Kind::Mini, &directory);
    let outcome = run_against(&settings, vec![Box::new(backwards)], &Handle::new(), &mut ());
    let outcome = outcome.unwrap();
    assert_eq!(outcome.examination.judgement(), Judgement::Satisfied);
    assert_eq!(outcome.judgement(), Judgement::Violated);
    let promise = outcome.promise().to_string();
    assert!(promise.contains("but not in the order that it promises"), "{promise}");
    let record = outcome.record.whitebox.as_ref().unwrap();
    assert_eq!(record.not_as_promised, [Level::Serializable]);
    let file = |name: &str| std::fs::read_to_string(outcome.directory.join(name)).unwrap();
    assert!(file("run.json").contains("\"not_as_promised\": [\n      \"serializable\"\n    ]"));
    let words = "satisfied, but not by the order that the database promises";
    assert!(file("report.html").contains(words));
    assert!(file("promised-order.json").contains("\"verdict\":\"violated\""));
    assert!(file("promised-order.html").contains("Violates serializable"));
    assert!(file("bug-report.md").contains("--serialization-order timestamps"));
    let order = PromisedOrder::of_stamps(&outcome.history);
    let given = ProofPremises::default().with_promised_order(Some(&order));
    let proof = file("promised-order.proof");
    let verified = verify_proof_with(&outcome.history, given, proof.as_bytes()).unwrap();
    assert!(verified.is_right());
}

/// Recorded on PostgreSQL 15 at read committed, as `live/predicates_alone.rs` does, with its certificate. To
/// a check of single rows it is serializable: a range that is empty shows no version of any row.
#[test]
fn a_certificate_finds_what_a_check_of_single_rows_accepts() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/certified");
    let history = formats::read(&folder.join("read-committed.jsonl")).unwrap().history;
    let orders = formats::Source::open(&folder.join("read-committed-order.jsonl")).unwrap();
    let stated = version_order::read(&orders, &history).unwrap();
    let levels = [Level::RepeatableRead, Level::Serializable];

    let view = ItemView::new(&history).unwrap();
    let rows =
        check::check(view.history(), &[Level::Serializable], &check::CheckOptions::default());
    assert!(rows[0].verdict.is_satisfied());

    let options = check::CheckOptions::default()
        .with_version_order(stated.orders.clone())
        .with_trusted_version_order(true)
        .with_version_sets(stated.sets.clone());
    let verify = isolario::verify::VerifyOptions::default().with_trusted_version_order(true);
    let verifier = Verifier::new(&history, &verify)
        .with_version_order(&stated.orders)
        .with_version_sets(&stated.sets);
    for answer in check::check(&history, &levels, &options) {
        assert!(answer.verdict.is_violated(), "{}", answer.level);
        verifier.verify(&answer).unwrap();
    }
}

#[test]
fn without_a_log_there_is_an_explanation_and_the_answer_by_what_clients_saw() {
    let (outcome, _directory) = whitebox("sim:causal", Kind::Mini);
    let why = outcome.whitebox.as_ref().unwrap().failure.clone().unwrap();
    assert_eq!(
        why,
        "the order of versions can only be captured for the predicate workload, not for mini"
    );
    assert_eq!(outcome.judgement(), Judgement::Satisfied);
    assert_eq!(outcome.record.whitebox.unwrap().failure, Some(why));
}
