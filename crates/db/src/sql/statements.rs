//! The statements that runs are made of: on registers, on lists and on a table, for every database that speaks SQL.
//!
//! Each operation on a table is one statement. Where a database does not return the rows that an update wrote,
//! they are read back by their new version, in the same transaction and through the same index, so
//! that nothing is locked that was not locked before; and rows to delete are marked with a version
//! first. A function and the rows that it is taken over come from one statement, too.

use isolario_model::Value;
use isolario_workload::{Column, Function, RowValues, Schema, TableOp, ValueRange};

use super::application::OwnTables;
use crate::database::SqlResult;
use crate::error::DbError;
use crate::table::{TABLE, TableResult};

/// The columns of our table, in the words that servers understand. What others take for a comment has
/// TiDB store rows under their keys, where its HTTP API finds them ("Clustered Indexes").
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) const COLUMNS: &str = "(id BIGINT PRIMARY KEY /*T![clustered_index] CLUSTERED */, \
     a BIGINT NOT NULL, b BIGINT NOT NULL, v BIGINT NOT NULL, w BIGINT)";

/// The indexes of our table: without them, to look for a range would be to lock everything.
pub(super) const INDEXES: [&str; 2] = [
    "CREATE INDEX isolario_row_a ON isolario_row (a)",
    "CREATE INDEX isolario_row_b ON isolario_row (b)",
];

/// A connection that runs prepared statements: numbers in, rows out.
pub(super) trait Prepared {
    /// Runs a statement.
    fn ask(&mut self, query: &Query, values: &[i64]) -> Result<SqlResult, DbError>;
}

/// How the statements of a database differ from those of others. In templates, `{1}` is the key and `{2}` the value.
#[derive(Clone, Copy)]
pub(crate) struct Style {
    /// How the parameter of a number is written.
    pub(crate) parameter: fn(usize) -> String,
    /// Whether parameters are bound by their positions, and not by their numbers.
    pub(crate) positional: bool,
    /// Whether writes return rows by `RETURNING`, and inserts say `ON CONFLICT`. Otherwise they say `ON DUPLICATE KEY`.
    pub(crate) returning: bool,
    /// The type of 64 bits that a sum is cast to.
    pub(crate) integer: &'static str,
    pub(crate) reported: Reported,
    /// Inserts a register that has no row.
    pub(crate) insert: &'static str,
    pub(crate) delete: &'static str,
    /// Whether one statement compares and sets. Otherwise nothing comes between a read and a write.
    pub(crate) compares: bool,
    pub(crate) read_list: &'static str,
    /// The statements that append. The next one is sent where one has changed nothing.
    pub(crate) append: &'static [&'static str],
}

/// What a database reports with the results of operations on a table.
#[derive(Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(feature = "postgres"), allow(dead_code, reason = "others report nothing"))]
pub(crate) enum Reported {
    Nothing,
    /// The number of a transaction that deletes: the versions that others write tell who they are. It
    /// has one snapshot, which it was told at its beginning.
    Deletes,
    /// The snapshot of every statement, and the number of the transaction.
    Statements,
}

impl Style {
    /// What an insert does instead where the key is there already.
    pub(super) fn otherwise(&self, key: &str) -> String {
        if self.returning {
            format!("ON CONFLICT ({key}) DO UPDATE SET")
        } else {
            "ON DUPLICATE KEY UPDATE".to_owned()
        }
    }

    /// The value of a column that could not be inserted.
    pub(super) fn new_value(&self, column: &str) -> String {
        if self.returning { format!("excluded.{column}") } else { format!("VALUES({column})") }
    }

    fn is_traced(&self) -> bool {
        self.reported == Reported::Statements
    }

    fn returning(&self, statement: &str) -> String {
        let rows = if self.returning { " RETURNING id, a, b, v" } else { "" };
        format!("{statement}{rows}")
    }

