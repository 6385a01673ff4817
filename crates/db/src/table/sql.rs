//! Operations on a table in SQL, the same for every database that speaks it.
//!
//! Each operation is one statement. Where a database does not return the rows that an update wrote,
//! they are read back by their new version, in the same transaction and through the same index, so
//! that nothing is locked that was not locked before; and rows to delete are marked with a version
//! first. A function and the rows that it is taken over come from one statement, too.

use std::sync::LazyLock;

use isolario_model::Value;
use isolario_workload::{Column, Function, RowValues, TableOp, ValueRange};

use super::{TABLE, TableResult};
use crate::error::DbError;

/// The columns of our table, in the words that servers understand. What others take for a comment has
/// TiDB store rows under their keys, where its HTTP API finds them ("Clustered Indexes").
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) const COLUMNS: &str = "(id BIGINT PRIMARY KEY /*T![clustered_index] CLUSTERED */, \
     a BIGINT NOT NULL, b BIGINT NOT NULL, v BIGINT NOT NULL, w BIGINT)";

/// The indexes of our table: without them, to look for a range would be to lock everything.
pub(crate) const INDEXES: [&str; 2] = [
    "CREATE INDEX isolario_row_a ON isolario_row (a)",
    "CREATE INDEX isolario_row_b ON isolario_row (b)",
];

/// A connection that runs prepared statements: numbers in, rows out.
pub(crate) trait Prepared {
    /// Runs a statement.
    fn ask(&mut self, sql: &'static str, values: &[i64]) -> Result<Reply, DbError>;
}

/// What a statement came to.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    /// The rows that it returned.
    pub(crate) rows: Vec<Vec<Value>>,
    /// How many rows it changed, where it returned none.
    pub(crate) changed: u64,
}

/// How a database differs from the others.
#[derive(Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    not(all(feature = "mysql", feature = "postgres", feature = "sqlite")),
    allow(dead_code, reason = "each is there for one of the databases")
)]
pub(super) enum Dialect {
    /// `RETURNING`; with or without what a certificate is made of.
    Postgres(Told),
    /// `RETURNING`.
    Sqlite,
    /// No `RETURNING`, and parameters by position.
    MySql,
}

/// What PostgreSQL tells beside the results.
#[derive(Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(feature = "postgres"), allow(dead_code, reason = "each is there for PostgreSQL"))]
pub(super) enum Told {
    Nothing,
    /// The number of a transaction that deletes: the versions that others write tell who they are. It
    /// has one snapshot, which it was told at its beginning.
    Deletes,
    /// The snapshot of every statement, and the number of the transaction.
    Statements,
}

#[cfg(feature = "postgres")]
pub(crate) static POSTGRES: LazyLock<TableSql> =
    LazyLock::new(|| TableSql::new(Dialect::Postgres(Told::Nothing)));
#[cfg(feature = "postgres")]
pub(crate) static POSTGRES_DELETES: LazyLock<TableSql> =
    LazyLock::new(|| TableSql::new(Dialect::Postgres(Told::Deletes)));
#[cfg(feature = "postgres")]
pub(crate) static POSTGRES_STATEMENTS: LazyLock<TableSql> =
    LazyLock::new(|| TableSql::new(Dialect::Postgres(Told::Statements)));
#[cfg(feature = "sqlite")]
pub(crate) static SQLITE: LazyLock<TableSql> = LazyLock::new(|| TableSql::new(Dialect::Sqlite));
#[cfg(feature = "mysql")]
pub(crate) static MYSQL: LazyLock<TableSql> = LazyLock::new(|| TableSql::new(Dialect::MySql));

/// The statements of a dialect. Those by range come for each column.
pub(crate) struct TableSql {
    dialect: Dialect,
    read: Query,
    insert: Query,
    update: Query,
    range_read: [Query; 2],
    range_update: [Query; 2],
    /// What a range holds of one version.
    read_back: [Query; 2],
    /// Marks what is to be deleted.
    mark: [Query; 2],
    delete: [Query; 2],
    /// By function, then by column.
    aggregate: [[Query; 2]; FUNCTIONS.len()],
}

const FUNCTIONS: [Function; 7] = [
    Function::Count,
    Function::Sum(Column::A),
    Function::Sum(Column::B),
    Function::Min(Column::A),
    Function::Min(Column::B),
    Function::Max(Column::A),
    Function::Max(Column::B),
];

