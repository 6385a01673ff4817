//! From what statements showed to a history that checkers decide.
//!
//! A row with its list of writers is a list of the model: each statement that wrote the row is an
//! append, and each statement that showed it is a read of the list. So the order of versions, and
//! with it every dependency of IsoRel's Algorithm 1, is what the checkers find in lists anyway: ww
//! between neighbours, wr from the last element, rw to whoever comes next. Nothing compares all
//! pairs of results: a row's lists are compared with its longest one, which takes as long as reading
//! them.
//!
//! - **Who wrote.** An update does not tell which rows it wrote. But its element shows in their lists, and
//!   it names transaction and statement: wherever it is seen, the append is known. Elements of aborted
//!   transactions are appends of these, so that reading them is a read of aborted data.
//! - **Deletes.** A deleted row has no list any more. The delete is its last append, and the reads at the
//!   end of the round, which do not find the row, stand for a read of the list that was deleted and
//!   that last append. So whoever read or wrote the row before comes before the delete. What a delete
//!   met is not counted as a read of the transaction: it is what it overwrote.
//! - **Own writes.** A row that the transaction has written itself shows what it was based on. That is
//!   a matter of the order of writes, and no read of somebody else's version; such a read only has
//!   to end with the transaction's own elements.
//! - **Savepoints.** What was rolled back to a savepoint is an aborted transaction of its own, and what it
//!   read proves nothing. (If a transaction of MariaDB begins with a savepoint, the way back to it ends the
//!   transaction of the storage engine: locks go, and the next read has another snapshot.)
//! - **Locking reads** of MySQL and its kin at repeatable read show the newest row, beside the snapshot
//!   that all other reads come from. They are left out there (IsoRel, Section 3.4). The same holds at
//!   serializable for a locking read outside of any transaction that has a subquery: reads do not lock
//!   there unless they say so, and the subquery does not.
//! - **Old versions.** There, a write changes the newest row, too. Where another transaction has changed the key of
//!   the row since the snapshot, InnoDB keeps the row under both keys, and the transaction goes on seeing the
//!   version of its snapshot beside the one that it has written. That is no read that came before the write. It is
//!   left out, and reported as [what it is](OldVersion).

use std::collections::HashMap;

use isolario_model::{
    Batch, History, Op, OpNotes, Outcome, SinkError, TxnEnd, TxnSink, TxnStart, ValueRef,
};

use crate::product::Product;
use crate::round::{Element, Recorded, RecordedTxn, Round, Seen};

/// How a round is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Leave locking reads out: see [`Product::has_current_reads`](crate::Product::has_current_reads).
    pub without_locking_reads: bool,
    /// Leave out those of statements outside of any transaction that also read from a snapshot: see
    /// [`Product::mixes_reads`](crate::Product::mixes_reads).
    pub without_mixed_reads: bool,
}

impl Reading {
    /// How rounds of a product at an isolation level are read.
    pub fn of(product: &Product, isolation: &str) -> Reading {
        Reading {
            without_locking_reads: product.has_current_reads(isolation),
            without_mixed_reads: product.mixes_reads(),
        }
    }

    pub(crate) fn leaves_out(self, txn: &RecordedTxn, statement: &Recorded, seen: &Seen) -> bool {
        let is_mixed = || txn.autocommit && statement.reads.iter().any(|other| !other.locked);
        seen.locked && (self.without_locking_reads || self.without_mixed_reads && is_mixed())
    }
}

/// A read of a version of a row that its own transaction has overwritten or deleted before: that of its snapshot. The
/// write was based on a newer version, which is why the snapshot still has the old one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OldVersion {
    /// The statement that read it.
    pub read: Element,
    /// The statement of the same transaction that wrote the row.
    pub own: Element,
    /// The statement of another transaction that wrote the row in between.
    pub between: Element,
}