    /// A write together with what the database reports of the state that it saw: also when it finds nothing.
    fn traced(&self, statement: String) -> String {
        if !self.is_traced() {
            return statement;
        }
        format!(
            "WITH done AS ({statement}) \
             SELECT {EVIDENCE}, id, a, b, v FROM (SELECT 1) one LEFT JOIN done ON true"
        )
    }

    fn range_read(&self) -> String {
        if self.is_traced() {
            return format!(
                "SELECT {EVIDENCE}, id, a, b, v FROM (SELECT 1) one LEFT JOIN isolario_row ON {RANGE}"
            );
        }
        format!("SELECT id, a, b, v FROM isolario_row WHERE {RANGE}")
    }

    fn delete_range(&self) -> String {
        let delete = self.returning(&format!("DELETE FROM isolario_row WHERE {RANGE}"));
        match self.reported {
            Reported::Deletes => format!("{delete}, {NUMBER}"),
            _ if self.returning => self.traced(delete),
            _ => format!("{delete} AND v = {{3}}"),
        }
    }

    /// A function, and the rows that it is taken over: also when there are none.
    fn aggregate(&self, function: Function) -> String {
        let call = match function {
            Function::Count => "COUNT(*)".to_owned(),
            Function::Sum(of) => format!("CAST(SUM({}) AS {})", of.name(), self.integer),
            Function::Min(of) => format!("MIN({})", of.name()),
            Function::Max(of) => format!("MAX({})", of.name()),
        };
        let evidence = if self.is_traced() { format!("{EVIDENCE}, ") } else { String::new() };
        format!(
            "SELECT {evidence}id, a, b, v, f.f FROM \
             (SELECT {call} AS f FROM isolario_row WHERE {RANGE}) f LEFT JOIN isolario_row ON {RANGE}"
        )
    }
}

/// A range of a column, whose name takes the place of `{column}`.
const RANGE: &str = "{column} BETWEEN {1} AND {2}";

/// The columns with which PostgreSQL reports the state that a statement sees, and the number of its
/// transaction: by the functions that every version has, not by their successors of version 13.
const EVIDENCE: &str = "txid_current_snapshot()::text, txid_current_if_assigned()";
/// What it says of the transaction, behind each row.
const NUMBER: &str = "txid_current()";

/// A statement with parameters.
pub(super) struct Query {
    pub(super) sql: String,
    /// The numbers of the values in the order in which they are bound.
    pub(super) binds: Vec<usize>,
}

impl Query {
    /// Takes a statement in which values are called `{1}`, `{2}` and so on.
    pub(super) fn new(template: &str, style: &Style) -> Query {
        let (mut sql, mut binds) = (String::new(), Vec::new());
        let mut parts = template.split('{');
        sql.push_str(parts.next().unwrap_or_default());
        for part in parts {
            let (number, rest) = part.split_once('}').unwrap_or((part, ""));
            let number: usize = number.parse().unwrap_or_default();
            sql += &(style.parameter)(number);
            sql.push_str(rest);
            binds.push(number);
        }
        if !style.positional {
            binds.sort_unstable();
            binds.dedup();
        }
        Query { sql, binds }
    }
}

/// The statements of a session.
pub(crate) struct Statements {
    pub(super) read: Query,
    pub(super) write: [Query; 2],
    pub(super) delete: Query,
    /// Sets a register where nothing is there, and where a value is; none where reads and writes do.
    pub(super) conditional: Option<[Query; 2]>,
    pub(super) read_list: Query,
    pub(super) append: Vec<Query>,
    pub(super) rows: TableSql,
    /// The tables of an application, where rows are not registers.
    pub(super) own_tables: Option<OwnTables>,
}

