//! Statements as text, and the types of what comes back.

use isolario_db::SqlConnection;
use isolario_model::{Decimal, Value};
use isolario_servers::Kind;

use super::site::{database, start};

/// A table of ours, whatever a value is.
fn every_type(connection: &mut dyn SqlConnection) -> Vec<Vec<Value>> {
    let mut run = |sql: &str| connection.statement(sql, true).unwrap();
    run("CREATE TABLE types (id INTEGER, name VARCHAR(20), price DECIMAL(10, 2), day DATE)");
    run("INSERT INTO types VALUES (7, 'it''s', -12345.50, '2026-02-28'), (8, NULL, NULL, NULL)");
    assert_eq!(run("UPDATE types SET name = 'x' WHERE id > 7").changed, 1);
    let answer = run("SELECT * FROM types ORDER BY id");
    assert_eq!(answer.columns, ["id", "name", "price", "day"]);
    run("DROP TABLE types");
    answer.rows
}

fn row(id: i64, name: &str, price: &str) -> [Value; 3] {
    [id.into(), Value::Text(name.into()), Value::Decimal(Decimal::parse(price).unwrap())]
}

#[test]
fn servers_answer_with_types() {
    for (kind, missing) in [(Kind::Postgres, "42P01"), (Kind::MariaDb, "1146")] {
        let servers = start(kind);
        let database = database(servers.url(), "");
        let mut connection = database.sql().unwrap().connect_sql().unwrap();
        assert!(connection.id().is_some());
        let rows = every_type(&mut *connection);
        assert_eq!(rows[0][..3], row(7, "it's", "-12345.50"));
        assert_eq!(rows[0][3], Value::Other("2026-02-28".into()));
        assert_eq!(rows[1][2..], [Value::Nil, Value::Nil]);

        let error = connection.statement("SELECT * FROM nowhere", false).unwrap_err();
        assert_eq!((error.code.as_deref(), error.disconnected), (Some(missing), false));
        let again = connection.statement("SELECT 1 AS one", false).unwrap();
        assert_eq!(again.rows, [[Value::Int(1)]]);
    }
}

#[test]
fn sqlite_answers_with_what_it_keeps() {
    let database = database("sqlite:", "");
    let mut connection = database.sql().unwrap().connect_sql().unwrap();
    let rows = every_type(&mut *connection);
    assert_eq!(rows[0][0], Value::Int(7));
    assert_eq!(rows[0][2], Value::Other("-12345.5".into()), "SQLite has no decimals");
    assert_eq!(rows[0][3], Value::Text("2026-02-28".into()), "nor dates");
    assert!(connection.statement("SELECT * FROM nowhere", false).is_err());
}