/// The reads of a round that show a version which their own transaction has overwritten, where writes change the newest
/// row and not that of the snapshot.
pub fn old_versions(round: &Round, reading: Reading) -> Vec<OldVersion> {
    if !reading.without_locking_reads {
        return Vec::new();
    }
    let facts = Facts::of(round);
    let mut old = Vec::new();
    for txn in round.transactions.iter().filter(|txn| txn.outcome == Outcome::Committed) {
        for statement in &txn.statements {
            let reads = statement.reads.iter().filter(|seen| !seen.locked);
            old.extend(reads.filter_map(|seen| facts.old_version(txn, statement, seen)));
        }
    }
    old
}

/// The history that a round shows.
pub fn history(round: &Round, reading: Reading) -> Result<History, SinkError> {
    let facts = Facts::of(round);
    let mut batch = Batch::new();
    for txn in &round.transactions {
        facts.transaction(txn, reading, &mut batch)?;
        facts.rolled_back(txn, &mut batch)?;
    }
    batch.build()
}

/// A row, and all that is known of it.
struct Row<'r> {
    name: &'r str,
    /// The longest list that was seen.
    longest: &'r [Element],
    /// Everything that was seen in its lists.
    elements: Vec<Element>,
    /// Who deleted it, and the list that was there until then.
    deletes: Vec<(Element, &'r [Element])>,
}

/// What all statements of a round showed, put together.
struct Facts<'r> {
    round: &'r Round,
    rows: Vec<Row<'r>>,
    numbers: HashMap<&'r str, usize>,
    /// Which statement wrote which row, by statement and row.
    appends: Vec<(Element, usize)>,
    /// Tables from which rows may have gone that no statement showed.
    leaky: Vec<&'r str>,
}

impl<'r> Facts<'r> {
    fn of(round: &'r Round) -> Facts<'r> {
        let mut facts = Facts {
            round,
            rows: Vec::new(),
            numbers: HashMap::new(),
            appends: Vec::new(),
            leaky: Vec::new(),
        };
        for txn in &round.transactions {
            for statement in &txn.statements {
                facts.note(txn, statement);
            }
        }
        let mut appends = Vec::new();
        for (number, row) in facts.rows.iter().enumerate() {
            let seen = row.elements.iter().filter(|element| facts.is_write(**element));
            appends.extend(seen.map(|element| (*element, number)));
            appends.extend(row.deletes.iter().map(|(element, _)| (*element, number)));
        }
        facts.appends = appends;
        facts.appends.sort_unstable();
        facts.appends.dedup();
        facts
    }

    fn row(&mut self, name: &'r str) -> &mut Row<'r> {
        let next = self.rows.len();
        let number = *self.numbers.entry(name).or_insert(next);
        if number == next {
            self.rows.push(Row { name, longest: &[], elements: Vec::new(), deletes: Vec::new() });
        }
        &mut self.rows[number]
    }

    fn note(&mut self, txn: &'r RecordedTxn, statement: &'r Recorded) {
        for Seen { row, list, .. } in statement.reads.iter().chain(&statement.deleted) {
            let row = self.row(row);
            if list.starts_with(row.longest) {
                row.elements.extend(&list[row.longest.len()..]);
                row.longest = list;
            } else if !row.longest.starts_with(list) {
                row.elements.extend(list);
            }
        }
        if statement.failure.is_some() {
            return;
        }
        let element = Element { txn: txn.id, statement: statement.number };
        for name in &statement.inserted {
            self.row(name).elements.push(element);
        }
        for Seen { row, list, .. } in &statement.deleted {
            self.row(row).deletes.push((element, list));
        }
        let may_leak = statement.may_delete_unseen();
        self.leaky.extend(statement.table.as_deref().filter(|_| may_leak));
    }

    fn statement(&self, element: Element) -> Option<&'r Recorded> {
        let statements = &self.round.txn(element.txn)?.statements;
        statements.iter().find(|statement| statement.number == element.statement)
    }

    /// Whether there is a statement that may have written this.
    fn is_write(&self, element: Element) -> bool {
        self.statement(element).is_some_and(|statement| !statement.kind.is_read())
    }

    /// The rows that a statement wrote.
    fn written(&self, element: Element) -> impl Iterator<Item = &Row<'r>> {
        let first = self.appends.partition_point(|(other, _)| *other < element);
        let own = self.appends[first..].iter().take_while(move |(other, _)| *other == element);
        own.map(|(_, row)| &self.rows[*row])
    }

