//! From JSON to a history, one transaction at a time.

use isolario_model::{
    Batch, Initial, Meta, Op, Outcome, SinkError, TxnEnd, TxnSink, TxnStart, Value, ValueRef,
};
use rustc_hash::FxHashSet;

use super::shape::{Access, Kind, Txn};
use crate::error::{Position, ReadError};
use crate::fault::Fault;
use crate::json_array::Elements;
use crate::json_text::{Payload, Scalar};
use crate::{Ignored, Loaded, Source};

/// Reads a file.
pub(super) fn read(source: &Source) -> Result<Loaded, ReadError> {
    parse(source.require_file()?).map_err(|fault| fault.in_source(source))
}

fn parse(text: &[u8]) -> Result<Loaded, Fault> {
    let mut batch = Batch::new();
    let meta = Meta { initial: Initial::Value(Value::Int(0)), ..Meta::default() };
    batch.meta(&meta).map_err(Fault::refused(Position::Whole))?;
    let mut unknown_fields: Option<Ignored> = None;
    let mut ids = FxHashSet::default();
    let mut elements = Elements::of_array(text)?;
    while let Some((txn, line, position)) = elements.next::<Txn<'_>>()? {
        if !ids.insert(txn.id.as_value().to_owned()) {
            let found = format!("transaction {} again", txn.id.as_value());
            return Err(Fault::malformed(position, "a transaction not seen before", found));
        }
        if txn.unknown_fields > 0 {
            let first = Ignored { what: "unknown fields", count: 0, first: position };
            unknown_fields.get_or_insert(first).count += txn.unknown_fields;
        }
        take(&mut batch, &txn, line, position)?;
    }
    let history = batch.build().map_err(Fault::refused(Position::Whole))?;
    let mut loaded = Loaded::new(history);
    loaded.ignored.extend(unknown_fields);
    Ok(loaded)
}

fn take(batch: &mut Batch, txn: &Txn<'_>, line: u64, position: Position) -> Result<(), Fault> {
    let (session, id) = (txn.session.as_value(), Some(txn.id.as_value()));
    let start = TxnStart { session, id, line: Some(line) };
    batch.begin(&start).map_err(Fault::refused(position))?;
    for (number, access) in txn.ops.iter().enumerate() {
        let key = access.k.as_value();
        match (access.t, &access.v) {
            (Kind::Read, Payload::List(list)) => read_list(batch, key, list),
            (Kind::Read, Payload::One(value)) => {
                batch.op(&Op::Read { key, value: Some(value.as_value()) })
            }
            (Kind::Write, Payload::One(value)) => {
                batch.op(&Op::Write { key, value: value.as_value() })
            }
            (Kind::Append, Payload::One(value)) => {
                batch.op(&Op::Append { key, element: value.as_value() })
            }
            (Kind::Write | Kind::Append, Payload::List(_)) => {
                return Err(no_list(access, number, position));
            }
        }
        .map_err(Fault::refused(position))?;
    }
    let (db_start, db_commit) = (Some(txn.start), Some(txn.commit));
    let end = TxnEnd { db_start, db_commit, ..TxnEnd::new(Outcome::Committed) };
    batch.end(&end).map_err(Fault::refused(position))
}

fn read_list(batch: &mut Batch, key: ValueRef<'_>, list: &[Scalar<'_>]) -> Result<(), SinkError> {
    let elements: Vec<_> = list.iter().map(Scalar::as_value).collect();
    batch.op(&Op::ReadList { key, elements: Some(&elements) })
}

fn no_list(access: &Access<'_>, number: usize, position: Position) -> Fault {
    let what = if access.t == Kind::Write { "write" } else { "append" };
    let expected = format!("one value in the {what} that is operation {}", number + 1);
    Fault::malformed(position, expected, "a list")
}
