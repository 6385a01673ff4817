//! PostgreSQL.

use isolario_predicate::Dialect;
use isolario_servers::{Durability, Kind, Servers};
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

use crate::random::TestRow;
use crate::{Answer, Server, compare, values};

struct Postgres {
    runtime: Runtime,
    client: Client,
}

/// The value of an expression on a row as text, or the code of the error it raises.
const ATTEMPT: &str = "
    CREATE TABLE r (id INT, a BIGINT, b BIGINT, c BIGINT, d NUMERIC, t TEXT, u TEXT, f BOOLEAN);
    CREATE FUNCTION attempt(expression TEXT, row_id INT) RETURNS TEXT LANGUAGE plpgsql AS $$
    DECLARE result TEXT;
    BEGIN
        EXECUTE format('SELECT (%s)::TEXT FROM r WHERE id = %s', expression, row_id) INTO result;
        RETURN result;
    EXCEPTION WHEN OTHERS THEN
        RETURN 'error ' || SQLSTATE;
    END $$";

impl Postgres {
    fn connect(url: &str) -> Postgres {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let client = runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
            tokio::spawn(async { drop(connection.await) });
            client
        });
        Postgres { runtime, client }
    }

    fn query(&self, sql: &str) -> Vec<SimpleQueryMessage> {
        self.runtime.block_on(self.client.simple_query(sql)).unwrap()
    }
}

impl Server for Postgres {
    fn fill(&mut self, rows: &[TestRow]) {
        self.query(&format!("TRUNCATE r; INSERT INTO r VALUES {}", values(rows)));
    }

    fn ask(&mut self, expressions: &[String], rows: usize) -> Vec<Vec<Answer>> {
        let ask = |expression: &String| {
            let quoted = expression.replace('\'', "''");
            let answers = self.query(&format!("SELECT attempt('{quoted}', id) FROM r ORDER BY id"));
            let answers = answers.iter().filter_map(|message| match message {
                SimpleQueryMessage::Row(row) => Some(match row.get(0) {
                    None => Answer::Null,
                    Some(text) => match text.strip_prefix("error ") {
                        Some(code) => Answer::Error(code.to_owned()),
                        None => Answer::Value(text.to_owned()),
                    },
                }),
                _ => None,
            });
            let answers: Vec<_> = answers.collect();
            assert_eq!(answers.len(), rows);
            answers
        };
        expressions.iter().map(ask).collect()
    }
}

#[test]
fn postgres_gives_what_the_evaluator_gives() {
    let servers =
        Servers::start(Kind::Postgres, Durability::Fast).unwrap_or_else(|e| panic!("{e}"));
    let mut postgres = Postgres::connect(servers.url());
    postgres.query(ATTEMPT);
    compare(&mut postgres, Dialect::Postgres, 5);
}
