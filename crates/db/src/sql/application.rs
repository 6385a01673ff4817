//! The rows of an application in SQL tables of their own: the statements that make them, read them and
//! write them, for every dialect from the one description in [`isolario_workload::Schema`].
//!
//! To the history a row is a register. Its value is the column `version`, which no two writes share; the
//! other columns follow from it. So a row that was put together from several versions cannot pass for one
//! that somebody wrote.

use isolario_model::Value;
use isolario_workload::{Application, RowName, Rows, Schema, Table};

use super::statements::{Prepared, Query, Style};
use crate::database::RegisterValue;
use crate::error::DbError;

/// The column that tells versions apart. Nobody has written a row of version 0.
const VERSION: &str = "version";

/// How many rows are inserted by one statement when tables are made.
const ROWS_AT_ONCE: usize = 500;

/// The statements on a table.
struct TableQueries {
    read: Query,
    write: Query,
}

/// What a table is called in the database: no two applications share one.
fn name(application: Application, table: &Table) -> String {
    format!("isolario_{application}_{}", table.name)
}

/// All columns: the primary key, what else there is, the version.
fn columns(table: &Table) -> impl Iterator<Item = &'static str> {
    let key = table.key.iter().map(|column| column.name);
    key.chain(table.columns.iter().copied()).chain([VERSION])
}

fn listed<'c>(columns: impl Iterator<Item = &'c str>) -> String {
    columns.collect::<Vec<_>>().join(", ")
}

/// The columns of a table, as every dialect understands them.
fn definition(table: &Table) -> String {
    let columns: Vec<_> =
        columns(table).map(|column| format!("{column} BIGINT NOT NULL")).collect();
    let key = listed(table.key.iter().map(|column| column.name));
    format!("({}, PRIMARY KEY ({key}))", columns.join(", "))
}

