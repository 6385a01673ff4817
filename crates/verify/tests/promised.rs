//! Random small tables with an order that the database promises go through the oracle and the checker,
//! and the two must agree.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use isolario_check::check;
use isolario_model::{
    Anomaly, AnomalyKind, Evidence, ExpectedVersion, Findings, History, Inapplicable, KeyId, Level,
    LevelResult, Nodes, OpId, Outcome, Point, Verdict, Witness,
};
use isolario_oracle::random::tables::{TableCase, table_case};
use isolario_oracle::{Answer, satisfies_promised, volume};
use isolario_verify::{Refusal, Verifier};

const LEVELS: [Level; 5] = [
    Level::Serializable,
    Level::StrictSerializable,
    Level::Prefix,
    Level::SnapshotIsolation,
    Level::StrongSnapshotIsolation,
];

#[test]
fn the_replay_agrees_with_every_order_that_is_left_open() {
    let (mut satisfied, mut violated, mut refused) = (0u64, 0u64, 0u64);
    for seed in 0..volume() {
        let case = table_case(seed).expect("a history");
        let session_order = !seed.is_multiple_of(3);
        let options = isolario_check::Options::default()
            .with_session_order(session_order)
            .with_promised_order(case.order.clone());
        for result in check(&case.history, &LEVELS, &options) {
            let level = result.level;
            let by_oracle = isolario_oracle::Options::default().with_session_order(session_order);
            let answer = || satisfies_promised(&case.history, level, by_oracle, &case.order);
            let accepted = verify(&case, session_order, &result);
            assert!(
                accepted.is_ok(),
                "seed {seed}, {level}: {accepted:?} {:?}\n{:#?}\n{:#?}",
                result.verdict,
                case.order,
                Shown(&case.history)
            );
            let agrees = match &result.verdict {
                Verdict::Satisfied(_) => {
                    satisfied += 1;
                    answer() == Answer::Satisfied
                }
                Verdict::Violated(_) => {
                    violated += 1;
                    answer() == Answer::Violated
                }
                Verdict::NotApplicable(Inapplicable::NotByPromisedOrder) => true,
                Verdict::NotApplicable(_) => {
                    refused += 1;
                    true
                }
                _ => false,
            };
            assert!(
                agrees,
                "seed {seed}, {level}: {:?}, and by the oracle {:?}\n{:#?}\n{:#?}",
                result.verdict,
                answer(),
                case.order,
                Shown(&case.history),
            );
        }
    }
    assert!(satisfied > refused && violated > refused / 4, "{satisfied} {violated} {refused}");
}

fn verify(case: &TableCase, session_order: bool, result: &LevelResult) -> Result<(), Refusal> {
    let options = isolario_verify::Options::default().with_session_order(session_order);
    Verifier::new(&case.history, &options).with_promised_order(&case.order).verify(result)
}

#[test]
fn the_opposite_of_a_verdict_is_refused() {
    for seed in 0..volume() / 10 {
        let case = table_case(seed).expect("a history");
        let options = isolario_check::Options::default().with_promised_order(case.order.clone());
        for mut result in check(&case.history, &LEVELS, &options) {
            let forged = match &result.verdict {
                Verdict::Satisfied(_) => all_reads_wrong(&case.history),
                Verdict::Violated(_) => vec![in_the_order_of_numbers(&case.history, result.level)],
                _ => continue,
            };
            for verdict in forged {
                result.verdict = verdict;
                let accepted = verify(&case, true, &result);
                assert!(accepted.is_err(), "seed {seed}: {result:?}\n{:#?}", Shown(&case.history));
            }
        }
    }
}

/// One claim per operation: that it returned something else than what was there.
fn all_reads_wrong(history: &History) -> Vec<Verdict> {
    let ops = (0..history.op_count()).map(OpId::at);
    let claim = |op: OpId| {
        let key = KeyId(0);
        let expected = vec![ExpectedVersion { key, write: None }];
        let evidence = Evidence::Unexpected { op, expected, result: None };
        let anomaly = Anomaly::new(AnomalyKind::OrderContradiction, evidence);
        Verdict::Violated(Findings::new(vec![anomaly], true))
    };
    ops.map(claim).collect()
}

/// The claim that transactions took effect in the order of their numbers.
fn in_the_order_of_numbers(history: &History, level: Level) -> Verdict {
    let kept = history.txns().filter(|txn| history.outcome(*txn) != Outcome::Aborted);
    Verdict::Satisfied(match level.shape().nodes {
        Nodes::One => Witness::CommitOrder(kept.collect()),
        _ => {
            Witness::Points(kept.flat_map(|txn| [Point::Start(txn), Point::Commit(txn)]).collect())
        }
    })
}

/// A history, operation by operation.
struct Shown<'h>(&'h History);

impl std::fmt::Debug for Shown<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for txn in self.0.txns() {
            let (session, outcome) = (self.0.session_of(txn), self.0.outcome(txn));
            writeln!(f, "{txn:?} of {session:?} {outcome:?}")?;
            for op in self.0.txn_ops(txn) {
                self.0.with_op_input(op, |op| writeln!(f, "  {op:?}"))?;
            }
        }
        Ok(())
    }
}
