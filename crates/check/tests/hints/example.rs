//! The example of King Cobra (Emme, Figure 8): T3 read from T1, and T2 wrote the key, too.

use isolario_check::{CheckOptions, Checker};
use isolario_model::{AnomalyKind, KeyId, Level, StatedOrder, TxnId, Verdict, Witness};
use isolario_oracle::Draft;

use crate::support::{answers, complaint, hinting, verify};

const EXAMPLE: &str = "a: w x 1\nb: w x 2\nc: r x 1";

fn stating(writers: [u32; 2]) -> CheckOptions {
    let writers = writers.map(TxnId).to_vec();
    let order = StatedOrder { key: KeyId(0), writers, at: 7 };
    hinting(&CheckOptions::default(), vec![order], true)
}

#[test]
fn the_version_order_leaves_one_order_of_transactions() {
    let history = Draft::parse(EXAMPLE).unwrap().history().unwrap();
    for (stated, expected) in [([0, 1], [0, 2, 1]), ([1, 0], [1, 0, 2])] {
        let options = stating(stated);
        assert_eq!(complaint(&history, &options), None);
        let serializable = answers(&history, &options)
            .into_iter()
            .find(|result| result.level == Level::Serializable);
        let order = Witness::CommitOrder(expected.map(TxnId).to_vec());
        assert_eq!(serializable.unwrap().verdict, Verdict::Satisfied(order));
    }
}

#[test]
fn what_clients_saw_contradicts_a_wrong_version_order() {
    // T3 now read from both, one after the other, in two transactions of its session.
    let history =
        Draft::parse("a: w x 1\nb: w x 2\nc: r x 1\nc: r x 2").unwrap().history().unwrap();
    let right = stating([0, 1]);
    assert_eq!(complaint(&history, &right), None);
    let wrong = stating([1, 0]);
    for result in answers(&history, &wrong) {
        let Verdict::Violated(findings) = &result.verdict else { panic!("{result:?}") };
        assert_eq!(findings.anomalies[0].kind, AnomalyKind::OrderContradiction);
        assert_eq!(verify(&history, &result, &wrong), Ok(()));
        assert!(verify(&history, &result, &right).is_err());
    }
}

#[test]
fn a_trusted_order_holds_at_every_level_that_orders_anything() {
    // Nothing but the statement puts the second transaction of a session before the first.
    let history = Draft::parse("a: w x 1\na: w x 2").unwrap().history().unwrap();
    let wrong = stating([1, 0]);
    for level in isolario_check::supported().iter().copied() {
        let result = Checker::new(&history, wrong.clone()).check(level);
        let expected = match level {
            Level::CutIsolation => "satisfied",
            // Here it is session order that the statement contradicts.
            level if !level.shape().session_order => "satisfied",
            level if level.needs().times => continue,
            _ => "violated",
        };
        assert_eq!(result.verdict.name(), expected, "{level}");
        let kinds: Vec<_> = result.verdict.anomalies().iter().map(|a| a.kind).collect();
        assert!(kinds.iter().all(|kind| *kind == AnomalyKind::OrderContradiction), "{kinds:?}");
    }
}