/// A statement with parameters.
pub(super) struct Query {
    pub(super) sql: String,
    /// The numbers of the values in the order in which they are bound.
    binds: Vec<usize>,
}

impl Query {
    /// Takes a statement in which values are called `{1}`, `{2}` and so on.
    pub(super) fn new(template: &str, dialect: Dialect) -> Query {
        let (mut sql, mut binds) = (String::new(), Vec::new());
        let mut parts = template.split('{');
        sql.push_str(parts.next().unwrap_or_default());
        for part in parts {
            let (number, rest) = part.split_once('}').unwrap_or((part, ""));
            let number: usize = number.parse().unwrap_or_default();
            match dialect {
                Dialect::MySql => sql.push('?'),
                Dialect::Postgres(_) => sql += &format!("${number}"),
                Dialect::Sqlite => sql += &format!("?{number}"),
            }
            if dialect == Dialect::MySql || !binds.contains(&number) {
                binds.push(number);
            }
            sql.push_str(rest);
        }
        if dialect != Dialect::MySql {
            binds.sort_unstable();
        }
        Query { sql, binds }
    }

    pub(super) fn ask(
        &'static self,
        line: &mut dyn Prepared,
        values: &[i64],
    ) -> Result<Reply, DbError> {
        let bound: Vec<i64> = self.binds.iter().map(|number| values[number - 1]).collect();
        line.ask(&self.sql, &bound)
    }
}

/// The columns with which PostgreSQL reports the state that a statement sees, and the number of its
/// transaction: by the functions that every version has, not by their successors of version 13.
const EVIDENCE: &str = "txid_current_snapshot()::text, txid_current_if_assigned()";
/// What it says of the transaction, behind each row.
const NUMBER: &str = "txid_current()";

impl TableSql {
    fn new(dialect: Dialect) -> TableSql {
        let query = |template: &str| Query::new(template, dialect);
        let by_column = |template: &dyn Fn(&str) -> String| {
            [Column::A, Column::B].map(|column| Query::new(&template(column.name()), dialect))
        };
        TableSql {
            dialect,
            read: query("SELECT id, a, b, v FROM isolario_row WHERE id = {1}"),
            insert: query(&insert(dialect)),
            update: query(&returning(
                dialect,
                "UPDATE isolario_row SET a = {2}, b = {3}, w = v, v = {4} WHERE id = {1}",
            )),
            range_read: by_column(&|column| range_read(dialect, column)),
            range_update: by_column(&|column| {
                let range = format!("{column} BETWEEN {{1}} AND {{2}}");
                let set = "UPDATE isolario_row SET b = {3}, w = v, v = {4} WHERE";
                traced(dialect, &returning(dialect, &format!("{set} {range}")))
            }),
            read_back: by_column(&|column| {
                let range = format!("{column} BETWEEN {{1}} AND {{2}}");
                format!("SELECT id, a, b, v FROM isolario_row WHERE {range} AND v = {{3}}")
            }),
            mark: by_column(&|column| {
                let range = format!("{column} BETWEEN {{1}} AND {{2}}");
                format!("UPDATE isolario_row SET w = v, v = {{3}} WHERE {range}")
            }),
            delete: by_column(&|column| {
                let delete = "DELETE FROM isolario_row WHERE";
                let range = format!("{column} BETWEEN {{1}} AND {{2}}");
                match dialect {
                    Dialect::MySql => format!("{delete} {range} AND v = {{3}}"),
                    Dialect::Postgres(Told::Deletes) => {
                        format!("{}, {NUMBER}", returning(dialect, &format!("{delete} {range}")))
                    }
                    _ => traced(dialect, &returning(dialect, &format!("{delete} {range}"))),
                }
            }),
            aggregate: FUNCTIONS
                .map(|function| by_column(&|column| aggregate(dialect, function, column))),
        }
    }

