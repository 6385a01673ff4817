//! From a history to its table of operations.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, BooleanBuilder, Int64Builder, RecordBatch, StringBuilder,
};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::Compression;
use datafusion::parquet::file::metadata::KeyValue;
use datafusion::parquet::file::properties::{WriterProperties, WriterVersion};
use isolario_model::{History, Initial, KeyId, Op, OpId, OpKind, Outcome, TxnId, Value, ValueRef};
use rayon::prelude::*;

use crate::Error;
use crate::table::{About, Layout, Names};

/// Rows of a row group: small enough that several are read at once, large enough to pack well.
const ROW_GROUP: usize = 1 << 18;
/// Rows that are handed to the writer at once.
const BATCH: usize = 1 << 16;

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// How many transactions.
    pub transactions: usize,
    /// How many operations.
    pub operations: usize,
    /// How many transactions have timestamps of the database, errors or lines, for which there is no column.
    pub shortened: usize,
}

/// Writes a history as one Parquet file, or as a directory of several with the keys divided among them.
pub fn write_table(history: &History, path: &Path, parts: usize) -> Result<Written, Error> {
    let layout = layout(history)?;
    let rows = sorted(history);
    let external = external(history);
    let about = About {
        meta: history.meta().clone(),
        transactions: history.txn_count() as u64,
        parts: parts.max(1),
    };
    let properties = properties(&about);
    let source = Rows { history, layout, external };
    if parts <= 1 {
        source.write(path, &rows, &properties)?;
    } else {
        std::fs::create_dir(path).map_err(Error::file(path))?;
        for (number, rows) in divided(&rows, parts).into_iter().enumerate() {
            source.write(&path.join(format!("part-{number:04}.parquet")), rows, &properties)?;
        }
    }
    let is_shortened = |txn: &TxnId| {
        let end = history.txn_end(*txn);
        end.db_start.is_some()
            || end.db_commit.is_some()
            || end.snapshot.is_some()
            || end.error.is_some()
    };
    Ok(Written {
        transactions: history.txn_count(),
        operations: history.op_count(),
        shortened: history.txns().filter(is_shortened).count(),
    })
}

/// Integers in a file that is sorted differ little from one to the next: differences take few bits. What is told
/// by a word has few different ones, which a dictionary numbers.
fn properties(about: &About) -> WriterProperties {
    let pairs = about.to_pairs().into_iter().map(|(key, value)| KeyValue::new(key, value));
    let mut properties = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_2_0)
        .set_compression(Compression::SNAPPY)
        .set_max_row_group_row_count(Some(ROW_GROUP))
        .set_key_value_metadata(Some(pairs.collect()))
        .set_created_by("isolario-cluster".to_owned());
    for column in ["txn", "op", "start", "finish"] {
        properties = properties.set_column_dictionary_enabled(column.into(), false);
    }
    properties.build()
}

/// What names are made of; or what there is no place for.
fn layout(history: &History) -> Result<Layout, Error> {
    let no_place = |what, example: String| Error::NoPlace { what, example };
    for (at, kind) in history.op_kinds().iter().enumerate() {
        let what = match kind {
            OpKind::Read | OpKind::ReadUnobserved => continue,
            OpKind::Write => match history.op(OpId::at(at)) {
                Op::Write { value, .. } if history.value(value) == ValueRef::Nil => "writes of nil",
                _ => continue,
            },
            OpKind::Delete => "deletes",
            OpKind::Append | OpKind::ReadList | OpKind::ReadListUnobserved => "lists",
            OpKind::InsertIfAbsent | OpKind::CompareAndSet => "conditional writes",
            _ => "predicates",
        };
        return Err(no_place(what, history.txn_label(history.op_txn(OpId::at(at)))));
    }
    if history.names_versions() {
        return Err(no_place("versions that are named apart from their values", "all".to_owned()));
    }
    let keys = (0..history.key_count()).map(|key| history.key_name(KeyId::at(key)));
    let sessions = history.sessions().map(|session| history.session_name(session));
    let names = history.txns().filter_map(|txn| history.txn_name(txn));
    let written = (0..history.op_count()).filter_map(|op| value(history, OpId::at(op)));
    let initial = match history.initial() {
        Initial::Value(value) | Initial::UnlessWritten(value) => value.clone(),
        Initial::Marked => return Err(no_place("marks of initial versions", "all".to_owned())),
        _ => Value::Nil,
    };
    names_of([initial.as_ref()].into_iter(), "initial values of this kind")?;
    Ok(Layout {
        session: names_of(sessions, "sessions with names of several kinds")?,
        name: names_of(names, "transactions with names of several kinds")?,
        key: names_of(keys, "keys of several kinds")?,
        value: names_of(written, "values of several kinds")?,
    })
}

