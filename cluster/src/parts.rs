//! Small parts of a history that decide it, each taken out as a history of its own.
//!
//! A part has *members*, told as they are, and *witnesses*: transactions that are there for what they read from
//! members. What a read saw is told only as long as its writer is there. So a part never looks worse than the whole,
//! and a violation in a part is one of the history.
//!
//! There is one exception: windows of read-modify-write histories, see [`Beginning::Unwritten`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use datafusion::arrow::array::{Int64Array, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use isolario_model::{Batch, History, Initial, Meta, TxnSink, ValueRef};

use crate::Error;
use crate::engine::Engine;
use crate::reads::INIT;
use crate::rows::{Operation, Operations, Teller, cell, integers};

/// How a part begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beginning {
    /// As the history does. Reads of versions that are not in the part are left out.
    AsWhole,
    /// With the versions that were current where the part begins: what is read and not written in it is initial.
    ///
    /// Of a window this is exact. If one of its transactions had read a version that was replaced before the window
    /// began, the edge to whoever replaced it would lead back, and both would be in one window. So each key has one
    /// such version, all versions that the window wrote come after it, and edges between transactions of the window
    /// are what they are in the whole.
    Unwritten,
}

/// The transactions of a part.
#[derive(Clone, Debug, Default)]
pub(crate) struct Part {
    pub(crate) members: BTreeSet<i64>,
    pub(crate) witnesses: BTreeSet<i64>,
}

impl Part {
    pub(crate) fn of(members: impl IntoIterator<Item = i64>) -> Part {
        let members = members.into_iter().filter(|txn| *txn != INIT).collect();
        Part { members, witnesses: BTreeSet::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.members.len() + self.witnesses.len()
    }

    /// Adds whoever shows that those of unknown outcome committed.
    pub(crate) fn add_vouchers(&mut self, vouchers: &BTreeMap<i64, i64>) {
        let mut new: Vec<i64> = self.members.union(&self.witnesses).copied().collect();
        while let Some(txn) = new.pop() {
            if let Some(voucher) = vouchers.get(&txn)
                && !self.members.contains(voucher)
                && self.witnesses.insert(*voucher)
            {
                new.push(*voucher);
            }
        }
    }

    /// Whether what an operation says is part of the part.
    fn keeps(
        &self,
        row: &Operation<'_>,
        writer: Option<i64>,
        beginning: Beginning,
        writes: &impl Fn(i64) -> bool,
    ) -> bool {
        let is_member = self.members.contains(&row.txn);
        match row.kind {
            "read" if row.is_external => match writer {
                Some(_) if is_member && beginning == Beginning::Unwritten => true,
                Some(INIT) => is_member,
                Some(writer) => writes(writer),
                None => false,
            },
            // An own write is there if those of the transaction are.
            _ => writes(row.txn),
        }
    }
}

/// Takes parts out of the history, one after the other, in the order of their numbers.
pub(crate) fn take_out(
    engine: &mut Engine,
    parts: &[Part],
    vouchers: &BTreeMap<i64, i64>,
    beginning: Beginning,
    meta: &Meta,
    mut take: impl FnMut(&Engine, usize, History) -> Result<(), Error>,
) -> Result<(), Error> {
    if parts.is_empty() {
        return Ok(());
    }
    engine.keep_rows("parts", &table(parts)?)?;
    let engine = &*engine;
    let meta = match beginning {
        Beginning::AsWhole => meta.clone(),
        Beginning::Unwritten => Meta { initial: Initial::Unwritten, ..meta.clone() },
    };
    let mut open: Option<Open> = None;
    engine.each(GATHERED, |batch| {
        let (rows, number) = (Operations::of(batch)?, integers(batch, "part")?);
        let writer = integers(batch, "writer")?;
        for at in 0..batch.num_rows() {
            let number = number.value(at) as usize;
            if open.as_ref().is_none_or(|open| open.number != number) {
                if let Some(open) = open.take() {
                    take(engine, open.number, open.build()?)?;
                }
                open = Some(Open::new(number, &meta)?);
            }
            let (Some(open), Some(part)) = (&mut open, parts.get(number)) else { continue };
            // Of witnesses that certainly committed nothing is asked but what they read.
            let writes = |txn: i64| {
                part.members.contains(&txn)
                    || vouchers.contains_key(&txn) && part.witnesses.contains(&txn)
            };
            let row = rows.get(at);
            open.add(&row, part.keeps(&row, cell(&writer, at), beginning, &writes))?;
        }
        Ok(())
    })?;
    open.map_or(Ok(()), |open| take(engine, open.number, open.build()?))
}

/// The rows of the parts, with the writers of what was read. What may have had several writers tells nothing.
const GATHERED: &str = "
    SELECT p.part, s.writer, o.*
    FROM parts p JOIN ops o ON o.txn = p.txn
    LEFT JOIN (SELECT txn, op, writer FROM resolved
               WHERE coalesce(trouble, '') <> 'ambiguous' AND txn IN (SELECT txn FROM parts)) s
      ON s.txn = o.txn AND s.op = o.op
    ORDER BY p.part, o.txn, o.op";

/// The transactions of parts as rows.
pub(crate) fn table(parts: &[Part]) -> Result<RecordBatch, Error> {
    let rows = || {
        let txns = |part: &Part| part.members.union(&part.witnesses).copied().collect::<Vec<_>>();
        parts
            .iter()
            .zip(0i64..)
            .flat_map(move |(part, at)| txns(part).into_iter().map(move |txn| (at, txn)))
    };
    let part: Int64Array = rows().map(|(part, _)| part).collect::<Vec<_>>().into();
    let txn: Int64Array = rows().map(|(_, txn)| txn).collect::<Vec<_>>().into();
    let column = |name| Field::new(name, DataType::Int64, false);
    let schema = Schema::new(vec![column("part"), column("txn")]);
    Ok(RecordBatch::try_new(Arc::new(schema), vec![Arc::new(part), Arc::new(txn)])?)
}

/// A part whose rows are coming in.
struct Open {
    number: usize,
    batch: Batch,
    teller: Teller,
}

impl Open {
    fn new(number: usize, meta: &Meta) -> Result<Open, Error> {
        let mut batch = Batch::new();
        batch.meta(meta)?;
        Ok(Open { number, batch, teller: Teller::default() })
    }

    /// Transactions keep their names; those without are called as they are in the whole history.
    fn add(&mut self, row: &Operation<'_>, is_kept: bool) -> Result<(), Error> {
        let label = format!("#{}", row.txn);
        self.teller.begin(row, row.name.or(Some(ValueRef::Text(&label))), &mut self.batch)?;
        if is_kept {
            self.teller.tell(row, &mut self.batch)?;
        }
        Ok(())
    }

    fn build(mut self) -> Result<History, Error> {
        self.teller.end(&mut self.batch)?;
        Ok(self.batch.build()?)
    }
}
