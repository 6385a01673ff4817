//! A history in which every transaction is part of one cycle.

use std::path::Path;

use isolario::formats::{self, OutputTarget};
use isolario::model::{Op, OpInput, Outcome, TxnEnd, TxnSink, TxnStart, ValueRef};
use isolario_bench::Failure;

/// Transactions in a ring: each appends to a list of its own and did not see what the next one
/// appended. Some neighbours make smaller cycles: two that appended to two lists in different orders,
/// two that saw each other, and one that saw the other one in part.
pub fn write(txns: u32, file: &Path) -> Result<u64, Failure> {
    let format = formats::find("isolario").ok_or("no such format")?;
    let mut writer = format.writer(OutputTarget::Path(file.to_owned()))?;
    let mut ops = 0;
    for txn in 0..txns {
        let next = (txn + 1) % txns;
        let mut all = vec![append(txn, 0), read(next, &[])];
        match txn {
            0 => all.extend([append(P, 1), append(Q, 1)]),
            1 => all.extend([append(P, 2), append(Q, 2)]),
            2 => all.extend([append(U, 1), read(V, ONE)]),
            3 => all.extend([append(V, 1), read(U, ONE)]),
            4 => all.extend([read(W, ONE), read(Z, &[])]),
            5 => all.extend([append(W, 1), append(Z, 1)]),
            _ => {}
        }
        ops += all.len() as u64;
        transaction(&mut *writer, txn, &all)?;
    }
    let order = [read(P, ONE_TWO), read(Q, TWO_ONE), read(Z, ONE)];
    transaction(&mut *writer, txns, &order)?;
    writer.finish()?;
    Ok(ops + order.len() as u64)
}

/// Lists beyond those of the ring.
const P: u32 = u32::MAX;
const Q: u32 = u32::MAX - 1;
const U: u32 = u32::MAX - 2;
const V: u32 = u32::MAX - 3;
const W: u32 = u32::MAX - 4;
const Z: u32 = u32::MAX - 5;

const ONE: &[ValueRef<'_>] = &[ValueRef::Int(1)];
const ONE_TWO: &[ValueRef<'_>] = &[ValueRef::Int(1), ValueRef::Int(2)];
const TWO_ONE: &[ValueRef<'_>] = &[ValueRef::Int(2), ValueRef::Int(1)];

fn append(key: u32, element: i64) -> OpInput<'static> {
    Op::Append { key: i64::from(key).into(), element: element.into() }
}

fn read(key: u32, elements: &'static [ValueRef<'static>]) -> OpInput<'static> {
    Op::ReadList { key: i64::from(key).into(), elements: Some(elements) }
}

/// Each is a session of its own.
fn transaction(sink: &mut dyn TxnSink, name: u32, ops: &[OpInput<'_>]) -> Result<(), Failure> {
    let session = i64::from(name).into();
    sink.begin(&TxnStart { session, id: None, line: None })?;
    ops.iter().try_for_each(|op| sink.op(op))?;
    sink.end(&TxnEnd::new(Outcome::Committed))?;
    Ok(())
}
