//! Applications whose rows are in SQL tables of their own.

use isolario_db::{Access, Database, ErrorClass, Layout};
use isolario_model::{History, Level, Value, ValueRef};
use isolario_servers::Kind;
use isolario_workload::{Application, Kind as WorkloadKind, Schema, Workload};

use super::site::{SLOW, connect, database, eventually, start, with_tables};
use super::trial::{Trial, assert_satisfied};

fn tpcc() -> Schema {
    Schema::of(&Workload::of_application(Application::Tpcc, 1)).unwrap()
}

/// The number of a row, by its name.
fn key(schema: Schema, name: &str) -> u64 {
    let is_named = |key: &u64| schema.row(*key).is_some_and(|row| row.to_string() == name);
    (0..schema.rows()).find(is_named).unwrap()
}

/// What a statement returns, row by row.
fn answer(database: &dyn Database, sql: &str) -> Vec<Vec<Value>> {
    let mut connection = eventually(|| database.sql().unwrap().connect_sql());
    connection.statement(sql, true).unwrap().rows
}

/// Rows are read and written as registers are, and are rows of the tables.
fn keeps_rows(url: &str) {
    let schema = tpcc();
    let database = &*with_tables(url, "serializable", SLOW, Some(schema));
    assert!(database.traits().tables);
    let keys = u32::try_from(schema.rows()).unwrap();
    // With a register beyond the tables, as hosts leave word under.
    let layout = Layout::new(WorkloadKind::General, keys + 1);
    eventually(|| database.prepare(&layout));
    let stock =
        "SELECT s_quantity, version FROM isolario_tpcc_stock WHERE s_w_id = 1 AND s_i_id = 17";
    let held = |table: usize, version| schema.tables()[table].held(version).next().unwrap();
    let before = [Value::Int(held(8, 0)), Value::Int(0)];
    assert_eq!(answer(database, stock), [before]);

    let mut connection = connect(database);
    let (stocked, order, beyond) =
        (key(schema, "stock/1/17"), key(schema, "orders/3"), schema.rows());
    connection.begin(Access::Write).unwrap();
    for key in [stocked, order, beyond] {
        assert_eq!(connection.read(key), Ok(None));
    }
    for (key, version) in [(stocked, 5), (order, 6), (beyond, 7), (order, 8)] {
        connection.write(key, version).unwrap();
        assert_eq!(connection.read(key), Ok(Some(version)));
    }
    connection.commit().unwrap();
    let after = [Value::Int(held(8, 5)), Value::Int(5)];
    assert_eq!(answer(database, stock), [after]);
    let orders = "SELECT o_id, version FROM isolario_tpcc_orders";
    assert_eq!(answer(database, orders), [[Value::Int(3), Value::Int(8)]]);

    drop(connection);
    eventually(|| database.clear());
    let mut connection = eventually(|| database.sql().unwrap().connect_sql());
    assert!(connection.statement(stock, true).is_err(), "the table is gone");
}

#[test]
fn rows_are_rows_of_tables() {
    let directory = tempfile::tempdir().unwrap();
    keeps_rows(&format!("sqlite:{}", directory.path().join("rows.db").display()));
    keeps_rows(start(Kind::Postgres).url());
    keeps_rows(start(Kind::MariaDb).url());
}

/// A table of somebody else, under the name of one of ours, stays as it is.
fn respects_strangers(url: &str) {
    let layout = Layout::new(WorkloadKind::General, 1);
    let plain = &*database(url, "");
    answer(plain, "CREATE TABLE isolario_tpcc_item (x INT)");
    let refused = with_tables(url, "", SLOW, Some(tpcc())).prepare(&layout).unwrap_err();
    assert_eq!(refused.class, ErrorClass::Fatal);
    assert!(refused.message.contains("a table isolario_tpcc_item that"), "{refused}");
    assert!(answer(plain, "SELECT x FROM isolario_tpcc_item").is_empty());
    // Whoever does not need that name is not in the way.
    eventually(|| plain.prepare(&layout));
}

#[test]
fn tables_of_strangers_stay() {
    let directory = tempfile::tempdir().unwrap();
    respects_strangers(&format!("sqlite:{}", directory.path().join("rows.db").display()));
    respects_strangers(start(Kind::Postgres).url());
    respects_strangers(start(Kind::MariaDb).url());
}

/// Every key of a history is a row of the application, and of its tables most are there.
fn is_of(application: Application, history: &History) {
    let mut tables: Vec<&str> = Vec::new();
    for key in history.op_keys() {
        let name = history.key_name(*key);
        let ValueRef::Text(name) = name else { panic!("{name} is no row") };
        tables.push(name.split('/').next().unwrap());
    }
    tables.sort_unstable();
    tables.dedup();
    let known = |name: &&str| application.tables().iter().any(|table| table.name == *name);
    assert!(tables.iter().all(known), "{tables:?}");
    assert!(2 * tables.len() > application.tables().len(), "{tables:?}");
}

fn trial(urls: &[String], isolation: &'static str, application: Application) -> Trial {
    let workload = Workload::of_application(application, 1);
    Trial { workload, in_tables: true, txns: 400, ..Trial::new(urls, isolation) }
}

#[test]
fn applications_are_serializable_where_that_is_asked_for() {
    let servers = start(Kind::Postgres);
    let sqlite = ["sqlite:".to_owned()];
    for application in Application::ALL {
        for urls in [&sqlite[..], servers.urls()] {
            let history = trial(urls, "serializable", application).history();
            is_of(application, &history);
            assert_satisfied(&history, Level::Serializable);
        }
    }
}

#[test]
fn applications_are_played_on_mariadb() {
    let servers = start(Kind::MariaDb);
    for application in Application::ALL {
        let history = trial(servers.urls(), "read-committed", application).history();
        is_of(application, &history);
        assert_satisfied(&history, Level::ReadCommitted);
    }
}

/// At repeatable read, snapshots are kept, whatever the shape of the tables.
#[test]
fn applications_keep_snapshots_on_postgres() {
    let servers = start(Kind::Postgres);
    let history = trial(servers.urls(), "repeatable-read", Application::Tpcc).history();
    assert_satisfied(&history, Level::SnapshotIsolation);
}
