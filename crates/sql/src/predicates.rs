//! From what statements showed, and what was there, to a history of rows with predicates.
//!
//! A statement shows the rows that its condition matches. Where the transaction also reads all tables
//! before each of its statements, from the same snapshot, it is known which version of which other row
//! the condition was held against and did not match: the version set of Adya's model. Together with the
//! lists of rows, which tell the order of versions, that is a version certificate, and the dependencies
//! by predicate follow from it.
//!
//! A history is made only if all of it is known: how every transaction ended, the values of every
//! version, and its place in the order. Conditions are those over integer columns of one table, about which
//! all databases agree; a query with another one counts as reads of the rows it showed, and so do the reads
//! of writes. That leaves dependencies out, and makes none up.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use isolario_model::{
    Batch, History, Op, OpNotes, Outcome, RowInput, SinkError, StatedOrder, StatedSet, TupleParts,
    TxnEnd, TxnId, TxnSink, TxnStart, Value, ValueRef, VersionSet,
};
use isolario_predicate::Predicate;

use crate::asked::Asked;
use crate::infer::Reading;
use crate::product::Product;
use crate::round::{Element, Recorded, RecordedTxn, Round, Seen};
use crate::schema::{Schema, Type};

/// A history of rows, and what is known of their versions.
#[derive(Debug)]
#[non_exhaustive]
pub struct Certified {
    /// The history.
    pub history: History,
    /// The versions of each row, in their order.
    pub orders: Vec<StatedOrder>,
    /// The versions that each read by predicate met.
    pub sets: Vec<StatedSet>,
}

/// The number of the transaction that made the schema.
const MAKER: u32 = 0;

/// The history of a round whose transactions read all tables before each of their statements; none where
/// something of it is not known.
pub fn certified(
    round: &Round,
    schema: &Schema,
    product: &Product,
    isolation: &str,
) -> Result<Option<Certified>, SinkError> {
    let Some(facts) = Facts::of(round, schema, product, isolation) else { return Ok(None) };
    let mut batch = Batch::new();
    let mut met = Vec::new();
    let told = facts.tell(&mut batch, &mut met)?;
    if told.is_none() {
        return Ok(None);
    }
    let history = batch.build()?;
    Ok(facts.certify(history, met))
}

/// A row, and all that is known of it.
#[derive(Default)]
struct Row<'r> {
    /// The longest list that was seen.
    longest: &'r [Element],
    /// What it held, by how long its list was.
    held: BTreeMap<usize, &'r [Value]>,
    /// Who deleted it.
    deleted: Option<Element>,
}

impl Row<'_> {
    /// Whether it was there before any transaction.
    fn is_first(&self) -> bool {
        self.held.contains_key(&0)
    }
}

struct Facts<'r> {
    schema: &'r Schema,
    product: &'r Product,
    reading: Reading,
    /// Whether each statement has a snapshot of its own.
    each_statement: bool,
    txns: BTreeMap<u32, &'r RecordedTxn>,
    rows: BTreeMap<&'r str, Row<'r>>,
    /// The rows that a statement wrote, each with the length of its list from then on.
    writes: BTreeMap<Element, Vec<(&'r str, usize)>>,
    /// Tables from which rows may have gone without a statement that shows their delete.
    leaky: BTreeSet<&'r str>,
}

/// A read by predicate: its transaction, its position there, and the versions that it met.
struct Met<'r> {
    txn: u32,
    op: usize,
    versions: Vec<(&'r str, u32)>,
}