/// The row of a primary key. Values are numbered as [`columns`] come.
fn by_key(table: &Table) -> String {
    let equal = |(at, column): (usize, &'static str)| format!("{column} = {{{}}}", at + 1);
    let key = table.key.iter().map(|column| column.name).enumerate();
    key.map(equal).collect::<Vec<_>>().join(" AND ")
}

fn read(name: &str, table: &Table) -> String {
    let held = listed(columns(table).skip(table.key.len()));
    format!("SELECT {held} FROM {name} WHERE {}", by_key(table))
}

/// An update where rows are there from the beginning, and otherwise an insert. Rows that are long past
/// are replaced by it.
fn write(name: &str, table: &Table, style: &Style) -> String {
    let held = || columns(table).enumerate().skip(table.key.len());
    if table.rows != Rows::Inserted {
        let set: Vec<_> = held().map(|(at, column)| format!("{column} = {{{}}}", at + 1)).collect();
        return format!("UPDATE {name} SET {} WHERE {}", set.join(", "), by_key(table));
    }
    let numbers: Vec<_> = (1..=columns(table).count()).map(|at| format!("{{{at}}}")).collect();
    let key = listed(table.key.iter().map(|column| column.name));
    let set: Vec<_> =
        held().map(|(_, column)| format!("{column} = {}", style.new_value(column))).collect();
    format!(
        "INSERT INTO {name} ({}) VALUES ({}) {} {}",
        listed(columns(table)),
        numbers.join(", "),
        style.otherwise(&key),
        set.join(", ")
    )
}

/// The columns of the tables of an application: names, and columns for `CREATE TABLE`.
pub(super) fn definitions(schema: Schema) -> impl Iterator<Item = (String, String)> {
    let application = schema.application();
    schema.tables().iter().map(move |table| (name(application, table), definition(table)))
}

/// The statements that insert the rows which are there from the beginning.
pub(super) fn rows(schema: Schema) -> impl Iterator<Item = String> {
    schema.tables().iter().flat_map(move |table| {
        let insert = format!(
            "INSERT INTO {} ({}) VALUES",
            name(schema.application(), table),
            listed(columns(table))
        );
        let mut keys = schema.standing(table).peekable();
        std::iter::from_fn(move || {
            keys.peek()?;
            let rows: Vec<_> =
                keys.by_ref().take(ROWS_AT_ONCE).map(|key| literal(table, key)).collect();
            Some(format!("{insert} {}", rows.join(", ")))
        })
    })
}

/// The tables of an application in a database.
pub(super) struct OwnTables {
    schema: Schema,
    queries: Vec<TableQueries>,
}

impl OwnTables {
    pub(super) fn new(schema: Schema, style: &Style) -> OwnTables {
        let of_table = |table: &Table| {
            let name = name(schema.application(), table);
            TableQueries {
                read: Query::new(&read(&name, table), style),
                write: Query::new(&write(&name, table, style), style),
            }
        };
        OwnTables { schema, queries: schema.tables().iter().map(of_table).collect() }
    }

    /// Whether a key is a row of these tables, which those from 0 on are. Others are registers.
    pub(super) fn have(&self, key: u64) -> bool {
        key < self.schema.rows()
    }

    /// Reads the version of a row.
    pub(super) fn read(&self, line: &mut dyn Prepared, key: u64) -> Result<RegisterValue, DbError> {
        let row = self.row(key)?;
        let reply = line.ask(&self.queries[row.table].read, &row.key)?;
        match reply.rows.first() {
            Some(found) => version(&row, &self.schema.tables()[row.table], found),
            None => Ok(None),
        }
    }

    /// Writes a row of this version.
    pub(super) fn write(
        &self,
        line: &mut dyn Prepared,
        key: u64,
        version: i64,
    ) -> Result<(), DbError> {
        let row = self.row(key)?;
        let table = &self.schema.tables()[row.table];
        let mut values = row.key.clone();
        values.extend(table.held(version).chain([version]));
        let reply = line.ask(&self.queries[row.table].write, &values)?;
        if table.rows == Rows::Inserted || reply.changed > 0 {
            return Ok(());
        }
        Err(DbError::fatal(format!(
            "row {row} does not exist: it was removed from outside this run"
        )))
    }

    fn row(&self, key: u64) -> Result<RowName, DbError> {
        let beyond = || DbError::fatal(format!("there is no row {key}: the tables are smaller"));
        self.schema.row(key).ok_or_else(beyond)
    }
}

/// A row as nobody has written it yet, for `VALUES`.
fn literal(table: &Table, key: Vec<i64>) -> String {
    let values: Vec<_> =
        key.into_iter().chain(table.held(0)).chain([0]).map(|value| value.to_string()).collect();
    format!("({})", values.join(", "))
}

/// The version of a row that was read, with which everything else in it must go together.
fn version(row: &RowName, table: &Table, found: &[Value]) -> Result<RegisterValue, DbError> {
    let Some((Value::Int(version), held)) = found.split_last() else {
        return Err(DbError::fatal(format!(
            "row {row} contains {found:?}, which no client of this run wrote"
        )));
    };
    if !table.held(*version).map(Value::Int).eq(held.iter().cloned()) {
        return Err(DbError::fatal(format!(
            "row {row} is of version {version}, but holds what another version wrote: {held:?}"
        )));
    }
    Ok(Some(*version).filter(|version| *version != 0))
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use isolario_workload::Workload;

    use super::*;
    #[cfg(feature = "sqlite")]
    use crate::database::SqlResult;

    fn schema(application: Application) -> Schema {
        Schema::of(&Workload::of_application(application, 1)).unwrap()
    }

    /// All statements on the tables of an application.
    fn statements(application: Application, style: &Style) -> String {
        let tables = OwnTables::new(schema(application), style);
        let mut text = String::new();
        for ((name, columns), sql) in definitions(tables.schema).zip(&tables.queries) {
            let (read, write) = (&sql.read.sql, &sql.write.sql);
            writeln!(text, "CREATE TABLE {name} {columns}\n{read}\n{write}\n").unwrap();
        }
        text
    }

    #[cfg(feature = "postgres")]
    #[test]
    fn statements_of_postgres() {
        insta::assert_snapshot!(statements(Application::Tpcc, &crate::postgres::STYLE));
    }

    #[cfg(feature = "mysql")]
    #[test]
    fn statements_of_mysql() {
        insta::assert_snapshot!(statements(Application::Rubis, &crate::mysql::STYLE));
    }

    #[cfg(feature = "sqlite")]
    #[test]
    fn statements_of_sqlite() {
        insta::assert_snapshot!(statements(Application::Twitter, &crate::sqlite::STYLE));
    }

    #[cfg(feature = "sqlite")]
    #[test]
    fn rows_that_stand_are_inserted_some_at_a_time() {
        let inserts: Vec<String> = rows(schema(Application::Tpcc)).collect();
        let rows = |insert: &String| insert.matches("), (").count() + 1;
        // One warehouse, 10 districts, 300 customers, 1,000 items, and as many in stock.
        assert_eq!(inserts.iter().map(rows).collect::<Vec<_>>(), [1, 10, 300, 500, 500, 500, 500]);
        let warehouse =
            "INSERT INTO isolario_tpcc_warehouse (w_id, w_tax, w_ytd, version) VALUES (1, ";
        assert!(
            inserts[0].starts_with(warehouse) && inserts[0].ends_with(", 0)"),
            "{}",
            inserts[0]
        );
    }

    /// Answers every question with one row.
    #[cfg(feature = "sqlite")]
    struct Echo(Vec<Value>);

    #[cfg(feature = "sqlite")]
    impl Prepared for Echo {
        fn ask(&mut self, _: &Query, _: &[i64]) -> Result<SqlResult, DbError> {
            Ok(SqlResult { rows: vec![self.0.clone()], changed: 1, ..SqlResult::default() })
        }
    }

    #[cfg(feature = "sqlite")]
    #[test]
    fn a_row_of_several_versions_is_not_taken_for_one() {
        let schema = schema(Application::Twitter);
        let (tables, users) = (OwnTables::new(schema, &crate::sqlite::STYLE), &schema.tables()[0]);
        let of = |held: i64, version: i64| {
            Echo(users.held(held).chain([version]).map(Value::Int).collect())
        };
        assert_eq!(tables.read(&mut of(7, 7), 3), Ok(Some(7)));
        assert_eq!(tables.read(&mut of(0, 0), 3), Ok(None));
        let torn = tables.read(&mut of(7, 8), 3).unwrap_err();
        assert!(torn.message.starts_with("row users/4 is of version 8, but holds"), "{torn}");
    }
}
