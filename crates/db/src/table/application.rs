//! The rows of an application in SQL tables of their own: the statements that make them, read them and
//! write them, for every dialect from the one description in [`isolario_workload::Schema`].
//!
//! To the history a row is a register. Its value is the column `version`, which no two writes share; the
//! other columns follow from it. So a row that was put together from several versions cannot pass for one
//! that somebody wrote.

use std::sync::LazyLock;

use isolario_model::Value;
use isolario_workload::{Application, RowName, Rows, Schema, Table};

use super::sql::{Dialect, Prepared, Query};
use crate::database::RegisterValue;
use crate::error::DbError;

/// The column that tells versions apart. Nobody has written a row of version 0.
const VERSION: &str = "version";

/// How many rows are inserted by one statement when tables are made.
const ROWS_AT_ONCE: usize = 500;

type PerApplication = [ApplicationSql; Application::ALL.len()];

#[cfg(feature = "postgres")]
static POSTGRES: LazyLock<PerApplication> =
    LazyLock::new(|| of_dialect(Dialect::Postgres(super::sql::Told::Nothing)));
#[cfg(feature = "sqlite")]
static SQLITE: LazyLock<PerApplication> = LazyLock::new(|| of_dialect(Dialect::Sqlite));
#[cfg(feature = "mysql")]
static MYSQL: LazyLock<PerApplication> = LazyLock::new(|| of_dialect(Dialect::MySql));

fn of_dialect(dialect: Dialect) -> PerApplication {
    Application::ALL.map(|application| ApplicationSql::new(application, dialect))
}

/// What is asked of the tables of an application.
struct ApplicationSql {
    application: Application,
    tables: Vec<TableSql>,
}

/// What is asked of a table.
struct TableSql {
    read: Query,
    write: Query,
}

impl ApplicationSql {
    fn new(application: Application, dialect: Dialect) -> ApplicationSql {
        let of_table = |table| {
            let name = name(application, table);
            TableSql {
                read: Query::new(&read(&name, table), dialect),
                write: Query::new(&write(&name, table, dialect), dialect),
            }
        };
        ApplicationSql { application, tables: application.tables().iter().map(of_table).collect() }
    }
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
fn write(name: &str, table: &Table, dialect: Dialect) -> String {
    let held = || columns(table).enumerate().skip(table.key.len());
    if table.rows != Rows::Inserted {
        let set: Vec<_> = held().map(|(at, column)| format!("{column} = {{{}}}", at + 1)).collect();
        let update = format!("UPDATE {name} SET {} WHERE {}", set.join(", "), by_key(table));
        // Where changes are not counted, the row itself says that it is there.
        return match dialect {
            Dialect::MySql => update,
            _ => format!("{update} RETURNING {VERSION}"),
        };
    }
    let numbers: Vec<_> = (1..=columns(table).count()).map(|at| format!("{{{at}}}")).collect();
    let insert =
        format!("INSERT INTO {name} ({}) VALUES ({})", listed(columns(table)), numbers.join(", "));
    let key = listed(table.key.iter().map(|column| column.name));
    let (otherwise, new): (String, fn(&str) -> String) = match dialect {
        Dialect::MySql => {
            ("ON DUPLICATE KEY UPDATE".to_owned(), |column| format!("VALUES({column})"))
        }
        _ => (format!("ON CONFLICT ({key}) DO UPDATE SET"), |column| format!("excluded.{column}")),
    };
    let set: Vec<_> = held().map(|(_, column)| format!("{column} = {}", new(column))).collect();
    format!("{insert} {otherwise} {}", set.join(", "))
}

/// The tables of an application in a database of one dialect.
#[derive(Clone, Copy)]
pub(crate) struct OwnTables {
    schema: Schema,
    sql: &'static ApplicationSql,
}

impl OwnTables {
    #[cfg(feature = "postgres")]
    pub(crate) fn postgres(schema: Schema) -> OwnTables {
        OwnTables::of(schema, &POSTGRES)
    }

    #[cfg(feature = "sqlite")]
    pub(crate) fn sqlite(schema: Schema) -> OwnTables {
        OwnTables::of(schema, &SQLITE)
    }

    #[cfg(feature = "mysql")]
    pub(crate) fn mysql(schema: Schema) -> OwnTables {
        OwnTables::of(schema, &MYSQL)
    }

    fn of(schema: Schema, all: &'static PerApplication) -> OwnTables {
        let own = all.iter().find(|sql| sql.application == schema.application());
        OwnTables { schema, sql: own.unwrap_or(&all[0]) }
    }

    /// How many keys are rows of these tables: those from 0 on. Others are registers.
    pub(crate) fn keys(self) -> u64 {
        self.schema.rows()
    }

    /// The tables that a key is a row of, if it is no register.
    pub(crate) fn of_key(own: Option<OwnTables>, key: u64) -> Option<OwnTables> {
        own.filter(|tables| key < tables.keys())
    }