    /// Runs an operation. An increment is what its client makes of it: a read and an update.
    pub(crate) fn run(
        &'static self,
        line: &mut dyn Prepared,
        op: &TableOp,
        found: &mut TableResult,
    ) -> Result<(), DbError> {
        match *op {
            TableOp::Insert { key, held } => {
                self.insert.ask(line, &[key.into(), held.a, held.b, held.version]).map(|_| ())
            }
            TableOp::Update { key, held } => {
                let values = [key.into(), held.a, held.b, held.version];
                let reply = self.update.ask(line, &values)?;
                if reply.changed > 0 || !reply.rows.is_empty() {
                    found.rows.push((key, Some(held)));
                }
                Ok(())
            }
            TableOp::Read { key } => take_rows(self.read.ask(line, &[key.into()])?, 0, found),
            TableOp::Increment { .. } => Err(DbError::unsupported("increments in one step")),
            TableOp::RangeRead { range } => {
                let reply = of(&self.range_read, range).ask(line, &[range.low, range.high])?;
                self.take(reply, found)
            }
            TableOp::RangeUpdate { range, b, version } => {
                self.range_update(line, range, b, version, found)
            }
            TableOp::Delete { range, version } => self.delete(line, range, version, found),
            TableOp::Aggregate { function, range } => {
                let number = FUNCTIONS.iter().position(|other| *other == function);
                let queries = &self.aggregate[number.unwrap_or_default()];
                let mut reply = of(queries, range).ask(line, &[range.low, range.high])?;
                let value = reply.rows.first_mut().and_then(Vec::pop);
                reply.rows.iter_mut().skip(1).for_each(|row| drop(row.pop()));
                found.value = match value {
                    Some(Value::Int(value)) => Some(value),
                    _ => None,
                };
                self.take(reply, found)
            }
        }
    }

    /// Updates a range, and learns which rows that were. Those of a range by `b` are not in it any
    /// more: they all hold the new value.
    fn range_update(
        &'static self,
        line: &mut dyn Prepared,
        range: ValueRange,
        b: i64,
        version: i64,
        found: &mut TableResult,
    ) -> Result<(), DbError> {
        let values = [range.low, range.high, b, version];
        let reply = of(&self.range_update, range).ask(line, &values)?;
        if self.dialect != Dialect::MySql {
            return self.take(reply, found);
        }
        if reply.changed == 0 {
            return Ok(());
        }
        let (low, high) = match range.column {
            Column::A => (range.low, range.high),
            Column::B => (b, b),
        };
        take_rows(of(&self.read_back, range).ask(line, &[low, high, version])?, 0, found)
    }

    fn delete(
        &'static self,
        line: &mut dyn Prepared,
        range: ValueRange,
        version: i64,
        found: &mut TableResult,
    ) -> Result<(), DbError> {
        let values = [range.low, range.high, version];
        if self.dialect == Dialect::MySql {
            if of(&self.mark, range).ask(line, &values)?.changed > 0 {
                take_rows(of(&self.read_back, range).ask(line, &values)?, 0, found)?;
                of(&self.delete, range).ask(line, &values)?;
                found.mark = Some(version);
            }
        } else {
            let mut reply = of(&self.delete, range).ask(line, &values)?;
            if self.dialect == Dialect::Postgres(Told::Deletes) {
                let numbers = reply.rows.iter_mut().filter_map(Vec::pop);
                found.txn = numbers.filter_map(|number| number_of(&number)).last();
            }
            self.take(reply, found)?;
        }
        found.rows.iter_mut().for_each(|(_, held)| *held = None);
        Ok(())
    }

    /// Takes rows with what comes before them.
    fn take(&self, mut reply: Reply, found: &mut TableResult) -> Result<(), DbError> {
        if self.dialect != Dialect::Postgres(Told::Statements) {
            return take_rows(reply, 0, found);
        }
        if let Some([snapshot, txn, ..]) = reply.rows.first_mut().map(Vec::as_mut_slice) {
            if let Value::Text(text) = std::mem::replace(snapshot, Value::Nil) {
                found.snapshot = Some(text.into());
            }
            found.txn = number_of(txn);
        }
        take_rows(reply, 2, found)
    }
}

fn number_of(value: &Value) -> Option<u64> {
    match value {
        Value::Int(number) => Some(*number as u64),
        _ => None,
    }
}