impl Statements {
    pub(crate) fn new(style: &Style, schema: Option<Schema>) -> Statements {
        let query = |template: &str| Query::new(template, style);
        let set = "UPDATE isolario_register SET v = {2} WHERE k = {1}";
        Statements {
            read: query("SELECT v FROM isolario_register WHERE k = {1}"),
            write: [query(set), query(style.insert)],
            delete: query(style.delete),
            conditional: style
                .compares
                .then(|| ["v IS NULL", "v = {3}"].map(|held| query(&format!("{set} AND {held}")))),
            read_list: query(style.read_list),
            append: style.append.iter().map(|template| query(template)).collect(),
            rows: TableSql::new(style),
            own_tables: schema.map(|schema| OwnTables::new(schema, style)),
        }
    }

    /// Those on registers and lists.
    #[cfg(feature = "postgres")]
    pub(crate) fn on_keys(&self) -> impl Iterator<Item = &str> {
        let single = [&self.read, &self.delete, &self.read_list].into_iter();
        let several =
            self.write.iter().chain(self.conditional.iter().flatten()).chain(&self.append);
        single.chain(several).map(|query| query.sql.as_str())
    }
}

/// The statements on the table. Those by range come for each column.
pub(super) struct TableSql {
    style: Style,
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

impl TableSql {
    fn new(style: &Style) -> TableSql {
        let query = |template: &str| Query::new(template, style);
        let by_column = |template: &str| {
            [Column::A, Column::B].map(|column| query(&template.replace("{column}", column.name())))
        };
        let insert = format!(
            "INSERT INTO isolario_row (id, a, b, v) VALUES ({{1}}, {{2}}, {{3}}, {{4}}) {} \
             a = {}, b = {}, w = isolario_row.v, v = {}",
            // Assignments may take effect one after the other: the old version is saved before it goes.
            style.otherwise("id"),
            style.new_value("a"),
            style.new_value("b"),
            style.new_value("v"),
        );
        let update = "UPDATE isolario_row SET a = {2}, b = {3}, w = v, v = {4} WHERE id = {1}";
        let range_update =
            format!("UPDATE isolario_row SET b = {{3}}, w = v, v = {{4}} WHERE {RANGE}");
        TableSql {
            style: *style,
            read: query("SELECT id, a, b, v FROM isolario_row WHERE id = {1}"),
            insert: query(&insert),
            update: query(&style.returning(update)),
            range_read: by_column(&style.range_read()),
            range_update: by_column(&style.traced(style.returning(&range_update))),
            read_back: by_column(&format!(
                "SELECT id, a, b, v FROM isolario_row WHERE {RANGE} AND v = {{3}}"
            )),
            mark: by_column(&format!("UPDATE isolario_row SET w = v, v = {{3}} WHERE {RANGE}")),
            delete: by_column(&style.delete_range()),
            aggregate: FUNCTIONS.map(|function| by_column(&style.aggregate(function))),
        }
    }