/// Integers where all are; nil aside.
fn names_of<'h>(
    mut names: impl Iterator<Item = ValueRef<'h>>,
    what: &'static str,
) -> Result<Names, Error> {
    let kind = |name: &ValueRef<'_>| match name {
        ValueRef::Int(_) => Some(Names::Integers),
        ValueRef::Text(_) => Some(Names::Text),
        _ => None,
    };
    let mut found = None;
    match names.find(|name| {
        *name != ValueRef::Nil
            && (kind(name).is_none() || *found.get_or_insert(kind(name)) != kind(name))
    }) {
        Some(odd) => Err(Error::NoPlace { what, example: odd.to_string() }),
        None => Ok(found.flatten().unwrap_or(Names::Integers)),
    }
}

fn value(history: &History, op: OpId) -> Option<ValueRef<'_>> {
    match history.op(op) {
        Op::Read { value: Some(value), .. } | Op::Write { value, .. } => Some(history.value(value)),
        _ => None,
    }
}

/// A row: an operation, or a transaction that has none.
#[derive(Clone, Copy)]
enum Row {
    Op { key: u32, op: u32 },
    Empty(TxnId),
}

/// All rows, by key and value; those without at the end.
fn sorted(history: &History) -> Vec<Row> {
    let mut keys: Vec<KeyId> = (0..history.key_count()).map(KeyId::at).collect();
    keys.sort_unstable_by_key(|key| history.key_name(*key));
    let mut place = vec![0u32; keys.len()];
    keys.iter().zip(0..).for_each(|(key, at)| place[key.index()] = at);
    let by_value = |op: &usize| {
        let key = place[history.op_keys()[*op].index()];
        (key, value(history, OpId::at(*op)).unwrap_or(ValueRef::Nil), *op as u32)
    };
    let mut ops: Vec<_> = (0..history.op_count()).into_par_iter().map(|op| by_value(&op)).collect();
    ops.par_sort_unstable();
    let empty = history.txns().filter(|txn| history.op_range(*txn).is_empty()).map(Row::Empty);
    ops.into_iter().map(|(key, _, op)| Row::Op { key, op }).chain(empty).collect()
}

/// Cuts the rows into parts of about the same size, none of which shares a key with another.
fn divided(rows: &[Row], parts: usize) -> Vec<&[Row]> {
    let key = |row: &Row| match row {
        Row::Op { key, .. } => Some(*key),
        Row::Empty(_) => None,
    };
    let mut rest = rows;
    let mut divided = Vec::new();
    for left in (1..=parts).rev() {
        let mut end = rest.len() / left;
        while end > 0 && end < rest.len() && key(&rest[end - 1]) == key(&rest[end]) {
            end += 1;
        }
        let (part, after) = rest.split_at(if left == 1 { rest.len() } else { end });
        divided.push(part);
        rest = after;
    }
    divided
}

/// By operation, whether it has to do with other transactions: a read that no own write of the key precedes, and a
/// write that none follows.
fn external(history: &History) -> Vec<bool> {
    let mut external = vec![false; history.op_count()];
    let mut first_write = vec![(TxnId(u32::MAX), 0); history.key_count()];
    let mut last_write = first_write.clone();
    for txn in history.txns() {
        let ops = history.op_range(txn);
        let writes = ops.clone().filter(|op| history.op_kinds()[*op] == OpKind::Write);
        for op in writes {
            let key = history.op_keys()[op].index();
            last_write[key] = (txn, op);
            if first_write[key].0 != txn {
                first_write[key] = (txn, op);
            }
        }
        for op in ops {
            let key = history.op_keys()[op].index();
            external[op] = match history.op_kinds()[op] {
                OpKind::Write => last_write[key] == (txn, op),
                _ => first_write[key].0 != txn || op < first_write[key].1,
            };
        }
    }
    external
}