    fn transaction(
        &self,
        txn: &RecordedTxn,
        reading: Reading,
        sink: &mut Batch,
    ) -> Result<(), SinkError> {
        let session = ValueRef::from(txn.session);
        sink.begin(&TxnStart { session, id: Some(txn.id.into()), line: None })?;
        for statement in &txn.statements {
            let notes = OpNotes { sql: Some(&statement.sql), ..OpNotes::default() };
            // What was undone is told with what was rolled back.
            let reads = statement.reads.iter().filter(|_| statement.undone_by.is_none());
            for seen in reads {
                let is_old = || self.old_version(txn, statement, seen).is_some();
                let is_left_out = reading.leaves_out(txn, statement, seen)
                    || reading.without_locking_reads && is_old();
                let list = without_undone(txn, statement, &seen.list);
                if !is_left_out && !self.ends_with_own(txn, statement, &seen.row, &list) {
                    read(sink, &seen.row, &list, &notes)?;
                }
            }
            if txn.is_final && statement.failure.is_none() {
                self.absent(statement, &notes, sink)?;
            }
            if statement.holds() {
                let element = Element { txn: txn.id, statement: statement.number };
                self.append(element, &notes, sink)?;
            }
        }
        let (start, finish) = txn.times.unzip();
        let error = txn.error.as_deref();
        sink.end(&TxnEnd { start, finish, error, ..TxnEnd::new(txn.outcome) })
    }

    fn append(
        &self,
        element: Element,
        notes: &OpNotes<'_>,
        sink: &mut Batch,
    ) -> Result<(), SinkError> {
        let text = element.to_string();
        for row in self.written(element) {
            let op = Op::Append { key: row.name.into(), element: ValueRef::Text(&text) };
            sink.op_with(&op, notes)?;
        }
        Ok(())
    }

    /// What a transaction wrote and rolled back, or tried to write, as a transaction that aborted; only
    /// what somebody has seen of it is known.
    fn rolled_back(&self, txn: &RecordedTxn, sink: &mut Batch) -> Result<(), SinkError> {
        let element = |statement: &Recorded| Element { txn: txn.id, statement: statement.number };
        let undone = || txn.statements.iter().filter(|statement| !statement.holds());
        if !undone().any(|statement| self.written(element(statement)).next().is_some()) {
            return Ok(());
        }
        let name = format!("{} (rolled back)", txn.id);
        let (session, id) = (ValueRef::from(txn.session), Some(ValueRef::Text(&name)));
        sink.begin(&TxnStart { session, id, line: None })?;
        for statement in undone() {
            let notes = OpNotes { sql: Some(&statement.sql), ..OpNotes::default() };
            self.append(element(statement), &notes, sink)?;
        }
        let (start, finish) = txn.times.unzip();
        sink.end(&TxnEnd { start, finish, ..TxnEnd::new(Outcome::Aborted) })
    }

    /// What a transaction has written to a row before a statement, and not undone later.
    fn own(&self, txn: &RecordedTxn, at: &Recorded, row: &str) -> Vec<Element> {
        let Some(number) = self.numbers.get(row) else { return Vec::new() };
        let earlier = |statement: &&Recorded| statement.number < at.number && statement.holds();
        (txn.statements.iter().filter(earlier))
            .map(|statement| Element { txn: txn.id, statement: statement.number })
            .filter(|element| self.appends.binary_search(&(*element, *number)).is_ok())
            .collect()
    }