    /// The names and columns of tables that every run has, and of these.
    #[cfg(any(feature = "mysql", feature = "postgres"))]
    pub(crate) fn added_to(
        always: &[(&str, &str)],
        own: Option<OwnTables>,
    ) -> Vec<(String, String)> {
        let owned = |(name, columns): &(&str, &str)| ((*name).to_owned(), (*columns).to_owned());
        let always = always.iter().map(owned);
        always.chain(own.into_iter().flat_map(OwnTables::definitions)).collect()
    }

    /// The tables: names, and columns for `CREATE TABLE`.
    pub(crate) fn definitions(self) -> impl Iterator<Item = (String, String)> {
        let application = self.schema.application();
        self.schema.tables().iter().map(move |table| (name(application, table), definition(table)))
    }

    /// The statements that insert the rows which are there from the beginning.
    pub(crate) fn rows(self) -> impl Iterator<Item = String> {
        self.schema.tables().iter().flat_map(move |table| {
            let insert = format!(
                "INSERT INTO {} ({}) VALUES",
                name(self.schema.application(), table),
                listed(columns(table))
            );
            let mut keys = self.schema.standing(table).peekable();
            std::iter::from_fn(move || {
                keys.peek()?;
                let rows: Vec<_> =
                    keys.by_ref().take(ROWS_AT_ONCE).map(|key| literal(table, key)).collect();
                Some(format!("{insert} {}", rows.join(", ")))
            })
        })
    }

    /// Reads the version of a row.
    pub(crate) fn read(self, line: &mut dyn Prepared, key: u64) -> Result<RegisterValue, DbError> {
        let row = self.row(key)?;
        let reply = self.sql.tables[row.table].read.ask(line, &row.key)?;
        match reply.rows.first() {
            Some(found) => version(&row, &self.schema.tables()[row.table], found),
            None => Ok(None),
        }
    }

    /// Writes a row of this version.
    pub(crate) fn write(
        self,
        line: &mut dyn Prepared,
        key: u64,
        version: i64,
    ) -> Result<(), DbError> {
        let row = self.row(key)?;
        let table = &self.schema.tables()[row.table];
        let mut values = row.key.clone();
        values.extend(table.held(version).chain([version]));
        let reply = self.sql.tables[row.table].write.ask(line, &values)?;
        let is_there = table.rows == Rows::Inserted || reply.changed > 0 || !reply.rows.is_empty();
        match is_there {
            true => Ok(()),
            false => Err(DbError::fatal(format!(
                "row {row} does not exist: it was removed from outside this run"
            ))),
        }
    }

    fn row(self, key: u64) -> Result<RowName, DbError> {
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

    use super::*;
    use isolario_workload::Workload;

    fn schema(application: Application) -> Schema {
        Schema::of(&Workload::of_application(application, 1)).unwrap()
    }

    /// All statements on the tables of an application.
    fn statements(tables: OwnTables) -> String {
        let mut text = String::new();
        for ((name, columns), sql) in tables.definitions().zip(&tables.sql.tables) {
            let (read, write) = (&sql.read.sql, &sql.write.sql);
            writeln!(text, "CREATE TABLE {name} {columns}\n{read}\n{write}\n").unwrap();
        }
        text
    }

    #[cfg(feature = "postgres")]
    #[test]
    fn statements_of_postgres() {
        insta::assert_snapshot!(statements(OwnTables::postgres(schema(Application::Tpcc))));
    }

    #[cfg(feature = "mysql")]
    #[test]
    fn statements_of_mysql() {
        insta::assert_snapshot!(statements(OwnTables::mysql(schema(Application::Rubis))));
    }

    #[cfg(feature = "sqlite")]
    #[test]
    fn statements_of_sqlite() {
        insta::assert_snapshot!(statements(OwnTables::sqlite(schema(Application::Twitter))));
    }

    #[cfg(feature = "sqlite")]
    #[test]
    fn rows_that_stand_are_inserted_some_at_a_time() {
        let tables = OwnTables::sqlite(schema(Application::Tpcc));
        let inserts: Vec<String> = tables.rows().collect();
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
        fn ask(&mut self, _: &'static str, _: &[i64]) -> Result<crate::table::sql::Reply, DbError> {
            Ok(crate::table::sql::Reply { rows: vec![self.0.clone()], changed: 1 })
        }
    }

    #[cfg(feature = "sqlite")]
    #[test]
    fn a_row_of_several_versions_is_not_taken_for_one() {
        let schema = schema(Application::Twitter);
        let (tables, users) = (OwnTables::sqlite(schema), &schema.tables()[0]);
        let of = |held: i64, version: i64| {
            Echo(users.held(held).chain([version]).map(Value::Int).collect())
        };
        assert_eq!(tables.read(&mut of(7, 7), 3), Ok(Some(7)));
        assert_eq!(tables.read(&mut of(0, 0), 3), Ok(None));
        let torn = tables.read(&mut of(7, 8), 3).unwrap_err();
        assert!(torn.message.starts_with("row users/4 is of version 8, but holds"), "{torn}");
    }
}