/// A column of names.
enum NameColumn {
    Integers(Int64Builder),
    Text(StringBuilder),
}

impl NameColumn {
    fn new(names: Names) -> NameColumn {
        match names {
            Names::Integers => NameColumn::Integers(Int64Builder::new()),
            Names::Text => NameColumn::Text(StringBuilder::new()),
        }
    }

    fn push(&mut self, name: Option<ValueRef<'_>>) {
        match (self, name) {
            (NameColumn::Integers(column), Some(ValueRef::Int(int))) => column.append_value(int),
            (NameColumn::Integers(column), _) => column.append_null(),
            (NameColumn::Text(column), Some(ValueRef::Text(text))) => column.append_value(text),
            (NameColumn::Text(column), _) => column.append_null(),
        }
    }

    fn finish(self) -> ArrayRef {
        match self {
            NameColumn::Integers(mut column) => Arc::new(column.finish()),
            NameColumn::Text(mut column) => Arc::new(column.finish()),
        }
    }
}

/// Where rows come from.
struct Rows<'h> {
    history: &'h History,
    layout: Layout,
    external: Vec<bool>,
}

impl Rows<'_> {
    fn write(&self, path: &Path, rows: &[Row], properties: &WriterProperties) -> Result<(), Error> {
        let file = File::create_new(path).map_err(Error::file(path))?;
        let schema = self.layout.schema();
        let mut writer = ArrowWriter::try_new(file, schema, Some(properties.clone()))?;
        for rows in rows.chunks(BATCH) {
            writer.write(&self.batch(rows)?)?;
        }
        writer.close()?;
        Ok(())
    }

    fn batch(&self, rows: &[Row]) -> Result<RecordBatch, Error> {
        let (history, layout) = (self.history, self.layout);
        let (mut session, mut name) =
            (NameColumn::new(layout.session), NameColumn::new(layout.name));
        let (mut key, mut value_column) =
            (NameColumn::new(layout.key), NameColumn::new(layout.value));
        let (mut kind, mut outcome) = (StringBuilder::new(), StringBuilder::new());
        let [mut txn_column, mut op_column, mut start, mut finish] =
            [(); 4].map(|()| Int64Builder::new());
        let mut external = BooleanBuilder::new();
        for row in rows {
            let (txn, op) = match *row {
                Row::Op { op, .. } => (history.op_txn(OpId(op)), Some(OpId(op))),
                Row::Empty(txn) => (txn, None),
            };
            session.push(Some(history.session_name(history.session_of(txn))));
            txn_column.append_value(i64::from(txn.0));
            name.push(history.txn_name(txn));
            let position = op.map_or(0, |op| op.index() - history.op_range(txn).start);
            op_column.append_value(position as i64);
            kind.append_value(op.map_or("none", |op| kind_word(history.op_kinds()[op.index()])));
            key.push(op.map(|op| history.key_name(history.op_keys()[op.index()])));
            value_column.push(op.and_then(|op| value(history, op)));
            external.append_value(op.is_some_and(|op| self.external[op.index()]));
            outcome.append_value(outcome_word(history.outcome(txn)));
            start.append_option(history.start(txn));
            finish.append_option(history.finish(txn));
        }
        let columns: Vec<ArrayRef> = vec![
            session.finish(),
            Arc::new(txn_column.finish()),
            name.finish(),
            Arc::new(op_column.finish()),
            Arc::new(kind.finish()),
            key.finish(),
            value_column.finish(),
            Arc::new(external.finish()),
            Arc::new(outcome.finish()),
            Arc::new(start.finish()),
            Arc::new(finish.finish()),
        ];
        Ok(RecordBatch::try_new(layout.schema(), columns)?)
    }
}

fn kind_word(kind: OpKind) -> &'static str {
    match kind {
        OpKind::Write => "write",
        OpKind::Read => "read",
        _ => "unobserved",
    }
}

fn outcome_word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Committed => "committed",
        Outcome::Aborted => "aborted",
        Outcome::Unknown => "unknown",
    }
}