    /// Runs an operation. An increment is what its client makes of it: a read and an update.
    pub(super) fn run(
        &self,
        line: &mut dyn Prepared,
        op: &TableOp,
        found: &mut TableResult,
    ) -> Result<(), DbError> {
        match *op {
            TableOp::Insert { key, held } => {
                line.ask(&self.insert, &[key.into(), held.a, held.b, held.version]).map(drop)
            }
            TableOp::Update { key, held } => {
                let values = [key.into(), held.a, held.b, held.version];
                if line.ask(&self.update, &values)?.changed > 0 {
                    found.rows.push((key, Some(held)));
                }
                Ok(())
            }
            TableOp::Read { key } => take_rows(line.ask(&self.read, &[key.into()])?, 0, found),
            TableOp::Increment { .. } => Err(DbError::unsupported("increments in one step")),
            TableOp::RangeRead { range } => {
                let reply = line.ask(of(&self.range_read, range), &[range.low, range.high])?;
                self.take(reply, found)
            }
            TableOp::RangeUpdate { range, b, version } => {
                self.range_update(line, range, b, version, found)
            }
            TableOp::Delete { range, version } => self.delete(line, range, version, found),
            TableOp::Aggregate { function, range } => {
                let number = FUNCTIONS.iter().position(|other| *other == function);
                let queries = &self.aggregate[number.unwrap_or_default()];
                let mut reply = line.ask(of(queries, range), &[range.low, range.high])?;
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
        &self,
        line: &mut dyn Prepared,
        range: ValueRange,
        b: i64,
        version: i64,
        found: &mut TableResult,
    ) -> Result<(), DbError> {
        let values = [range.low, range.high, b, version];
        let reply = line.ask(of(&self.range_update, range), &values)?;
        if self.style.returning {
            return self.take(reply, found);
        }
        if reply.changed == 0 {
            return Ok(());
        }
        let (low, high) = match range.column {
            Column::A => (range.low, range.high),
            Column::B => (b, b),
        };
        take_rows(line.ask(of(&self.read_back, range), &[low, high, version])?, 0, found)
    }

    fn delete(
        &self,
        line: &mut dyn Prepared,
        range: ValueRange,
        version: i64,
        found: &mut TableResult,
    ) -> Result<(), DbError> {
        let values = [range.low, range.high, version];
        if self.style.returning {
            let mut reply = line.ask(of(&self.delete, range), &values)?;
            if self.style.reported == Reported::Deletes {
                let numbers = reply.rows.iter_mut().filter_map(Vec::pop);
                found.txn = numbers.filter_map(|number| number_of(&number)).last();
            }
            self.take(reply, found)?;
        } else if line.ask(of(&self.mark, range), &values)?.changed > 0 {
            take_rows(line.ask(of(&self.read_back, range), &values)?, 0, found)?;
            line.ask(of(&self.delete, range), &values)?;
            found.mark = Some(version);
        }
        found.rows.iter_mut().for_each(|(_, held)| *held = None);
        Ok(())
    }

    /// Takes rows with what comes before them.
    fn take(&self, mut reply: SqlResult, found: &mut TableResult) -> Result<(), DbError> {
        if !self.style.is_traced() {
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

fn of(queries: &[Query; 2], range: ValueRange) -> &Query {
    match range.column {
        Column::A => &queries[0],
        Column::B => &queries[1],
    }
}

/// Takes rows that begin after this many other columns. A row without a key means that there is none.
fn take_rows(reply: SqlResult, first: usize, found: &mut TableResult) -> Result<(), DbError> {
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

    #[cfg(all(feature = "mysql", feature = "postgres", feature = "sqlite"))]
    #[test]
    fn values_are_bound_by_number_or_by_position() {
        let template = "UPDATE t SET a = {2} WHERE id = {1} AND a < {2}";
        let of = |style: &Style| {
            let query = Query::new(template, style);
            (query.sql, query.binds)
        };
        let numbered = "UPDATE t SET a = $2 WHERE id = $1 AND a < $2".to_owned();
        assert_eq!(of(&crate::postgres::STYLE), (numbered, vec![1, 2]));
        let positional = "UPDATE t SET a = ? WHERE id = ? AND a < ?".to_owned();
        assert_eq!(of(&crate::mysql::STYLE), (positional, vec![2, 1, 2]));
        assert!(of(&crate::sqlite::STYLE).0.ends_with("a < ?2"));
    }

    #[cfg(feature = "postgres")]
    #[test]
    fn evidence_comes_also_where_nothing_is_found() {
        let (nil, int) = (|| Value::Nil, Value::Int);
        let snapshot = Value::Text("7:9:8".into());
        let nothing = vec![snapshot, int(8), nil(), nil(), nil(), nil()];
        let mut found = TableResult::default();
        let reply = SqlResult { rows: vec![nothing], ..SqlResult::default() };
        let style = Style { reported: Reported::Statements, ..crate::postgres::STYLE };
        TableSql::new(&style).take(reply, &mut found).unwrap();
        assert_eq!((found.snapshot.as_deref(), found.txn), (Some("7:9:8"), Some(8)));
        assert!(found.rows.is_empty());
    }
}