fn of(queries: &'static [Query; 2], range: ValueRange) -> &'static Query {
    match range.column {
        Column::A => &queries[0],
        Column::B => &queries[1],
    }
}

fn insert(dialect: Dialect) -> String {
    let insert = "INSERT INTO isolario_row (id, a, b, v) VALUES ({1}, {2}, {3}, {4})";
    match dialect {
        // Assignments take effect one after the other: the old version is saved before it goes.
        Dialect::MySql => format!(
            "{insert} ON DUPLICATE KEY UPDATE \
             a = VALUES(a), b = VALUES(b), w = v, v = VALUES(v)"
        ),
        _ => format!(
            "{insert} ON CONFLICT (id) DO UPDATE SET \
             a = excluded.a, b = excluded.b, w = isolario_row.v, v = excluded.v"
        ),
    }
}

fn returning(dialect: Dialect, statement: &str) -> String {
    match dialect {
        Dialect::MySql => statement.to_owned(),
        _ => format!("{statement} RETURNING id, a, b, v"),
    }
}

/// A write together with what the database says of the state it saw: also when it finds nothing.
fn traced(dialect: Dialect, statement: &str) -> String {
    match dialect {
        Dialect::Postgres(Told::Statements) => format!(
            "WITH done AS ({statement}) \
             SELECT {EVIDENCE}, id, a, b, v FROM (SELECT 1) one LEFT JOIN done ON true"
        ),
        _ => statement.to_owned(),
    }
}

fn range_read(dialect: Dialect, column: &str) -> String {
    let range = format!("{column} BETWEEN {{1}} AND {{2}}");
    match dialect {
        Dialect::Postgres(Told::Statements) => format!(
            "SELECT {EVIDENCE}, id, a, b, v FROM (SELECT 1) one LEFT JOIN isolario_row ON {range}"
        ),
        _ => format!("SELECT id, a, b, v FROM isolario_row WHERE {range}"),
    }
}

/// A function, and the rows that it was taken over: also when there are none.
fn aggregate(dialect: Dialect, function: Function, column: &str) -> String {
    let number = match dialect {
        Dialect::MySql => "SIGNED",
        _ => "BIGINT",
    };
    let call = match function {
        Function::Count => "COUNT(*)".to_owned(),
        Function::Sum(of) => format!("CAST(SUM({}) AS {number})", of.name()),
        Function::Min(of) => format!("MIN({})", of.name()),
        Function::Max(of) => format!("MAX({})", of.name()),
    };
    let evidence = match dialect {
        Dialect::Postgres(Told::Statements) => format!("{EVIDENCE}, "),
        _ => String::new(),
    };
    let range = format!("{column} BETWEEN {{1}} AND {{2}}");
    format!(
        "SELECT {evidence}id, a, b, v, f.f FROM \
         (SELECT {call} AS f FROM isolario_row WHERE {range}) f LEFT JOIN isolario_row ON {range}"
    )
}

/// Takes rows that begin after so many other columns. One without a key stands for none.
fn take_rows(reply: Reply, first: usize, found: &mut TableResult) -> Result<(), DbError> {
    for row in reply.rows {
        match row.get(first..) {
            Some([Value::Int(id), Value::Int(a), Value::Int(b), Value::Int(version)]) => {
                let key = u32::try_from(*id).map_err(|_| strange(&row))?;
                found.rows.push((key, Some(RowValues { a: *a, b: *b, version: *version })));
            }
            Some([Value::Nil, ..]) => {}
            _ => return Err(strange(&row)),
        }
    }
    Ok(())
}

fn strange(row: &[Value]) -> DbError {
    DbError::fatal(format!("the table {TABLE} has a row that no client of this run wrote: {row:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_bound_by_number_or_by_position() {
        let template = "UPDATE t SET a = {2} WHERE id = {1} AND a < {2}";
        let of = |dialect| {
            let query = Query::new(template, dialect);
            (query.sql, query.binds)
        };
        let numbered = "UPDATE t SET a = $2 WHERE id = $1 AND a < $2".to_owned();
        assert_eq!(of(Dialect::Postgres(Told::Nothing)), (numbered, vec![1, 2]));
        let positional = "UPDATE t SET a = ? WHERE id = ? AND a < ?".to_owned();
        assert_eq!(of(Dialect::MySql), (positional, vec![2, 1, 2]));
        assert!(of(Dialect::Sqlite).0.ends_with("a < ?2"));
    }

    #[cfg(feature = "postgres")]
    #[test]
    fn evidence_comes_also_where_nothing_is_found() {
        let (nil, int) = (|| Value::Nil, Value::Int);
        let snapshot = Value::Text("7:9:8".into());
        let nothing = vec![snapshot, int(8), nil(), nil(), nil(), nil()];
        let mut found = TableResult::default();
        let reply = Reply { rows: vec![nothing], changed: 0 };
        POSTGRES_STATEMENTS.take(reply, &mut found).unwrap();
        assert_eq!((found.snapshot.as_deref(), found.txn), (Some("7:9:8"), Some(8)));
        assert!(found.rows.is_empty());
    }
}