    /// Whether a list ends with what the transaction has written to the row itself, all of it.
    fn ends_with_own(&self, txn: &RecordedTxn, at: &Recorded, row: &str, list: &[Element]) -> bool {
        let own = self.own(txn, at, row);
        !own.is_empty() && list.ends_with(&own)
    }

    /// What a read shows, if it is a version that its transaction has overwritten on top of that of another one.
    fn old_version(&self, txn: &RecordedTxn, at: &Recorded, seen: &Seen) -> Option<OldVersion> {
        let row = &self.rows[*self.numbers.get(seen.row.as_str())?];
        self.own(txn, at, &seen.row).into_iter().find_map(|own| {
            let deleted = row.deletes.iter().find(|(element, _)| *element == own);
            let below = match deleted {
                Some((_, list)) => *list,
                None => &row.longest[..row.longest.iter().position(|element| *element == own)?],
            };
            let between = *below.strip_prefix(seen.list.as_slice())?.first()?;
            let read = Element { txn: txn.id, statement: at.number };
            (between.txn != txn.id).then_some(OldVersion { read, own, between })
        })
    }

    /// The rows that a read of a whole table at the end did not find: deleted ones, as the delete left
    /// them, and those that nobody deleted, as if nobody had inserted them.
    fn absent(
        &self,
        statement: &Recorded,
        notes: &OpNotes<'_>,
        sink: &mut Batch,
    ) -> Result<(), SinkError> {
        let Some(table) = statement.table.as_deref() else { return Ok(()) };
        let found: std::collections::HashSet<&str> =
            statement.reads.iter().map(|seen| seen.row.as_str()).collect();
        let of_table = |row: &&Row<'_>| {
            row.name.split_once('/').is_some_and(|(name, _)| name == table)
                && !found.contains(row.name)
        };
        for row in self.rows.iter().filter(of_table) {
            let by = |outcome: Outcome| {
                let ended = move |(element, _): &&(Element, &[Element])| {
                    let txn = self.round.txn(element.txn);
                    let stands = self.statement(*element).is_some_and(Recorded::holds);
                    stands && txn.is_some_and(|txn| txn.outcome == outcome)
                };
                row.deletes.iter().filter(ended)
            };
            let deletes: Vec<_> = match by(Outcome::Committed).next() {
                Some(_) => by(Outcome::Committed).collect(),
                None => by(Outcome::Unknown).collect(),
            };
            let is_open = deletes.len() > 1 && by(Outcome::Committed).next().is_none();
            for (element, list) in deletes.iter().copied().filter(|_| !is_open) {
                let mut last = list.to_vec();
                last.push(*element);
                read(sink, row.name, &last, notes)?;
            }
            if deletes.is_empty() && !self.leaky.contains(&table) {
                read(sink, row.name, &[], notes)?;
            }
        }
        Ok(())
    }
}

/// A list as a transaction saw it, without what it had written itself and rolled back later.
fn without_undone(txn: &RecordedTxn, at: &Recorded, list: &[Element]) -> Vec<Element> {
    let undone_later = |element: &Element| {
        element.txn == txn.id
            && txn.statements.iter().any(|statement| {
                statement.number == element.statement
                    && statement.number < at.number
                    && statement.undone_by.is_some_and(|by| by > at.number)
            })
    };
    list.iter().copied().filter(|element| !undone_later(element)).collect()
}

fn read(
    sink: &mut Batch,
    row: &str,
    list: &[Element],
    notes: &OpNotes<'_>,
) -> Result<(), SinkError> {
    let texts: Vec<String> = list.iter().map(ToString::to_string).collect();
    let elements: Vec<ValueRef<'_>> = texts.iter().map(|text| ValueRef::Text(text)).collect();
    sink.op_with(&Op::ReadList { key: row.into(), elements: Some(&elements) }, notes)
}
