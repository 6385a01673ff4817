//! MariaDB.

use isolario_predicate::Dialect;
use isolario_servers::{Durability, Kind, Servers};
use mysql::prelude::Queryable;
use mysql::{Conn, Opts, Value};

use crate::random::TestRow;
use crate::{Answer, Server, compare, values};

struct MariaDb(Conn);

impl MariaDb {
    /// Some expressions on all rows, or on one; nothing if any of them raises an error.
    fn select(&mut self, expressions: &[String], filter: &str) -> Option<Vec<Vec<Answer>>> {
        let columns: Vec<_> =
            expressions.iter().map(|expression| format!("({expression})")).collect();
        let sql = format!("SELECT {} FROM r {filter} ORDER BY id", columns.join(", "));
        let rows: Vec<mysql::Row> = self.0.query(sql).ok()?;
        let answer = |value: &Value| match value {
            Value::NULL => Answer::Null,
            Value::Bytes(bytes) => Answer::Value(String::from_utf8(bytes.clone()).unwrap()),
            other => panic!("{other:?}"),
        };
        let column = |at: usize| rows.iter().map(|row| answer(&row[at])).collect();
        Some((0..expressions.len()).map(column).collect())
    }
}

impl Server for MariaDb {
    fn fill(&mut self, rows: &[TestRow]) {
        self.0.query_drop("TRUNCATE r").unwrap();
        self.0.query_drop(format!("INSERT INTO r VALUES {}", values(rows))).unwrap();
    }

    fn ask(&mut self, expressions: &[String], rows: usize) -> Vec<Vec<Answer>> {
        if let Some(answers) = self.select(expressions, "") {
            return answers;
        }
        let mut ask = |expression: &String| {
            let expression = std::slice::from_ref(expression);
            if let Some(mut answers) = self.select(expression, "") {
                return answers.remove(0);
            }
            let mut on_row = |id: usize| match self.select(expression, &format!("WHERE id = {id}"))
            {
                Some(mut answers) => answers.remove(0).remove(0),
                None => Answer::Error("out of range".to_owned()),
            };
            (0..rows).map(&mut on_row).collect()
        };
        expressions.iter().map(&mut ask).collect()
    }
}

#[test]
fn mariadb_gives_what_the_evaluator_gives() {
    let servers = Servers::start(Kind::MariaDb, Durability::Fast).unwrap_or_else(|e| panic!("{e}"));
    let mut conn = Conn::new(Opts::from_url(servers.url()).unwrap()).unwrap();
    let create = "CREATE TABLE r (id INT, a BIGINT, b BIGINT, c BIGINT, d DECIMAL(40, 10), \
                  t VARCHAR(20), u VARCHAR(20), f BOOLEAN) CHARACTER SET utf8mb4";
    conn.query_drop(create).unwrap();
    conn.query_drop("SET NAMES utf8mb4").unwrap();
    compare(&mut MariaDb(conn), Dialect::MySql, 6);
}
