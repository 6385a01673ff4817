//! What reads saw: each meets the writes of its key and value, and those that are wrong in themselves are named.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::arrow::array::{Array, Int64Array, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use isolario_model::{Initial, ValueRef};

use crate::Error;
use crate::check::Reason;
use crate::engine::Engine;
use crate::rows::{cell, integers, words};
use crate::table::{Names, Table};

/// A place in the guessed order of commits: any rank is right, and a good one makes small windows. Real time never
/// leads back by the later one of start and finish. When a transaction of unknown outcome committed nobody knows;
/// it was not before its start.
const RANKED: &str = "
    SELECT session, txn, op, kind, key, value, external, outcome,
           coalesce(CASE WHEN outcome = 'unknown' OR start > finish THEN start ELSE finish END, start, 0) AS rank
    FROM ops";

/// The versions that somebody wrote. What several wrote is one row, so that reads do not multiply.
const VERSIONS: &str = "
    SELECT key, value, count(*) AS writes, min(txn) AS writer, min(rank) AS writer_rank,
           min(outcome) AS writer_outcome, bool_and(external) AS is_final
    FROM ranked WHERE kind = 'write' GROUP BY key, value";

/// The writer of the initial versions, which nobody else is called by.
pub(crate) const INIT: i64 = -1;

/// How many wrong reads are looked at. One is enough to decide, some more help to understand.
const SUSPICIONS: usize = 20;

/// What came of the reads.
pub(crate) struct Reads {
    /// For each transaction of unknown outcome that must have committed, one that shows it: it read from it, and
    /// did commit.
    pub(crate) vouchers: BTreeMap<i64, i64>,
    /// Transactions that hold a read that is wrong in itself, with whoever wrote what it saw.
    pub(crate) suspicions: Vec<Vec<i64>>,
    /// What the reads leave open.
    pub(crate) open: Option<Reason>,
}

/// Resolves all reads; afterwards the engine knows
///
/// - `ranked`: the operations, with ranks;
/// - `seen`: the reads of others' versions with their writers, of transactions that count, without the wrong ones;
///   `seen_by_all` are those of all keys;
/// - `written`: the versions that transactions which count left behind.
pub(crate) fn resolve(engine: &mut Engine, table: &Table) -> Result<Reads, Error> {
    engine.view("ranked", RANKED)?;
    engine.keep("resolved", &resolved(table))?;
    engine.share("resolved", "resolved_by_all")?;
    let vouchers = vouchers(engine)?;
    engine.keep_rows("vouched", &one_column("txn", vouchers.keys().copied())?)?;
    let counts =
        "outcome = 'committed' OR (outcome = 'unknown' AND txn IN (SELECT txn FROM vouched))";
    let counts = if vouchers.is_empty() { "outcome = 'committed'" } else { counts };
    let counting = |rest: &str| format!("({counts}) AND {rest}");
    let right = counting("trouble IS NULL");
    engine.view("seen", &format!("SELECT * FROM resolved WHERE {right}"))?;
    engine.view("seen_by_all", &format!("SELECT * FROM resolved_by_all WHERE {right}"))?;
    let written = counting("kind = 'write' AND external");
    engine.view(
        "written",
        &format!("SELECT session, txn, key, rank, outcome FROM ranked WHERE {written}"),
    )?;
    engine.view("counted", &format!("SELECT * FROM ranked WHERE {}", counting("op = 0")))?;

    let mut reads = Reads { vouchers, suspicions: Vec::new(), open: None };
    reads.gather_wrong(engine, &counting("trouble IS NOT NULL"))?;
    reads.gather_not_own(engine, &counting("kind = 'read' AND NOT external"))?;
    if table.about.meta.initial == Initial::Unwritten {
        reads.gather_initial(engine, &counting(&format!("writer = {INIT}")))?;
    }
    Ok(reads)
}

/// Reads that no own write precedes, with who wrote what they saw and what is wrong with that.
fn resolved(table: &Table) -> String {
    let initial = is_initial(table);
    // Where a client may write the initial value, too, a read of it says nothing about who did.
    let both = match table.about.meta.initial {
        Initial::Value(_) => initial.as_str(),
        _ => "false",
    };
    // Nobody asks for values that are resolved, unless any may be the initial one.
    let value = match table.about.meta.initial {
        Initial::Unwritten => "r.value, ",
        _ => "",
    };
    format!(
        "SELECT r.session, r.txn, r.op, r.key, {value}r.rank, r.outcome,
                coalesce(v.writer, {INIT}) AS writer, v.writer_rank, v.writer_outcome,
                CASE WHEN v.writes > 1 OR (v.writes = 1 AND {both}) THEN 'ambiguous'
                     WHEN v.writes IS NULL AND NOT {initial} THEN 'thin air'
                     WHEN v.writes = 1 AND (v.writer_outcome = 'aborted' OR v.writer = r.txn OR NOT v.is_final)
                         THEN 'wrong' END AS trouble
         FROM (SELECT * FROM ranked WHERE kind = 'read' AND external AND outcome <> 'aborted') r
         LEFT JOIN ({VERSIONS}) v ON r.key = v.key AND r.value = v.value"
    )
}

