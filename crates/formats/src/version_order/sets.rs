//! The versions that operations by predicate met.

use isolario_model::{History, KeyId, Op, OpId, StatedSet, TxnId, VersionSet};

use super::names::Who;
use super::read::Reader;
use crate::error::Fault;
use crate::jsonl::value::{prepare, stamp, unsigned, value};
use crate::notation::{Form, Shape};

/// A line, by the nodes of its parts.
pub(super) struct SetStatement {
    txn: usize,
    op: usize,
    seen: Seen,
}

/// How it says which versions were met.
enum Seen {
    Snapshot(usize),
    Versions(usize),
}

impl SetStatement {
    /// A line about an operation; none if it is about a key.
    pub(super) fn of(form: &Form<'_>) -> Result<Option<SetStatement>, Fault> {
        let wrong = |expected: &str| Err(Fault::malformed(form.at(0), expected, form.render(0)));
        if form.shape(0) != Some(Shape::Map) {
            return Ok(None);
        }
        let names = ["txn", "op", "snapshot", "versions"];
        let (fields @ [txn, op, snapshot, versions], others) = form.fields(0, &names)?;
        if fields == [None; 4] {
            return Ok(None);
        }
        let seen = match (snapshot, versions) {
            (Some(node), None) => Seen::Snapshot(node),
            (None, Some(node)) if !form.is_sequence(node) => {
                let found = form.render(node);
                return Err(Fault::malformed(form.at(node), "a list of versions", found));
            }
            (None, Some(node)) => Seen::Versions(node),
            _ => return wrong("either `snapshot` or `versions`"),
        };
        match (txn, op, others) {
            (Some(txn), Some(op), 0) => Ok(Some(SetStatement { txn, op, seen })),
            _ => wrong("`txn`, `op` and `snapshot` or `versions` alone"),
        }
    }
}

impl Reader<'_, '_> {
    /// Takes a line that says what an operation met. Transactions that the history does not have
    /// are counted and left out, and so is what names such rows or versions.
    pub(super) fn set(
        &mut self,
        at: u64,
        statement: &SetStatement,
        form: &mut Form<'_>,
    ) -> Result<(), Fault> {
        let malformed = |form: &Form<'_>, node, expected| {
            Err(Fault::malformed(form.at(node), expected, form.render(node)))
        };
        prepare(form, statement.txn)?;
        let txn = match self.names.called(value(form, statement.txn)) {
            Who::Txn(txn) => txn,
            Who::Several(..) => {
                return malformed(form, statement.txn, "the name of one transaction");
            }
            Who::Nobody | Who::Init => {
                self.statements.unknown.versions += 1;
                let what = || format!("the transaction {}", form.render(statement.txn));
                self.statements.unknown.note(at, what);
                return Ok(());
            }
        };
        let Some(op) = predicate_op(self.names.history, txn, unsigned(form, statement.op)) else {
            return malformed(form, statement.op, "the number of an operation by predicate");
        };
        let versions = match statement.seen {
            Seen::Snapshot(node) => match stamp(form, node) {
                Some(snapshot) => VersionSet::Snapshot(snapshot),
                None => return malformed(form, node, "a whole number or [physical, logical]"),
            },
            Seen::Versions(node) => VersionSet::Writers(self.versions(at, node, form)?),
        };
        self.statements.sets.push(StatedSet { op, versions, at });
        Ok(())
    }

    fn versions(
        &mut self,
        at: u64,
        list: usize,
        form: &mut Form<'_>,
    ) -> Result<Vec<(KeyId, TxnId)>, Fault> {
        let mut versions = Vec::new();
        let nodes: Vec<usize> = form.children(list).collect();
        for node in nodes {
            let Some([key, writer]) = form.exactly(node) else {
                let expected = "a row and the writer of its version";
                return Err(Fault::malformed(form.at(node), expected, form.render(node)));
            };
            prepare(form, key)?;
            prepare(form, writer)?;
            let known = self.names.history.find_key(value(form, key));
            let Some(known) = known else {
                self.statements.unknown.keys += 1;
                self.statements.unknown.note(at, || format!("the key {}", form.render(key)));
                continue;
            };
            // A database that went wrong may have met what an aborted transaction wrote.
            let found = match self.names.by_name(known, value(form, writer)) {
                Who::Txn(txn) => Ok(Some(txn)),
                _ => self.writer(known, value(form, writer), false),
            };
            match found.map_err(|problem| Fault::new(form.at(writer), problem))? {
                Some(txn) => versions.push((known, txn)),
                None => {
                    self.statements.unknown.versions += 1;
                    let (writer, key) = (form.render(writer), form.render(key));
                    self.statements.unknown.note(at, || format!("{writer} of the key {key}"));
                }
            }
        }
        Ok(versions)
    }
}

