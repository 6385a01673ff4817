//! Instrumentation changes no answer: the same transactions one after the other, with and without it.

use isolario::db::{
    Database, DbError, DbUrl, Settings as DbSettings, SqlConnection, SqlResult, open,
};
use isolario::model::Value;
use isolario::sql::{
    Aux, Bounds, Instrument, Instrumented, Planned, Planner, Product, Schema, StatementKind, Style,
    take_seen,
};
use isolario_servers::Kind;

use super::site::start;

/// A namespace with a schema in it.
fn prepared(
    database: &dyn Database,
    product: &Product,
    name: &str,
    schema: &Schema,
    aux: Option<&Aux>,
) -> Box<dyn SqlConnection> {
    let mut connection = database.sql().unwrap().connect_sql().unwrap();
    let namespace = product.make_namespace(name).into_iter().chain(product.enter_namespace(name));
    for sql in namespace.chain(schema.create(product, aux)) {
        connection.statement(&sql, true).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    connection
}

/// What one statement came to: its rows in some order, or the code of its error.
fn outcome(
    sent: &Instrumented,
    answer: Result<SqlResult, DbError>,
) -> Result<Vec<Vec<Value>>, String> {
    match answer {
        Ok(answer) => {
            let mut rows = answer.rows;
            take_seen(&sent.shows, &mut rows);
            rows.sort();
            Ok(if sent.kind == StatementKind::Delete { Vec::new() } else { rows })
        }
        Err(error) => Err(error.code.unwrap_or(error.message)),
    }
}

/// Runs a transaction, and tells what each of its statements came to. PostgreSQL takes nothing more
/// after an error.
fn transaction(
    connection: &mut dyn SqlConnection,
    product: &Product,
    planned: &Planned,
    prepare: &dyn Fn(&str, u32) -> Instrumented,
) -> Vec<Result<Vec<Vec<Value>>, String>> {
    connection.statement(product.begin(), false).unwrap();
    let mut outcomes = Vec::new();
    for (number, sql) in (1..).zip(&planned.statements) {
        let sent = prepare(sql, number);
        if let Some(before) = &sent.before {
            connection.statement(before, false).unwrap();
        }
        let answer = connection.statement(&sent.sql, false);
        let is_over = answer.is_err() && *product == Product::POSTGRES;
        outcomes.push(outcome(&sent, answer));
        if is_over {
            connection.statement("ROLLBACK", true).unwrap();
            return outcomes;
        }
    }
    connection.statement(if planned.commits { "COMMIT" } else { "ROLLBACK" }, true).unwrap();
    outcomes
}

fn is_neutral(url: &str, product: &Product) {
    let database = open(&DbUrl::parse(url).unwrap(), &DbSettings::default()).unwrap();
    // SQLite has no namespaces; there, each has a file of its own.
    let other = open(&DbUrl::parse(url).unwrap(), &DbSettings::default()).unwrap();
    let style = Style::default();
    let (mut statements, mut refused) = (0, 0);
    for round in 0..12 {
        let schema = Schema::random(23, round, &Bounds::default());
        let aux = Aux::avoiding(&schema);
        let mut plain = prepared(&*database, product, "isolario_sql_plain", &schema, None);
        let mut ours = prepared(&*other, product, "isolario_sql_ours", &schema, Some(&aux));
        let planner =
            Planner { schema: &schema, product, style: &style, models: &[], seed: 23, round };
        let instrument = Instrument { product, schema: &schema, aux: &aux };
        for position in 0..25 {
            let planned = planner.transaction(0, position);
            let id = position as u32 + 1;
            let as_it_is = |sql: &str, _: u32| {
                Instrumented::plain(isolario::sql::kind_of(product, sql), product.respell(sql))
            };
            let expected = transaction(&mut *plain, product, &planned, &as_it_is);
            let rewritten = |sql: &str, number: u32| {
                let sent = instrument.statement(sql, id, number);
                assert_eq!(sent.refusal, None, "{sql}");
                sent
            };
            let found = transaction(&mut *ours, product, &planned, &rewritten);
            for ((sql, expected), found) in planned.statements.iter().zip(&expected).zip(&found) {
                assert_eq!(found, expected, "{sql}");
                statements += 1;
                refused += u32::from(expected.is_err());
            }
        }
        for sql in schema.drop() {
            plain.statement(&sql, true).unwrap();
            ours.statement(&sql, true).unwrap();
        }
    }
    // Mostly, statements work.
    assert!(refused * 8 < statements, "{refused} of {statements} were refused");
}

#[test]
fn instrumentation_is_neutral_on_sqlite() {
    is_neutral("sqlite:", &Product::SQLITE);
}

#[test]
fn instrumentation_is_neutral_on_postgres() {
    is_neutral(start(Kind::Postgres).url(), &Product::POSTGRES);
}

#[test]
fn instrumentation_is_neutral_on_mariadb() {
    let servers = start(Kind::MariaDb);
    is_neutral(servers.url(), &Product::MARIADB);
    is_neutral(servers.url(), &Product::MYSQL);
}