impl<'r> Facts<'r> {
    fn of(
        round: &'r Round,
        schema: &'r Schema,
        product: &'r Product,
        isolation: &str,
    ) -> Option<Facts<'r>> {
        let is_committed = |txn: &&RecordedTxn| txn.outcome == Outcome::Committed;
        let is_unknown = |txn: &RecordedTxn| txn.outcome == Outcome::Unknown;
        if round.transactions.iter().any(is_unknown) {
            return None;
        }
        let txns =
            round.transactions.iter().filter(is_committed).map(|txn| (txn.id, txn)).collect();
        let mut facts = Facts {
            schema,
            product,
            reading: Reading::of(product, isolation),
            each_statement: isolation == "read-committed",
            txns,
            rows: BTreeMap::new(),
            writes: BTreeMap::new(),
            leaky: BTreeSet::new(),
        };
        for (seen, values) in round.first.iter().flatten() {
            facts.see(seen, values)?;
        }
        for txn in round.transactions.iter().filter(is_committed) {
            let looked = txn.statements.iter().filter_map(|statement| statement.looked.as_ref());
            for snapshot in looked.chain(&txn.left) {
                // InnoDB may show a row whose key was changed under both of its keys.
                let names: BTreeSet<&str> = snapshot.iter().map(|(seen, _)| &*seen.row).collect();
                (names.len() == snapshot.len()).then_some(())?;
                for (seen, values) in snapshot {
                    facts.see(seen, values)?;
                }
            }
            for statement in &txn.statements {
                statement.undone_by.is_none().then_some(())?;
                // A write that was sent as it is leaves no mark on the rows that it wrote.
                (statement.refusal.is_none() || statement.kind.is_read()).then_some(())?;
                if statement.failure.is_none() && statement.may_delete_unseen() {
                    facts.leaky.extend(statement.table.as_deref());
                }
                let element = Element { txn: txn.id, statement: statement.number };
                for Seen { row, .. } in &statement.deleted {
                    facts.rows.entry(row).or_default().deleted = Some(element);
                }
            }
        }
        facts.shows_no_old_version().then_some(())?;
        for (name, row) in &facts.rows {
            for (at, element) in row.longest.iter().enumerate() {
                facts.txns.get(&element.txn)?;
                row.held.get(&(at + 1))?;
                facts.writes.entry(*element).or_default().push((name, at + 1));
            }
        }
        Some(facts)
    }

    /// A row as it was at some time. None if two lists of it part.
    fn see(&mut self, seen: &'r Seen, values: &'r [Value]) -> Option<()> {
        let row = self.rows.entry(&seen.row).or_default();
        if seen.list.len() > row.longest.len() {
            seen.list.starts_with(row.longest).then_some(())?;
            row.longest = &seen.list;
        }
        row.longest.starts_with(&seen.list).then_some(())?;
        row.held.insert(seen.list.len(), values);
        Some(())
    }

    /// Whether each transaction finds its own writes before each of its statements. Where writes change newer rows than
    /// those of the snapshot, it may not: see [`OldVersion`](crate::OldVersion).
    fn shows_no_old_version(&self) -> bool {
        let is_old = |txn: &RecordedTxn, statement: &Recorded, seen: &Seen| {
            let row = &self.rows[&*seen.row];
            let newer = row.longest[seen.list.len()..].iter().chain(&row.deleted);
            let is_own =
                |element: &Element| element.txn == txn.id && element.statement < statement.number;
            newer.into_iter().any(is_own)
        };
        let has_old = |txn: &RecordedTxn| {
            txn.statements.iter().any(|statement| {
                let mut looked = statement.looked.iter().flatten();
                looked.any(|(seen, _)| is_old(txn, statement, seen))
            })
        };
        !self.reading.without_locking_reads || !self.txns.values().any(|txn| has_old(txn))
    }

    fn table_of(name: &str) -> &str {
        name.split_once('/').map_or(name, |(table, _)| table)
    }

    /// What a version of a row held, with the length of its list, so that no two are the same.
    fn held(&self, name: &str, length: usize) -> Option<Vec<(&'r str, ValueRef<'r>)>> {
        let values = *self.rows.get(name)?.held.get(&length)?;
        let table = self.schema.table(Self::table_of(name))?;
        let names = table.columns.iter().map(|column| column.name.as_str());
        let mut columns: Vec<_> = names.zip(values.iter().map(ValueRef::from)).collect();
        columns.push(("isolario_version", ValueRef::Int(i64::try_from(length).ok()?)));
        Some(columns)
    }

    /// Tells all transactions. None where a value is not known.
    fn tell(&self, sink: &mut Batch, met: &mut Vec<Met<'r>>) -> Result<Option<()>, SinkError> {
        let maker = ValueRef::Text("schema");
        sink.begin(&TxnStart { session: maker, id: Some(MAKER.into()), line: None })?;
        for (name, _) in self.rows.iter().filter(|(_, row)| row.is_first()) {
            let Some(()) = self.write(name, 0, &OpNotes::default(), sink)? else { return Ok(None) };
        }
        sink.end(&TxnEnd::new(Outcome::Committed))?;
        for txn in self.txns.values() {
            let session = ValueRef::from(txn.session);
            sink.begin(&TxnStart { session, id: Some(txn.id.into()), line: None })?;
            let mut ops = 0;
            for statement in txn.statements.iter().filter(|statement| statement.holds()) {
                let told = self.statement(txn, statement, &mut ops, sink, met)?;
                let Some(()) = told else { return Ok(None) };
            }
            let (start, finish) = txn.times.unzip();
            sink.end(&TxnEnd { start, finish, ..TxnEnd::new(txn.outcome) })?;
        }
        Ok(Some(()))
    }

    fn statement(
        &self,
        txn: &RecordedTxn,
        statement: &'r Recorded,
        ops: &mut usize,
        sink: &mut Batch,
        met: &mut Vec<Met<'r>>,
    ) -> Result<Option<()>, SinkError> {
        let notes = OpNotes { sql: Some(&statement.sql), ..OpNotes::default() };
        let asked = self.asked(statement).and_then(|predicate| {
            Some((self.versions(txn, statement, predicate.table()?)?, predicate))
        });
        let mut columns = Vec::new();
        let is_left_out = |seen: &&Seen| self.reading.leaves_out(txn, statement, seen);
        for seen in statement.reads.iter().filter(|seen| !is_left_out(seen)) {
            let Some(held) = self.held(&seen.row, seen.list.len()) else { return Ok(None) };
            columns.push((&*seen.row, held));
        }
        match asked {
            Some((versions, predicate)) => {
                let keys: Vec<_> = columns.iter().map(|(name, _)| key_columns(name)).collect();
                let keys: Vec<_> = keys.iter().map(|columns| key(columns)).collect();
                let values =
                    columns.iter().map(|(_, held)| TupleParts { table: "", columns: held });
                let values: Vec<_> = values.collect();
                let rows: Vec<RowInput<'_>> = keys
                    .iter()
                    .zip(&values)
                    .map(|(key, value)| RowInput::new(key, value))
                    .collect();
                let read = Op::PredicateRead { predicate: &predicate, rows: Some(&rows) };
                sink.op_with(&read, &notes)?;
                met.push(Met { txn: txn.id, op: *ops, versions });
                *ops += 1;
            }
            None => {
                for (name, held) in &columns {
                    let value = TupleParts { table: "", columns: held };
                    let name = key_columns(name);
                    let key = key(&name);
                    sink.op_with(
                        &Op::Read { key: (&key).into(), value: Some((&value).into()) },
                        &notes,
                    )?;
                    *ops += 1;
                }
            }
        }
        let element = Element { txn: txn.id, statement: statement.number };
        for (name, length) in self.writes.get(&element).into_iter().flatten() {
            let Some(()) = self.write(name, *length, &notes, sink)? else { return Ok(None) };
            *ops += 1;
        }
        for Seen { row, .. } in &statement.deleted {
            let name = key_columns(row);
            sink.op_with(&Op::Delete { key: (&key(&name)).into() }, &notes)?;
            *ops += 1;
        }
        Ok(Some(()))
    }

    fn write(
        &self,
        name: &str,
        length: usize,
        notes: &OpNotes<'_>,
        sink: &mut Batch,
    ) -> Result<Option<()>, SinkError> {
        let Some(held) = self.held(name, length) else { return Ok(None) };
        let value = TupleParts { table: "", columns: &held };
        let name = key_columns(name);
        let key = key(&name);
        sink.op_with(&Op::Write { key: (&key).into(), value: (&value).into() }, notes)?;
        Ok(Some(()))
    }

    /// The condition of a query of one table, if all databases agree about it.
    fn asked(&self, statement: &Recorded) -> Option<Predicate> {
        let parsed = self.product.parse(&statement.sql).ok()?;
        let asked = Asked::of(&parsed)?;
        if asked.locks && self.reading.without_locking_reads {
            return None;
        }
        let table = self.schema.table(&asked.table)?;
        let text = format!("FROM {} WHERE {}", table.name, asked.condition);
        let predicate: Predicate = text.parse().ok()?;
        let is_integer = |name: &str| {
            table.columns.iter().any(|column| column.name == name && column.ty == Type::Integer)
        };
        let is_agreed = predicate.condition()?.columns().all(is_integer);
        is_agreed.then_some(predicate)
    }

    /// The versions of a table that a statement met, each by who wrote it; none where that is not known.
    fn versions(
        &self,
        txn: &RecordedTxn,
        statement: &'r Recorded,
        table: &str,
    ) -> Option<Vec<(&'r str, u32)>> {
        let met = statement.met.as_ref()?;
        let there: HashMap<&str, &[Element]> =
            met.iter().map(|seen| (seen.row.as_str(), seen.list.as_slice())).collect();
        let snapshot = match self.each_statement {
            true => statement.turn,
            false => txn.statements.first()?.turn,
        };
        let mut versions = Vec::new();
        for (name, row) in self.rows.iter().filter(|(name, _)| Self::table_of(name) == table) {
            match there.get(name) {
                Some(list) => {
                    versions.push((*name, list.last().map_or(MAKER, |element| element.txn)));
                }
                None => {
                    let is_leaky = self.leaky.contains(table);
                    let writer = self.absent(txn, statement, snapshot, row, is_leaky)?;
                    versions.extend(writer.map(|writer| (*name, writer)));
                }
            }
        }
        Some(versions)
    }

    /// The transaction that wrote the version of a row that a statement did not find: its deleter, or
    /// none where it was not inserted yet. None where it may be either, by when the snapshot was taken.
    fn absent(
        &self,
        txn: &RecordedTxn,
        statement: &Recorded,
        snapshot: (u64, u64),
        row: &Row<'_>,
        is_leaky: bool,
    ) -> Option<Option<u32>> {
        // Of its own writes, only those before the statement count.
        let is_yet_to_come =
            |element: &Element| element.txn == txn.id && element.statement >= statement.number;
        let ended = |txn: u32| self.txns.get(&txn).map(|txn| txn.end_turn);
        let is_deleted = match row.deleted.filter(|element| !is_yet_to_come(element)) {
            Some(Element { txn: deleter, .. }) => {
                let is_certain = row.is_first() || deleter == txn.id;
                if is_certain || ended(deleter)?.1 < snapshot.0 {
                    return Some(Some(deleter));
                }
                true
            }
            None => is_leaky && row.deleted.is_none(),
        };
        if is_deleted {
            let inserter = row.longest.first().filter(|_| !row.is_first())?;
            let is_later = match inserter.txn == txn.id {
                true => is_yet_to_come(inserter),
                false => ended(inserter.txn)?.0 > snapshot.1,
            };
            is_later.then_some(())?;
        }
        Some(None)
    }

    /// Puts what is known of versions in the words of the history.
    fn certify(&self, history: History, met: Vec<Met<'r>>) -> Option<Certified> {
        let txns: BTreeMap<u32, TxnId> = history
            .txns()
            .filter_map(|txn| match history.txn_name(txn) {
                Some(ValueRef::Int(id)) => Some((u32::try_from(id).ok()?, txn)),
                _ => None,
            })
            .collect();
        let key_of = |name: &str| {
            let columns = key_columns(name);
            history.find_key((&key(&columns)).into())
        };
        let mut orders = Vec::new();
        for (name, row) in &self.rows {
            // A row that nobody but its own transaction ever met is in no history.
            let Some(key) = key_of(name) else { continue };
            let elements = row.longest.iter().chain(&row.deleted).map(|element| element.txn);
            let mut writers: Vec<u32> =
                row.is_first().then_some(MAKER).into_iter().chain(elements).collect();
            writers.dedup();
            let is_twice = writers.iter().collect::<BTreeSet<_>>().len() < writers.len();
            let writers: Option<Vec<TxnId>> =
                writers.iter().map(|id| txns.get(id).copied()).collect();
            let at = orders.len() as u64 + 1;
            orders.push(StatedOrder { key, writers: writers.filter(|_| !is_twice)?, at });
        }
        let mut sets = Vec::new();
        for Met { txn, op, versions } in met {
            let op = history.txn_ops(*txns.get(&txn)?).nth(op)?;
            let version = |(name, writer): (&str, u32)| Some((key_of(name)?, *txns.get(&writer)?));
            let versions: Option<Vec<_>> = versions.into_iter().map(version).collect();
            let at = sets.len() as u64 + 1;
            sets.push(StatedSet { op, versions: VersionSet::Writers(versions?), at });
        }
        Some(Certified { history, orders, sets })
    }
}

/// What a row is called by.
fn key_columns(name: &str) -> [(&'static str, ValueRef<'_>); 1] {
    [("row", ValueRef::Text(name))]
}

fn key<'a>(columns: &'a [(&'a str, ValueRef<'a>); 1]) -> TupleParts<'a> {
    let table = match columns[0].1 {
        ValueRef::Text(name) => Facts::table_of(name),
        _ => "",
    };
    TupleParts { table, columns }
}
