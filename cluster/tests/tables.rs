//! A table holds everything that a history of registers says.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::path::Path;

use isolario_cluster::{Error, Settings, from_table, write_table};
use isolario_formats::{OutputTarget, find, read};
use isolario_model::{Batch, History, Op, Outcome, TxnEnd, TxnSink, TxnStart, ValueRef};
use isolario_oracle::history;
use isolario_oracle::random::Case;

/// The history as text that leaves nothing out.
fn lines(history: &History, path: &Path) -> String {
    let mut writer = find("jsonl").unwrap().writer(OutputTarget::Path(path.to_owned())).unwrap();
    history.replay(&mut *writer).unwrap();
    writer.finish().unwrap();
    std::fs::read_to_string(path).unwrap()
}

/// There and back.
fn returned(history: &History, parts: usize) -> Result<(), Error> {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let written = write_table(history, &at("h.parquet"), parts)?;
    assert_eq!(
        (written.transactions, written.operations),
        (history.txn_count(), history.op_count())
    );
    from_table(&at("h.parquet"), &at("back.iso"), &Settings::default())?;
    let back = read(&at("back.iso")).unwrap().history;
    assert_eq!(lines(&back, &at("back.jsonl")), lines(history, &at("h.jsonl")));
    Ok(())
}

#[test]
fn nothing_is_lost() {
    let mut tables = 0;
    for case in Case::first(60) {
        let history = case.draft().history().unwrap();
        match returned(&history, 1 + case.seed as usize % 3) {
            Ok(()) => tables += 1,
            Err(Error::NoPlace { what, .. }) => {
                assert!(["deletes", "writes of nil"].contains(&what))
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!(tables > 30, "{tables}");
}

/// One transaction that writes these values to a key, and one that does nothing.
fn writing(values: &[ValueRef<'_>]) -> History {
    let mut batch = Batch::new();
    for values in [values, &[]] {
        batch.begin(&TxnStart { session: 1i64.into(), id: None, line: None }).unwrap();
        values
            .iter()
            .for_each(|value| batch.op(&Op::Write { key: "x".into(), value: *value }).unwrap());
        batch.end(&TxnEnd::new(Outcome::Committed)).unwrap();
    }
    batch.build().unwrap()
}

#[test]
fn transactions_without_operations_stay() {
    returned(&writing(&["one".into(), "two".into()]), 1).unwrap();
    returned(&Batch::new().build().unwrap(), 1).unwrap();
}

#[test]
fn what_there_is_no_place_for_is_refused() {
    let refused = |history: &History| returned(history, 1).unwrap_err().to_string();
    let lists = history("a: w x 1\n a: append y 1");
    assert_eq!(refused(&lists), "the table of operations has no place for lists: #1");
    let deletes = history("a: w x 1\n a: delete x");
    assert_eq!(refused(&deletes), "the table of operations has no place for deletes: #1");
    let mixed = writing(&[1i64.into(), "one".into()]);
    let expected = "the table of operations has no place for values of several kinds: one";
    assert_eq!(refused(&mixed), expected);
}