/// The operation of this number, if it is one by predicate.
fn predicate_op(history: &History, txn: TxnId, number: Option<u64>) -> Option<OpId> {
    let op = history.txn_ops(txn).nth(usize::try_from(number?).ok()?)?;
    let by_predicate = matches!(
        history.op(op),
        Op::PredicateRead { .. } | Op::PredicateWrite { .. } | Op::Aggregate { .. }
    );
    by_predicate.then_some(op)
}

#[cfg(test)]
mod tests {
    use isolario_model::{
        Batch, Outcome, Predicate, RowInput, Stamp, TupleParts, TxnEnd, TxnSink, TxnStart, ValueRef,
    };

    use super::*;
    use crate::Source;
    use crate::version_order::{VersionStatements, read};

    /// 1 inserts a row, 2 deletes it by a predicate, 3 finds it by one.
    fn history() -> History {
        let key = TupleParts { table: "t", columns: &[("id", 1.into())] };
        let held = TupleParts { table: "", columns: &[("a", 5.into())] };
        let (key, held) = (ValueRef::from(&key), ValueRef::from(&held));
        let predicate = Predicate::unparsed("all");
        let rows = |value| [RowInput::new(key, value)];
        let mut batch = Batch::new();
        for name in 1..=3 {
            batch
                .begin(&TxnStart { session: name.into(), id: Some(name.into()), line: None })
                .unwrap();
            let (deleted, found) = (rows(ValueRef::Nil), rows(held));
            let predicate = &predicate;
            batch
                .op(&match name {
                    1 => Op::Write { key, value: held },
                    2 => Op::PredicateWrite { predicate, rows: Some(&deleted) },
                    _ => Op::PredicateRead { predicate, rows: Some(&found) },
                })
                .unwrap();
            batch.end(&TxnEnd::new(Outcome::Committed)).unwrap();
        }
        batch.build().unwrap()
    }

    fn statements(text: &str) -> Result<VersionStatements, String> {
        let source = Source::from_bytes("orders", text.into()).unwrap();
        read(&source, &history()).map_err(|error| error.to_string())
    }

    #[test]
    fn sets_are_snapshots_or_lists_of_writers() {
        let text = r#"
{"key": {"table": "t", "row": {"id": 1}}, "writers": [1, 2]}
{"txn": 3, "op": 0, "snapshot": 7}
{"txn": 3, "op": 0, "snapshot": [7, 2]}
{"txn": 3, "op": 0, "versions": [[{"table": "t", "row": {"id": 1}}, 1], ["x", 1]]}
{"txn": 9, "op": 0, "snapshot": 1}"#;
        let found = statements(text).unwrap();
        assert_eq!(found.orders[0].writers, [TxnId(0), TxnId(1)]);
        let sets: Vec<_> = found.sets.iter().map(|set| (set.at, set.versions.clone())).collect();
        let stamp = |physical, logical| VersionSet::Snapshot(Stamp { physical, logical });
        let writers = VersionSet::Writers(vec![(KeyId(0), TxnId(0))]);
        assert_eq!(sets, [(3, stamp(7, 0)), (4, stamp(7, 2)), (5, writers)]);
        assert_eq!((found.unknown.keys, found.unknown.versions), (1, 1));
    }

    #[test]
    fn what_cannot_be_meant_is_an_error_with_its_place() {
        for (text, error) in [
            (r#"{"txn":1,"op":0,"snapshot":1}"#, "1:15: expected the number of an operation by"),
            (r#"{"txn":3,"op":1,"snapshot":1}"#, "1:15: expected the number of an operation by"),
            (r#"{"txn":3,"op":0,"snapshot":-1}"#, "1:28: expected a whole number or"),
            (r#"{"txn":3,"op":0,"versions":[1]}"#, "1:29: expected a row and the writer"),
            (r#"{"txn":3,"op":0,"versions":1}"#, "1:28: expected a list of versions"),
            (r#"{"txn":3,"op":0}"#, "1:1: expected either `snapshot` or `versions`"),
            (r#"{"txn":3,"snapshot":1}"#, "1:1: expected `txn`, `op` and"),
        ] {
            let found = statements(text).unwrap_err();
            assert!(found.starts_with(&format!("orders:{error}")), "{found}");
        }
    }
}