/// Whether a read returned the initial value, if nobody wrote it.
fn is_initial(table: &Table) -> String {
    let is = |value: ValueRef<'_>| match (value, table.layout.value) {
        (ValueRef::Nil, _) => "(r.value IS NULL)".to_owned(),
        (ValueRef::Int(int), Names::Integers) => format!("coalesce(r.value = {int}, false)"),
        (ValueRef::Text(text), Names::Text) => {
            format!("coalesce(r.value = '{}', false)", text.replace('\'', "''"))
        }
        _ => "false".to_owned(),
    };
    match &table.about.meta.initial {
        Initial::Value(value) | Initial::UnlessWritten(value) => is(value.as_ref()),
        Initial::Unwritten => "true".to_owned(),
        _ => "false".to_owned(),
    }
}

/// Who of unknown outcome committed: whoever somebody read from who did. Few are unknown, so this fits anywhere.
fn vouchers(engine: &Engine) -> Result<BTreeMap<i64, i64>, Error> {
    let mut vouchers = BTreeMap::new();
    let mut readers: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    let query =
        "SELECT DISTINCT writer, txn, outcome FROM resolved WHERE writer_outcome = 'unknown'
                 ORDER BY writer, txn";
    engine.each(query, |batch| {
        let (writer, txn) = (integers(batch, "writer")?, integers(batch, "txn")?);
        let outcome = words(batch, "outcome")?;
        for row in 0..batch.num_rows() {
            match outcome.value(row) {
                "committed" => {
                    vouchers.entry(writer.value(row)).or_insert(txn.value(row));
                }
                _ => readers.entry(txn.value(row)).or_default().push(writer.value(row)),
            }
        }
        Ok(())
    })?;
    let mut new: Vec<i64> = vouchers.keys().copied().collect();
    while let Some(committed) = new.pop() {
        for seen in readers.remove(&committed).unwrap_or_default() {
            if seen != committed && !vouchers.contains_key(&seen) {
                vouchers.insert(seen, committed);
                new.push(seen);
            }
        }
    }
    Ok(vouchers)
}

impl Reads {
    /// The reads that are wrong whatever the order, and the first that may have been of several.
    fn gather_wrong(&mut self, engine: &Engine, wrong: &str) -> Result<(), Error> {
        let query = format!(
            "(SELECT txn, writer, trouble FROM resolved WHERE {wrong} AND trouble <> 'ambiguous'
              ORDER BY txn, op LIMIT {SUSPICIONS})
             UNION ALL
             (SELECT txn, writer, trouble FROM resolved WHERE {wrong} AND trouble = 'ambiguous'
              ORDER BY txn, op LIMIT 1)"
        );
        engine.each(&query, |batch| {
            let (txn, writer) = (integers(batch, "txn")?, integers(batch, "writer")?);
            let trouble = words(batch, "trouble")?;
            for row in 0..batch.num_rows() {
                match trouble.value(row) {
                    "ambiguous" => self.open = Some(Reason::Ambiguous(txn.value(row))),
                    _ => self.suspicions.push(vec![txn.value(row), writer.value(row)]),
                }
            }
            Ok(())
        })
    }

    /// A key has one initial value, whatever it is.
    fn gather_initial(&mut self, engine: &Engine, initial: &str) -> Result<(), Error> {
        let query = format!(
            "SELECT min(txn) AS txn FROM resolved WHERE {initial} GROUP BY key
             HAVING min(value) <> max(value) OR (count(value) > 0 AND count(value) < count(*))
             ORDER BY txn LIMIT 1"
        );
        engine.each(&query, |batch| {
            let first = integers(batch, "txn")?.values().first().copied();
            self.open = self.open.or(first.map(Reason::SeveralInitial));
            Ok(())
        })
    }

    /// Reads after an own write of the key that did not return it.
    fn gather_not_own(&mut self, engine: &mut Engine, inner: &str) -> Result<(), Error> {
        let not_own = format!(
            "SELECT r.txn, r.key, r.value
             FROM (SELECT * FROM ranked WHERE {inner}) r
             JOIN (SELECT * FROM ranked WHERE kind = 'write') w
               ON w.txn = r.txn AND w.key = r.key AND w.op < r.op
             GROUP BY r.txn, r.op, r.key, r.value
             HAVING r.value IS DISTINCT FROM last_value(w.value ORDER BY w.op)
             ORDER BY r.txn, r.op LIMIT {SUSPICIONS}"
        );
        engine.keep("not_own", &not_own)?;
        let mut is_empty = true;
        engine.each("SELECT txn FROM not_own", |batch| {
            is_empty &= batch.num_rows() == 0;
            Ok(())
        })?;
        if is_empty {
            return Ok(());
        }
        let query = format!(
            "SELECT r.txn, min(v.writer) AS writer
             FROM not_own r LEFT JOIN ({VERSIONS}) v ON r.key = v.key AND r.value = v.value
             GROUP BY r.txn ORDER BY r.txn"
        );
        engine.each(&query, |batch| {
            let (txn, writer) = (integers(batch, "txn")?, integers(batch, "writer")?);
            for row in 0..batch.num_rows() {
                self.suspicions.push(vec![txn.value(row), cell(&writer, row).unwrap_or(INIT)]);
            }
            Ok(())
        })
    }
}

/// A table of one column of integers.
fn one_column(name: &str, column: impl Iterator<Item = i64>) -> Result<RecordBatch, Error> {
    let schema = Schema::new(vec![Field::new(name, DataType::Int64, false)]);
    let column: Int64Array = column.collect::<Vec<_>>().into();
    debug_assert_eq!(column.null_count(), 0);
    Ok(RecordBatch::try_new(Arc::new(schema), vec![Arc::new(column)])?)
}
